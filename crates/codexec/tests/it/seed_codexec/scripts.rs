use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Seed, configure, like};

fn excel(code: &str) -> Value {
    json!({
        "name": "parse-excel-report",
        "description": "Parses monthly Excel reports from finance, extracts summary rows, outputs CSV",
        "language": "python",
        "code": code,
        "tags": ["excel", "finance", "parsing"],
        "packages": [],
    })
}

const FIRST: &str = "import sys\nprint('Processed', sys.argv[1:])\nopen('output.csv', 'w').close()";

/// What `get_script` gave in the documentation, before the first run.
fn fresh() -> Value {
    json!({
        "success": true,
        "name": "parse-excel-report",
        "description": "Parses monthly Excel reports from finance...",
        "language": "python",
        "code": "import pandas as pd\nimport sys\n...",
        "tags": ["excel", "finance", "parsing"],
        "packages": [],
        "created_at": "2026-02-09T15:00:00Z",
        "last_run_at": null,
        "run_count": 0,
        "last_run_success": null,
    })
}

const MORE: [&str; 4] = ["version", "source_execution_id", "parameters", "expose"];

#[test]
fn a_script_is_saved_as_files_and_read() {
    let seed = &mut Seed::start();
    let ran = seed.done("execute_code", &json!({"language": "python", "code": FIRST}));
    let mut draft = excel(FIRST);
    draft["source_execution_id"] = ran["execution_id"].clone();
    let saved = seed.done("save_script", &draft);
    let example = json!({
        "success": true,
        "script_id": "script_m1n2o3",
        "name": "parse-excel-report",
        "path": "~/.annabelle/scripts/parse-excel-report/script.py",
        "saved_at": "2026-02-09T15:00:00Z",
    });
    like(&saved, &example, &["version"]);
    let path = PathBuf::from(saved["path"].as_str().expect("a path"));
    assert!(path.ends_with("scripts/parse-excel-report/script.py"), "{saved}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), FIRST);
    for file in [path.with_file_name("metadata.json"), index_beside(&path)] {
        let text = std::fs::read_to_string(&file).expect("it is there");
        let meta: Value = serde_json::from_str(&text).expect("JSON");
        assert!(meta.to_string().contains("Parses monthly Excel reports"), "{meta}");
    }
    let got = seed.done("get_script", &json!({"name": "parse-excel-report"}));
    like(&got, &fresh(), &MORE);
    assert_eq!((&got["code"], &got["tags"]), (&json!(FIRST), &draft["tags"]));
    assert_eq!(got["source_execution_id"], ran["execution_id"]);
}

#[test]
fn a_script_is_run_changed_and_deleted() {
    let seed = &mut Seed::start();
    seed.done("save_script", &excel(FIRST));
    let args = json!({
        "name": "parse-excel-report",
        "args": ["~/Downloads/february-report.xlsx"],
        "timeout_ms": 60_000,
    });
    let ran = seed.done("run_script", &args);
    let as_executed = json!({
        "success": true,
        "execution_id": "exec_p1q2r3",
        "language": "python",
        "stdout": "Processed 150 rows. Summary saved to output.csv",
        "stderr": "",
        "exit_code": 0,
        "duration_ms": 3456,
        "truncated": false,
        "artifacts": ["output.csv"],
    });
    like(&ran, &as_executed, &[]);
    assert_eq!(ran["stdout"], "Processed ['~/Downloads/february-report.xlsx']\n");
    assert_eq!(ran["artifacts"], json!(["output.csv"]));

    let saved = seed.done("save_script", &excel("print('second')"));
    assert_eq!(saved["version"], 2);
    let run = |version: u32| json!({"name": "parse-excel-report", "version": version});
    assert_eq!(seed.done("run_script", &run(2))["stdout"], "second\n");
    assert_eq!(seed.done("run_script", &run(1))["stdout"], "Processed []\n");
    assert_eq!(seed.done("get_script", &run(1))["code"], FIRST);
    assert_eq!(seed.refused("run_script", &run(3)).0, "SCRIPT_VERSION_NOT_FOUND");
    let got = seed.done("get_script", &json!({"name": "parse-excel-report"}));
    let mut example = fresh();
    example["last_run_at"] = json!("2026-02-15T09:30:00Z");
    example["last_run_success"] = json!(true);
    like(&got, &example, &MORE);
    assert_eq!((&got["run_count"], &got["last_run_success"]), (&json!(3), &json!(true)));

    let deleted = seed.done("delete_script", &json!({"name": "parse-excel-report"}));
    assert_eq!(deleted, json!({"success": true, "name": "parse-excel-report"}));
    let (code, _) = seed.refused("get_script", &json!({"name": "parse-excel-report"}));
    assert_eq!(code, "SCRIPT_NOT_FOUND");
}

fn index_beside(script: &Path) -> PathBuf {
    script.parent().and_then(Path::parent).expect("a folder").join("index.json")
}

#[test]
fn scripts_are_listed_and_searched() {
    let seed = &mut Seed::start();
    seed.done("save_script", &excel("1"));
    for (name, language) in [("clean-csv-data", "javascript"), ("backup-db", "bash")] {
        let draft = json!({"name": name, "description": "d", "language": language, "code": "1"});
        seed.done("save_script", &draft);
    }
    let listed = seed.done("list_scripts", &json!({"language": "python", "tag": "finance"}));
    let example = json!({
        "scripts": [{
            "name": "parse-excel-report", "description": "...", "language": "python",
            "tags": ["excel"], "last_run_at": null,
        }],
        "total_count": 1,
    });
    like(&listed, &example, &[]);
    assert_eq!(listed["total_count"], 1);
    assert_eq!(seed.done("list_scripts", &json!({}))["total_count"], 3);
    let found = seed.done("search_scripts", &json!({"query": "excel parsing"}));
    let names: Vec<&str> =
        found["results"][0].as_object().expect("one").keys().map(String::as_str).collect();
    assert_eq!(names, ["name", "description", "language", "relevance"]);
    assert_eq!(found["results"][0]["name"], "parse-excel-report");
}

#[test]
fn a_script_is_saved_and_run_at_once() {
    let seed = &mut Seed::start();
    let mut draft = excel("import sys\nprint(input['n'], sys.argv[1:])");
    draft["args"] = json!(["a"]);
    draft["input"] = json!({"n": 5});
    draft["parameters"] = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let ran = seed.done("save_and_run_script", &draft);
    assert_eq!(ran["stdout"], "5 ['a']\n");
    assert_eq!((&ran["script"]["name"], &ran["script"]["version"]), (&draft["name"], &json!(1)));
    let wrong = json!({"name": "parse-excel-report", "input": {"n": "five"}});
    let (code, sentence) = seed.refused("run_script", &wrong);
    assert_eq!(code, "INVALID_INPUT");
    assert!(sentence.contains("parse-excel-report"), "{sentence}");
    let log = seed.done("search_execution_logs", &json!({}));
    assert_eq!(log["total_count"], 1, "what does not fit is never started: {log}");
}

#[test]
fn an_exposed_script_is_a_tool() {
    let seed = &mut Seed::start();
    let mut draft = excel("print(input['n'] * 2)");
    draft["expose"] = json!(true);
    draft["parameters"] = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    seed.done("save_script", &draft);
    let is_change = |message: &Value| message["method"] == "notifications/tools/list_changed";
    assert!(seed.client.others.iter().any(is_change), "{:?}", seed.client.others);
    let listed = seed.client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    let tool = tools.iter().find(|tool| tool["name"] == "script_parse_excel_report");
    let tool = tool.unwrap_or_else(|| panic!("it is not there: {listed}"));
    assert_eq!(tool["description"], draft["description"]);
    assert_eq!(tool["inputSchema"]["properties"], draft["parameters"]["properties"]);
    assert_eq!(seed.done("script_parse_excel_report", &json!({"n": 21}))["stdout"], "42\n");
    assert_eq!(seed.refused("script_parse_excel_report", &json!({})).0, "INVALID_INPUT");
}

#[test]
fn what_is_edited_by_hand_is_what_runs() {
    let seed = &mut Seed::start();
    let saved = seed.done("save_script", &excel("print('saved')"));
    std::fs::write(saved["path"].as_str().expect("a path"), "print('edited')").expect("written");
    let run = json!({"name": "parse-excel-report"});
    assert_eq!(seed.done("run_script", &run)["stdout"], "edited\n");
    let old = json!({"name": "parse-excel-report", "version": 1});
    assert_eq!(seed.done("run_script", &old)["stdout"], "saved\n");
}

#[test]
fn a_broken_index_is_made_anew_and_said() {
    let seed = &mut Seed::start();
    let saved = seed.done("save_script", &excel("print('there')"));
    let index = index_beside(Path::new(saved["path"].as_str().expect("a path")));
    std::fs::write(&index, "{\"half\": ").expect("written");
    seed.client.restart(|command| super::configure(command, ""));
    let listed = seed.done("list_scripts", &json!({}));
    assert_eq!(listed["scripts"][0]["name"], "parse-excel-report", "{listed}");
    let said = format!("{}{}", listed["notes"], seed.client.stderr());
    assert!(said.contains("index.json"), "nobody said so: {said}");
    let index: Value =
        serde_json::from_str(&std::fs::read_to_string(index).expect("there")).expect("JSON");
    assert!(index.to_string().contains("parse-excel-report"), "{index}");
}

/// Files that arguments name are visible, if they are in an allowed directory.
#[test]
fn a_file_that_is_given_to_a_script_is_visible() {
    let seed = &mut Seed::with(&json!({}), "[files]\nallowed = [\"~/Downloads\"]\n");
    let downloads = seed.client.home.path().join("Downloads");
    let hidden = seed.client.home.path().join("hidden.txt");
    std::fs::create_dir(&downloads).expect("made");
    std::fs::write(downloads.join("report.txt"), "150 rows").expect("written");
    std::fs::write(&hidden, "secret").expect("written");
    // The directory has to be there at the start.
    seed.client.restart(|command| configure(command, ""));
    let code = "import sys, pathlib\nfor name in sys.argv[1:]:\n    path = pathlib.Path(name)\n    \
                print(path.read_text() if path.exists() else 'not there')\n\
                pathlib.Path('output.csv').write_text('done')";
    let script = json!({"name": "rows", "description": "d", "language": "python", "code": code});
    seed.done("save_script", &script);
    let args = json!(["~/Downloads/report.txt", hidden, downloads.join("report.txt")]);
    let ran = seed.done("run_script", &json!({"name": "rows", "args": args}));
    assert_eq!(ran["stdout"], "150 rows\nnot there\n150 rows\n", "{ran}");
    assert_eq!(ran["artifacts"], json!(["output.csv"]));
    assert_eq!(std::fs::read_to_string(downloads.join("output.csv")).expect("text"), "done");
}

/// Scripts of CodeExec MCP: Node.js in `script.js`.
#[test]
fn scripts_of_the_older_library_run() {
    let seed = &mut Seed::start();
    let folder = seed.client.home.path().join("state/scripts/clean-csv-data");
    std::fs::create_dir_all(&folder).expect("made");
    let code = "const os = require('node:os');\nconsole.log(typeof os.cpus, process.argv.length);";
    std::fs::write(folder.join("script.js"), code).expect("written");
    let metadata = json!({"name": "clean-csv-data", "description": "Cleans", "language": "node"});
    std::fs::write(folder.join("metadata.json"), metadata.to_string()).expect("written");
    let ran = seed.done("run_script", &json!({"name": "clean-csv-data", "args": ["a"]}));
    assert_eq!(
        (&ran["language"], &ran["stdout"]),
        (&json!("node"), &json!("function 3\n")),
        "{ran}"
    );
    let found = seed.done("search_scripts", &json!({"query": "node"}));
    let expected = json!([{
        "name": "clean-csv-data", "description": "Cleans", "language": "node",
        "relevance": "language_match",
    }]);
    assert_eq!(found["results"], expected);
}
