//! The shell's own process: what it is told, and what it says.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::sys::socket::{MsgFlags, SockType, send};

use super::cells::Cells;
use crate::control::Command;
use crate::heard::{attributed_pair, read_attributed};
use crate::init::guest::{Inherited, Walls, start};

/// The longest report that is one: a path that is quoted may be there.
const MAX_REPORT_BYTES: usize = 8 << 10;
/// How much is read at once; others may write, too, and must not keep us.
const MAX_READS: usize = 64;
const STATE_READ_BYTES: usize = 16 << 10;
/// What a shell may leave to the next one.
const MAX_STATE_BYTES: usize = 8 << 20;
/// The last line of a state that was written to its end.
const WHOLE: &[u8] = b"# whole\n";
/// In place of a cell's key, when the shell has read its driver.
const READY: &str = "ready";
/// What is wrong with a command when bash cannot read the number that `exit` was given.
const BAD_NUMBER: i32 = 2;

/// The process that runs the cells.
pub(super) struct Shell {
    pub(super) pid: i32,
    /// Whether it has read its driver.
    pub(super) is_ready: bool,
    /// Packets, each one line: whoever else reads there takes whole lines or none.
    lines: OwnedFd,
    reports: Voice,
    states: Voice,
    state: Vec<u8>,
}

/// Where one process is heard, and nobody else.
struct Voice {
    socket: OwnedFd,
    is_over: bool,
}

/// What the shell says of the end of a cell: how often it was interrupted, the status of its last
/// command, and the key that came with its line.
///
/// THREAT[SES-4]: a cell can make its shell say that too, and ends by that only itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) round: u32,
    pub(super) status: i32,
    pub(super) key: String,
    /// The shell's directory, quoted, if the shell could not enter it and has run nothing.
    pub(super) gone: Option<String>,
}

impl Shell {
    /// Starts one; with what the one before knew, if it has left that.
    pub(super) fn start(
        command: &Command,
        walls: Walls<'_>,
        cells: &Cells,
        state: Option<&[u8]>,
    ) -> io::Result<Shell> {
        let (lines, theirs) = attributed_pair(SockType::SeqPacket)?;
        let (reports, reporting) = attributed_pair(SockType::SeqPacket)?;
        let (states, leaving) = attributed_pair(SockType::Stream)?;
        let null = OwnedFd::from(File::options().write(true).open("/dev/null")?);
        let inherited = Inherited::Cells {
            lines: &theirs,
            reports: &reporting,
            state: &leaving,
            nowhere: &null,
        };
        let opening = cells.opening(state)?;
        let pid = start(command, walls, inherited)?;
        let voice = |socket| Voice { socket, is_over: false };
        let shell = Shell {
            pid,
            is_ready: false,
            lines,
            reports: voice(reports),
            states: voice(states),
            state: Vec::new(),
        };
        for line in opening {
            shell.tell(&line);
        }
        shell.tell(&format!("CODEXEC_CELL={READY} CODEXEC_EXIT=\n"));
        shell.tell(&report_line(0));
        Ok(shell)
    }

    /// What is to be waited for.
    pub(super) fn voices(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let voices = [&self.reports, &self.states].into_iter();
        voices.filter(|voice| !voice.is_over).map(|voice| voice.socket.as_fd())
    }

    /// A shell that does not read is not waited for: the host's patience ends it.
    pub(super) fn tell(&self, line: &str) {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let _ = send(std::os::fd::AsRawFd::as_raw_fd(&self.lines), line.as_bytes(), flags);
    }

    /// Asks for a report after a signal. The shell may act upon the signal only when its next
    /// command begins, and drops that line then.
    pub(super) fn tell_round(&self, round: u32) {
        self.tell(":\n");
        self.tell(&report_line(round));
    }

    /// What it has said since it was last heard.
    pub(super) fn hear(&mut self) -> Vec<Report> {
        // More than the socket holds, should the shell be dead.
        let mut bytes = [0; STATE_READ_BYTES];
        for _ in 0..MAX_READS {
            let Some(count) = self.states.hear(self.pid, &mut bytes) else { break };
            // One byte more than there may be says that it is not whole.
            let room = (MAX_STATE_BYTES + 1).saturating_sub(self.state.len());
            self.state.extend_from_slice(bytes.get(..count.min(room)).unwrap_or_default());
        }
        let mut reports = Vec::new();
        for _ in 0..MAX_READS {
            let mut packet = [0; MAX_REPORT_BYTES];
            let Some(count) = self.reports.hear(self.pid, &mut packet) else { break };
            reports.extend(packet.get(..count).and_then(Report::parse));
        }
        reports
    }

    pub(super) fn forget_state(&mut self) {
        self.state.clear();
    }

    /// What a shell that has ended has left, if that is whole.
    pub(super) fn whole_state(&mut self) -> Option<Vec<u8>> {
        let is_whole = self.state.ends_with(WHOLE) && self.state.len() <= MAX_STATE_BYTES;
        is_whole.then(|| std::mem::take(&mut self.state))
    }
}

impl Voice {
    /// What this process has said next, of what is there; what others say is dropped.
    fn hear(&mut self, speaker: i32, room: &mut [u8]) -> Option<usize> {
        for _ in 0..MAX_READS {
            match read_attributed(self.socket.as_fd(), room) {
                Ok((count, from)) if from == speaker => return Some(count),
                // Nobody has it any more.
                Ok((0, 0)) => {
                    self.is_over = true;
                    return None;
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// One line of a shell's: how often the cell was interrupted, the status of its last command, the
/// cell's key, and what `exit` was given, or `gone` and the directory that could not be entered.
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
            given => given.parse::<i64>().map_or(BAD_NUMBER, low_byte),
        };
        Some(Report { round, status, key, gone })
    }
}

/// As the kernel keeps it.
fn low_byte(status: i64) -> i32 {
    i32::try_from(status & 0xff).unwrap_or(BAD_NUMBER)
}

#[cfg(test)]
mod tests;
