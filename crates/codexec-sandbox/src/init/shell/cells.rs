//! What a shell is given as files: no text of a caller's is ever an option.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use codexec_types::Cell;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, mkfifoat, unlinkat};

use super::DRIVER;
use crate::init::CELLS;

/// The folder of the cells' files. The guest can read them and not change them.
pub(super) struct Cells(OwnedFd);

/// The output and error of one cell, as long as it runs.
///
/// THREAT[SES-10]: each cell has its own, so what an earlier one has left running writes elsewhere.
pub(super) struct Streams {
    to_read: [OwnedFd; 2],
    _held: [OwnedFd; 2],
}

impl Streams {
    pub(super) fn to_read(&self) -> [BorrowedFd<'_>; 2] {
        let [out, err] = &self.to_read;
        [out.as_fd(), err.as_fd()]
    }
}

impl Cells {
    pub(super) fn new(folder: OwnedFd) -> Cells {
        Cells(folder)
    }

    /// The lines that start a shell; with the state of the one before, if it has left any.
    pub(super) fn opening(&self, state: Option<&[u8]>) -> io::Result<Vec<String>> {
        self.replace("driver", DRIVER.as_bytes())?;
        let mut lines = vec![format!(". {CELLS}/driver\n")];
        if let Some(state) = state {
            self.replace("state", state)?;
            lines.push(format!(". {CELLS}/state\n"));
        }
        Ok(lines)
    }

    /// The line that runs a cell. One packet: a shell reads no more than a kilobyte at once.
    pub(super) fn lay_out(&self, cell: &Cell) -> io::Result<(String, Streams)> {
        let Cell { number, key, .. } = cell;
        let [code, args, input, out, err] = names(*number, key);
        self.replace(&code, cell.code.as_bytes())?;
        let mut set = "set --".to_owned();
        for arg in &cell.args {
            set.push(' ');
            set.push_str(&quoted(arg));
        }
        set.push('\n');
        self.replace(&args, set.as_bytes())?;
        let given = if cell.input.text() == "null" { "" } else { cell.input.text() };
        self.replace(&input, given.as_bytes())?;
        let [(out_read, out_held), (err_read, err_held)] = [self.pipe(&out)?, self.pipe(&err)?];
        let streams = Streams { to_read: [out_read, err_read], _held: [out_held, err_held] };
        let line = format!(
            "CODEXEC_CELL={key} CODEXEC_EXIT=; codexec_enter && . {CELLS}/{args} && \
             . {CELLS}/{code} <{CELLS}/{input} >{CELLS}/{out} 2>{CELLS}/{err} 98>&-\n"
        );
        Ok((line, streams))
    }

    /// Takes a cell's files away.
    pub(super) fn clear(&self, cell: &Cell) {
        self.clear_files(cell.number, &cell.key);
    }

    pub(super) fn clear_files(&self, number: u32, key: &str) {
        for name in names(number, key) {
            self.remove(&name);
        }
    }

    /// A pipe with a name: its end to read, and both ends of it.
    fn pipe(&self, name: &str) -> io::Result<(OwnedFd, OwnedFd)> {
        mkfifoat(&self.0, name, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let open = |how| openat(&self.0, name, how | OFlag::O_CLOEXEC, Mode::empty());
        Ok((open(OFlag::O_RDONLY | OFlag::O_NONBLOCK)?, open(OFlag::O_RDWR)?))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove(name);
        let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let file = openat(&self.0, name, how, Mode::S_IRUSR | Mode::S_IWUSR)?;
        File::from(file).write_all(bytes)
    }

    fn remove(&self, name: &str) {
        let _ = unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir);
    }
}

/// The files of a cell. Nobody but the shell knows the names of its output.
fn names(number: u32, key: &str) -> [String; 5] {
    let number = number.to_string();
    [
        number.clone(),
        format!("{number}.args"),
        format!("{number}.input"),
        format!("{key}.out"),
        format!("{key}.err"),
    ]
}

/// As one word of a shell's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
