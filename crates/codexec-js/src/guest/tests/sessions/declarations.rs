use super::*;

#[test]
fn everything_declared_is_there_in_the_next_cell() {
    check_cells(&[
        ("const a = 1; let b = 2; var c = 3; function d() { return 4 } class E { f = 5 }", "null"),
        ("[a, b, c, d(), new E().f]", "[1,2,3,4,5]"),
        ("typeof F + typeof globalThis.a", r#""undefinednumber""#),
    ]);
}

#[test]
fn everything_may_be_declared_again_as_anything() {
    check_cells(&[
        ("const a = 1; let b = 1; class C {} function d() { return 1 }", "null"),
        ("let a = 2; const b = 2; function C() { return 2 } const d = () => 2", "null"),
        ("[a, b, C(), d()]", "[2,2,2,2]"),
        ("class a { static x = 3 } var b = 3; const C = () => 3; let d = C", "null"),
        ("[a.x, b, C(), d()]", "[3,3,3,3]"),
        ("let x; let x;", "SYNTAX_ERROR Identifier `x` has already been declared @1:5"),
    ]);
}

#[test]
fn closures_see_what_later_cells_do() {
    check_cells(&[
        ("let n = 1; function get() { return n } const set = value => { n = value }", "null"),
        ("n = 2; get()", "2"),
        ("set(3); n", "3"),
        ("let n = 10; get()", "10"),
        ("function helper() { return 'old' } function user() { return helper() }", "null"),
        ("function helper() { return 'new' } user()", r#""new""#),
        ("function fact(n) { return n < 2 ? 1 : n * fact(n - 1) } fact(5)", "120"),
    ]);
}

#[test]
fn names_inside_of_functions_and_blocks_stay_there() {
    check_cells(&[
        ("let x = 'top'; function f(x) { x = 'inner'; return x } f(); x", r#""top""#),
        ("{ let x = 'block'; const only = 1 } x + typeof only", r#""topundefined""#),
        (
            "for (let i = 0; i < 3; i++) { let y = i } typeof i + typeof y",
            r#""undefinedundefined""#,
        ),
        ("(() => { var x = 'own'; function g() {} })(); x + typeof g", r#""topundefined""#),
        ("const h = (x = 'default') => x; [h(), h(1), x]", r#"["default",1,"top"]"#),
        ("try { throw 1 } catch (x) { x = 2 } x", r#""top""#),
    ]);
}

#[test]
fn vars_of_blocks_and_loops_are_the_cells() {
    check_cells(&[
        ("for (var i = 0, j = 9; i < 3; i++) { var inner = i } [i, j, inner]", "[3,9,2]"),
        ("for (var k of [1, 2]) {} for (var m in {p: 1}) {} [i, k, m]", r#"[3,2,"p"]"#),
        ("for (var [q, {r = 7}] of [[1, {}]]) {} [q, r]", "[1,7]"),
        ("if (true) { var s = 1 } else { var t = 1 } [s, t]", "[1,null]"),
        ("switch (1) { case 1: var u = 1 } try { var v = 1 } finally { var w = 1 } u + v + w", "3"),
        (
            "out: while (true) { var z = 5; break out } do { var zz = 6 } while (false); z + zz",
            "11",
        ),
        ("before === undefined && (before = 1); var before; before", "1"),
        ("var before; before", "1"),
        ("for (;;) { var last = 1; break } for (var nothing;;) break; nothing", "null"),
    ]);
}

#[test]
fn patterns_declare_what_they_name() {
    check_cells(&[
        ("const {a, b: {c = 3, ...d}, ['e' + 1]: e = 5} = {a: 1, b: {x: 1}}; a", "1"),
        ("[a, c, d, e]", r#"[1,3,{"x":1},5]"#),
        ("let [f, , [g = f + 1], ...h] = [1, 2, [], 4, 5]; [f, g, h]", "[1,2,[4,5]]"),
        ("let {length} = 'four', n = length; n", "4"),
        ("const {x = () => 1, y = class {}} = {}; [x.name, y.name]", r#"["x","y"]"#),
        (
            "const {missing: {deep}} = {}",
            "RUNTIME_ERROR TypeError: Cannot convert undefined or null to object @1:7",
        ),
    ]);
}

#[test]
fn functions_are_hoisted_and_keep_their_names() {
    check_cells(&[
        ("first(); function first() { return 1 } first()", "1"),
        ("const arrow = () => 1, anonymous = function () {}, Klass = class {}; 0", "0"),
        (
            "[first, arrow, anonymous, Klass].map(f => f.name)",
            r#"["first","arrow","anonymous","Klass"]"#,
        ),
        ("async function later() { return await 2 } function* some() { yield 3 } 0", "0"),
        ("[await later(), [...some()]]", "[2,[3]]"),
        (
            "class Node { static root = new Node(); static { Node.leaf = 1 } } [Node.root instanceof Node, Node.leaf]",
            "[true,1]",
        ),
        ("class Sub extends Node {} new Sub() instanceof Node", "true"),
    ]);
}

#[test]
fn constants_are_constant() {
    let fixed = |at: &str| format!("RUNTIME_ERROR TypeError: 'c' is read-only @{at}");
    check_cells(&[
        ("const c = 1; c = 2", &fixed("1:14")),
        ("c = 3", &fixed("1:1")),
        ("const c = 4; c", "4"),
        ("undeclared = 1", "1"),
        ("++undeclared", "2"),
        ("'use strict'; other = 1", "RUNTIME_ERROR ReferenceError: other is not defined @1:15"),
    ]);
}

#[test]
fn what_was_declared_before_a_failure_stays() {
    check_cells(&[
        (
            "const a = 1; const b = fails(); const c = 3",
            "RUNTIME_ERROR ReferenceError: fails is not defined @1:24",
        ),
        ("[a, typeof b, typeof c]", r#"[1,"undefined","undefined"]"#),
        ("let a = 2; throw new Error('x'); let a2 = 1", "RUNTIME_ERROR x @1:22"),
        ("a", "2"),
        (
            "await Promise.reject(new Error('no')); function f() { return 'hoisted' }",
            "RUNTIME_ERROR no @1:26",
        ),
        ("f()", r#""hoisted""#),
    ]);
}

#[test]
fn values_come_as_they_do_without_a_session() {
    check_cells(&[
        ("const x = 1; x + 1", "2"),
        ("return await Promise.resolve(x); 5", "1"),
        ("if (x) { return 'early' }", r#""early""#),
        ("let y = 1", "null"),
        ("'text'", r#""text""#),
        ("({x})", r#"{"x":1}"#),
        ("console.log('out'); 1", "out\n1"),
        (
            "10n",
            "SERIALIZATION_ERROR the result cannot be written as JSON: TypeError: BigInt are forbidden in JSON.stringify; return plain objects, arrays, strings, numbers, booleans or null",
        ),
        ("let $let = 1, $const = 2; const $let_ = 3; [$let, $const, $let_]", "[1,2,3]"),
        ("[$let, $const, $let_]", "[1,2,3]"),
        ("let tools = 'mine'; tools", r#""mine""#),
        ("let a1 = 1, b1 = a1 + 1; const c1 = b1 + 1; c1", "3"),
        (
            "let undefined = 1",
            "RUNTIME_ERROR TypeError: undefined cannot be declared in a session: the language has fixed it @1:5",
        ),
    ]);
}

#[test]
fn typescript_is_declared_too() {
    check_cells_in(
        Language::TypeScript,
        &[
            (
                "interface P { x: number } enum Color { Red, Green = 5, Blue } const p: P = {x: 1}",
                "null",
            ),
            ("[Color.Blue, Color[0], p.x]", r#"[6,"Red",1]"#),
            ("enum Color { Cyan } [Color.Cyan, Color.Red]", "[0,null]"),
            ("const enum Level { Low = 1, High } Level.High", "2"),
            ("Level.Low", "1"),
            (
                "namespace N { export const x = 1; export namespace M { export const y = 2 } } N.M.y",
                "2",
            ),
            ("N.x", "1"),
            ("class Box<T> { constructor(public value: T) {} } new Box<number>(3).value", "3"),
            ("new Box('x').value", r#""x""#),
            (
                "abstract class Shape { abstract area(): number } class Sq extends Shape { area() { return 4 } } 0",
                "0",
            ),
            ("new Sq().area()", "4"),
            (
                "function over(a: string): string; function over(a: number): number; function over(a: any) { return a } over(1)",
                "1",
            ),
            ("over('s') as string", r#""s""#),
            ("declare const nothing: number; let z: number = 1; z satisfies number", "1"),
            ("type T = string; let t: T = 'x'", "null"),
        ],
    );
}
