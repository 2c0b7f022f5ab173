//! What tools without an output schema were seen to give: the types of their results, and never a
//! value. Kept in a file for each server, so that the next session knows them too.

mod file;
mod seen;

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
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::Tool;
use seen::Seen;

/// Results of one tool that are looked at; the others pass untouched.
const LOOKS: u32 = 20;
const TOOLS: usize = 1_000;
/// Shapes seen within this time are written together.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) struct Observed {
    /// `None` keeps nothing.
    folder: Option<PathBuf>,
    servers: Mutex<HashMap<ServerName, Server>>,
    is_saving: AtomicBool,
}

/// The tools of one server, by name.
#[derive(Default)]
struct Server {
    tools: BTreeMap<String, Known>,
    is_changed: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    /// A tool that is defined anew is another tool.
    definition: String,
    seen: Seen,
}

impl Observed {
    pub(crate) fn new(home: Option<&PathBuf>) -> Arc<Observed> {
        let folder = home.map(|home| home.join("observed"));
        let (servers, is_saving) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Observed { folder, servers, is_saving })
    }

    /// Takes note of a result's types. Needs a tokio runtime around it.
    pub(crate) fn look(self: &Arc<Observed>, server: &ServerName, tool: &Tool, result: &Value) {
        if tool.has_output_schema || tool.recorded_results.load(Ordering::Relaxed) >= LOOKS {
            return;
        }
        tool.recorded_results.fetch_add(1, Ordering::Relaxed);
        self.with(server, |known| {
            let is_new = !known.tools.contains_key(&tool.name);
            if is_new && known.tools.len() >= TOOLS {
                return;
            }
            let fresh =
                || Known { definition: tool.definition_hash().to_owned(), seen: Seen::default() };
            let entry = known.tools.entry(tool.name.clone()).or_insert_with(fresh);
            if entry.definition != tool.definition_hash() {
                *entry = fresh();
            }
            entry.seen.look(result);
            known.is_changed = true;
        });
        self.save_soon();
    }

    /// What a tool was seen to give, as a JSON schema.
    pub(crate) fn schema(&self, server: &ServerName, tool: &Tool) -> Option<Value> {
        if tool.has_output_schema {
            return None;
        }
        self.with(server, |known| {
            let known = known.tools.get(&tool.name)?;
            (known.definition == tool.definition_hash()).then(|| known.seen.schema())
        })
    }

    /// Writes what is not written yet.
    pub(crate) fn save(&self) {
        let Some(folder) = &self.folder else { return };
        let mut changed = Vec::new();
        for (name, server) in self.lock().iter_mut().filter(|(_, server)| server.is_changed) {
            server.is_changed = false;
            changed.push((name.clone(), server.tools.clone()));
        }
        for (server, tools) in changed {
            if let Err(error) = file::write(folder, &server, tools) {
                tracing::debug!(%server, %error, "what was observed could not be kept");
            }
        }
    }

    fn save_soon(self: &Arc<Observed>) {
        if self.folder.is_none() || self.is_saving.swap(true, Ordering::Relaxed) {
            return;
        }
        let observed = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE).await;
            observed.is_saving.store(false, Ordering::Relaxed);
            let _ = tokio::task::spawn_blocking(move || observed.save()).await;
        });
    }

    /// Reads the server's file when it is first needed: a few kilobytes, once.
    fn with<T>(&self, server: &ServerName, work: impl FnOnce(&mut Server) -> T) -> T {
        let mut servers = self.lock();
        let known = servers.entry(server.clone()).or_insert_with(|| {
            let tools = self.folder.as_ref().map(|folder| file::read(folder, server));
            Server { tools: tools.unwrap_or_default(), is_changed: false }
        });
        work(known)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ServerName, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
