//! The same functions, called by code.

use serde_json::json;

use super::Seed;

#[test]
fn code_keeps_finds_and_runs_scripts() {
    let seed = &mut Seed::start();
    for (language, code) in [
        (
            "python",
            "await scripts.save('twice', 'input * 2', language='python', description='Doubles')\n\
             found = (await scripts.search('doubles'))['results'][0]['name']\n\
             ran = scripts.run(found, input=21).result()\n\
             [ran['result'], (await scripts.get('twice'))['run_count'], (await logs.get(ran['execution_id']))['script']]",
        ),
        (
            "javascript",
            "await scripts.save('twice', 'input * 2', {language: 'python', description: 'Doubles'});\n\
             const found = (await scripts.search('doubles')).results[0].name;\n\
             const ran = await scripts.run(found, {input: 21});\n\
             [ran.result, (await scripts.get('twice')).run_count, (await logs.get(ran.execution_id)).script]",
        ),
        (
            "node",
            "await scripts.save('twice', 'input * 2', {language: 'python', description: 'Doubles'});\n\
             const ran = await scripts.run('twice', {input: 21});\n\
             [ran.result, (await scripts.get('twice')).run_count, (await logs.get(ran.execution_id)).script]",
        ),
    ] {
        let ran = seed.done("execute_code", &json!({"language": language, "code": code}));
        assert_eq!(ran["result"], json!([42, 1, "twice"]), "{language}: {ran}");
        seed.done("delete_script", &json!({"name": "twice"}));
    }
}

#[test]
fn code_uses_sessions_of_its_own() {
    let seed = &mut Seed::start();
    let code = "const {session_id} = await sessions.start('python');\n\
                await sessions.send(session_id, 'x = 20');\n\
                const sent = await sessions.send(session_id, 'x + 1');\n\
                const open = (await sessions.list()).sessions.length;\n\
                const closed = await sessions.close(session_id);\n\
                [sent.stdout, open, closed.executions_count]";
    let ran = seed.done("execute_code", &json!({"language": "javascript", "code": code}));
    assert_eq!(ran["result"], json!(["21", 1, 2]), "{ran}");
}

#[test]
fn a_session_cannot_wait_for_itself() {
    let seed = &mut Seed::start();
    let session = seed.session("javascript");
    let allowed = ["*", "codexec.sessions.all"];
    for code in [
        format!("await sessions.send('{session}', '1')"),
        format!("await sessions.close('{session}')"),
        // Through another session, too, where that may use it at all.
        format!(
            "const other = (await sessions.start('javascript')).session_id;\n\
             const sent = await sessions.send(other, \"await sessions.send('{session}', '1')\");\n\
             if (!sent.success) throw new Error(sent.stderr)"
        ),
    ] {
        let args = json!({"session_id": session, "code": code, "allowed_tools": allowed});
        let sent = seed.call("send_to_session", &args);
        assert_eq!(sent["success"], false, "{code}: {sent}");
        let said = sent["stderr"].as_str().expect("text");
        assert!(
            said.contains("SESSION_BUSY") && said.contains("is waiting for this code to end"),
            "{said}"
        );
    }
    assert_eq!(seed.cell(&session, "1 + 1"), "2");
}

#[test]
fn code_in_code_in_code_has_an_end() {
    let seed = &mut Seed::start();
    let code = "const found = await scripts.run('again').catch((error) => ({stderr: error.message}));\n\
                if (!found.success) throw new Error(found.stderr);";
    seed.done(
        "save_script",
        &json!({"name": "again", "description": "d", "language": "javascript", "code": code}),
    );
    let ran = seed.call("run_script", &json!({"name": "again"}));
    assert_eq!(ran["success"], false);
    let said = ran["stderr"].as_str().expect("text");
    assert!(said.contains("TOO_DEEP") || said.contains("deep"), "{said}");
    let count = seed.done("search_execution_logs", &json!({}))["total_count"].clone();
    assert!(count.as_u64().is_some_and(|count| (3..=5).contains(&count)), "{count}");
}

/// Our own functions are tools of a server `codexec` to whoever narrows tools.
#[test]
fn code_that_may_call_no_tools_may_not_call_these() {
    let seed = &mut Seed::start();
    let run = |language: &str, code: &str, allowed: &[&str]| json!({"language": language, "code": code, "allowed_tools": allowed});
    for (language, code) in [
        ("javascript", "try { await scripts.list() } catch (error) { return error.code }"),
        (
            "python",
            "try:\n    await scripts.list()\nexcept ToolError as error:\n    code = error.code\ncode",
        ),
    ] {
        for allowed in [&[][..], &["time.*"], &["codexec.run_script"]] {
            let ran = seed.done("execute_code", &run(language, code, allowed));
            assert_eq!(ran["result"], "TOOL_NOT_ALLOWED", "{language} {allowed:?}: {ran}");
        }
    }
    for allowed in ["codexec.*", "codexec.list_scripts"] {
        let ran = seed.done(
            "execute_code",
            &run("javascript", "(await scripts.list()).total_count", &[allowed]),
        );
        assert_eq!(ran["result"], 0, "{ran}");
    }
    // What it starts can do no more than itself.
    let code = "(await sessions.send((await sessions.start('javascript')).session_id, \
                'await scripts.list()')).error_code";
    let allowed = ["codexec.start_session", "codexec.send_to_session"];
    let ran = seed.done("execute_code", &run("javascript", code, &allowed));
    assert_eq!(ran["result"], "TOOL_NOT_ALLOWED", "{ran}");
}
