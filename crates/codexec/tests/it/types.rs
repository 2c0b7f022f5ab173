//! What tools are declared as: it parses, it type-checks, it is told in the caller's language, and
//! nothing that a server writes gets out of where it stands.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::attacks::recorder::Recorders;
use crate::support::{Client, need};
use crate::world::World;

fn run(client: &mut Client, language: &str, code: &str) -> String {
    client.call("execute_code", &json!({"language": language, "code": code})).fine()
}

/// Every tool's declaration in TypeScript, by name.
fn declarations(client: &mut Client) -> Vec<(String, String)> {
    let names = run(
        client,
        "typescript",
        "return (await discoverMCPTools()).map((tool) => `${tool.server}.${tool.tool}`)",
    );
    let names: Vec<String> = serde_json::from_str(&names).expect("JSON");
    let mut declare = |name: String| {
        let code = format!("return (await getToolSchema({name:?})).typescript");
        let declaration = run(client, "typescript", &code);
        (name, declaration)
    };
    names.into_iter().map(&mut declare).collect()
}

/// What a program does that has these lines in it: nothing.
#[track_caller]
fn check_typescript(client: &mut Client, name: &str, declaration: &str) {
    let code = format!("{declaration}\nreturn typeof pwned");
    assert_eq!(run(client, "typescript", &code), "undefined", "{name}: {declaration}");
}

/// Parses what every tool is declared as in Python, and gives the kinds of its statements.
const PARSE: &str = r#"
import ast
kinds = set()
found = await discover_mcp_tools()
for tool in found:
    schema = await get_tool_schema(tool["name"])
    assert "typescript" not in schema, schema
    kinds |= {type(node).__name__ for node in ast.parse(schema["python"]).body}
    line = schema["signature"]
    assert "\n" not in line, line
    ast.parse(f"def {line.partition('  # observed')[0]}: ...")
[len(found), sorted(kinds)]
"#;

#[test]
fn all_tools_of_real_servers_are_well_formed_in_every_language() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let declarations = declarations(&mut client);
    assert_eq!(declarations.len(), 31);
    for (name, declaration) in &declarations {
        check_typescript(&mut client, name, declaration);
    }
    let parsed: Value = serde_json::from_str(&run(&mut client, "python", PARSE)).expect("a list");
    assert_eq!(parsed, json!([31, ["AsyncFunctionDef", "ClassDef"]]));
    type_check(&world, &declarations);
}

/// What TypeScript's own compiler says of these files.
fn compile(modules: &Path, files: &[String]) -> String {
    let folder = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    let options = json!({"noEmit": true, "strict": true, "target": "es2022", "module": "es2022", "types": []});
    write("tsconfig.json", &json!({"compilerOptions": options}).to_string());
    for (at, file) in files.iter().enumerate() {
        write(&format!("{at}.ts"), &format!("{file}\nexport {{}};\n"));
    }
    let ran = Command::new(modules.join(".bin/node"))
        .arg(modules.join("typescript/bin/tsc"))
        .args(["-p", "."])
        .current_dir(folder.path())
        .output()
        .expect("it starts");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[track_caller]
fn type_check(world: &World, declarations: &[(String, String)]) {
    let modules = world.modules();
    if need("typescript in the test world", modules.join("typescript").exists()) {
        let files: Vec<String> = declarations.iter().map(|(_, text)| text.clone()).collect();
        assert_eq!(compile(&modules, &files), "");
        // And it does look.
        let wrong = "const wrong: string = tools;";
        let files: Vec<String> = files.iter().map(|text| format!("{text}\n{wrong}")).collect();
        assert_eq!(compile(&modules, &files).matches("error TS2322").count(), files.len());
    }
}

/// THREAT[TXT-1]
#[test]
fn txt_1_a_hostile_definition_stays_a_comment_a_text_or_a_name() {
    let hostile = [
        "*/ globalThis.pwned = 1; /*",
        "\"\"\"\nglobals()['pwned'] = 1\n\"\"\"",
        "'); globalThis.pwned = 1; //",
        "\"]; globalThis.pwned = 1; //",
        "): import os #",
        "x\\",
        "\\\"\"\"\\",
        "`${globalThis.pwned = 1}`",
        "a\u{2028}globalThis.pwned = 1\u{2029}",
        "*\u{200b}/ globalThis.pwned = 1; /\u{200b}*",
        "__proto__",
        "constructor",
        "new",
        "é\u{301}",
        "",
    ];
    let again = json!({"$ref": "#/$defs/Json"});
    let recursive = json!({"name": "recursive", "inputSchema": {"properties": {"v": again},
        "$defs": {"Json": {"anyOf": [{"type": "string"}, {"additionalProperties": again},
            {"items": again}, again, {"prefixItems": [again]}]}}}});
    let tools: Vec<Value> = hostile
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let property = json!({"type": "string", "description": text, "default": text,
                "enum": [text], "examples": [text], "pattern": text, "format": text});
            let schema = json!({"type": "object", "title": text, "required": [text],
                "properties": {*text: property, "plain": {"type": "string", "description": text, "default": text}},
                "$defs": {*text: {"properties": {"again": {"$ref": format!("#/$defs/{text}")}}}},
                "anyOf": [{"properties": {"ref": {"$ref": format!("#/$defs/{text}")}}}]});
            let name = match at {
                10..13 => (*text).to_owned(),
                _ => format!("tool {at}; pwned = 1 //*/\""),
            };
            json!({"name": name, "description": text, "inputSchema": schema, "outputSchema": schema})
        })
        .chain([recursive])
        .collect();
    let folder = tempfile::tempdir().expect("a directory");
    let entry = Recorders::new(folder.path()).entry("fake", &json!({"tools": tools}));
    let mut client = Client::start(&json!({"fake": entry}));
    let declarations = declarations(&mut client);
    assert_eq!(declarations.len(), tools.len());
    for (name, declaration) in &declarations {
        check_typescript(&mut client, name, declaration);
    }
    let parsed: Value = serde_json::from_str(&run(&mut client, "python", PARSE)).expect("a list");
    assert_eq!(parsed, json!([tools.len(), ["Assign", "AsyncFunctionDef", "ClassDef"]]));
    if let Some(world) = World::find() {
        type_check(&world, &declarations);
    }
}

/// THREAT[TXT-2]
#[test]
fn txt_2_nothing_hidden_is_shown_by_any_path() {
    let hidden = "\u{1b}[8m\u{200b}\u{202e}\u{e0041}\u{fe0f}\u{feff}\u{9b}\u{2066}";
    let bad = format!("a{hidden}b");
    let schema = json!({"type": "object", "required": [bad], "title": bad,
        "properties": {&bad: {"type": "string", "description": bad, "enum": [bad], "default": bad}}});
    let tool = json!({"name": "t", "title": bad, "description": format!("Reads. {bad}"),
        "inputSchema": schema, "outputSchema": schema});
    let folder = tempfile::tempdir().expect("a directory");
    let entry = Recorders::new(folder.path()).entry("fake", &json!({"tools": [tool]}));
    let mut client = Client::start(&json!({"fake": entry}));
    let mut shown = vec![
        run(
            &mut client,
            "javascript",
            "return [await discoverMCPTools(), await searchTools('reads'), await getToolSchema('fake.t'), await help('fake'), await help('fake.t')]",
        ),
        run(
            &mut client,
            "javascript",
            "try { await tools.fake.t({}) } catch (error) { return error.message }",
        ),
        run(&mut client, "python", "[await get_tool_schema('fake.t'), help('fake.t')]"),
        run(&mut client, "bash", "mcp help fake.t; mcp help fake; mcp schema fake.t"),
    ];
    for detail in ["names", "summary", "full"] {
        let query = json!({"query": "reads", "detail": detail});
        shown.push(client.call("search_tools", &query).fine());
    }
    for text in shown {
        assert!(text.contains("fake") || text.contains("`ab`"), "{text}");
        let escaped =
            text.contains("\\u200b") || text.contains("\\u001b") || text.contains("\\x1b");
        let found = text.contains(|c: char| hidden.contains(c) && !c.is_ascii_graphic());
        assert!(!found && !escaped, "{text:?}");
    }
}

#[test]
fn what_a_tool_gave_is_known_in_the_next_session_and_holds_no_value() {
    let given = json!({"content": [], "structuredContent": {"id": 4711, "owner": "somebody", "tags": ["private"]}});
    let plan = json!({"on": {"tools/call": [{"do": "result", "value": given}]}});
    let folder = tempfile::tempdir().expect("a directory");
    let entry = Recorders::new(folder.path()).entry("fake", &plan);
    let mut client = Client::start(&json!({"fake": entry}));
    let signature = "return (await getToolSchema('fake.echo')).signature";
    assert_eq!(run(&mut client, "typescript", signature), "echo(): Promise<unknown>");
    run(&mut client, "typescript", "return await tools.fake.echo({})");
    let seen = "echo(): Promise</* observed */ { id: number; owner: string; tags: string[] }>";
    assert_eq!(run(&mut client, "typescript", signature), seen);
    assert!(client.leave().success());
    let kept = std::fs::read_to_string(client.home.path().join("state/observed/fake.json"));
    let kept = kept.expect("kept");
    assert!(!["4711", "somebody", "private"].iter().any(|value| kept.contains(value)), "{kept}");

    let home = client.home.path().to_owned();
    let mut next = Client::with(&json!({"fake": entry}), |command| {
        command.env("CODEXEC_HOME", home.join("state"));
    });
    let python = "(await get_tool_schema('fake.echo'))['signature']";
    let line = "echo() -> {\"id\": int, \"owner\": str, \"tags\": list[str]}  # observed";
    assert_eq!(run(&mut next, "python", python), line);
}

#[test]
fn help_speaks_the_language_of_who_asks() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let typescript = run(&mut client, "node", "console.log(await help('time.get_current_time'))");
    assert!(typescript.contains("get_current_time(args: {\n"), "{typescript}");
    let python = run(&mut client, "python", "print(help('time.get_current_time'))");
    assert!(
        python.contains("async def get_current_time(\n    *,\n    timezone: str,  # "),
        "{python}"
    );
    let bash = run(&mut client, "bash", "mcp help time.get_current_time");
    assert!(
        bash.contains("mcp time get_current_time\n  --timezone <string>, required; "),
        "{bash}"
    );
    assert!(bash.contains("returns: { timezone: string; "), "{bash}");
}
