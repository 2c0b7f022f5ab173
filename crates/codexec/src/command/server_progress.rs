//! Shows how servers start while the user waits for them.

use std::collections::HashSet;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use codexec_gateway::{Gateway, ServerHealth, ServerState};
use tokio::time::{MissedTickBehavior, interval};

use super::terminal::{Paint, paint_stderr};
use super::terminal_text::one_line;

const INTERVAL: Duration = Duration::from_millis(100);

/// Servers that start faster are not mentioned.
const QUIET: Duration = Duration::from_millis(700);

/// When a server that cannot start is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureReport {
    AtOnce,
    /// In the list that the command prints.
    InList,
}

/// The servers that were reported while the user waited.
#[derive(Default)]
pub(super) struct ReportedServers {
    failed: HashSet<String>,
    started: HashSet<String>,
    ready: HashSet<String>,
    has_status_line: bool,
}

/// Waits for `work`, which starts servers. At a terminal, shows which servers are ready and which
/// are still starting.
pub(super) async fn run_with_server_progress<T>(
    gateway: &Gateway,
    failures: FailureReport,
    work: impl Future<Output = T>,
) -> (T, ReportedServers) {
    let begun = Instant::now();
    let mut reported = ReportedServers::default();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => {
                reported.clear_status_line();
                return (done, reported);
            }
            _ = ticks.tick() => reported.update(&gateway.health(), failures, begun.elapsed()),
        }
    }
}

impl ReportedServers {
    pub(super) fn has_failed(&self, name: &str) -> bool {
        self.failed.contains(name)
    }

    fn update(&mut self, servers: &[ServerHealth], failures: FailureReport, waited: Duration) {
        let mut err = std::io::stderr();
        let mut starting = Vec::new();
        for server in servers {
            let name = &server.name;
            match (server.state, &server.error) {
                (ServerState::Starting, _) => {
                    self.started.insert(name.clone());
                    starting.push(name.as_str());
                }
                (ServerState::Failed | ServerState::NeedsLogin, Some(error)) => {
                    if failures == FailureReport::AtOnce && self.failed.insert(name.clone()) {
                        self.clear_status_line();
                        let name = paint_stderr(Paint::Bad, name);
                        let _ = writeln!(err, "server {name}: {error}");
                    }
                }
                (ServerState::Ready, _) => {
                    let is_listed = failures == FailureReport::InList;
                    let is_slow = waited > QUIET && err.is_terminal() && !is_listed;
                    if is_slow && self.started.contains(name) && self.ready.insert(name.clone()) {
                        self.clear_status_line();
                        let tools = server.tools.map(|tools| format!("{tools} tools"));
                        let name = paint_stderr(Paint::Good, name);
                        let _ = writeln!(err, "server {name}: {}", tools.unwrap_or_default());
                    }
                }
                (ServerState::Idle | ServerState::Failed | ServerState::NeedsLogin, _) => {}
            }
        }
        if err.is_terminal() && waited > QUIET {
            self.show_status_line(&starting, waited);
        }
    }

    fn show_status_line(&mut self, starting: &[&str], waited: Duration) {
        self.clear_status_line();
        if starting.is_empty() {
            return;
        }
        let names = one_line(&starting.join(", "), 50);
        let line = format!("starting {names} ({} s)", waited.as_secs());
        let mut err = std::io::stderr();
        let _ = write!(err, "{}", paint_stderr(Paint::Faint, &line));
        let _ = err.flush();
        self.has_status_line = true;
    }

    fn clear_status_line(&mut self) {
        if std::mem::take(&mut self.has_status_line) {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}
