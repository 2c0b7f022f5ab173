//! Search, lists, schemas and help, limited to the tools that the caller may see.

use std::sync::Arc;

use codexec_tool_search::GOOD_MATCH;
use codexec_types::{
    CallCode, CallError, Json, ServerName, ToolDetail, ToolFilter, ToolKind, ToolPattern,
};
use codexec_typings::TypingsLanguage;
use serde_json::Value;
use tokio::time::Instant;

use super::{Gateway, MissingServer, call::shorten};
use crate::{
    catalogue::{Catalogue, CatalogueEntry},
    upstream::{Upstream, UpstreamState},
};

const MAX_RESULTS: usize = 1_000;

/// A query to the catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchQuery {
    /// What the tool should do. Empty: all tools, in catalogue order.
    pub text: String,
    pub limit: usize,
    pub detail: ToolDetail,
    /// Limits the search to one server's tools.
    pub server: Option<String>,
    pub kind: ToolKind,
}

/// Search results, and the servers whose lists are missing or old.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchReply {
    pub tools: Vec<ToolInfo>,
    pub missing: Vec<MissingServer>,
}

/// Where and for whom a search looks.
#[derive(Clone)]
struct SearchScope {
    query: SearchQuery,
    server: Option<ServerName>,
    allowed: ToolFilter,
    voice: TypingsLanguage,
}

/// One tool, with the requested amount of detail.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// `server.tool`
    pub name: String,
    pub server: String,
    pub tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One line, in the language of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The whole declaration, for callers in TypeScript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typescript: Option<String>,
    /// The whole declaration, for callers in Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The schema of past results, if the tool declares no output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_output: Option<Value>,
}

impl Gateway {
    /// Returns the best matches, best first. Fails only if the query names an unknown server.
    pub async fn search(
        &self,
        query: &SearchQuery,
        allowed: &ToolFilter,
    ) -> Result<SearchReply, CallError> {
        self.search_as(query, allowed, TypingsLanguage::TypeScript).await
    }

    async fn search_as(
        &self,
        query: &SearchQuery,
        allowed: &ToolFilter,
        voice: TypingsLanguage,
    ) -> Result<SearchReply, CallError> {
        let server = query.server.as_deref().map(|server| self.resolve_server(server, allowed));
        let server = server.transpose()?;
        // A search in one server does not wait for the others.
        let only = server.as_ref().map(|server| ToolPattern::server(server.as_str()));
        let only = only.map(|only| allowed.clone().narrowed_by(vec![only]));
        let scope =
            Arc::new(SearchScope { query: query.clone(), server, allowed: allowed.clone(), voice });
        let matching = Arc::clone(&scope);
        let is_match = move |catalogue: &Catalogue| matching.has_match(catalogue);
        let (catalogue, missing) =
            self.gather_lists(only.as_ref().unwrap_or(allowed), is_match).await;
        let gateway = self.clone();
        let find = move || {
            let show = |entry| gateway.tool_info(entry, scope.query.detail, scope.voice);
            scope.find(&catalogue).map(show).collect()
        };
        let tools = self.run_blocking(find).await?;
        Ok(SearchReply { tools, missing })
    }

    /// Returns all tools, in catalogue order.
    pub async fn list(&self, allowed: &ToolFilter) -> Vec<ToolInfo> {
        let (catalogue, _) = self.gather_all_lists(allowed).await;
        let show = |entry| self.tool_info(entry, ToolDetail::Summary, TypingsLanguage::TypeScript);
        catalogue.all(allowed).map(show).collect()
    }

    /// Returns one tool's complete definition and declaration, by any of its names.
    pub async fn schema(
        &self,
        name: &str,
        allowed: &ToolFilter,
        voice: TypingsLanguage,
    ) -> Result<ToolInfo, CallError> {
        let entry = self.find_entry(name, allowed).await?;
        let gateway = self.clone();
        self.run_blocking(move || gateway.describe_tool(&entry, voice)).await
    }

    /// Returns `None` for a tool that is not known, and notes why. An error in Bash, where nothing
    /// else would tell.
    pub async fn schema_or_note(
        &self,
        name: &str,
        allowed: &ToolFilter,
        voice: TypingsLanguage,
    ) -> Result<Option<ToolInfo>, CallError> {
        match self.schema(name, allowed, voice).await {
            Ok(tool) => Ok(Some(tool)),
            Err(error)
                if voice != TypingsLanguage::Bash
                    && matches!(error.code, CallCode::ToolNotFound | CallCode::UpstreamError) =>
            {
                let name = shorten(name);
                self.note_unknown(format!("the schema of {name:?} is null: {}", error.message));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn describe_tool(&self, entry: &CatalogueEntry, voice: TypingsLanguage) -> ToolInfo {
        let mut info = self.tool_info(entry, ToolDetail::Full, voice);
        let (server, tool) = (entry.server.as_str(), &entry.tool);
        let types = tool.types(info.observed_output.as_ref());
        let declaration = || types.declaration(voice, server, &tool.name, &tool.summary());
        match voice {
            TypingsLanguage::TypeScript => info.typescript = Some(declaration()),
            TypingsLanguage::Python => info.python = Some(declaration()),
            TypingsLanguage::Bash => {}
        }
        info
    }

    pub(super) async fn tool_names(
        &self,
        server: &str,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let entries = self.server_entries(server, allowed).await?;
        let gateway = self.clone();
        let list = move || {
            let names = entries.iter().map(|entry| entry.tool.name.as_str().into());
            gateway.to_bounded_json(&Value::Array(names.collect()))
        };
        self.run_blocking(list).await?
    }

    pub(super) async fn search_for_guest(
        &self,
        query: &SearchQuery,
        allowed: &ToolFilter,
        voice: TypingsLanguage,
    ) -> Result<Json, CallError> {
        let reply = self.search_as(query, allowed, voice).await?;
        self.render_json(reply.tools).await
    }

    pub(super) async fn server_entries(
        &self,
        server: &str,
        allowed: &ToolFilter,
    ) -> Result<Vec<CatalogueEntry>, CallError> {
        let server = self.resolve_server(server, allowed)?;
        if let Some(upstream) = self.upstream(&server) {
            self.ensure_listed(&upstream).await?;
        }
        let catalogue = self.catalogue().await;
        let allowed = allowed.clone();
        let list = move || {
            catalogue.all(&allowed).filter(|entry| entry.server == server).cloned().collect()
        };
        self.run_blocking(list).await
    }

    /// Waits for a list, if there is none yet.
    async fn ensure_listed(&self, upstream: &Arc<Upstream>) -> Result<(), CallError> {
        upstream.tool_cache().recheck().await;
        let state = upstream.wait_until_settled(self.list_deadline()).await;
        self.start_in_background(vec![Arc::clone(upstream)]);
        match upstream.listing() {
            Some(_) => Ok(()),
            None => Err(unlisted_error(upstream.name(), &state)),
        }
    }

    pub(super) async fn find_entry(
        &self,
        name: &str,
        allowed: &ToolFilter,
    ) -> Result<CatalogueEntry, CallError> {
        let (server, tool) = self.resolve_name(name, allowed).await?;
        let Some(upstream) = self.upstream(&server) else {
            return Err(self.no_tool_error(&server, &tool, allowed));
        };
        self.ensure_listed(&upstream).await?;
        let tool = self.resolve_tool(&upstream, &tool, allowed).await?;
        Ok(CatalogueEntry { server, tool })
    }

    fn tool_info(
        &self,
        entry: &CatalogueEntry,
        detail: ToolDetail,
        voice: TypingsLanguage,
    ) -> ToolInfo {
        let tool = &entry.tool;
        let is_full = detail == ToolDetail::Full;
        let description = match detail {
            ToolDetail::Names => None,
            ToolDetail::Summary => Some(tool.summary()),
            ToolDetail::Full => Some(tool.description.clone()),
        };
        let observed = || self.inner.observed.schema(&entry.server, tool);
        let observed = if detail == ToolDetail::Names { None } else { observed() };
        let signature = || tool.signature(voice, entry.server.as_str(), observed.as_ref());
        ToolInfo {
            name: entry.dotted_name(),
            server: entry.server.to_string(),
            tool: tool.name.clone(),
            description,
            signature: (detail != ToolDetail::Names).then(signature),
            typescript: None,
            python: None,
            input_schema: is_full.then(|| tool.input_schema().clone()),
            output_schema: if is_full { tool.output_schema().cloned() } else { None },
            observed_output: observed.filter(|_| is_full),
        }
    }

    pub(super) fn list_deadline(&self) -> Instant {
        Instant::now() + self.list_wait
    }
}

impl SearchScope {
    /// Returns the best matches, best first.
    fn find<'a>(&'a self, catalogue: &'a Catalogue) -> impl Iterator<Item = &'a CatalogueEntry> {
        let found: Vec<&CatalogueEntry> = if self.query.text.trim().is_empty() {
            catalogue.all(&self.allowed).collect()
        } else {
            let found = catalogue.search(&self.query.text, &self.allowed);
            found.into_iter().map(|(entry, _)| entry).collect()
        };
        let limit = self.query.limit.clamp(1, MAX_RESULTS);
        found.into_iter().filter(|entry| self.includes(entry)).take(limit)
    }

    /// Returns true if a tool matches so well that waiting for more servers is not worth it.
    fn has_match(&self, catalogue: &Catalogue) -> bool {
        if self.query.text.trim().is_empty() {
            return catalogue.all(&self.allowed).any(|entry| self.includes(entry));
        }
        let found = catalogue.search(&self.query.text, &self.allowed);
        found.iter().any(|(entry, score)| *score >= GOOD_MATCH && self.includes(entry))
    }

    fn includes(&self, entry: &CatalogueEntry) -> bool {
        self.server.as_ref().is_none_or(|server| *server == entry.server)
            && entry.tool.hints.matches(self.query.kind)
    }
}

/// Explains why a server has no list.
fn unlisted_error(server: &ServerName, state: &UpstreamState) -> CallError {
    let why = match state {
        UpstreamState::Failed(failure) => failure.error.to_string(),
        UpstreamState::Idle | UpstreamState::Starting | UpstreamState::Ready(_) => {
            "it is still starting; try again in a few seconds".to_owned()
        }
    };
    CallError::new(CallCode::UpstreamError, format!("server \"{server}\": {why}"))
}
