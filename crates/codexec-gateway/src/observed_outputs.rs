//! The observed result types of tools without an output schema; never a value. Stored in one file
//! per server, so that later sessions have them too.

mod file;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use codexec_types::ServerName;
use codexec_typings::OutputShape;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::Tool;

/// How many results of one tool are observed.
const MAX_OBSERVATIONS: u32 = 20;
/// Maximum number of stored tools of one server.
const MAX_TOOLS: usize = 1_000;
/// Observations within this time are written together.
const SAVE_DELAY: Duration = Duration::from_secs(2);

/// The observed result types of all servers' tools.
pub(crate) struct ObservedOutputs {
    /// `None` if nothing is stored.
    folder: Option<PathBuf>,
    servers: Mutex<HashMap<ServerName, ServerOutputs>>,
    is_saving: AtomicBool,
}

/// The observed tools of one server, by name.
#[derive(Default)]
struct ServerOutputs {
    tools: BTreeMap<String, ToolOutput>,
    is_changed: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ToolOutput {
    /// The tool's definition; a changed definition discards the observations.
    definition: String,
    seen: OutputShape,
}

impl ObservedOutputs {
    pub(crate) fn new(home: Option<&PathBuf>) -> Arc<ObservedOutputs> {
        let folder = home.map(|home| home.join("observed"));
        let (servers, is_saving) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(ObservedOutputs { folder, servers, is_saving })
    }

    /// Records the types of a result. Must be called within a tokio runtime.
    pub(crate) fn observe(
        self: &Arc<ObservedOutputs>,
        server: &ServerName,
        tool: &Tool,
        result: &Value,
    ) {
        if tool.has_output_schema
            || tool.recorded_results.load(Ordering::Relaxed) >= MAX_OBSERVATIONS
        {
            return;
        }
        tool.recorded_results.fetch_add(1, Ordering::Relaxed);
        self.with(server, |known| {
            let is_new = !known.tools.contains_key(&tool.name);
            if is_new && known.tools.len() >= MAX_TOOLS {
                return;
            }
            let fresh = || ToolOutput {
                definition: tool.definition_hash().to_owned(),
                seen: OutputShape::default(),
            };
            let entry = known.tools.entry(tool.name.clone()).or_insert_with(fresh);
            if entry.definition != tool.definition_hash() {
                *entry = fresh();
            }
            entry.seen.observe(result);
            known.is_changed = true;
        });
        self.save_soon();
    }

    /// Returns the observed result type of a tool, as a JSON schema.
    pub(crate) fn schema(&self, server: &ServerName, tool: &Tool) -> Option<Value> {
        if tool.has_output_schema {
            return None;
        }
        self.with(server, |known| {
            let known = known.tools.get(&tool.name)?;
            (known.definition == tool.definition_hash()).then(|| known.seen.schema())
        })
    }

    /// Writes all unsaved observations.
    pub(crate) fn save(&self) {
        let Some(folder) = &self.folder else { return };
        let mut changed = Vec::new();
        for (name, server) in self.lock().iter_mut().filter(|(_, server)| server.is_changed) {
            server.is_changed = false;
            changed.push((name.clone(), server.tools.clone()));
        }
        for (server, tools) in changed {
            if let Err(error) = file::write(folder, &server, tools) {
                tracing::debug!(%server, %error, "observed result types could not be stored");
            }
        }
    }

    fn save_soon(self: &Arc<ObservedOutputs>) {
        if self.folder.is_none() || self.is_saving.swap(true, Ordering::Relaxed) {
            return;
        }
        let observed = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SAVE_DELAY).await;
            observed.is_saving.store(false, Ordering::Relaxed);
            let _ = tokio::task::spawn_blocking(move || observed.save()).await;
        });
    }

    /// Calls `work` with the server's observations. Reads their file of a few kilobytes on first
    /// use.
    fn with<T>(&self, server: &ServerName, work: impl FnOnce(&mut ServerOutputs) -> T) -> T {
        let mut servers = self.lock();
        let known = servers.entry(server.clone()).or_insert_with(|| {
            let tools = self.folder.as_ref().map(|folder| file::read(folder, server));
            ServerOutputs { tools: tools.unwrap_or_default(), is_changed: false }
        });
        work(known)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ServerName, ServerOutputs>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
