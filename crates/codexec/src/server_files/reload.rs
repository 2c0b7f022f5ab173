//! Reloads the server files when they change.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_mcp_config::{ParsedConfig, ServerSources};
use codexec_server::{App, LivePolicy};

use super::control;
use super::file_watcher::FileWatcher;
use crate::config::AllowedTools;

/// The polling interval where inotify does not work.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The state needed to reload the server files.
pub(crate) struct Reloader {
    pub(crate) sources: ServerSources,
    /// The last content of the files.
    pub(crate) now: ParsedConfig,
    pub(crate) allowed: AllowedTools,
    /// The policy of all connections of this process.
    pub(crate) policy: Arc<LivePolicy>,
    pub(crate) home: PathBuf,
}

impl Reloader {
    /// Follows the files until its task is aborted.
    pub(crate) async fn follow(mut self, app: Arc<App>) {
        self.publish(&app);
        let folder = control::folder(&self.home).unwrap_or_else(|_| self.home.join("control"));
        let (files, mut folders) = self.sources.paths_to_watch();
        folders.push(folder.clone());
        let mut watch = or_warn(FileWatcher::new(files, folders));
        loop {
            let changed = match &mut watch {
                Some(watching) => match or_warn(watching.next_changes().await) {
                    Some(changed) => changed,
                    None => {
                        watch = None;
                        continue;
                    }
                },
                None => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    HashSet::new()
                }
            };
            let restarts = control::restarts(&folder, changed.iter());
            for name in &restarts {
                let is_there = app.gateway.restart(name).await;
                tracing::info!(server = %name, is_there, "restart requested");
            }
            if changed.len() != restarts.len() || changed.is_empty() {
                let Some(next) = self.reread(&app).await else { return };
                self = next;
            }
        }
    }

    /// Reads all files again and applies the changes. Returns `None` if reading panicked.
    async fn reread(mut self, app: &App) -> Option<Reloader> {
        // Other programs' files may be large, or on a slow disk.
        let read = tokio::task::spawn_blocking(move || {
            let now = self.sources.read();
            (self, now)
        });
        let (mut reload, now) = read.await.ok()?;
        if now == reload.now {
            return Some(reload);
        }
        for problem in now.problems.iter().filter(|known| !reload.now.problems.contains(known)) {
            tracing::warn!(%problem, "problem in a server file");
        }
        for name in
            now.waiting_names().iter().filter(|name| !reload.now.waiting_names().contains(name))
        {
            tracing::warn!(server = name, "the server waits for `codexec servers approve {name}`");
        }
        let servers = now.enabled_configs();
        let names: Vec<_> = servers.iter().map(|server| server.name.clone()).collect();
        match reload.allowed.filter_for(&names) {
            Ok(tools) => reload.policy.set_tools(tools),
            Err(error) => tracing::warn!(%error, "the allowed tools stay unchanged"),
        }
        tracing::info!(servers = names.len(), "server files have changed");
        app.gateway.reconfigure(servers).await;
        app.gateway.start_unlisted(&reload.policy.get().tools);
        reload.now = now;
        reload.publish(app);
        Some(reload)
    }

    /// Publishes what the files say to the app.
    pub(crate) fn publish(&self, app: &App) {
        app.live_settings.set_files(self.now.clone());
        app.gateway.set_disabled(self.now.disabled_servers());
    }
}

/// Logs an inotify failure, for example a reached watch limit; the caller then polls.
fn or_warn<T>(result: std::io::Result<T>) -> Option<T> {
    result
        .inspect_err(|error| {
            tracing::warn!(%error, "cannot watch files for changes; polling instead");
        })
        .ok()
}
