//! Following the files while we serve.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_gateway::{Parsed, Watch};
use codexec_server::App;

use super::{Sources, control, used, waiting};
use crate::config::Allowed;

/// How often files are looked at where changes are not told.
const POLL: Duration = Duration::from_secs(2);

/// What is needed to go on with changed files.
pub(crate) struct Reload {
    pub(crate) sources: Sources,
    /// What they said last.
    pub(crate) now: Parsed,
    pub(crate) allowed: Allowed,
    pub(crate) home: PathBuf,
}

impl Reload {
    /// Ends with the task it runs in.
    pub(crate) async fn follow(mut self, app: Arc<App>) {
        self.tell(&app);
        let folder = control::folder(&self.home).unwrap_or_else(|_| self.home.join("control"));
        let (files, mut folders) = self.sources.watched();
        folders.push(folder.clone());
        let mut watch = told(Watch::new(files, folders));
        loop {
            let changed = match &mut watch {
                Some(watching) => match told(watching.changed().await) {
                    Some(changed) => changed,
                    None => {
                        watch = None;
                        continue;
                    }
                },
                None => {
                    tokio::time::sleep(POLL).await;
                    HashSet::new()
                }
            };
            let restarts = control::restarts(&folder, changed.iter());
            for name in &restarts {
                let is_there = app.gateway.restart(name).await;
                tracing::info!(server = %name, is_there, "asked to restart it");
            }
            if changed.len() != restarts.len() || changed.is_empty() {
                let Some(next) = self.again(&app).await else { return };
                self = next;
            }
        }
    }

    /// Reads all files and applies what has changed.
    async fn again(mut self, app: &App) -> Option<Reload> {
        // Files of other programs may be large, or on a slow disk.
        let read = tokio::task::spawn_blocking(move || {
            let now = self.sources.read();
            (self, now)
        });
        let (mut reload, now) = read.await.ok()?;
        if now == reload.now {
            return Some(reload);
        }
        for problem in now.problems.iter().filter(|known| !reload.now.problems.contains(known)) {
            tracing::warn!(%problem, "in a file that names servers");
        }
        for name in waiting(&now).iter().filter(|name| !waiting(&reload.now).contains(name)) {
            tracing::warn!(server = name, "it waits for `codexec servers approve {name}`");
        }
        let servers = used(&now);
        let names: Vec<_> = servers.iter().map(|server| server.name.clone()).collect();
        match reload.allowed.tools_of(&names) {
            Ok(tools) => app.in_force.set_tools(tools),
            Err(error) => tracing::warn!(%error, "the tools that code may call stay as they are"),
        }
        tracing::info!(servers = names.len(), "the files that name servers have changed");
        app.gateway.reconfigure(servers).await;
        reload.now = now;
        reload.tell(app);
        Some(reload)
    }

    /// Tells whoever asks what is wrong, and what waits.
    pub(crate) fn tell(&self, app: &App) {
        app.in_force.set_problems(problems(&self.now));
        app.in_force.set_waiting(waiting(&self.now));
    }
}

fn problems(parsed: &Parsed) -> Vec<String> {
    parsed.problems.iter().map(ToString::to_string).collect()
}

/// Without inotify, or where it has no room left, we go on worse.
fn told<T>(result: std::io::Result<T>) -> Option<T> {
    result
        .inspect_err(|error| {
            tracing::warn!(%error, "changes of files are not told here; they are looked at instead");
        })
        .ok()
}
