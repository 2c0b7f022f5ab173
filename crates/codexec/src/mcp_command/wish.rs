//! What the arguments mean. Nothing is asked here, and nothing read.

use codexec_types::Ask;

#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    Usage,
    Ask {
        ask: Ask,
        is_pretty: bool,
    },
    /// The names of all tools of all servers.
    AllTools {
        is_pretty: bool,
    },
    Call {
        target: Target,
        given: Given,
    },
    Prompt {
        server: String,
        name: String,
        given: Given,
    },
    /// Give these pictures back with the result.
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
    /// In any form that the host understands.
    Joined(String),
}

/// What a call is given, as it was written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Given {
    pub(super) flags: Vec<Flag>,
    pub(super) json: Option<JsonSource>,
    pub(super) is_pretty: bool,
}

#[derive(Debug, PartialEq)]
pub(super) struct Flag {
    pub(super) name: String,
    /// `None` when it stands alone.
    pub(super) value: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum JsonSource {
    Text(String),
    Stdin,
}

const SEARCH_LIMIT: u32 = 10;

pub(super) fn parse(arguments: Vec<String>) -> Result<Wish, String> {
    let mut words = arguments.into_iter();
    let Some(first) = words.next() else {
        return Err("say what to call, like mcp github get_issue --id 1".to_owned());
    };
    let rest: Vec<String> = words.collect();
    match first.as_str() {
        "--help" | "-h" => Ok(Wish::Usage),
        "help" => help(rest),
        "search" => search(rest),
        "tools" => tools(rest),
        "schema" => schema(rest),
        "resources" => listed(rest, "resources", |server| Ask::Resources { server }),
        "templates" => listed(rest, "templates", |server| Ask::ResourceTemplates { server }),
        "prompts" => listed(rest, "prompts", |server| Ask::Prompts { server }),
        "read" => read(rest),
        "prompt" => prompt(rest),
        "show" if rest.is_empty() => Err("say which picture, like mcp show plot.png".to_owned()),
        "show" if rest.iter().any(|word| is_help(word)) => Ok(Wish::Usage),
        "show" => Ok(Wish::Show { files: rest }),
        "call" => {
            let (name, rest) = split_first(rest, "say which tool, like mcp call github.get_issue")?;
            call(Target::Joined(name), rest)
        }
        flag if flag.starts_with('-') => Err(format!("{flag} comes before any server")),
        _ => {
            let missing = "say which tool of that server, like mcp github get_issue";
            let (tool, rest) = split_first(rest, missing)?;
            if tool == "--help" || tool == "-h" {
                return Ok(asked(Ask::Help { name: Some(first) }, false));
            }
            call(Target::Pair { server: first, tool }, rest)
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

fn asked(ask: Ask, is_pretty: bool) -> Wish {
    Wish::Ask { ask, is_pretty }
}

fn split_first(words: Vec<String>, missing: &str) -> Result<(String, Vec<String>), String> {
    let mut words = words.into_iter();
    let first = words.next().filter(|word| !word.starts_with('-') || is_help(word));
    Ok((first.ok_or_else(|| missing.to_owned())?, words.collect()))
}

fn is_help(word: &str) -> bool {
    word == "--help" || word == "-h"
}

fn call(target: Target, rest: Vec<String>) -> Result<Wish, String> {
    if target == Target::Joined("--help".to_owned()) {
        return Ok(Wish::Usage);
    }
    match given(rest)? {
        Some(given) => Ok(Wish::Call { target, given }),
        None => Ok(asked(Ask::Help { name: Some(target.name()) }, false)),
    }
}

/// `None`: it is asked how.
fn given(rest: Vec<String>) -> Result<Option<Given>, String> {
    let (words, flags) = split_flags(rest);
    if let Some(word) = words.first() {
        return Err(format!("{word:?} has no name; write --name {word}, or --json '{{..}}'"));
    }
    let mut given = Given::default();
    for flag in flags {
        match (flag.name.as_str(), flag.value) {
            ("json", Some(text)) if text == "-" => given.json = Some(JsonSource::Stdin),
            ("json", Some(text)) => given.json = Some(JsonSource::Text(text)),
            ("json", None) => return Err("--json takes JSON, or - for standard input".to_owned()),
            ("pretty", None) => given.is_pretty = true,
            ("help", None) => return Ok(None),
            ("", _) => return Err("a flag without a name".to_owned()),
            (_, value) => given.flags.push(Flag { name: flag.name, value }),
        }
    }
    Ok(Some(given))
}

fn listed(
    rest: Vec<String>,
    what: &str,
    ask: impl FnOnce(Option<String>) -> Ask,
) -> Result<Wish, String> {
    let (words, is_pretty, _) = words(rest, false)?;
    match <[String; 1]>::try_from(words) {
        Ok([server]) => Ok(asked(ask(Some(server)), is_pretty)),
        Err(none) if none.is_empty() => Ok(asked(ask(None), is_pretty)),
        Err(_) => Err(format!("mcp {what} takes one server, or none for all")),
    }
}

fn read(rest: Vec<String>) -> Result<Wish, String> {
    let (words, is_pretty, _) = words(rest, false)?;
    let [server, uri] = <[String; 2]>::try_from(words)
        .map_err(|_| "mcp read takes a server and a uri, like docs file:///a.md".to_owned())?;
    Ok(asked(Ask::ReadResource { server, uri }, is_pretty))
}

fn prompt(rest: Vec<String>) -> Result<Wish, String> {
    let missing = "mcp prompt takes a server and a name, like github review --file a.rs";
    let (server, rest) = split_first(rest, missing)?;
    if is_help(&server) {
        return Ok(Wish::Usage);
    }
    let (name, rest) = split_first(rest, missing)?;
    let given = if is_help(&name) { None } else { given(rest)? };
    Ok(given.map_or(Wish::Usage, |given| Wish::Prompt { server, name, given }))
}

fn search(rest: Vec<String>) -> Result<Wish, String> {
    let (words, is_pretty, limit) = words(rest, true)?;
    if words.is_empty() {
        return Err("say what the tool should do, like mcp search create issue".to_owned());
    }
    let limit = limit.unwrap_or(SEARCH_LIMIT);
    Ok(asked(Ask::Search { query: words.join(" "), limit }, is_pretty))
}

fn tools(rest: Vec<String>) -> Result<Wish, String> {
    let (words, is_pretty, _) = words(rest, false)?;
    match <[String; 1]>::try_from(words) {
        Ok([server]) => Ok(asked(Ask::ToolNames { server }, is_pretty)),
        Err(none) if none.is_empty() => Ok(Wish::AllTools { is_pretty }),
        Err(_) => Err("mcp tools takes one server, or none for all".to_owned()),
    }
}

fn schema(rest: Vec<String>) -> Result<Wish, String> {
    let (words, is_pretty, _) = words(rest, false)?;
    let [name] = <[String; 1]>::try_from(words)
        .map_err(|_| "mcp schema takes one tool, like github.get_issue".to_owned())?;
    Ok(asked(Ask::Schema { name }, is_pretty))
}

fn help(rest: Vec<String>) -> Result<Wish, String> {
    let (words, ..) = words(rest, false)?;
    match words.as_slice() {
        [] => Ok(Wish::Usage),
        [name] => Ok(asked(Ask::Help { name: Some(name.clone()) }, false)),
        [server, tool] => Ok(asked(Ask::Help { name: Some(format!("{server}.{tool}")) }, false)),
        _ => Err("mcp help takes one name".to_owned()),
    }
}

/// Words, with `--pretty` and, where there can be one, `--limit N` between them.
fn words(rest: Vec<String>, has_limit: bool) -> Result<(Vec<String>, bool, Option<u32>), String> {
    let mut found = Vec::new();
    let (mut is_pretty, mut limit) = (false, None);
    let mut rest = rest.into_iter();
    while let Some(word) = rest.next() {
        if word == "--pretty" {
            is_pretty = true;
        } else if has_limit && (word == "--limit" || word.starts_with("--limit=")) {
            let value = match word.strip_prefix("--limit=") {
                Some(value) => Some(value.to_owned()),
                None => rest.next(),
            };
            let number =
                value.and_then(|value| value.parse().ok()).filter(|n| (1..=1000).contains(n));
            limit = Some(number.ok_or("--limit takes a number from 1 to 1000")?);
        } else if word.starts_with("--") {
            return Err(format!("{word} is not known here"));
        } else {
            found.push(word);
        }
    }
    Ok((found, is_pretty, limit))
}

/// `--name value`, `--name=value`, `--name` alone; and what is none of these.
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
            // These stand alone, whatever follows.
            None if flag == "pretty" => (flag, None),
            None => (flag, arguments.next_if(|next| !next.starts_with("--"))),
        };
        flags.push(Flag { name: name.to_owned(), value });
    }
    (words, flags)
}
