//! Parses the arguments of the command `mcp`. Does no I/O.

use codexec_types::{Ask, ToolDetail, ToolKind};

#[derive(Debug, PartialEq)]
pub(super) enum McpRequest {
    Usage,
    Ask {
        ask: Ask,
        is_pretty: bool,
    },
    /// List the names of all tools of all servers.
    AllTools {
        is_pretty: bool,
    },
    Call {
        target: Target,
        options: CallOptions,
    },
    Prompt {
        server: String,
        name: String,
        options: CallOptions,
    },
    /// Return these images with the result.
    Show {
        files: Vec<String>,
    },
}

#[derive(Debug, PartialEq)]
pub(super) enum Target {
    Pair {
        server: String,
        tool: String,
    },
    /// One name, in any form that the host understands.
    Joined(String),
}

/// The flags of a call, as written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallOptions {
    pub(super) flags: Vec<Flag>,
    pub(super) json: Option<JsonSource>,
    pub(super) is_pretty: bool,
}

#[derive(Debug, PartialEq)]
pub(super) struct Flag {
    pub(super) name: String,
    /// `None` for a flag without a value.
    pub(super) value: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum JsonSource {
    Text(String),
    Stdin,
}

const SEARCH_LIMIT: u32 = 10;

pub(super) fn parse(arguments: Vec<String>) -> Result<McpRequest, String> {
    let mut words = arguments.into_iter();
    let Some(first) = words.next() else {
        return Err("no tool is named; write for example mcp github get_issue --id 1".to_owned());
    };
    let rest: Vec<String> = words.collect();
    match first.as_str() {
        "--help" | "-h" => Ok(McpRequest::Usage),
        "help" => parse_help(rest),
        "search" => parse_search(rest),
        "tools" => parse_tools(rest),
        "schema" => parse_schema(rest),
        "resources" => parse_list(rest, "resources", |server| Ask::Resources { server }),
        "templates" => parse_list(rest, "templates", |server| Ask::ResourceTemplates { server }),
        "prompts" => parse_list(rest, "prompts", |server| Ask::Prompts { server }),
        "read" => parse_read(rest),
        "prompt" => parse_prompt(rest),
        "show" if rest.is_empty() => {
            Err("no image is named; write for example mcp show plot.png".to_owned())
        }
        "show" if rest.iter().any(|word| is_help(word)) => Ok(McpRequest::Usage),
        "show" => Ok(McpRequest::Show { files: rest }),
        "call" => {
            let missing = "no tool is named; write for example mcp call github.get_issue";
            let (name, rest) = split_first(rest, missing)?;
            parse_call(Target::Joined(name), rest)
        }
        flag if flag.starts_with('-') => Err(format!("{flag} comes before the server's name")),
        _ => {
            let missing = "no tool of that server is named; write for example mcp github get_issue";
            let (tool, rest) = split_first(rest, missing)?;
            if tool == "--help" || tool == "-h" {
                return Ok(ask_request(Ask::Help { name: Some(first) }, false));
            }
            parse_call(Target::Pair { server: first, tool }, rest)
        }
    }
}

impl Target {
    pub(super) fn name(&self) -> String {
        match self {
            Target::Pair { server, tool } => format!("{server}.{tool}"),
            Target::Joined(name) => name.clone(),
        }
    }
}

fn ask_request(ask: Ask, is_pretty: bool) -> McpRequest {
    McpRequest::Ask { ask, is_pretty }
}

fn split_first(words: Vec<String>, missing: &str) -> Result<(String, Vec<String>), String> {
    let mut words = words.into_iter();
    let first = words.next().filter(|word| !word.starts_with('-') || is_help(word));
    Ok((first.ok_or_else(|| missing.to_owned())?, words.collect()))
}

fn is_help(word: &str) -> bool {
    word == "--help" || word == "-h"
}

fn parse_call(target: Target, rest: Vec<String>) -> Result<McpRequest, String> {
    if target == Target::Joined("--help".to_owned()) {
        return Ok(McpRequest::Usage);
    }
    match parse_options(rest)? {
        Some(options) => Ok(McpRequest::Call { target, options }),
        None => Ok(ask_request(Ask::Help { name: Some(target.name()) }, false)),
    }
}

/// Parses the flags of a call. Returns `None` for `--help`.
fn parse_options(rest: Vec<String>) -> Result<Option<CallOptions>, String> {
    let (words, flags) = split_flags(rest);
    if let Some(word) = words.first() {
        return Err(format!("{word:?} has no name; write --name {word}, or --json '{{..}}'"));
    }
    let mut options = CallOptions::default();
    for flag in flags {
        match (flag.name.as_str(), flag.value) {
            ("json", Some(text)) if text == "-" => options.json = Some(JsonSource::Stdin),
            ("json", Some(text)) => options.json = Some(JsonSource::Text(text)),
            ("json", None) => return Err("--json takes JSON, or - for standard input".to_owned()),
            ("pretty", None) => options.is_pretty = true,
            ("help", None) => return Ok(None),
            ("", _) => return Err("`--` is not a flag; write --name value".to_owned()),
            (_, value) => options.flags.push(Flag { name: flag.name, value }),
        }
    }
    Ok(Some(options))
}

fn parse_list(
    rest: Vec<String>,
    what: &str,
    ask: impl FnOnce(Option<String>) -> Ask,
) -> Result<McpRequest, String> {
    let (words, is_pretty) = parse_words(rest)?;
    match <[String; 1]>::try_from(words) {
        Ok([server]) => Ok(ask_request(ask(Some(server)), is_pretty)),
        Err(none) if none.is_empty() => Ok(ask_request(ask(None), is_pretty)),
        Err(_) => Err(format!("mcp {what} takes one server, or none for all")),
    }
}

fn parse_read(rest: Vec<String>) -> Result<McpRequest, String> {
    let (words, is_pretty) = parse_words(rest)?;
    let [server, uri] = <[String; 2]>::try_from(words)
        .map_err(|_| "mcp read takes a server and a uri, like docs file:///a.md".to_owned())?;
    Ok(ask_request(Ask::ReadResource { server, uri }, is_pretty))
}

fn parse_prompt(rest: Vec<String>) -> Result<McpRequest, String> {
    let missing = "mcp prompt takes a server and a name, like github review --file a.rs";
    let (server, rest) = split_first(rest, missing)?;
    if is_help(&server) {
        return Ok(McpRequest::Usage);
    }
    let (name, rest) = split_first(rest, missing)?;
    let options = if is_help(&name) { None } else { parse_options(rest)? };
    Ok(options.map_or(McpRequest::Usage, |options| McpRequest::Prompt { server, name, options }))
}

fn parse_search(rest: Vec<String>) -> Result<McpRequest, String> {
    let (mut limit, mut server) = (SEARCH_LIMIT, None);
    let (mut kind, mut detail) = (ToolKind::Any, ToolDetail::Summary);
    let mut is_pretty = false;
    let mut words = Vec::new();
    let mut rest = rest.into_iter();
    while let Some(word) = rest.next() {
        let (name, flags) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || flags.clone().or_else(|| rest.next()).unwrap_or_default();
        match name {
            "--pretty" => is_pretty = true,
            "--read-only" => kind = ToolKind::ReadOnly,
            "--safe" => kind = ToolKind::Safe,
            "--destructive" => kind = ToolKind::Destructive,
            "--server" => server = Some(value()),
            "--limit" => {
                let number = value().parse().ok().filter(|n| (1..=1000).contains(n));
                limit = number.ok_or("--limit takes a number from 1 to 1000")?;
            }
            "--detail" => {
                let value = value();
                let found = ToolDetail::ALL.iter().find(|(name, _)| *name == value);
                detail = found.ok_or("--detail takes names, summary or full")?.1;
            }
            _ if name.starts_with("--") => return Err(format!("unknown flag {name}")),
            _ => words.push(word),
        }
    }
    let is_narrowed = server.is_some() || kind != ToolKind::Any;
    if words.is_empty() && !is_narrowed {
        return Err("no search words; write for example mcp search create issue".to_owned());
    }
    Ok(ask_request(Ask::Search { query: words.join(" "), limit, server, kind, detail }, is_pretty))
}

fn parse_tools(rest: Vec<String>) -> Result<McpRequest, String> {
    let (words, is_pretty) = parse_words(rest)?;
    match <[String; 1]>::try_from(words) {
        Ok([server]) => Ok(ask_request(Ask::ToolNames { server }, is_pretty)),
        Err(none) if none.is_empty() => Ok(McpRequest::AllTools { is_pretty }),
        Err(_) => Err("mcp tools takes one server, or none for all".to_owned()),
    }
}

fn parse_schema(rest: Vec<String>) -> Result<McpRequest, String> {
    let (words, is_pretty) = parse_words(rest)?;
    let [name] = <[String; 1]>::try_from(words)
        .map_err(|_| "mcp schema takes one tool, like github.get_issue".to_owned())?;
    Ok(ask_request(Ask::Schema { name }, is_pretty))
}

fn parse_help(rest: Vec<String>) -> Result<McpRequest, String> {
    let (words, _) = parse_words(rest)?;
    match words.as_slice() {
        [] => Ok(McpRequest::Usage),
        [name] => Ok(ask_request(Ask::Help { name: Some(name.clone()) }, false)),
        [server, tool] => {
            Ok(ask_request(Ask::Help { name: Some(format!("{server}.{tool}")) }, false))
        }
        _ => Err("mcp help takes one name".to_owned()),
    }
}

/// Separates `--pretty` from the words; refuses other flags.
fn parse_words(rest: Vec<String>) -> Result<(Vec<String>, bool), String> {
    let (mut found, mut is_pretty) = (Vec::new(), false);
    for word in rest {
        if word == "--pretty" {
            is_pretty = true;
        } else if word.starts_with("--") {
            return Err(format!("unknown flag {word}"));
        } else {
            found.push(word);
        }
    }
    Ok((found, is_pretty))
}

/// Separates flags (`--name value`, `--name=value`, or `--name` alone) from other words.
fn split_flags(arguments: Vec<String>) -> (Vec<String>, Vec<Flag>) {
    let (mut words, mut flags) = (Vec::new(), Vec::new());
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let Some(flag) = argument.strip_prefix("--") else {
            words.push(argument);
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            // This flag never takes a value.
            None if flag == "pretty" => (flag, None),
            None => (flag, arguments.next_if(|next| !next.starts_with("--"))),
        };
        flags.push(Flag { name: name.to_owned(), value });
    }
    (words, flags)
}
