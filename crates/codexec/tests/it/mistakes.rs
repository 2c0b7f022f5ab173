//! Programs as models write them wrongly, with the reply that each gets: what to write instead.

use serde_json::{Value, json};

use crate::startup::python;
use crate::support::{Client, without_ids};

const CASES: &str = include_str!("../cases/mistakes.jsonl");
const TRACKER: &str = include_str!("mistakes/tracker.py");
/// A reply that is read, not skimmed.
const MAX_CHARS: usize = 300;

fn client() -> Client {
    let servers = json!({"tracker": {"command": python(), "args": ["-c", TRACKER]}});
    Client::with(&servers, |command| {
        command.args(["--toolset", "compact,code-executor,code-execution-mode,mcpproxy"]);
    })
}

/// The text without the marks below a line of Python, which differ between its versions.
fn without_marks(text: &str) -> String {
    let is_mark = |line: &&str| !line.is_empty() && line.trim_matches([' ', '~', '^']).is_empty();
    text.lines().filter(|line| !is_mark(line)).collect::<Vec<&str>>().join("\n")
}

#[test]
fn every_reply_says_what_to_write_instead() {
    let client = &mut client();
    let mut wrong = Vec::new();
    let cases: Vec<Value> =
        CASES.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(cases.len() >= 20, "{}", cases.len());
    for case in cases {
        let tool = case["tool"].as_str().unwrap_or("execute_code");
        let params = json!({"name": tool, "arguments": case["arguments"]});
        let id = client.send_as_is("tools/call", &params);
        let reply = client.wait(id);
        let text = reply["result"]["content"][0]["text"].as_str().expect("text");
        let expected = case["reply"].as_str().expect("a reply");
        let chars = text.chars().count();
        if without_marks(text) != expected || chars >= MAX_CHARS {
            wrong.push(format!(
                "{}, {chars} characters:\n{text}\n--- is not\n{expected}",
                case["id"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Everything that a reply has beside its text.
#[test]
fn replies_have_images_recordings_and_links() {
    let client = &mut client();
    let run = |client: &mut Client, language: &str, code: &str| {
        let arguments = json!({"language": language, "code": code});
        let call = json!({"name": "execute_code", "arguments": arguments});
        client.request("tools/call", &call)["result"]["content"].clone()
    };
    let content = run(
        client,
        "python",
        "emit(await tools.tracker.recording())\nawait tools.tracker.screenshot()",
    );
    let kinds: Vec<&Value> =
        content.as_array().expect("blocks").iter().map(|b| &b["type"]).collect();
    assert_eq!(kinds, ["text", "audio", "image"], "{content}");
    assert_eq!(content[0]["text"], "[image 1x1]");
    assert_eq!(
        (&content[1]["mimeType"], &content[2]["mimeType"]),
        (&json!("audio/wav"), &json!("image/png"))
    );

    for (language, code) in [
        ("python", "open('a b.csv', 'w').write('x,y\\n')\nNone"),
        ("bash", "echo x,y > 'a b.csv'"),
        ("node", "require('fs').writeFileSync('a b.csv', 'x,y\\n'); null"),
    ] {
        let content = run(client, language, code);
        let text = without_ids(content[0]["text"].as_str().expect("text"));
        let expected =
            "[artifacts] codexec://executions/exec_../artifacts\ncreated a b.csv (4 bytes)";
        assert_eq!(text, expected, "{language}");
        let link = &content[1];
        assert_eq!(
            (&link["type"], &link["name"]),
            (&json!("resource_link"), &json!("a b.csv")),
            "{language}"
        );
        assert_eq!(
            (&link["mimeType"], &link["size"]),
            (&json!("text/csv"), &json!(4)),
            "{language}"
        );
        let read = client.request("resources/read", &json!({"uri": link["uri"]}));
        assert_eq!(read["result"]["contents"][0]["text"], "x,y\n", "{language}: {read}");
    }
}
