//! A shell that is kept for a session: it is given one cell after the other, as lines on its
//! standard input, and says on a descriptor of its own how each ended.
//!
//! It is an interactive shell, because that is what an interrupt stops without ending it.

mod cells;
mod processes;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use codexec_types::{Cell, CellEnding, FromGuest, Json, Thrown, ThrownCode};
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, pipe2};

use super::guest::{Inherited, Walls, start};
use super::signals::{Signalled, Signals};
use crate::broker::{self, Broker, Order};
use crate::control::Command;
use crate::tree::BOX;
use cells::Cells;
use processes::Processes;

/// What a shell reads before its first cell.
const DRIVER: &str = include_str!("shell/driver.bash");

/// Beside what a shell gets for one script.
const ARGUMENTS: [&str; 4] = ["--noediting", "-i", "+H", "+m"];

/// How often a shell that does not stop is interrupted. The host's patience ends it.
const ROUND: Duration = Duration::from_millis(10);

/// The longest report that is one.
const MAX_REPORT_BYTES: usize = 256;

/// What is wrong with a command when bash cannot read the number that `exit` was given.
const BAD_NUMBER: i32 = 2;

pub(super) struct Session<'a> {
    command: Command,
    walls: Walls<'a>,
    signals: &'a Signals,
    broker: Broker,
    cells: Cells,
    shell: Shell,
    running: Option<Running>,
}

/// The process that runs the cells.
struct Shell {
    pid: i32,
    control: File,
    reports: File,
    unread: Vec<u8>,
}

/// The cell that runs.
struct Running {
    number: u32,
    before: Processes,
    /// Those of its own that were interrupted.
    told: Processes,
    /// How often it was interrupted.
    round: u32,
    next_round: Option<Instant>,
}

/// THREAT[SES-4]: what the shell says of a cell's end. A cell can write it too, and ends by that
/// only itself: a report counts for the cell that runs, and only after the last interrupt.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    number: u32,
    round: u32,
    status: i32,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        mut command: Command,
        walls: Walls<'a>,
        signals: &'a Signals,
        channel: UnixStream,
    ) -> io::Result<Session<'a>> {
        command.arguments.extend(ARGUMENTS.map(str::to_owned));
        let broker = Broker::with_orders(channel, broker::door()?);
        let cells = Cells::new(Path::new(BOX).join("cells"))?;
        let shell = Shell::start(&command, walls, &cells)?;
        Ok(Session { command, walls, signals, broker, cells, shell, running: None })
    }

    /// Until the shell has ended in a way that it cannot be replaced: its wait status.
    pub(super) fn serve(mut self) -> io::Result<i32> {
        loop {
            let deadline = self.running.as_ref().and_then(|running| running.next_round);
            let until = [self.signals.as_fd(), self.shell.reports.as_fd()];
            self.broker.relay(&until, deadline)?;
            if self.broker.is_host_gone() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.hear_reports()?;
            while let Some(order) = self.broker.order() {
                match order {
                    Order::Cell(cell) => self.begin(&cell)?,
                    Order::Interrupt => self.interrupt(),
                }
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                self.interrupt();
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
        let number = cell.number;
        let before = Processes::now();
        match self.cells.lay_out(cell) {
            Ok(lines) => {
                let told = Processes::default();
                self.running = Some(Running { number, before, told, round: 0, next_round: None });
                self.shell.tell(&format!("{lines}{}", report_line(number, 0)));
                Ok(())
            }
            Err(error) => {
                let message = format!("the code could not be given to the shell: {error}");
                let thrown =
                    Thrown { code: ThrownCode::RuntimeError, message, at: None, stack: None };
                self.broker.say(&FromGuest::CellEnded { number, ending: CellEnding::Threw(thrown) })
            }
        }
    }

    /// Stops the cell that runs, and what it has started. What earlier cells have started stays.
    fn interrupt(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.round += 1;
        let _ = kill(Pid::from_raw(self.shell.pid), Signal::SIGINT);
        let Running { before, told, .. } = running;
        let is_killing = Processes::now().stop_new(before, told, self.shell.pid);
        // A shell whose program is killed goes on with what stands behind it.
        let pause = if is_killing { Duration::from_millis(1) } else { ROUND };
        running.next_round = Some(Instant::now() + pause);
        // Only a report that the shell makes after the interrupt has reached it says that none is
        // on its way to the next cell.
        self.shell.tell(&report_line(running.number, running.round));
    }

    fn hear_reports(&mut self) -> io::Result<()> {
        self.shell.read();
        while let Some(report) = self.shell.report() {
            let is_it = self.running.as_ref().is_some_and(|running| {
                report.number == running.number && report.round == running.round
            });
            if is_it {
                self.end(report.status)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, status: i32) -> io::Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let number = running.number;
        self.cells.clear(number);
        let ending = match status {
            _ if running.round > 0 => CellEnding::Interrupted,
            0 => CellEnding::Returned(Json::null()),
            status => CellEnding::Exited(status),
        };
        self.broker.say(&FromGuest::CellEnded { number, ending })
    }

    /// A shell that ended in the middle of a cell, and could say what it knew, is followed by one
    /// that knows it. `false` if there is nothing to go on with.
    fn replace_shell(&mut self, status: i32) -> io::Result<bool> {
        if self.running.is_none() || !self.cells.has_state() {
            return Ok(false);
        }
        self.shell = Shell::start(&self.command, self.walls, &self.cells)?;
        self.end((status >> 8) & 0xff)?;
        Ok(true)
    }
}

impl Shell {
    fn start(command: &Command, walls: Walls<'_>, cells: &Cells) -> io::Result<Shell> {
        let (theirs, control) = pipe2(OFlag::O_CLOEXEC)?;
        let (reports, reporting) = pipe2(OFlag::O_CLOEXEC)?;
        for ours in [&control, &reports] {
            nix::fcntl::fcntl(ours, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        let null = OwnedFd::from(File::options().write(true).open("/dev/null")?);
        let inherited = Inherited::Cells { control: &theirs, reports: &reporting, nowhere: &null };
        let pid = start(command, walls, inherited)?;
        let (control, reports) = (File::from(control), File::from(reports));
        let mut shell = Shell { pid, control, reports, unread: Vec::new() };
        shell.tell(&cells.opening()?);
        Ok(shell)
    }

    /// A shell that does not read is not waited for: the host's patience ends it.
    fn tell(&mut self, lines: &str) {
        let _ = self.control.write_all(lines.as_bytes());
    }

    fn read(&mut self) {
        let mut bytes = [0; 4 * MAX_REPORT_BYTES];
        let count = self.reports.read(&mut bytes).unwrap_or(0);
        self.unread.extend_from_slice(bytes.get(..count).unwrap_or_default());
    }

    fn report(&mut self) -> Option<Report> {
        loop {
            let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') else {
                if self.unread.len() > MAX_REPORT_BYTES {
                    self.unread.clear();
                }
                return None;
            };
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            if let Some(report) = Report::parse(&line) {
                return Some(report);
            }
        }
    }
}

/// One line of a shell's: the number of the cell, how often it was interrupted, the status of its
/// last command, and what `exit` was given.
fn report_line(number: u32, round: u32) -> String {
    format!(
        "\\builtin printf '%s\\n' \"{number} {round} $? ${{CODEXEC_EXIT-}}\" >&98; \
         \\builtin unset -v CODEXEC_EXIT\n"
    )
}

impl Report {
    fn parse(line: &[u8]) -> Option<Report> {
        let line = str::from_utf8(line).ok()?.trim_end_matches('\n');
        let mut words = line.splitn(4, ' ');
        let number = words.next()?.parse().ok()?;
        let round = words.next()?.parse().ok()?;
        let status = words.next()?.parse().ok()?;
        let status = match words.next()?.trim() {
            "" => status,
            given => given.parse::<i64>().map_or(BAD_NUMBER, low_byte),
        };
        Some(Report { number, round, status })
    }
}

/// As the kernel keeps it.
fn low_byte(status: i64) -> i32 {
    i32::try_from(status & 0xff).unwrap_or(BAD_NUMBER)
}

#[cfg(test)]
mod tests;
