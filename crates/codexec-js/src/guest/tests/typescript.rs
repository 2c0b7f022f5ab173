use super::*;

#[test]
fn types_vanish() {
    let check = check_typescript;
    check("const x: number = 1; x as unknown as string", "1");
    check("interface A { a: number } type B = A | null; const b: B = {a: 2}; b!.a", "2");
    check("function id<T extends object>(x: T): T { return x } id<{a: 1}>({a: 1})", r#"{"a":1}"#);
    check("const x = {a: 1} satisfies Record<string, number>; x", r#"{"a":1}"#);
    check(
        "declare const nothing: number; declare function f(): void; typeof nothing",
        r#""undefined""#,
    );
    check(
        "function f(a: string): void; function f(a: number): void; function f(a: any) { return a } f(3)",
        "3",
    );
    check(
        "import type { A } from 'a'; import { type B } from 'b'; export type C = A | B; export interface D {} 4",
        "4",
    );
    check("const x = <number>5; x", "5");
    check("1 + 1; interface After {}", "2");
    check("let x: any = {}; x?.y?.z ?? 'none'", r#""none""#);
}

#[test]
fn what_typescript_adds_works() {
    let check = check_typescript;
    check("enum E { A = 1, B, C = 'c' } [E.A, E.B, E.C, E[2]]", r#"[1,2,"c","B"]"#);
    check("const enum E { A = 1 << 3 } E.A", "8");
    check(
        "namespace N { export const x = 1; export namespace M { export const y = 2 } } N.x + N.M.y",
        "3",
    );
    check(
        "class P { constructor(public a: number, private readonly b = 2) {} sum() { return this.a + this.b } } new P(1).sum()",
        "3",
    );
    check(
        "abstract class A { abstract f(): number; g() { return this.f() } } class B extends A { f() { return 7 } } new B().g()",
        "7",
    );
    check(
        "class C { #x = 1; static y = 2; get x(): number { return this.#x } } new C().x + C.y",
        "3",
    );
    check("const f = async <T,>(x: T): Promise<T> => x; await f(9)", "9");
}

#[test]
fn flaws_are_transpile_errors() {
    check_typescript("const x: = 1", "TRANSPILE_ERROR Unexpected token @1:10");
    check_typescript("enum {}", "TRANSPILE_ERROR Unexpected token @1:6");
}

#[test]
fn positions_survive_the_stripping() {
    let code = "interface A {\n  a: number;\n}\nenum E { X, Y }\nfunction f(e: E): never {\n  // deep\n  throw new Error('at 1');\n}\nf(E.Y);";
    let record = play(job(Language::TypeScript, code), echo);
    assert_eq!(ending(&record), "RUNTIME_ERROR at 1 @7:13");
    let stack = record.ending.expect_err("a throw").stack;
    assert_eq!(stack.as_deref(), Some("at f (7:13)\nat <main> (9:3)"));
}
