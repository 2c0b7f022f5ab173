//! The process of the shell: sends it lines, and reads its reports and its state.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::sys::socket::{MsgFlags, SockType, send};

use super::cells::CellFiles;
use crate::attributed_socket::{attributed_pair, read_attributed};
use crate::control::ProgramCommand;
use crate::init::guest::{GuestLimits, InheritedFds, spawn};

/// The longest valid report, which may hold a quoted path.
const MAX_REPORT_BYTES: usize = 8 << 10;
/// The maximum number of reads in a row: other processes may write, too, and must not keep us busy.
const MAX_READS: usize = 64;
const STATE_READ_BYTES: usize = 16 << 10;
/// The limit on the state that a shell dumps for its successor.
const MAX_STATE_BYTES: usize = 8 << 20;
/// The last line of a complete state.
const STATE_END: &[u8] = b"# whole\n";
/// The key of the report that the shell has sourced its driver.
const READY: &str = "ready";
/// Bash's status for an `exit` with an argument that is not a number.
const BAD_NUMBER: i32 = 2;

/// The process that runs the cells.
pub(super) struct ShellProcess {
    pub(super) pid: i32,
    /// True once the shell has sourced its driver.
    pub(super) is_ready: bool,
    /// A packet socket with one line per packet: another reader takes a whole line or nothing.
    lines: OwnedFd,
    reports: AttributedReader,
    states: AttributedReader,
    state: Vec<u8>,
}

/// A socket from which only the bytes of one process are read.
struct AttributedReader {
    socket: OwnedFd,
    is_closed: bool,
}

/// The shell's report on the end of a cell: how often the cell was interrupted, the status of its
/// last command, and the key that came with its line.
///
/// THREAT[SES-4]: a cell can forge a report, but that ends only the cell itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) round: u32,
    pub(super) status: i32,
    pub(super) key: String,
    /// The shell's directory, quoted, if the shell could not enter it and ran nothing.
    pub(super) gone: Option<String>,
}

impl ShellProcess {
    /// Starts a shell, with the state of its predecessor if there is one.
    pub(super) fn start(
        command: &ProgramCommand,
        limits: GuestLimits<'_>,
        cells: &CellFiles,
        state: Option<&[u8]>,
    ) -> io::Result<ShellProcess> {
        let (lines, shell_lines) = attributed_pair(SockType::SeqPacket)?;
        let (reports, shell_reports) = attributed_pair(SockType::SeqPacket)?;
        let (states, shell_states) = attributed_pair(SockType::Stream)?;
        let null = OwnedFd::from(File::options().write(true).open("/dev/null")?);
        let inherited = InheritedFds::Cells {
            lines: &shell_lines,
            reports: &shell_reports,
            state: &shell_states,
            null: &null,
        };
        let startup = cells.write_startup(state)?;
        let pid = spawn(command, limits, inherited)?;
        let reader = |socket| AttributedReader { socket, is_closed: false };
        let shell = ShellProcess {
            pid,
            is_ready: false,
            lines,
            reports: reader(reports),
            states: reader(states),
            state: Vec::new(),
        };
        for line in startup {
            shell.send_line(&line);
        }
        shell.send_line(&format!("CODEXEC_CELL={READY} CODEXEC_EXIT=\n"));
        shell.send_line(&report_line(0));
        Ok(shell)
    }

    /// Returns the sockets to poll.
    pub(super) fn open_sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let readers = [&self.reports, &self.states].into_iter();
        readers.filter(|reader| !reader.is_closed).map(|reader| reader.socket.as_fd())
    }

    /// Sends a line without blocking. If the shell does not read, the host's timeout ends it.
    pub(super) fn send_line(&self, line: &str) {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let _ = send(std::os::fd::AsRawFd::as_raw_fd(&self.lines), line.as_bytes(), flags);
    }

    /// Requests a report after a signal. The shell may handle the signal only when its next
    /// command begins, and then drops that line; the first line is there to be dropped.
    pub(super) fn request_report(&self, round: u32) {
        self.send_line(":\n");
        self.send_line(&report_line(round));
    }

    /// Returns the reports since the last call, and stores the state that the shell has dumped.
    pub(super) fn read_reports(&mut self) -> Vec<Report> {
        // These reads empty the socket of a dead shell: together they take more than it holds.
        let mut bytes = [0; STATE_READ_BYTES];
        for _ in 0..MAX_READS {
            let Some(count) = self.states.read(self.pid, &mut bytes) else { break };
            // Stores one byte more than the limit, to mark a state that is too long.
            let free = (MAX_STATE_BYTES + 1).saturating_sub(self.state.len());
            self.state.extend_from_slice(bytes.get(..count.min(free)).unwrap_or_default());
        }
        let mut reports = Vec::new();
        for _ in 0..MAX_READS {
            let mut packet = [0; MAX_REPORT_BYTES];
            let Some(count) = self.reports.read(self.pid, &mut packet) else { break };
            reports.extend(packet.get(..count).and_then(Report::parse));
        }
        reports
    }

    pub(super) fn clear_state(&mut self) {
        self.state.clear();
    }

    /// Takes the state that an ended shell has dumped, if it is complete.
    pub(super) fn take_complete_state(&mut self) -> Option<Vec<u8>> {
        let is_complete = self.state.ends_with(STATE_END) && self.state.len() <= MAX_STATE_BYTES;
        is_complete.then(|| std::mem::take(&mut self.state))
    }
}

impl AttributedReader {
    /// Reads the next bytes of this process, without blocking; bytes of others are dropped.
    fn read(&mut self, process: i32, buffer: &mut [u8]) -> Option<usize> {
        for _ in 0..MAX_READS {
            match read_attributed(self.socket.as_fd(), buffer) {
                Ok((count, writer)) if writer == process => return Some(count),
                // The other end is closed in all processes.
                Ok((0, 0)) => {
                    self.is_closed = true;
                    return None;
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// Returns the line that makes a shell report: how often the cell was interrupted, the status of
/// its last command, the cell's key, and the argument of `exit`.
pub(super) fn report_line(round: u32) -> String {
    format!("\\builtin printf '%s\\n' \"{round} $? ${{CODEXEC_CELL-}} ${{CODEXEC_EXIT-}}\" >&98\n")
}

impl Report {
    pub(super) fn is_ready(&self) -> bool {
        self.key == READY
    }

    fn parse(line: &[u8]) -> Option<Report> {
        let line = str::from_utf8(line).ok()?.trim_end_matches('\n');
        let mut words = line.splitn(4, ' ');
        let round = words.next()?.parse().ok()?;
        let status = words.next()?.parse().ok()?;
        let key = words.next()?.to_owned();
        let rest = words.next()?.trim();
        let gone = rest.strip_prefix("gone ").map(str::to_owned);
        let status = match rest {
            "" => status,
            argument => argument.parse::<i64>().map_or(BAD_NUMBER, low_byte),
        };
        Some(Report { round, status, key, gone })
    }
}

/// Returns the low byte, which is all that the kernel keeps of an exit status.
fn low_byte(status: i64) -> i32 {
    i32::try_from(status & 0xff).unwrap_or(BAD_NUMBER)
}

#[cfg(test)]
mod tests;
