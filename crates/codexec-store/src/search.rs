//! Finding executions.

use codexec_types::unix_ms;
use rusqlite::{Connection, Result, ToSql, named_params, params};

use crate::{
    query::{Found, LogPage, LogQuery},
    read::{SUMMARY, summary},
};

/// How many a page has at most.
const PAGE: u32 = 1_000;

const CODE_CHARS: u32 = 200;

/// Everything but the text, answered by the index alone.
const FILTER: &str = "SELECT seq FROM executions INDEXED BY executions_seek
    WHERE started_ms BETWEEN :since AND :until
      AND (:language IS NULL OR language = :language)
      AND (:kind IS NULL OR kind = :kind)
      AND (:session IS NULL OR session = :session)
      AND (:tool IS NULL OR seq IN (SELECT execution FROM calls
          WHERE tool = :tool AND (:server IS NULL OR server = :server)))";

pub(crate) fn search(conn: &Connection, query: &LogQuery) -> Result<LogPage> {
    let (server, tool) = query.tool.as_deref().map(tool_name).unwrap_or_default();
    let since = query.since.map_or(i64::MIN, unix_ms);
    let until = query.until.map_or(i64::MAX, unix_ms);
    let kind = query.status.map(crate::Kind::name);
    let session = query.session.as_ref().map(codexec_types::SessionId::as_str);
    let filters: &[(&str, &dyn ToSql)] = named_params! {
        ":since": since,
        ":until": until,
        ":language": query.language,
        ":kind": kind,
        ":session": session,
        ":server": server,
        ":tool": tool,
    };
    let found = match query.text.as_deref().map(words) {
        Some(words)
            if words.is_empty() && query.text.as_deref().is_some_and(|t| !t.trim().is_empty()) =>
        {
            return Ok(LogPage::default());
        }
        Some(_) | None => FILTER.to_owned(),
    };
    let mut count = conn.prepare_cached(&format!("SELECT count(*) FROM ({found})"))?;
    let total: i64 = count.query_row(filters, |row| row.get(0))?;
    let limit = query.limit.min(PAGE);
    let offset = i64::try_from(query.offset).unwrap_or(i64::MAX);
    let page = format!("SELECT seq FROM ({found}) ORDER BY seq DESC LIMIT {limit} OFFSET {offset}");
    let mut page = conn.prepare(&page)?;
    let seqs: Vec<i64> = page.query_map(filters, |row| row.get(0))?.collect::<Result<_>>()?;
    let results = seqs.into_iter().map(|seq| one(conn, seq)).collect::<Result<_>>()?;
    Ok(LogPage { results, total: total.unsigned_abs() })
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn one(conn: &Connection, seq: i64) -> Result<Found> {
    let sql =
        format!("SELECT {SUMMARY}, substr(code, 1, ?2) AS code FROM executions WHERE seq = ?1");
    conn.prepare_cached(&sql)?.query_row(params![seq, CODE_CHARS], |row| {
        let summary = summary(row)?;
        Ok(Found { code: row.get("code")?, error: summary.message.clone(), summary })
    })
}

/// The server, where one is named, and the tool.
fn tool_name(name: &str) -> (Option<&str>, Option<&str>) {
    let split = match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.split_once(['.', ':']),
    };
    split.map_or((None, Some(name)), |(server, tool)| (Some(server), Some(tool)))
}
