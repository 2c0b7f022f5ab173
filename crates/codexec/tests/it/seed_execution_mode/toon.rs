//! Another's decoder reads what we write.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Seed, text};
use crate::support::world;

/// Of the package `@toon-format/toon`: one document in, its value as JSON out.
const DECODE: &str = "import { decode } from '@toon-format/toon';
let text = ''; for await (const chunk of process.stdin) text += chunk;
console.log(JSON.stringify(JSON.parse(text).map(document => decode(document))));";

/// Odd texts, numbers, nesting and empty things, and a table that makes it worth while.
const ODD: &str = r##"
import random
dice = random.Random(SEED)
WORDS = ["", " ", "a", "a b", " a", "a ", "-", "- a", "-1", "#", "#a", "0", "05", "1e5", "+1", "1.", ".5", "0x1f", "NaN",
         "Infinity", "true", "null", "True", "a,b", "a:b", "a: b", "[", "[]", "[1]", "[1]: 2", "{}", "{a}", "\"", "\\", "\\n", "\n",
         "a\nb", "\r\n", "\t", "a\tb", "|", "a|b", "\x01", "\x7f", "\x85", "\xa0", "\ufeff", "\u2028", "é", "日本", "🙂", "```", "x" * 200]
NAMES = ["a", "b", "a.b", "a b", "", "1", "-", "é", "a:b", "a,b", "[1]", "\"", "\n", "true", "_", "#", "result"]
NUMBERS = [0, 1, -1, 2**53, -(2**53), 0.1, 1e-7, 1e21, 1.5e300, -0.0, 12345.678, 5e-324]

def value(depth):
    kind = dice.randrange(9 if depth else 4)
    if kind == 0: return dice.choice(WORDS)
    if kind == 1: return dice.choice(NUMBERS)
    if kind == 2: return dice.choice([True, False, None])
    if kind == 3: return dice.choice([[], {}, ""])
    if kind == 4: return [dice.choice(WORDS + NUMBERS) for _ in range(dice.randrange(5))]
    if kind == 5:
        names = dice.sample(NAMES, dice.randrange(1, 4))
        return [{name: dice.choice(WORDS + NUMBERS + [None]) for name in names} for _ in range(dice.randrange(1, 4))]
    if kind == 6: return [value(depth - 1) for _ in range(dice.randrange(4))]
    return {name: value(depth - 1) for name in dice.sample(NAMES, dice.randrange(4))}

table = [{"identifier": n, "description": "row", "quantity": n * 2, "is_available": True} for n in range(60)]
print(dice.choice(WORDS))
{"odd": [value(3) for _ in range(12)], "table": table}
"##;

#[test]
fn every_block_is_read_back_as_the_structured_content() {
    let Some(mut seed) = Seed::with("", &[("MCP_BRIDGE_OUTPUT_MODE", "toon")]) else { return };
    let mut blocks = Vec::new();
    for number in 0..24 {
        let code = ODD.replace("SEED", &number.to_string());
        let ran = seed.run(&json!({"code": code, "servers": ["time"]}));
        assert_eq!(ran["structuredContent"]["status"], "success", "{ran}");
        if let Some(block) = document(text(&ran)) {
            blocks.push((block.to_owned(), ran["structuredContent"].clone()));
        }
    }
    assert!(blocks.len() > 12, "only {} were shorter as TOON", blocks.len());
    let documents: Vec<&str> = blocks.iter().map(|(block, _)| block.as_str()).collect();
    let decoded = decode(&documents);
    for (value, (block, expected)) in decoded.iter().zip(&blocks) {
        let odd = block.split_once("\n  table[").map_or(block.as_str(), |(odd, _)| odd);
        assert!(with_floats(value) == with_floats(expected), "it is read otherwise: {odd}");
    }
}

#[test]
fn it_is_used_only_where_it_is_shorter() {
    let Some(mut seed) = Seed::with("", &[("MCP_BRIDGE_OUTPUT_MODE", "toon")]) else { return };
    let mut said = |code: &str| text(&seed.run(&json!({"code": code}))).to_owned();
    assert_eq!(said("1 + 1"), "2");
    assert_eq!(said("print('a')\nprint('b')"), "a\nb");
    assert_eq!(said("[1, 2, 3]"), "[1,2,3]");
    let table = said("[{'identifier': n, 'is_even': n % 2 == 0} for n in range(20)]");
    let expected = "```toon\nstatus: success\nsummary: Success\nexitCode: 0\n\
                    result[20]{identifier,is_even}:\n  0,true\n  1,false\n";
    assert!(table.starts_with(expected), "{table}");
    let decoded = decode(&[document(&table).expect("a block")]);
    assert_eq!(decoded[0]["result"][19], json!({"identifier": 19, "is_even": false}));
    let refused = seed.run(&json!({}));
    assert_eq!(
        text(&refused),
        "status: validation_error\nerror: code: it is missing; it must be a string"
    );
}

fn document(text: &str) -> Option<&str> {
    text.strip_prefix("```toon\n")?.strip_suffix("\n```")
}

fn decode(documents: &[&str]) -> Vec<Value> {
    let world = world().expect("looked for before");
    let folder = world.join("npm");
    let mut node = Command::new(folder.join("node_modules/.bin/node"))
        .args(["--input-type=module", "--eval", DECODE])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    let mut stdin = node.stdin.take().expect("piped");
    stdin.write_all(json!(documents).to_string().as_bytes()).expect("written");
    drop(stdin);
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "the decoder refuses something: {documents:#?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// JavaScript has one kind of number.
fn with_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(with_floats).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), with_floats(value))).collect()
        }
        plain => plain.clone(),
    }
}
