//! Interrupts the cell of a session, together with the processes that it started.

use std::time::Duration;

use codexec_types::Language;
use tokio::time::Instant;

use super::ProgramsBody;
use crate::frames::is_first_child;
use crate::freeze::{Freezer, FrozenProcesses, current_tick};
use crate::process_tree::list_tree;
use crate::run::body::Interrupt;

/// How long the guest may wait for the stopped processes of its cell before they are killed. Less
/// than it has to stop.
const KILL_AFTER: Duration = Duration::from_millis(333);

/// The processes of a session's current cell. Empty for a single execution.
#[derive(Default)]
pub(super) struct CellProcesses {
    pub(super) freezer: Freezer,
    /// The tick at which the cell started.
    began: u64,
    /// The processes that the cell started, from the moment it is stopped.
    stopped: Option<StoppedProcesses>,
}

/// The frozen processes of a cell that is being stopped. They are killed afterwards.
struct StoppedProcesses {
    processes: FrozenProcesses,
    main: i32,
    at: Instant,
}

impl CellProcesses {
    pub(super) fn new(roots: &[i32]) -> CellProcesses {
        CellProcesses { freezer: Freezer::new(roots), ..CellProcesses::default() }
    }

    pub(super) fn begin_cell(&mut self) {
        self.began = current_tick();
    }

    fn kill_stopped(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            stopped.processes.kill_since(self.began, stopped.main);
        }
    }

    /// Kills the stopped processes after a while, because the guest may be waiting for them.
    pub(super) fn kill_overdue(&mut self) {
        if self.stopped.as_ref().is_some_and(|stopped| stopped.at.elapsed() > KILL_AFTER) {
            self.kill_stopped();
        }
    }
}

impl ProgramsBody {
    /// THREAT[SES-9]: freezes all processes of the cell before the guest is interrupted, so that no
    /// process goes on because another one ended. A shell's init does the same.
    ///
    /// Python, for example, ignores the interrupt inside `os.system`.
    pub(in crate::run::body) fn interrupt(&mut self) -> Interrupt {
        let Some(main) = find_main_process(self.language, &self.worker.roots) else {
            self.program.interrupt(&self.worker.handles);
            return Interrupt::Sent;
        };
        let cell = &mut self.cell_processes;
        let processes = cell.freezer.stop_all();
        let is_caught = processes.catches_interrupt(main);
        if is_caught {
            processes.interrupt(main);
        }
        let is_python = self.language == Language::Python;
        if is_python && is_caught {
            // The signal is pending: Python handles it before anything else.
            processes.kill_since(cell.began, main);
            return Interrupt::Sent;
        }
        if is_python {
            // Killed while frozen; otherwise it would go on with the next statement.
            processes.kill(main);
        } else {
            // Node's watcher thread stops the code; a Node that is still starting reads its socket.
            processes.resume(main);
        }
        // Processes that cannot be interrupted stay frozen until they are killed.
        cell.stopped = Some(StoppedProcesses { processes, main, at: Instant::now() });
        if is_python { Interrupt::Ignored } else { Interrupt::Sent }
    }

    pub(in crate::run::body) fn end_cell(&mut self) {
        self.cell_processes.kill_stopped();
    }
}

/// Returns the process that the host interrupts itself. For a shell, init does this.
fn find_main_process(language: Language, roots: &[i32]) -> Option<i32> {
    match (language, roots) {
        (Language::Python, [_, guest]) => Some(*guest),
        (Language::Node, [_]) => list_tree(roots).into_iter().find(|pid| is_first_child(*pid)),
        _ => None,
    }
}
