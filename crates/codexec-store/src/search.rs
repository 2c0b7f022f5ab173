//! Finding executions.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use codexec_types::unix_ms;
use rusqlite::{Connection, OptionalExtension, Result, ToSql, named_params, params};

use crate::{
    query::{Found, LogPage, LogQuery},
    read::{SUMMARY, summary},
};

/// How many a page has at most.
const PAGE: u32 = 1_000;

const CODE_CHARS: u32 = 200;

const ERROR_CHARS: i32 = 500;

const PREVIEW_CHARS: usize = 500;

/// Everything but the text, answered by the index alone.
const FILTER: &str = "SELECT seq FROM executions INDEXED BY executions_seek
    WHERE started_ms BETWEEN :since AND :until
      AND (:language IS NULL OR language = :language)
      AND (:kind IS NULL OR kind = :kind)
      AND (:session IS NULL OR session = :session)
      AND (:tool IS NULL OR seq IN (SELECT execution FROM calls
          WHERE tool = :tool AND (:server IS NULL OR server = :server)))";

/// Those that have all the words, and among them those that meet the rest.
const WORDS: &str = "SELECT rowid AS seq FROM search.texts WHERE texts MATCH :words";

/// More words than these are not looked for.
const WORDS_MAX: usize = 32;

const TEXT_BYTES: usize = 1 << 10;

/// A search that takes longer is broken off.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many steps of SQLite's lie between two looks at the clock.
const STEPS: i32 = 10_000;

/// `index` has been filled if there is a text.
pub(crate) fn search(conn: &mut Connection, index: &Path, query: &LogQuery) -> Result<LogPage> {
    let words = query.text.as_deref().filter(|text| !text.trim().is_empty()).map(words);
    if words.as_ref().is_some_and(String::is_empty) {
        // Nothing but punctuation, which no index knows.
        return Ok(LogPage::default());
    }
    if words.is_some() {
        attach(conn, index)?;
    }
    let started = Instant::now();
    conn.progress_handler(STEPS, Some(move || started.elapsed() > PATIENCE))?;
    let page = page(conn, query, words.as_deref());
    conn.progress_handler(0, None::<fn() -> bool>)?;
    page
}

fn page(conn: &Connection, query: &LogQuery, words: Option<&str>) -> Result<LogPage> {
    let (server, tool) = query.tool.as_deref().map(tool_name).unwrap_or_default();
    let since = query.since.map_or(i64::MIN, unix_ms);
    let until = query.until.map_or(i64::MAX, unix_ms);
    let kind = query.status.map(crate::Kind::name);
    let session = query.session.as_ref().map(codexec_types::SessionId::as_str);
    let mut values: Vec<(&str, &dyn ToSql)> = Vec::new();
    values.extend_from_slice(named_params! { ":words": words });
    let is_filtered = query.since.is_some()
        || query.until.is_some()
        || query.language.is_some()
        || kind.is_some()
        || session.is_some()
        || tool.is_some();
    let filters: &[(&str, &dyn ToSql)] = named_params! {
        ":since": since,
        ":until": until,
        ":language": query.language,
        ":kind": kind,
        ":session": session,
        ":server": server,
        ":tool": tool,
    };
    let found = match (words, is_filtered) {
        (None, _) => FILTER.to_owned(),
        (Some(_), false) => WORDS.to_owned(),
        (Some(_), true) => format!("{WORDS} AND rowid IN ({FILTER})"),
    };
    if words.is_none() {
        values.clear();
    }
    if words.is_none() || is_filtered {
        values.extend_from_slice(filters);
    }
    let mut count = conn.prepare_cached(&format!("SELECT count(*) FROM ({found})"))?;
    let total: i64 = count.query_row(&*values, |row| row.get(0))?;
    let limit = query.limit.min(PAGE);
    let offset = i64::try_from(query.offset).unwrap_or(i64::MAX);
    let page = format!("{found} ORDER BY seq DESC LIMIT {limit} OFFSET {offset}");
    let mut page = conn.prepare(&page)?;
    let seqs: Vec<i64> = page.query_map(&*values, |row| row.get(0))?.collect::<Result<_>>()?;
    let found = seqs.into_iter().filter_map(|seq| one(conn, seq).transpose());
    Ok(LogPage { results: found.collect::<Result<_>>()?, total: total.unsigned_abs() })
}

fn attach(conn: &Connection, index: &Path) -> Result<()> {
    let sql = "SELECT 1 FROM pragma_database_list WHERE name = 'search'";
    if conn.prepare_cached(sql)?.query_row([], |_| Ok(())).optional()?.is_none() {
        conn.execute("ATTACH ?1 AS search", [index.to_string_lossy()])?;
    }
    Ok(())
}

/// Plain words as a query: whatever stands in them, each is a word and nothing else.
fn words(text: &str) -> String {
    let text = text.get(..text.floor_char_boundary(TEXT_BYTES)).unwrap_or_default();
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let quoted = |word: &str| {
        let quoted = format!("\"{}\"", word.replace('"', "\"\""));
        // The beginning of a word is enough, if it is not so short that it is that of many.
        let ends_with_word = word.ends_with(char::is_alphanumeric);
        let last = word.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if ends_with_word && last.chars().count() >= 3 { format!("{quoted} *") } else { quoted }
    };
    let words: Vec<String> = words.filter(is_word).take(WORDS_MAX).map(quoted).collect();
    words.join(" AND ")
}

/// `None` where it was removed in the meantime.
fn one(conn: &Connection, seq: i64) -> Result<Option<Found>> {
    // A program that fails by its exit status has said why before.
    let sql = format!(
        "SELECT {SUMMARY}, substr(code, 1, ?2) AS code,
             CASE WHEN exit_code IS NOT NULL THEN substr(output, ?3) END AS tail
         FROM executions WHERE seq = ?1"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let found = statement.query_row(params![seq, CODE_CHARS, -ERROR_CHARS], |row| {
        let summary = summary(row)?;
        let tail: Option<String> = row.get("tail")?;
        let tail = tail.map(|tail| tail.trim().to_owned()).filter(|tail| !tail.is_empty());
        let message = summary.message.as_deref();
        let message = message.map(|message| message.chars().take(PREVIEW_CHARS).collect());
        Ok(Found { code: row.get("code")?, error: tail.or(message), summary })
    });
    found.optional()
}

/// The server, where one is named, and the tool.
fn tool_name(name: &str) -> (Option<&str>, Option<&str>) {
    let split = match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.split_once(['.', ':']),
    };
    split.map_or((None, Some(name)), |(server, tool)| (Some(server), Some(tool)))
}
