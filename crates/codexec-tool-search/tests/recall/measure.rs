//! Reads catalogues and queries from files, and measures search quality on them.

use std::{fs, path::Path};

use codexec_tool_search::{ToolDocument, ToolIndex};
use serde_json::Value;

pub(crate) struct Query {
    pub(crate) text: String,
    /// Any of these answers the query; the best one comes first.
    expected: Vec<String>,
}

/// The tools of a catalogue, and their index.
pub(crate) struct ToolFinder {
    names: Vec<String>,
    index: ToolIndex,
}

#[derive(Default)]
pub(crate) struct Measured {
    /// The share of queries with an expected tool among the first 1, 5 and 10.
    pub(crate) found: [f64; 3],
    /// The share of all expected tools that are among them.
    pub(crate) recall: [f64; 3],
    pub(crate) mean_reciprocal_rank: f64,
    pub(crate) ndcg_at_10: f64,
    /// The query, the expected tools, and the first five results instead.
    pub(crate) misses: Vec<String>,
}

const CUTS: [usize; 3] = [1, 5, 10];
const LOOKED_AT: usize = 100;
/// The part of a parameter's description that the gateway indexes.
const PARAMETER_BYTES: usize = 1 << 10;

impl ToolFinder {
    /// Indexes the definitions, each with its server.
    pub(crate) fn new(tools: &[(String, Value)]) -> ToolFinder {
        let documents: Vec<ToolDocument<'_>> =
            tools.iter().map(|(server, tool)| document(server, tool)).collect();
        let names = documents.iter().map(|tool| format!("{}.{}", tool.server, tool.name)).collect();
        ToolFinder { names, index: ToolIndex::new(&documents) }
    }

    /// Returns the `server.tool` names of the best matches, best first.
    pub(crate) fn find(&self, query: &str, limit: usize) -> Vec<String> {
        let ranked = self.index.rank(query);
        ranked.into_iter().take(limit).map(|at| self.names[at].clone()).collect()
    }
}

fn document<'a>(server: &'a str, tool: &'a Value) -> ToolDocument<'a> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let parameters = tool["inputSchema"]["properties"].as_object().into_iter().flatten();
    let (names, texts): (Vec<&str>, Vec<&str>) = parameters
        .map(|(name, schema)| {
            let text = text(&schema["description"]);
            (name.as_str(), &text[..text.floor_char_boundary(PARAMETER_BYTES)])
        })
        .unzip();
    ToolDocument {
        server,
        name: text(&tool["name"]),
        title: tool["title"].as_str().unwrap_or_else(|| text(&tool["annotations"]["title"])),
        description: text(&tool["description"]),
        parameters: names.join(" "),
        parameter_texts: texts.join(" "),
    }
}

/// Reads a file of tools that name their servers, or a folder with one file per server.
pub(crate) fn definitions(path: &Path) -> Vec<(String, Value)> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder");
        files = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
    }
    files.iter().flat_map(|file| tools(file)).collect()
}

fn tools(file: &Path) -> Vec<(String, Value)> {
    let list: Value = serde_json::from_str(&read(file)).expect("JSON");
    let tools = list.get("tools").unwrap_or(&list).as_array().expect("a list of tools").clone();
    let of_file = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let named = |mut tool: Value| {
        let server = tool["server"].as_str().unwrap_or(&of_file).to_owned();
        if let Some(name) = tool.get("tool").cloned() {
            tool["name"] = name;
        }
        (server, tool)
    };
    tools.into_iter().map(named).collect()
}

/// Reads lines of `{"query", "expected": ["server.tool"]}`, or one `{"queries": [{"query",
/// "labels"}]}`.
pub(crate) fn queries(file: &Path) -> Vec<Query> {
    let text = read(file);
    let whole: Option<Value> = serde_json::from_str(&text).ok();
    let rows = match whole.as_ref().and_then(|whole| whole["queries"].as_array()) {
        Some(rows) => rows.clone(),
        None => text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(),
    };
    rows.iter().map(query).collect()
}

fn query(row: &Value) -> Query {
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let expected = match row["labels"].as_array() {
        Some(labels) => {
            let mut labels: Vec<&Value> = labels.iter().collect();
            labels.sort_by_key(|label| std::cmp::Reverse(label["relevance"].as_u64()));
            labels.iter().map(|label| text(&label["tool_id"]).replacen(':', ".", 1)).collect()
        }
        None => row["expected"].as_array().expect("expected").iter().map(text).collect(),
    };
    Query { text: text(&row["query"]), expected }
}

pub(crate) fn measure(finder: &ToolFinder, queries: &[Query]) -> Measured {
    let mut measured = Measured::default();
    let all = queries.len() as f64;
    for query in queries {
        let found = finder.find(&query.text, LOOKED_AT);
        let ranks: Vec<usize> = (1..)
            .zip(&found)
            .filter(|(_, name)| query.expected.contains(name))
            .map(|(rank, _)| rank)
            .collect();
        for (at, cut) in CUTS.into_iter().enumerate() {
            let within = ranks.iter().filter(|rank| **rank <= cut).count();
            measured.found[at] += f64::from(u8::from(within > 0)) / all;
            measured.recall[at] += within as f64 / query.expected.len() as f64 / all;
        }
        let first = ranks.first().copied();
        measured.mean_reciprocal_rank += first.map_or(0.0, |rank| 1.0 / rank as f64) / all;
        let gain = |rank: usize| 1.0 / (rank as f64 + 1.0).log2();
        let ideal: f64 = (1..=query.expected.len().min(10)).map(gain).sum();
        let gained: f64 = ranks.iter().filter(|rank| **rank <= 10).map(|rank| gain(*rank)).sum();
        measured.ndcg_at_10 += gained / ideal / all;
        if first.is_none_or(|rank| rank > 5) {
            let came: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
            let (asked, expected) = (&query.text, query.expected.join(", "));
            measured.misses.push(format!("{asked}\n    {expected}, not {}", came.join(", ")));
        }
    }
    measured
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
