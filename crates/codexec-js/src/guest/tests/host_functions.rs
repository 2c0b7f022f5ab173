use super::calls::{check_asks, tool};
use super::*;

#[test]
fn host_functions_send_asks() {
    let own = |name: &str, args: &str| Ask::Own { name: name.to_owned(), args: json(args) };
    check_asks(
        "await sessions.start('python')",
        &[own("start_session", r#"{"language":"python"}"#)],
    );
    check_asks(
        "await sessions.send('s', '1', {timeout_ms: 5})",
        &[own("send_to_session", r#"{"timeout_ms":5,"session_id":"s","code":"1"}"#)],
    );
    check_asks(
        "await sessions.list(); await sessions.snapshot('a'); await sessions.snapshots()",
        &[
            own("list_sessions", "{}"),
            own("snapshot_session", r#"{"name":"a"}"#),
            own("list_snapshots", "{}"),
        ],
    );
    check_asks(
        "await sessions.restore('a'); await sessions.close('s')",
        &[own("restore_session", r#"{"name":"a"}"#), own("close_session", r#"{"session_id":"s"}"#)],
    );
    check_asks(
        "await scripts.run('x', {args: ['a'], input: {n: 1}}); await scripts.get('x', 2)",
        &[
            own("run_script", r#"{"args":["a"],"input":{"n":1},"name":"x"}"#),
            own("get_script", r#"{"name":"x","version":2}"#),
        ],
    );
    let save = |tool| own(tool, r#"{"name":"x","code":"1"}"#);
    check_asks(
        "await scripts.save('x', '1'); await scripts.saveAndRun({name: 'x', code: '1'}); \
         await scripts.save_and_run('x', {code: '1', name: undefined})",
        &[
            save("save_script"),
            save("save_and_run_script"),
            own("save_and_run_script", r#"{"code":"1","name":"x"}"#),
        ],
    );
    check_asks(
        "await scripts.list(); await scripts.search('a'); await scripts.delete('a')",
        &[
            own("list_scripts", "{}"),
            own("search_scripts", r#"{"query":"a"}"#),
            own("delete_script", r#"{"name":"a"}"#),
        ],
    );
    check_asks(
        "await packages.install('a', 'node'); await packages.list({session_id: 's'})",
        &[
            own("install_package", r#"{"package":"a","language":"node"}"#),
            own("list_packages", r#"{"session_id":"s"}"#),
        ],
    );
    check_asks(
        "await logs.search('pandas', {limit: 5}); await logs.search({}); await logs.get('e')",
        &[
            own("search_execution_logs", r#"{"limit":5,"query":"pandas"}"#),
            own("search_execution_logs", "{}"),
            own("get_execution_log", r#"{"execution_id":"e"}"#),
        ],
    );
    // A guest that changes built-ins breaks only itself.
    check_asks(
        "Array.prototype[Symbol.iterator] = Object.prototype.toJSON = undefined; \
         Object.defineProperty(Object.prototype, 'name', {set() { throw 1 }}); \
         await scripts.get('x')",
        &[own("get_script", r#"{"name":"x"}"#)],
    );
    // A server of that name is not shadowed.
    check_asks("await tools.logs.search()", &[tool("logs", "search", "{}")]);
}

#[test]
fn extra_positional_arguments_are_refused() {
    let said = |code: &str| {
        let code =
            format!("try {{ await {code} }} catch (e) {{ return e.code + ' ' + e.message }}");
        let record = javascript(&code);
        assert_eq!(record.asks, [], "{code}");
        ending(&record)
    };
    assert_eq!(
        said("scripts.get('x', 1, 2)"),
        r#""INVALID_ARGS scripts.get takes 2 in order and one object of named arguments; it was given a number""#
    );
    assert_eq!(
        said("sessions.list(['x'])"),
        r#""INVALID_ARGS sessions.list takes one object of named arguments; it was given an array""#
    );
    assert_eq!(
        said("logs.get('x', {execution_id: 'y'})"),
        r#""INVALID_ARGS logs.get was given execution_id twice""#
    );
    assert_eq!(
        said("logs.get(5n)"),
        r#""INVALID_ARGS the arguments of logs.get cannot be written as JSON: TypeError: BigInt are forbidden in JSON.stringify""#
    );
}
