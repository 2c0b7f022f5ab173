use super::*;

#[track_caller]
fn check(code: &str, expected: &str) {
    let script =
        Program::compile(code, Language::TypeScript, NameScope::Own).map(|program| program.script);
    let body = script.expect("a program");
    let body = body.strip_prefix(HEAD).or_else(|| body.strip_prefix(STRICT_HEAD));
    let body = body.and_then(|body| body.strip_suffix(TAIL));
    assert_eq!(body.expect("the wrapper"), expected, "{code}");
}

#[test]
fn the_last_expression_is_returned() {
    check("1 + 1", "return 1 + 1;\n");
    check("({ a: 1 });", "return { a: 1 };\n");
    check("a(); b();", "a();\nreturn b();\n");
    check("1;\ninterface A {}\n;", "return 1;\n;\n");
    check("'a'", "return \"a\";\n");
    check("'a'; // b", "return \"a\";\n");
    check("let a = 1", "let a = 1;\n");
    check("namespace N {}", "");
}

#[test]
fn type_only_declarations_are_removed() {
    check("import type { A } from 'a'; export type { A };", "");
    check("export {}; let x: A = y as A;", "let x = y;\n");
    check("declare module 'x' {}\ndeclare global { var y: number }", "");
}

#[test]
fn res_5_names_of_namespaces_are_bounded() {
    let compile = |parts: usize| {
        let name = vec!["a"; parts].join(".");
        let code = format!("namespace b {{ export namespace {name} {{ export const x = 1 }} }}");
        Program::compile(&code, Language::TypeScript, NameScope::Own)
    };
    assert!(compile(100).is_ok());
    let flaw = compile(101).err().expect("an error");
    assert_eq!(flaw.message, "a namespace's name has more than 100 parts");
    assert_eq!(flaw.at.map(|at| at.column), Some(22));
}
