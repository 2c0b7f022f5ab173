//! What a shell is given as files: no text of a caller's is ever an option, and one that is short
//! of nothing but disk space can still be given a short one.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use codexec_types::Cell;

use super::DRIVER;

/// The folder is the guest's to write, and so are the files: nothing in here is believed.
pub(super) struct Cells(PathBuf);

/// The last line of a state that was written to its end.
const WHOLE: &[u8] = b"# whole\n";

/// Where a cell's output goes; none of its processes gets at the reports by accident.
const STREAMS: &str = ">&96 2>&97 96>&- 97>&- 98>&-";

/// A line that is longer does not fit into a pipe that nobody reads at the moment.
const MAX_LINE_BYTES: usize = 32 << 10;

impl Cells {
    pub(super) fn new(folder: PathBuf) -> io::Result<Cells> {
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => Ok(Cells(folder)),
        }
    }

    /// The lines that start a shell; with the state of the one before, if it has left any.
    pub(super) fn opening(&self) -> io::Result<String> {
        let driver = self.path("driver");
        write_new(&driver, DRIVER.as_bytes())?;
        let mut lines = format!(". {}\n", driver.display());
        if self.has_state() {
            // The next cell may come before it is read, and begins without any.
            let taken = self.path("taken");
            fs::rename(self.state(), &taken)?;
            lines.push_str(&format!(". {}\n", taken.display()));
        }
        Ok(lines)
    }

    /// The lines that run a cell.
    pub(super) fn lay_out(&self, cell: &Cell) -> io::Result<String> {
        let _ = fs::remove_file(self.state());
        let lines = self.write(cell).or_else(|error| {
            let [_, _, input] = self.files(cell.number);
            self.clear(cell.number);
            let line = format!("eval {} <{} {STREAMS}\n", quoted(&cell.code), input.display());
            // Whoever has filled the disk has to be able to empty it.
            if error.kind() == io::ErrorKind::StorageFull && line.len() <= MAX_LINE_BYTES {
                return Ok(line.replace(&input.display().to_string(), "/dev/null"));
            }
            Err(error)
        })?;
        Ok(format!("codexec_enter\n{lines}"))
    }

    fn write(&self, cell: &Cell) -> io::Result<String> {
        let [code, args, input] = self.files(cell.number);
        write_new(&code, cell.code.as_bytes())?;
        let mut set = "set --".to_owned();
        for arg in &cell.args {
            set.push(' ');
            set.push_str(&quoted(arg));
        }
        set.push('\n');
        write_new(&args, set.as_bytes())?;
        let given = if cell.input.text() == "null" { "" } else { cell.input.text() };
        write_new(&input, given.as_bytes())?;
        Ok(format!(". {}\n. {} <{} {STREAMS}\n", args.display(), code.display(), input.display()))
    }

    /// Takes a cell's files away.
    pub(super) fn clear(&self, number: u32) {
        for path in self.files(number) {
            let _ = fs::remove_file(path);
        }
    }

    /// Whether a shell that has ended has left its state, whole.
    pub(super) fn has_state(&self) -> bool {
        let read = || -> io::Result<Vec<u8>> {
            // A pipe in its place would keep us waiting.
            let mut file = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
                .open(self.state())?;
            file.seek(SeekFrom::End(-i64::try_from(WHOLE.len()).unwrap_or(0)))?;
            let mut end = Vec::new();
            file.take(WHOLE.len() as u64).read_to_end(&mut end)?;
            Ok(end)
        };
        read().is_ok_and(|end| end == WHOLE)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    fn files(&self, number: u32) -> [PathBuf; 3] {
        [format!("{number}"), format!("{number}.args"), format!("{number}.input")]
            .map(|name| self.path(&name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// THREAT[SES-6]: a guest may have put a link or a pipe where we are about to write.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = open().or_else(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        fs::remove_file(path)?;
        open()
    })?;
    file.write_all(bytes)
}

/// As one word of a shell's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
