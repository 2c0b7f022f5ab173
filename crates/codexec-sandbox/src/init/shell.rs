//! A shell that is kept for a session: it is given one cell after the other, as lines on its
//! standard input, and says on a descriptor of its own how each ended.
//!
//! The shell is an interactive one, because that can be brought back to its prompt in the middle
//! of a cell.
//!
//! THREAT[SES-8]: processes that earlier cells have left running have the shell's user and may
//! have its descriptors, but no say in a later cell. Its lines come in packets on a socket, which
//! cannot be opened through `/proc`; a report counts only if the shell's own process wrote it,
//! and if it has the key that came with the cell's line; and the files of a cell are on a mount
//! that the guest cannot write.

mod cells;
mod processes;
mod stop;
mod voice;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use codexec_types::{Cell, CellEnding, FromGuest, Json, Thrown, ThrownCode};

use super::guest::Walls;
use super::signals::{Signalled, Signals};
use crate::broker::{self, Broker, Order};
use crate::control::{self, Command, FromInit};
use cells::{Cells, Streams};
use processes::Processes;
use stop::Stopping;
use voice::{Shell, report_line};

/// What a shell reads before its first cell.
const DRIVER: &str = include_str!("shell/driver.bash");

/// Beside what a shell gets for one script.
const ARGUMENTS: [&str; 4] = ["--noediting", "-i", "+H", "+m"];

pub(super) struct Session<'a> {
    command: Command,
    walls: Walls<'a>,
    signals: &'a Signals,
    /// To the host, beside the guest's socket.
    control: &'a OwnedFd,
    broker: Broker,
    cells: Cells,
    shell: Shell,
    running: Option<Running>,
}

/// The cell that runs.
struct Running {
    number: u32,
    key: String,
    before: Processes,
    /// How often it was interrupted.
    round: u32,
    stopping: Option<Stopping>,
    /// Its line, while the shell is not ready for it.
    line: Option<String>,
    /// So that the host sees no end of its output before the shell has opened it.
    _streams: Streams,
}

impl<'a> Session<'a> {
    /// `folder` is where only this process can write, and the guest read.
    pub(super) fn new(
        mut command: Command,
        walls: Walls<'a>,
        signals: &'a Signals,
        control: &'a OwnedFd,
        folder: OwnedFd,
        channel: UnixStream,
    ) -> io::Result<Session<'a>> {
        command.arguments.extend(ARGUMENTS.map(str::to_owned));
        let broker = Broker::with_orders(channel, broker::door()?);
        let cells = Cells::new(folder);
        let shell = Shell::start(&command, walls, &cells, None)?;
        Ok(Session { command, walls, signals, control, broker, cells, shell, running: None })
    }

    /// Until the shell has ended in a way that it cannot be replaced: its wait status.
    pub(super) fn serve(mut self) -> io::Result<i32> {
        loop {
            let stopping = self.running.as_ref().and_then(|running| running.stopping.as_ref());
            let deadline = stopping.and_then(Stopping::next_round);
            let mut until: Vec<BorrowedFd<'_>> = vec![self.signals.as_fd()];
            until.extend(self.shell.voices());
            self.broker.relay(&until, deadline)?;
            if self.broker.is_host_gone() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.hear_shell()?;
            while let Some(order) = self.broker.order() {
                match order {
                    Order::Cell(cell) => self.begin(&cell)?,
                    Order::Interrupt => self.interrupt()?,
                }
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                self.insist();
            }
            if let Some(Signalled::Ended(status)) = self.signals.waiting(Some(self.shell.pid))?
                && !self.replace_shell(status)?
            {
                return Ok(status);
            }
        }
    }

    fn begin(&mut self, cell: &Cell) -> io::Result<()> {
        if self.running.is_some() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (number, key) = (cell.number, cell.key.clone());
        let before = Processes::now();
        self.shell.forget_state();
        match self.cells.lay_out(cell) {
            Ok((line, streams)) => {
                let [out, err] = streams.to_read();
                control::send(self.control.as_fd(), &FromInit::Streams, &[out, err])?;
                let (round, stopping, line) = (0, None, Some(line));
                let _streams = streams;
                self.running =
                    Some(Running { number, key, before, round, stopping, line, _streams });
                self.tell_line();
                Ok(())
            }
            Err(error) => {
                self.cells.clear(cell);
                let message = format!("the code could not be given to the shell: {error}");
                let thrown =
                    Thrown { code: ThrownCode::RuntimeError, message, at: None, stack: None };
                self.broker.say(&FromGuest::CellEnded { key, ending: CellEnding::Threw(thrown) })
            }
        }
    }

    /// Gives the shell the line of the cell, once it is ready to be stopped.
    fn tell_line(&mut self) {
        let Some(running) = &mut self.running else { return };
        if self.shell.is_ready
            && let Some(line) = running.line.take()
        {
            self.shell.tell(&line);
            self.shell.tell(&report_line(0));
        }
    }

    /// Stops the cell that runs, and what it has started. What earlier cells have started stays.
    fn interrupt(&mut self) -> io::Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        if running.round > 0 {
            return Ok(());
        }
        running.round = 1;
        if running.line.take().is_some() {
            return self.end(0, None);
        }
        let Some(frozen) = stop::freeze(self.shell.pid, &running.before) else {
            // THREAT[SES-9]: rather no session than one command more.
            stop::kill_shell(self.shell.pid);
            return Ok(());
        };
        self.shell.tell_round(running.round);
        running.stopping = Some(frozen.interrupt());
        Ok(())
    }

    /// Tells a shell again that does not stop. The host's patience ends it.
    fn insist(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(stopping) = &mut running.stopping else { return };
        running.round += 1;
        stopping.insist();
        // Only a report that the shell makes after the signal has reached it says that none is on
        // its way to the next cell.
        self.shell.tell_round(running.round);
    }

    fn hear_shell(&mut self) -> io::Result<()> {
        for report in self.shell.hear() {
            if report.is_ready() {
                self.shell.is_ready = true;
                self.tell_line();
                continue;
            }
            let Some(running) = &self.running else { continue };
            if report.round != running.round {
                continue;
            }
            if report.key != running.key {
                // Somebody has taken the cell's line away: it has not run.
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.end(report.status, report.gone)?;
        }
        Ok(())
    }

    fn end(&mut self, status: i32, gone: Option<String>) -> io::Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        self.cells.clear_files(running.number, &running.key);
        let ending = match (status, gone) {
            _ if running.round > 0 => CellEnding::Interrupted,
            (_, Some(path)) => CellEnding::DirectoryGone(path),
            (0, None) => CellEnding::Returned(Json::null()),
            (status, None) => CellEnding::Exited(status),
        };
        self.broker.say(&FromGuest::CellEnded { key: running.key, ending })
    }

    /// A shell that ended in the middle of a cell, and could say what it knew, is followed by one
    /// that knows it. `false` if there is nothing to go on with.
    fn replace_shell(&mut self, status: i32) -> io::Result<bool> {
        self.hear_shell()?;
        let Some(state) = self.shell.whole_state() else { return Ok(false) };
        if self.running.is_none() {
            return Ok(false);
        }
        self.shell = Shell::start(&self.command, self.walls, &self.cells, Some(&state))?;
        self.end(exit_status(status), None)?;
        Ok(true)
    }
}

/// As a shell tells it of its children.
///
/// THREAT[SES-8]: whoever ends the shell by a signal does not make the cell a success.
fn exit_status(status: i32) -> i32 {
    match status & 0x7f {
        0 => (status >> 8) & 0xff,
        signal => 128 + signal,
    }
}

/// How long a signal may take to do its work, under load.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
