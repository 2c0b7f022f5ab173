//! Searches executions.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use codexec_types::{Edge, Identity, RequestOrigin, unix_ms};
use rusqlite::{Connection, OptionalExtension, Result, ToSql, params};

use super::{
    index,
    read::{IS_RUNNING, SUMMARY, parse_json, parse_optional_word, read_summary},
};
use crate::{
    ReadScope,
    query::{LogMatch, LogPage, LogQuery},
};

const CODE_CHARS: u32 = 200;

const ERROR_CHARS: i32 = 500;

const PREVIEW_CHARS: usize = 500;

/// Further words of a query are ignored.
const WORDS_MAX: usize = 32;

const TEXT_BYTES: usize = 1 << 10;

const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);

/// How many SQLite VM steps lie between two checks of the clock.
const STEPS: i32 = 10_000;

/// The rows of this server.
#[derive(Debug)]
pub(crate) struct OwnRows {
    pub(crate) owner: Arc<str>,
    /// The last end number before the server opened the database; its own are larger.
    pub(crate) after: i64,
}

/// Searches executions. If there is a text, the caller has updated the index.
pub(crate) fn search(
    conn: &mut Connection,
    index: &Path,
    query: &LogQuery,
    rows: (&ReadScope, &OwnRows),
) -> Result<LogPage> {
    let text = query.text.as_deref().filter(|text| !text.trim().is_empty());
    let words = text.map(|text| to_match_expression(text, query, rows.0));
    if words.as_ref().is_some_and(String::is_empty) {
        // The text is only punctuation, which is not indexed.
        return Ok(LogPage::default());
    }
    if words.is_some() {
        attach(conn, index)?;
    }
    let started = Instant::now();
    conn.progress_handler(STEPS, Some(move || started.elapsed() > SEARCH_TIMEOUT))?;
    let page = read_page(conn, query, words.as_deref(), rows);
    conn.progress_handler(0, None::<fn() -> bool>)?;
    page
}

/// Reads one page: running executions first, then ended ones, the last end first. Only the rows of
/// the page are read; indexes answer the rest.
fn read_page(
    conn: &Connection,
    query: &LogQuery,
    words: Option<&str>,
    (scope, own): (&ReadScope, &OwnRows),
) -> Result<LogPage> {
    let filter = SearchFilter::new(query, scope, own);
    let running = if words.is_some() { Vec::new() } else { list_running(conn, &filter)? };
    let (from, terms) = ended_query(&filter, words);
    let mut values = filter.values();
    values.retain(|(name, _)| terms.contains(name));
    if let Some(words) = &words {
        values.push((":words", words));
    }
    let count = format!("SELECT count(*) FROM {from} WHERE {terms}");
    let ended: i64 = conn.prepare_cached(&count)?.query_row(&*values, |row| row.get(0))?;
    let limit = query.page_limit() as usize;
    let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let mut seqs: Vec<i64> = running.iter().copied().skip(offset).take(limit).collect();
    let number = if words.is_some() { "rowid" } else { "end_number" };
    let (left, skipped) = (limit - seqs.len(), offset.saturating_sub(running.len()));
    let page = format!(
        "SELECT seq FROM executions INDEXED BY executions_seek WHERE end_number IN (
             SELECT {number} FROM {from} WHERE {terms} ORDER BY {number} DESC
             LIMIT {left} OFFSET {skipped}) ORDER BY end_number DESC",
        skipped = i64::try_from(skipped).unwrap_or(i64::MAX)
    );
    let mut page = conn.prepare(&page)?;
    for seq in page.query_map(&*values, |row| row.get(0))? {
        seqs.push(seq?);
    }
    let results = seqs.into_iter().filter_map(|seq| read_match(conn, seq).transpose());
    let results = results.collect::<Result<_>>()?;
    Ok(LogPage { results, total: running.len() as u64 + ended.unsigned_abs() })
}

/// Returns the FROM and WHERE clauses for ended executions.
fn ended_query(filter: &SearchFilter<'_>, words: Option<&str>) -> (&'static str, String) {
    if words.is_none() {
        let ended = match filter.after {
            Some(_) => "end_number > :after",
            None => "end_number IS NOT NULL",
        };
        let terms = [&[ended], &*filter.all_terms()].concat().join(" AND ");
        return ("executions INDEXED BY executions_seek", terms);
    }
    let rest = filter.unindexed_terms();
    let after = filter.after.map_or("", |_| " AND texts.rowid > :after");
    let terms = if rest.is_empty() {
        "texts MATCH :words".to_owned()
    } else {
        format!(
            "texts MATCH :words{after} AND EXISTS (SELECT 1 FROM executions INDEXED BY executions_seek
             WHERE end_number = texts.rowid AND {})",
            rest.join(" AND ")
        )
    };
    ("search.texts", terms)
}

/// Lists running executions, newest first. There are never many.
fn list_running(conn: &Connection, filter: &SearchFilter<'_>) -> Result<Vec<i64>> {
    let terms = [&[IS_RUNNING], &*filter.all_terms()].concat().join(" AND ");
    let sql = format!("SELECT seq FROM executions WHERE {terms} ORDER BY seq DESC");
    let mut values = filter.values();
    values.retain(|(name, _)| terms.contains(name));
    conn.prepare_cached(&sql)?.query_map(&*values, |row| row.get(0))?.collect()
}

/// The conditions of a query, except for its words.
struct SearchFilter<'a> {
    since: Option<i64>,
    until: Option<i64>,
    language: Option<&'a str>,
    kind: Option<&'static str>,
    session: Option<&'a str>,
    agent: Option<&'a str>,
    server: Option<&'a str>,
    tool: Option<&'a str>,
    principal: Option<String>,
    /// These two are set together.
    owner: Option<&'a str>,
    after: Option<i64>,
}

impl<'a> SearchFilter<'a> {
    fn new(query: &'a LogQuery, scope: &ReadScope, own: &'a OwnRows) -> SearchFilter<'a> {
        let (server, tool) = query.server_and_tool();
        let owner = scope.owner(&own.owner);
        SearchFilter {
            since: query.since.map(unix_ms),
            until: query.until.map(unix_ms),
            language: query.language.as_deref(),
            kind: query.status.map(crate::CoarseStatus::name),
            session: query.session.as_ref().map(codexec_types::SessionId::as_str),
            agent: query.agent.as_deref(),
            server,
            tool,
            principal: scope.principal(),
            owner,
            after: owner.map(|_| own.after),
        }
    }

    fn all_terms(&self) -> Vec<&'static str> {
        let mut terms = self.unindexed_terms();
        let indexed = [
            (self.language.is_some(), "language = :language"),
            (self.kind.is_some(), "kind = :kind"),
            (self.session.is_some(), "session = :session"),
            (self.principal.is_some(), "principal = :principal"),
        ];
        terms.extend(indexed.iter().filter(|(is_set, _)| *is_set).map(|(_, term)| *term));
        terms
    }

    /// Returns the conditions that are not encoded as words of the search index.
    fn unindexed_terms(&self) -> Vec<&'static str> {
        let called = match (self.tool, self.server) {
            (Some(_), Some(_)) => {
                "seq IN (SELECT execution FROM calls WHERE tool = :tool AND server = :server)"
            }
            (Some(_), None) | (None, _) => {
                "seq IN (SELECT execution FROM calls WHERE tool = :tool)"
            }
        };
        let terms = [
            (self.since.is_some(), "started_ms >= :since"),
            (self.until.is_some(), "started_ms <= :until"),
            (self.agent.is_some(), "json_extract(context, '$.agent_id') = :agent"),
            (self.tool.is_some(), called),
            (self.owner.is_some(), "owner = :owner"),
        ];
        terms.iter().filter(|(is_set, _)| *is_set).map(|(_, term)| *term).collect()
    }

    fn values(&self) -> Vec<(&'static str, &dyn ToSql)> {
        vec![
            (":since", &self.since),
            (":until", &self.until),
            (":language", &self.language),
            (":kind", &self.kind),
            (":session", &self.session),
            (":agent", &self.agent),
            (":server", &self.server),
            (":tool", &self.tool),
            (":owner", &self.owner),
            (":principal", &self.principal),
            (":after", &self.after),
        ]
    }
}

fn attach(conn: &Connection, index: &Path) -> Result<()> {
    let sql = "SELECT 1 FROM pragma_database_list WHERE name = 'search'";
    if conn.prepare_cached(sql)?.query_row([], |_| Ok(())).optional()?.is_none() {
        conn.execute("ATTACH ?1 AS search", [index.to_string_lossy()])?;
    }
    Ok(())
}

/// Converts a text to an FTS5 expression. Each word is quoted, so that none is an operator. Returns
/// an empty string if there are no words.
fn to_match_expression(text: &str, query: &LogQuery, scope: &ReadScope) -> String {
    let text = text.get(..text.floor_char_boundary(TEXT_BYTES)).unwrap_or_default();
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let quote = |word: &str| {
        let quoted = format!("\"{}\"", word.replace('"', "\"\""));
        // A prefix of a word matches, unless it is so short that it would match many words.
        let ends_with_word = word.ends_with(char::is_alphanumeric);
        let last = word.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if ends_with_word && last.chars().count() >= 3 { format!("{quoted} *") } else { quoted }
    };
    let words: Vec<String> = words.filter(is_word).take(WORDS_MAX).map(quote).collect();
    if words.is_empty() {
        return String::new();
    }
    let session = query.session.as_ref().map(codexec_types::SessionId::as_str);
    let kind = query.status.map(crate::CoarseStatus::name);
    let principal = scope.principal();
    let about =
        index::attribute_words(query.language.as_deref(), kind, session, principal.as_deref());
    let mut terms = vec![format!("{{code output message value}} : ({})", words.join(" AND "))];
    terms.extend(about.iter().map(|word| format!("about : \"{word}\"")));
    terms.join(" AND ")
}

/// Reads one result. Returns `None` if it was removed in the meantime.
fn read_match(conn: &Connection, seq: i64) -> Result<Option<LogMatch>> {
    // A program with an exit status has usually written its error at the end of its output.
    let sql = format!(
        "SELECT {SUMMARY}, substr(code, 1, ?2) AS code,
             CASE WHEN exit_code IS NOT NULL THEN substr(output, ?3) END AS tail,
             principal, edge, context
         FROM executions WHERE seq = ?1"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let found = statement.query_row(params![seq, CODE_CHARS, -ERROR_CHARS], |row| {
        let summary = read_summary(row)?;
        let tail: Option<String> = row.get("tail")?;
        let tail = tail.map(|tail| tail.trim().to_owned()).filter(|tail| !tail.is_empty());
        let message = summary.message.as_deref();
        let message = message.map(|message| message.chars().take(PREVIEW_CHARS).collect());
        Ok(LogMatch {
            code: row.get("code")?,
            error: tail.or(message),
            identity: parse_optional_word(row, "principal", Identity::parse)?,
            edge: parse_optional_word(row, "edge", Edge::parse)?,
            agent: parse_json::<RequestOrigin>(row, "context")?.agent_id,
            summary,
        })
    });
    found.optional()
}
