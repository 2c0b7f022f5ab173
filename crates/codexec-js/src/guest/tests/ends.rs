use super::*;

#[test]
fn values_come_from_return_or_the_last_expression() {
    check("1 + 1", "2");
    check("const x = 1; x + 1", "2");
    check("return 5; 6", "5");
    check("({a: 1})", r#"{"a":1}"#);
    check("{a: 1}", "null");
    check("'text'", r#""text""#);
    check("'use strict'; 'text'", r#""text""#);
    check("if (true) 1", "null");
    check("const x = 1", "null");
    check("await Promise.resolve([1, {b: 2}])", r#"[1,{"b":2}]"#);
    check("return await new Promise(done => setTimeout(() => done(3), 1))", "3");
    check("input.n", "7");
    check("undefined", "null");
    check("new Date(0)", r#""1970-01-01T00:00:00.000Z""#);
    check("({toJSON() { return 'own' }})", r#""own""#);
    check("new Map([['a', 1]])", r#"{"a":1}"#);
    check("new Set([1, 2])", "[1,2]");
    check("#!/usr/bin/env node\n7", "7");
    check("'\\ud800'", r#""\ud800""#);
}

#[test]
fn code_is_strict_only_if_it_asks_for_it_or_is_a_module() {
    let undeclared = |at: &str| format!("RUNTIME_ERROR ReferenceError: x is not defined @{at}");
    for check in [check, check_typescript] {
        check("x = await Promise.resolve(1); x + globalThis.x", "2");
        check("for (i = 0; i < 3; i++); i", "3");
        check("(function () { return this === globalThis })()", "true");
        check("'use strict'; x = 1", &undeclared("1:15"));
        check("function f() { 'use strict'; x = 1 } f()", &undeclared("1:30"));
        check("export {};\nx = 1", &undeclared("2:1"));
        check("const x = 1; try { x = 2 } catch (e) { return e.name }", r#""TypeError""#);
    }
    check("var o = {a: 1}; with (o) { a = 010 }; o", r#"{"a":8}"#);
    check("const f = (await 1); with (o) {", "SYNTAX_ERROR Expected `}` but found `EOF` @1:32");
}

#[test]
fn results_that_are_not_json_are_errors() {
    let hint = "; return plain objects, arrays, strings, numbers, booleans or null";
    let check = |code: &str, why: &str| {
        let prefix = "SERIALIZATION_ERROR the result cannot be written as JSON: ";
        super::check(code, &format!("{prefix}{why}{hint}"));
    };
    check("10n", "TypeError: BigInt are forbidden in JSON.stringify");
    check("const a = {}; a.a = a; a", "TypeError: circular reference");
    check("() => 1", "TypeError: it is a function");
    check("Symbol('x')", "TypeError: it is a symbol");
    check("({toJSON() { throw new Error('no') }})", "no");
    super::check(
        "'x'.repeat(9 << 20)",
        "SERIALIZATION_ERROR the result is more than 8388608 bytes as JSON; return less of it, or \
         a summary",
    );
}

#[test]
fn syntax_errors_say_where() {
    check("const x = ;", "SYNTAX_ERROR Unexpected token @1:11");
    check("let a = 1;\nlet é = 'ö' +* 2;", "SYNTAX_ERROR Unexpected token @2:14");
    check("let x; let x;", "SYNTAX_ERROR Identifier `x` has already been declared @1:5");
    check(
        "const x: number = 1",
        "SYNTAX_ERROR Missing initializer in const declaration; Add an initializer (e.g. ` = undefined`) here; the code is valid TypeScript: set language to typescript @1:7",
    );
    let flaw = javascript("1;\n\tconst x = ;").ending.expect_err("a syntax error");
    assert_eq!(flaw.stack.as_deref(), Some("  \tconst x = ;\n  \t          ^"));
    assert!(!javascript("const x = ;").is_compiled);
    assert!(javascript("throw 1").is_compiled);
}

#[test]
fn engine_errors_have_positions() {
    check(
        "1;\nimport.meta.url",
        "SYNTAX_ERROR SyntaxError: import.meta only valid in module code @2:1",
    );
    check_typescript(
        "@dec class A {}",
        "TRANSPILE_ERROR SyntaxError: unexpected token in expression: '@' @1:1",
    );
}

#[test]
fn errors_carry_the_guests_own_place() {
    check("throw new Error('first')", "RUNTIME_ERROR first @1:11");
    check(
        "// why\n\n  undefinedThing()",
        "RUNTIME_ERROR ReferenceError: undefinedThing is not defined @3:3",
    );
    check(
        "const o = {};\no.missing();",
        "RUNTIME_ERROR TypeError: o.missing is not a function @2:3",
    );
    check(
        "[1].map(x => {\n  throw new TypeError('in map');\n})",
        "RUNTIME_ERROR TypeError: in map @2:13",
    );
    check(
        "async function f() {\n  await null;\n  throw new RangeError('late');\n}\nawait f();",
        "RUNTIME_ERROR RangeError: late @3:13",
    );
    check("const é = 'ööö'; throw new Error('wide')", "RUNTIME_ERROR wide @1:28");
}

#[test]
fn errors_of_another_environment_say_what_to_write() {
    let check = |code: &str, expected: &str| {
        let said = ending(&javascript(code));
        assert!(said.contains(expected), "{code}: {said}");
        assert!(said.len() < 280, "{code}: {said}");
    };
    check("await fetch('http://x')", "fetch is not defined; there is no network here; call a tool");
    check("const fs = require('fs')", "require is not defined; there are no modules here");
    check(
        "fs.readFileSync('x')",
        "fs is not defined; there are no files here; set language to node",
    );
    check("Buffer.from('x')", "Buffer is not defined; use Uint8Array");
    check("Deno.env.get('x')", "Deno is not defined; this is not Deno");
    check("process.env.HOME", "process is not defined; use input and args");
    check("print('x')", "print is not defined; use console.log(..), or set language to python");
    check("mcp__github__x({})", "call a tool as a property of its server");
    check("typeof fetch + typeof process", r#""undefinedundefined""#);
    let parsed = "results of tools are already parsed";
    check(
        "JSON.parse(await tools.github.x())",
        &format!("was given an object, not text: {parsed}"),
    );
    check(
        "const r = await tools.github.x(); r.split(',')",
        &format!("r is not a string: {parsed}"),
    );
    check("const r = await tools.github.x(); r.map(String)", "r is not an array");
    check("({}).split(',')", "TypeError: ({}).split is not a function @1:6");
    check("[JSON.parse('[1]'), JSON.parse({toString: () => '{}'})]", "[[1],{}]");
}

#[test]
fn stacks_are_the_guests_frames_only() {
    let code = "// one\nfunction inner() { throw new Error('x'); }\nfunction outer() {\n  inner();\n}\n[1].forEach(() => outer());";
    let thrown = javascript(code).ending.expect_err("a throw");
    let stack = "at inner (2:30)\nat outer (4:3)\nat <anonymous> (6:19)\nat <main> (6:5)";
    assert_eq!(thrown.stack.as_deref(), Some(stack));
    let deep = javascript("function f(n) { if (n) f(n - 1); else throw new Error('x'); } f(100)");
    let stack = deep.ending.expect_err("a throw").stack.expect("a stack");
    assert_eq!(stack.lines().count(), 20);
}

#[test]
fn whatever_is_thrown_is_readable() {
    check("throw 'text'", "RUNTIME_ERROR text");
    check("throw 42", "RUNTIME_ERROR 42");
    check("throw {code: 5}", "RUNTIME_ERROR { code: 5 }");
    check("throw new Error()", "RUNTIME_ERROR Error @1:11");
    check(
        "class Odd extends Error { name = 'Odd' }; throw new Odd('x')",
        "RUNTIME_ERROR Odd: x @1:53",
    );
}

#[test]
fn nothing_left_to_wait_for_is_an_end_at_once() {
    let stuck = "RUNTIME_ERROR the code awaits something that nothing will ever settle: no tool \
                 call and no timer is left that could do it";
    check("await new Promise(() => {})", stuck);
    check("setTimeout(() => {}, 1); await new Promise(() => {})", stuck);
}

#[test]
fn what_was_begun_is_awaited_but_intervals_are_not() {
    let record =
        javascript("setTimeout(() => console.log('late'), 5); setInterval(() => {}, 1); 1");
    assert_eq!((record.out.as_str(), ending(&record).as_str()), ("late\n", "1"));
    let record = javascript("tools.github.x().then(() => console.log('answered')); 1");
    assert_eq!((record.out.as_str(), ending(&record).as_str()), ("answered\n", "1"));
}

#[test]
fn timers_without_a_pause_let_answers_in() {
    let code = "let done = false; tools.github.x().then(() => { done = true });\n\
        const tick = () => { if (!done) setTimeout(tick, 0) }; tick(); 1";
    check(code, "1");
}

#[test]
fn floating_rejections_are_a_line_on_stderr() {
    check("Promise.reject(new TypeError('lost')); 1", "Unhandled rejection: TypeError: lost\n1");
    check("const p = Promise.reject(1); await 0; try { await p } catch { } 2", "2");
    check("setTimeout(() => { throw new Error('t') }, 0); 1", "Uncaught in a timer: Error: t\n1");
}

#[test]
fn memory_and_stack_end_within_the_engine() {
    check(
        "let a = []; for (;;) a.push('x'.repeat(1 << 20) + a.length)",
        "MEMORY_LIMIT the code used up its memory @1:45",
    );
    // There is no memory left even for an error object; the host recognises this by the peak.
    check("let a = []; for (;;) a.push({})", "RUNTIME_ERROR null");
    check("throw null", "RUNTIME_ERROR null");
    check(
        "function f() { f() } f()",
        "RUNTIME_ERROR RangeError: Maximum call stack size exceeded @1:16",
    );
    check("function f() { f() } try { f() } catch (e) { e.name }", "null");
    check(
        "let s = 'a'; for (let i = 0; i < 31; i++) s += s; 1",
        "RUNTIME_ERROR InternalError: string too long @1:48",
    );
}

#[test]
fn modules_are_refused_with_a_hint() {
    let no_imports = "imports are not available here; call tools with `await \
        tools.<server>.<tool>({..})`, and use the globals (URL, TextEncoder, crypto, ..) as they are";
    let no_exports = "exports are not available here; give a value back with `return`, or as the \
        last expression";
    check("1;\nimport fs from 'fs'", &format!("SYNTAX_ERROR {no_imports} @2:1"));
    check("export const x = 1", &format!("SYNTAX_ERROR {no_exports} @1:1"));
    check("export default 1", &format!("SYNTAX_ERROR {no_exports} @1:1"));
    check_typescript("import fs from 'fs'", &format!("TRANSPILE_ERROR {no_imports} @1:1"));
    check("try { await import('fs') } catch (e) { return e.name }", r#""ReferenceError""#);
}
