//! Upstream tools passed through unchanged, each under a name that every client accepts.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError},
};

use codexec_types::{CallCode, CallError, Json, ServerName, ToolFilter, clean_text, cut_text};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Gateway;
use crate::catalogue::{Catalogue, CatalogueEntry};

/// Some clients cut names at 64 characters, including the prefix `mcp__codexec__`.
const NAME_CHARACTERS: usize = 50;
const HASH_CHARACTERS: usize = 8;
/// Clients cut longer descriptions.
const DESCRIPTION_BYTES: usize = 2_000;
/// A longer definition would fill an agent's context by itself.
const DEFINITION_BYTES: usize = 256 << 10;

/// An upstream tool under a unique name.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectTool {
    pub name: String,
    /// The server's definition, cleaned, with this name.
    pub definition: Value,
}

/// The direct names of one catalogue's tools.
#[derive(Default)]
pub(super) struct DirectNames {
    of: Option<Arc<Catalogue>>,
    names: Arc<Vec<String>>,
    pairs: Arc<HashMap<String, (ServerName, String)>>,
}

impl Gateway {
    /// Returns every tool that may be called, in catalogue order.
    pub async fn list_direct_tools(&self, allowed: &ToolFilter) -> Vec<DirectTool> {
        self.gather_all_lists(allowed).await;
        let (catalogue, names) = self.cached_direct_names().await;
        let everything = ToolFilter::all();
        catalogue
            .all(&everything)
            .zip(names.iter())
            .filter(|(entry, _)| entry.is_allowed(allowed))
            .filter_map(|(entry, name)| {
                let definition = build_definition(entry, name)?;
                Some(DirectTool { name: name.clone(), definition })
            })
            .collect()
    }

    /// Calls a tool by its direct name, or by any other name that resolves to it. Returns the raw
    /// result.
    pub async fn call_direct_tool(
        &self,
        name: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Value, CallError> {
        self.cached_direct_names().await;
        let listed = {
            let names = self.inner.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.pairs.get(name).cloned()
        };
        let (server, tool) = match listed {
            Some(pair) => pair,
            None => self.resolve_name(name, allowed).await?,
        };
        let (tool, result) = self.call_raw(&server, &tool, args, allowed).await?;
        let real = &tool.name;
        let failed = |message: String| {
            let message = format!("{server}.{real}: {message}");
            CallError::new(CallCode::UpstreamError, message).about(server.as_str(), real)
        };
        match result.get("resultType").and_then(Value::as_str) {
            Some("complete") | None => {}
            Some("input_required") => {
                return Err(failed(
                    "it asks for input, and this client cannot be asked".to_owned(),
                ));
            }
            Some(other) => {
                let other = cut_text(&clean_text(other), 100);
                return Err(failed(format!("it answers with {other:?}, which is not supported")));
            }
        }
        self.to_bounded_json(&result).map_err(|err| failed(err.message))?;
        Ok(result)
    }

    async fn cached_direct_names(&self) -> (Arc<Catalogue>, Arc<Vec<String>>) {
        let catalogue = self.catalogue().await;
        let mut names = self.inner.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.of.as_ref().is_some_and(|known| Arc::ptr_eq(known, &catalogue)) {
            let entries: Vec<&CatalogueEntry> = catalogue.all(&ToolFilter::all()).collect();
            let made = assign_direct_names(&entries);
            let pair = |entry: &&CatalogueEntry| (entry.server.clone(), entry.tool.name.clone());
            let pairs = made.iter().cloned().zip(entries.iter().map(pair)).collect();
            *names = DirectNames {
                of: Some(catalogue.clone()),
                names: Arc::new(made),
                pairs: Arc::new(pairs),
            };
        }
        (catalogue, names.names.clone())
    }
}

/// Builds `server__tool` names from characters that every client accepts. Unchanged names take
/// precedence over changed ones, and a hash distinguishes names that would be equal.
fn assign_direct_names(entries: &[&CatalogueEntry]) -> Vec<String> {
    let joined: Vec<(String, String)> = entries
        .iter()
        .map(|entry| {
            let whole = format!("{}__{}", entry.server, entry.tool.name);
            let safe: String = whole.chars().map(to_safe_char).collect();
            (whole, safe)
        })
        .collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = vec![String::new(); entries.len()];
    let mut changed = Vec::new();
    for (index, (whole, safe)) in joined.iter().enumerate() {
        let is_fit = whole == safe && safe.len() <= NAME_CHARACTERS;
        match names.get_mut(index) {
            Some(name) if is_fit && taken.insert(safe.clone()) => name.clone_from(safe),
            Some(_) | None => changed.push(index),
        }
    }
    for index in changed {
        let (Some(entry), Some((_, safe)), Some(name)) =
            (entries.get(index), joined.get(index), names.get_mut(index))
        else {
            continue;
        };
        let is_fit = safe.len() <= NAME_CHARACTERS && taken.insert(safe.clone());
        *name = if is_fit { safe.clone() } else { shorten_with_hash(safe, entry) };
        taken.insert(name.clone());
    }
    names
}

fn to_safe_char(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }
}

fn shorten_with_hash(safe: &str, entry: &CatalogueEntry) -> String {
    // Hashes the pair, not the joined text: `a__b` + `c` is not `a` + `b__c`.
    let pair = format!("{}\0{}", entry.server, entry.tool.name);
    let hash: String =
        Sha256::digest(pair.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let head: String = safe.chars().take(NAME_CHARACTERS - HASH_CHARACTERS - 1).collect();
    format!("{head}_{}", hash.get(..HASH_CHARACTERS).unwrap_or_default())
}

/// Returns the complete definition with this name and with hidden characters stripped, or `None` if it is too long.
pub(super) fn build_definition(entry: &CatalogueEntry, name: &str) -> Option<Value> {
    let tool = &entry.tool;
    if tool.raw.text().len() > DEFINITION_BYTES {
        tracing::debug!(tool = entry.dotted_name(), "definition is too long to list");
        return None;
    }
    let Ok(Value::Object(raw)) = tool.raw.to_value() else { return None };
    let mut definition = Map::new();
    definition.insert("name".to_owned(), name.into());
    for (key, mut value) in raw {
        let value = match key.as_str() {
            "name" => continue,
            // `execution` says how to request a task, which we do not support.
            "execution" => continue,
            "description" => cut_text(&tool.description, DESCRIPTION_BYTES).into(),
            "inputSchema" => tool.input_schema().clone(),
            "outputSchema" => match tool.output_schema() {
                Some(schema) => schema.clone(),
                None => continue,
            },
            _ => {
                clean_texts(&mut value);
                value
            }
        };
        definition.insert(key, value);
    }
    definition.entry("inputSchema").or_insert_with(|| tool.input_schema().clone());
    Some(Value::Object(definition))
}

fn clean_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean_text(text),
        Value::Array(list) => list.iter_mut().for_each(clean_texts),
        Value::Object(fields) => fields.values_mut().for_each(clean_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
