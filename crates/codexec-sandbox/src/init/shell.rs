//! The shell of a session. The shell reads one cell after the other as lines on stdin, and reports
//! on a separate descriptor how each ended.
//!
//! The shell is interactive, because an interactive shell can be brought back to its prompt in the
//! middle of a cell.
//!
//! THREAT[SES-8]: processes that earlier cells have left running have the shell's user and may
//! have its descriptors, but cannot affect a later cell. Commands arrive as packets on a socket,
//! which cannot be opened through `/proc`. A report counts only if the shell's own process wrote
//! it, with the key that came with the cell. The guest cannot write the files of a cell.

mod cells;
mod processes;
mod shell_process;
mod stop;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use codexec_types::{Cell, CellEnding, FromGuest, Json, Thrown, ThrownCode};

use super::guest::GuestLimits;
use super::signals::{SignalEvent, Signals};
use crate::broker::{self, Broker, Order};
use crate::control::{self, FromInit, ProgramCommand};
use cells::{CellFiles, CellStreams};
use processes::ProcessTable;
use shell_process::{ShellProcess, report_line};
use stop::StoppingShell;

/// The script that a shell sources before its first cell.
const DRIVER: &str = include_str!("shell/driver.bash");

/// The arguments in addition to those of a shell for one script.
const ARGUMENTS: [&str; 4] = ["--noediting", "-i", "+H", "+m"];

pub(super) struct ShellSession<'a> {
    command: ProgramCommand,
    limits: GuestLimits<'a>,
    signals: &'a Signals,
    /// The control socket to the host.
    control: &'a OwnedFd,
    broker: Broker,
    cells: CellFiles,
    shell: ShellProcess,
    running: Option<RunningCell>,
}

/// The running cell.
struct RunningCell {
    number: u32,
    key: String,
    /// The processes that were there before the cell.
    before: ProcessTable,
    /// How often the cell was interrupted.
    round: u32,
    stopping: Option<StoppingShell>,
    /// The command that runs the cell, while the shell is not ready for it.
    line: Option<String>,
    /// Held so that the host sees no end of file before the shell has opened the output.
    _streams: CellStreams,
}

impl<'a> ShellSession<'a> {
    /// Starts a shell. Only this process can write `folder`; the guest can read it.
    pub(super) fn new(
        mut command: ProgramCommand,
        limits: GuestLimits<'a>,
        signals: &'a Signals,
        control: &'a OwnedFd,
        folder: OwnedFd,
        channel: UnixStream,
    ) -> io::Result<ShellSession<'a>> {
        command.arguments.extend(ARGUMENTS.map(str::to_owned));
        let broker = Broker::with_orders(channel, broker::bind_listener()?);
        let cells = CellFiles::new(folder);
        let shell = ShellProcess::start(&command, limits, &cells, None)?;
        let running = None;
        Ok(ShellSession { command, limits, signals, control, broker, cells, shell, running })
    }

    /// Serves the session until the shell has ended and cannot be replaced. Returns the shell's
    /// wait status.
    pub(super) fn serve(mut self) -> io::Result<i32> {
        loop {
            let stopping = self.running.as_ref().and_then(|running| running.stopping.as_ref());
            let deadline = stopping.and_then(StoppingShell::next_signal_at);
            let mut until: Vec<BorrowedFd<'_>> = vec![self.signals.as_fd()];
            until.extend(self.shell.open_sockets());
            self.broker.relay(&until, deadline)?;
            if self.broker.is_host_gone() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.handle_reports()?;
            while let Some(order) = self.broker.next_order() {
                match order {
                    Order::Cell(cell) => self.begin_cell(&cell)?,
                    Order::Interrupt => self.interrupt()?,
                }
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                self.signal_again();
            }
            if let Some(SignalEvent::Ended(status)) = self.signals.try_next(Some(self.shell.pid))?
                && !self.replace_shell(status)?
            {
                return Ok(status);
            }
        }
    }

    fn begin_cell(&mut self, cell: &Cell) -> io::Result<()> {
        if self.running.is_some() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (number, key) = (cell.number, cell.key.clone());
        let before = ProcessTable::read_before_cell(self.shell.pid);
        self.shell.clear_state();
        match self.cells.write_cell(cell) {
            Ok((line, streams)) => {
                let [out, err] = streams.read_ends();
                control::send(self.control.as_fd(), &FromInit::Streams, &[out, err])?;
                let (round, stopping, line) = (0, None, Some(line));
                let _streams = streams;
                self.running =
                    Some(RunningCell { number, key, before, round, stopping, line, _streams });
                self.send_cell_line();
                Ok(())
            }
            Err(error) => {
                self.cells.clear(cell);
                let message = format!("cannot write the cell's files for the shell: {error}");
                let thrown =
                    Thrown { code: ThrownCode::RuntimeError, message, at: None, stack: None };
                self.broker.send(&FromGuest::CellEnded { key, ending: CellEnding::Threw(thrown) })
            }
        }
    }

    /// Sends the cell's command to the shell, once the shell has its handlers for stopping.
    fn send_cell_line(&mut self) {
        let Some(running) = &mut self.running else { return };
        if self.shell.is_ready
            && let Some(line) = running.line.take()
        {
            self.shell.send_line(&line);
            self.shell.send_line(&report_line(0));
        }
    }

    /// Stops the running cell and the processes it has started. Processes of earlier cells stay.
    fn interrupt(&mut self) -> io::Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        if running.round > 0 {
            return Ok(());
        }
        running.round = 1;
        if running.line.take().is_some() {
            return self.end_cell(0, None);
        }
        let Some(frozen) = stop::freeze(self.shell.pid, &running.before) else {
            // THREAT[SES-9]: ends the session rather than let one more command run.
            stop::kill_shell(self.shell.pid);
            return Ok(());
        };
        // A shell that has not begun the cell yet finds no code to run.
        self.cells.clear_files(running.number, &running.key);
        self.shell.request_report(running.round);
        running.stopping = Some(frozen.interrupt());
        Ok(())
    }

    /// Sends the stop signal again to a shell that did not stop. The host's timeout ends the shell
    /// if that does not help either.
    fn signal_again(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(stopping) = &mut running.stopping else { return };
        running.round += 1;
        stopping.signal_again();
        // Only a report made after this signal proves that no signal is left to hit the next cell.
        self.shell.request_report(running.round);
    }

    fn handle_reports(&mut self) -> io::Result<()> {
        for report in self.shell.read_reports() {
            if report.is_ready() {
                self.shell.is_ready = true;
                self.send_cell_line();
                continue;
            }
            let Some(running) = &self.running else { continue };
            if report.round != running.round {
                continue;
            }
            // A busy host may stop a cell before the shell has begun it: then the key is an older one.
            if report.key != running.key && running.round == 0 {
                // Another process has read the cell's command, so the cell has not run.
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.end_cell(report.status, report.gone)?;
        }
        Ok(())
    }

    fn end_cell(&mut self, status: i32, gone: Option<String>) -> io::Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        self.broker.drain()?;
        let RunningCell { number, key, .. } = &running;
        let ending = match (status, gone) {
            _ if running.round > 0 => CellEnding::Interrupted,
            (_, Some(path)) => CellEnding::DirectoryGone(path),
            (0, None) => CellEnding::Returned(Json::null()),
            (status, None) => CellEnding::Exited(status),
        };
        self.broker.send(&FromGuest::CellEnded { key: key.clone(), ending })?;
        // After the report, which the client waits for. The next cell's files have other names.
        self.cells.clear_files(*number, key);
        Ok(())
    }

    /// Replaces a shell that ended in the middle of a cell by a new one with the same state.
    /// Returns false if the old shell has not dumped its state completely.
    fn replace_shell(&mut self, status: i32) -> io::Result<bool> {
        self.handle_reports()?;
        let Some(state) = self.shell.take_complete_state() else { return Ok(false) };
        if self.running.is_none() {
            return Ok(false);
        }
        self.shell = ShellProcess::start(&self.command, self.limits, &self.cells, Some(&state))?;
        self.end_cell(exit_status(status), None)?;
        Ok(true)
    }
}

/// Converts a wait status to an exit status, as a shell does for its children.
///
/// THREAT[SES-8]: a cell whose shell was killed by a signal has not succeeded.
fn exit_status(status: i32) -> i32 {
    match status & 0x7f {
        0 => (status >> 8) & 0xff,
        signal => 128 + signal,
    }
}

/// How long a signal may take to have its effect, under load.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
