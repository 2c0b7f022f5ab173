//! A guest may break itself, but nothing else. THREAT ids are those of the attack corpus.

use super::*;

#[test]
fn js_010_text_cannot_close_the_wrapper() {
    let record = javascript("})(); globalThis.__broke = 1; (async () => {");
    assert_eq!(
        (record.is_compiled, ending(&record).as_str()),
        (false, "SYNTAX_ERROR Unexpected token @1:1")
    );
    let record = javascript("}}); throw 1; ({'a': async () => {");
    assert_eq!(ending(&record), "SYNTAX_ERROR Unexpected token @1:1");
}

#[test]
fn js_013_replaced_builtins_do_not_reach_the_wire() {
    let code = "Object.prototype.server = 'denied'; Object.prototype.ok = true; Array.prototype.push = () => 0;\nJSON.stringify = () => '{\"server\":\"denied\"}'; JSON.parse = () => ({}); Map.prototype.get = () => 1;\nPromise.prototype.then = function () { return this }; String.prototype.toWellFormed = () => 'x'; RegExp.prototype.test = () => true;\nconst r = await tools.github.x({a: 1}); console.log(r.tool.server); return r.tool.args";
    let record = javascript(code);
    assert_eq!((record.out.as_str(), ending(&record).as_str()), ("github\n", r#"{"a":1}"#));
    let server = "github".to_owned();
    assert_eq!(record.asks, [Ask::Tool { server, tool: "x".to_owned(), args: json(r#"{"a":1}"#) }]);
}

#[test]
fn a_broken_promise_breaks_only_its_owner() {
    check(
        "globalThis.Promise = null; Array.prototype[Symbol.iterator] = null; await tools.github.x(); 1",
        "1",
    );
    check(
        "Promise.prototype.constructor = null; await 1; 2",
        "RUNTIME_ERROR TypeError: not an object",
    );
}

#[test]
fn errors_that_resist_reading_are_reported() {
    check("throw {get message() { throw 1 }}", "RUNTIME_ERROR { message: [Getter] }");
    check(
        "const e = new Error('x'); Object.defineProperty(e, 'stack', {get() { throw 1 }}); throw e",
        "RUNTIME_ERROR x",
    );
    check("const e = new Error('x'); e.name = Symbol('n'); throw e", "RUNTIME_ERROR x @1:15");
    check(
        "throw new Proxy({}, {get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 }})",
        "RUNTIME_ERROR [Unreadable]",
    );
    check("throw new Proxy(new Error('in'), {})", "RUNTIME_ERROR in");
    check("Error.prepareStackTrace = () => { throw 1 }; throw new Error('x')", "RUNTIME_ERROR x");
    check(
        "const e = new Error('x'); e.stack = '    at f (<code>:999:1)\\n at (<code>:x)'; throw e",
        "RUNTIME_ERROR x",
    );
    check(
        "class InternalError2 extends Error {}; throw new InternalError2('out of memory')",
        "RUNTIME_ERROR out of memory @1:50",
    );
}

#[test]
fn the_console_survives_anything() {
    let record = javascript(
        "console.log(new Proxy({}, {ownKeys() { throw 1 }}), {get x() { throw 1 }}, tools.then); 1",
    );
    assert_eq!(
        (record.out.as_str(), ending(&record).as_str()),
        ("[Unreadable] { x: [Getter] } undefined\n", "1")
    );
    check("console.log('\\ud800'); console.log(Symbol.iterator); 1", "1");
}

#[test]
fn js_047_nothing_too_long_for_a_frame_is_sent() {
    let with = |code: &str| {
        let code = format!(
            "const big = '\u{20ac}'.repeat(3 << 20); try {{ {code}; return 'sent' }} catch (e) {{ return [e.name, e.message] }}"
        );
        let record = javascript(&code);
        (ending(&record), record.asks.len())
    };
    let args =
        r#"["ToolError","the arguments of a.b are 9437194 bytes; at most 8388608 are allowed"]"#;
    assert_eq!(with("await tools.a.b({big})"), (args.to_owned(), 0));
    let name = r#"["RangeError","this is 9437204 bytes long; at most 9437184 are allowed"]"#;
    assert_eq!(with("await help(big)"), (name.to_owned(), 0));
    let record = javascript("progress('x'.repeat(20 << 20)); 1");
    assert_eq!((record.progress[0].len(), ending(&record).as_str()), (4 << 10, "1"));
}

#[test]
fn a_host_that_leaves_ends_the_guest() {
    let (mut host, socket) = UnixStream::pair().expect("a socket pair");
    let worker = thread::spawn(move || JsGuest::warm().expect("a warm guest").run(socket));
    let start = ToGuest::Start(job(Language::JavaScript, "await tools.a.b()"));
    host.write_all(&start.encode().expect("a frame")).expect("a listening guest");
    assert_eq!(next_frame(&mut host), FromGuest::Compiled);
    drop(host);
    worker.join().expect("a worker that ends");
}
