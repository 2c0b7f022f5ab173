//! Passes cells to the shell as files, so that no text of a caller becomes an option.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use codexec_types::Cell;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, mkfifoat, unlinkat};

use super::DRIVER;
use crate::init::CELLS;

/// The folder with the cells' files. The guest can read the files, but not change them.
pub(super) struct CellFiles(OwnedFd);

/// The stdout and stderr of a running cell.
///
/// THREAT[SES-10]: each cell has its own pipes, so a process of an earlier cell writes elsewhere.
pub(super) struct CellStreams {
    read_ends: [OwnedFd; 2],
    _held: [OwnedFd; 2],
}

impl CellStreams {
    pub(super) fn read_ends(&self) -> [BorrowedFd<'_>; 2] {
        let [out, err] = &self.read_ends;
        [out.as_fd(), err.as_fd()]
    }
}

impl CellFiles {
    pub(super) fn new(folder: OwnedFd) -> CellFiles {
        CellFiles(folder)
    }

    /// Writes the files that a shell sources at startup: the driver, and the state of its
    /// predecessor. Returns the lines that source them.
    pub(super) fn write_startup(&self, state: Option<&[u8]>) -> io::Result<Vec<String>> {
        self.replace("driver", DRIVER.as_bytes())?;
        let mut lines = vec![format!(". {CELLS}/driver\n")];
        if let Some(state) = state {
            self.replace("state", state)?;
            lines.push(format!(". {CELLS}/state\n"));
        }
        Ok(lines)
    }

    /// Writes a cell's files; none for arguments and input that the cell does not have. Returns the
    /// line that runs the cell, which must be less than a kilobyte: a shell reads no more at once,
    /// and the line is one packet.
    pub(super) fn write_cell(&self, cell: &Cell) -> io::Result<(String, CellStreams)> {
        let Cell { number, key, .. } = cell;
        let [code, args, input, out, err] = file_names(*number, key);
        self.create(&code, cell.code.as_bytes())?;
        let set_args = match cell.args.is_empty() {
            true => "builtin set --".to_owned(),
            false => {
                let words: Vec<String> = cell.args.iter().map(|arg| quote(arg)).collect();
                self.create(&args, format!("set -- {}\n", words.join(" ")).as_bytes())?;
                format!(". {CELLS}/{args}")
            }
        };
        let stdin = match cell.input.text() {
            "null" => "/dev/null".to_owned(),
            text => {
                self.create(&input, text.as_bytes())?;
                format!("{CELLS}/{input}")
            }
        };
        let [(out_read, out_held), (err_read, err_held)] =
            [self.make_pipe(&out)?, self.make_pipe(&err)?];
        let streams = CellStreams { read_ends: [out_read, err_read], _held: [out_held, err_held] };
        let line = format!(
            "CODEXEC_CELL={key} CODEXEC_EXIT=; codexec_enter && {set_args} && \
             . {CELLS}/{code} <{stdin} >{CELLS}/{out} 2>{CELLS}/{err} 98>&-\n"
        );
        Ok((line, streams))
    }

    /// Deletes a cell's files.
    pub(super) fn clear(&self, cell: &Cell) {
        self.clear_files(cell.number, &cell.key);
    }

    pub(super) fn clear_files(&self, number: u32, key: &str) {
        for name in file_names(number, key) {
            self.remove(&name);
        }
    }

    /// Creates a named pipe. Returns its read end, and a descriptor that keeps it open for writing.
    fn make_pipe(&self, name: &str) -> io::Result<(OwnedFd, OwnedFd)> {
        mkfifoat(&self.0, name, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let open = |how| openat(&self.0, name, how | OFlag::O_CLOEXEC, Mode::empty());
        Ok((open(OFlag::O_RDONLY | OFlag::O_NONBLOCK)?, open(OFlag::O_RDWR)?))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove(name);
        self.create(name, bytes)
    }

    /// Creates a file. Fails if it exists.
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let file = openat(&self.0, name, how, Mode::S_IRUSR | Mode::S_IWUSR)?;
        File::from(file).write_all(bytes)
    }

    fn remove(&self, name: &str) {
        let _ = unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir);
    }
}

/// Returns the names of a cell's files. Only the shell knows the key in the names of its output.
fn file_names(number: u32, key: &str) -> [String; 5] {
    let number = number.to_string();
    [
        number.clone(),
        format!("{number}.args"),
        format!("{number}.input"),
        format!("{key}.out"),
        format!("{key}.err"),
    ]
}

/// Quotes text as one word for the shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
