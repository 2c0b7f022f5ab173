//! Lists and texts for guests, built on blocking threads.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Json, ToolFilter};
use codexec_typings::TypingsLanguage;
use serde_json::{Value, json};

use super::Gateway;
use crate::{
    catalogue::{Catalogue, CatalogueEntry, find_server},
    help,
};

/// The cost limit of a word search in bytes compared, about a tenth of a second.
const COMPARED_BYTES: usize = 256 << 20;
/// A discovery with more words does not wait for servers that are still starting.
const MATCHED_WORDS: usize = 100;

impl Gateway {
    /// Returns every tool that contains one of the words, or all tools if there are no words.
    pub(super) async fn discover(
        &self,
        words: Vec<String>,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let words = Arc::new(prepare_words(&words));
        let (matching, visible) = (Arc::clone(&words), allowed.clone());
        let is_match = move |catalogue: &Catalogue| {
            let mut all = catalogue.all(&visible);
            // With very many words, the check would cost more than the wait.
            matching.len() > MATCHED_WORDS
                || all.any(|entry| matching.is_empty() || contains_any(&matching, entry))
        };
        let (catalogue, _) = self.gather_lists(allowed, is_match).await;
        let (gateway, allowed) = (self.clone(), allowed.clone());
        self.run_blocking(move || gateway.find_words(&words, &catalogue, &allowed)).await?
    }

    fn find_words(
        &self,
        words: &[String],
        catalogue: &Catalogue,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let limit = self.inner.shared.settings.result_bytes;
        let (mut left, mut found) = (COMPARED_BYTES, String::from("["));
        for entry in catalogue.all(allowed) {
            let cost = words.len() * (entry.tool.name.len() + entry.tool.description.len());
            left = left.checked_sub(cost).ok_or_else(|| {
                let message = "words: too many for this number of tools; give fewer";
                CallError::new(CallCode::InvalidArgs, message)
            })?;
            if !words.is_empty() && !contains_any(words, entry) {
                continue;
            }
            if found.len() > 1 {
                found.push(',');
            }
            found.push_str(&describe(entry).to_string());
            if found.len() > limit {
                let message = format!("the result has over {limit} bytes; ask for less");
                return Err(CallError::new(CallCode::UpstreamError, message));
            }
        }
        found.push(']');
        Json::parse(found)
            .map_err(|error| CallError::new(CallCode::UpstreamError, error.to_string()))
    }

    pub(super) async fn help(
        &self,
        name: Option<&str>,
        allowed: &ToolFilter,
        voice: TypingsLanguage,
    ) -> Result<Json, CallError> {
        let entries = match name {
            None => return self.overview(allowed, voice).await,
            Some(name) if find_server(name, &self.fleet().names).is_some() => {
                Ok(self.server_entries(name, allowed).await?)
            }
            Some(name) => Err(self.find_entry(name, allowed).await?),
        };
        let (gateway, name) = (self.clone(), name.unwrap_or_default().to_owned());
        let write = move || {
            let observed =
                |entry: &CatalogueEntry| gateway.inner.observed.schema(&entry.server, &entry.tool);
            let text = match &entries {
                Ok(entries) => {
                    let entries: Vec<_> =
                        entries.iter().map(|entry| (entry, observed(entry))).collect();
                    help::describe_server(voice, &name, &entries)
                }
                Err(entry) => help::describe_tool(voice, entry, observed(entry).as_ref()),
            };
            gateway.to_bounded_json(&Value::String(text))
        };
        self.run_blocking(write).await?
    }

    async fn overview(
        &self,
        allowed: &ToolFilter,
        voice: TypingsLanguage,
    ) -> Result<Json, CallError> {
        let (catalogue, _) = self.gather_lists(allowed, |_| true).await;
        let (gateway, allowed) = (self.clone(), allowed.clone());
        let write = move || {
            let health = gateway.health();
            let servers = health.iter().filter(|server| allowed.allows_server(&server.name));
            let text = help::describe_servers(
                voice,
                servers.map(|server| {
                    let is_its = |entry: &&CatalogueEntry| entry.server.as_str() == server.name;
                    (server, catalogue.all(&allowed).filter(is_its).count())
                }),
            );
            gateway.to_bounded_json(&Value::String(text))
        };
        self.run_blocking(write).await?
    }

    /// Serializes a value for the guest on a blocking thread.
    pub(super) async fn render_json(
        &self,
        value: impl serde::Serialize + Send + 'static,
    ) -> Result<Json, CallError> {
        let gateway = self.clone();
        let render =
            move || gateway.to_bounded_json(&serde_json::to_value(value).unwrap_or_default());
        self.run_blocking(render).await?
    }
}

fn prepare_words(words: &[String]) -> Vec<String> {
    let mut words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns the shape that `discoverMCPTools` promises to guests.
fn describe(entry: &CatalogueEntry) -> Value {
    let mut tool = json!({
        "name": format!("mcp__{}__{}", entry.server, entry.tool.name),
        "server": entry.server.as_str(),
        "tool": entry.tool.name,
        "description": entry.tool.description,
        "parameters": entry.tool.input_schema(),
    });
    if let (Some(schema), Some(tool)) = (entry.tool.output_schema(), tool.as_object_mut()) {
        tool.insert("outputSchema".to_owned(), schema.clone());
    }
    tool
}

fn contains_any(words: &[String], entry: &CatalogueEntry) -> bool {
    let name = format!("mcp__{}__{}", entry.server, entry.tool.name).to_lowercase();
    let description = entry.tool.description.to_lowercase();
    words.iter().any(|word| name.contains(word) || description.contains(word))
}
