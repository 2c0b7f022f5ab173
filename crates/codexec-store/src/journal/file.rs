//! One log file.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt},
    path::{Path, PathBuf},
};

/// Whoever may write into the folder could put a link there, or a pipe that nobody reads.
pub(super) const NO_LINK: i32 =
    nix::fcntl::OFlag::O_NOFOLLOW.union(nix::fcntl::OFlag::O_NONBLOCK).bits();

#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    bytes: u64,
    is_new: bool,
}

impl Log {
    /// A line that was not written to its end is cut off: nobody was told that it is there.
    pub(super) fn open(path: &Path) -> io::Result<Log> {
        let is_new = !path.try_exists()?;
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600);
        let file = file.custom_flags(NO_LINK).open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            let text = format!("{} is no regular file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if about.permissions().mode() & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
        }
        let mut log = Log { file, path: path.to_owned(), bytes: about.len(), is_new };
        log.cut_torn_tail()?;
        Ok(log)
    }

    fn cut_torn_tail(&mut self) -> io::Result<()> {
        let mut last = [0];
        if self.bytes == 0 {
            return Ok(());
        }
        self.file.read_exact_at(&mut last, self.bytes - 1)?;
        if last == *b"\n" {
            return Ok(());
        }
        let whole = self.end_of_last_line()?;
        let torn_bytes = self.bytes - whole;
        self.file.set_len(whole)?;
        self.bytes = whole;
        tracing::warn!(file = %self.path.display(), torn_bytes, "a line without an end was cut off");
        Ok(())
    }

    fn end_of_last_line(&self) -> io::Result<u64> {
        let mut block = vec![0; 64 << 10];
        let mut end = self.bytes;
        while end > 0 {
            let start = end.saturating_sub(block.len() as u64);
            let length = usize::try_from(end - start).unwrap_or_default();
            let Some(block) = block.get_mut(..length) else { return Ok(0) };
            self.file.read_exact_at(block, start)?;
            if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
                return Ok(start + at as u64 + 1);
            }
            end = start;
        }
        Ok(0)
    }

    /// Which of these a line begins with.
    pub(super) fn those_of(&mut self, wanted: &HashSet<&str>) -> io::Result<HashSet<String>> {
        let longest = wanted.iter().map(|text| text.len()).max().unwrap_or_default();
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(64 << 10, &self.file);
        let mut found = HashSet::new();
        let mut start = Vec::with_capacity(longest);
        loop {
            start.clear();
            // Only how a line begins is kept, however long it is.
            let mut head = reader.by_ref().take(longest as u64);
            if head.read_until(b'\n', &mut start)? == 0 {
                return Ok(found);
            }
            let line = start.strip_suffix(b"\n");
            let text = line.unwrap_or(&start);
            let is_it = |text: &[u8], wanted: &str| text.starts_with(wanted.as_bytes());
            found.extend(wanted.iter().filter(|w| is_it(text, w)).map(|w| (*w).to_owned()));
            if line.is_none() {
                reader.skip_until(b'\n')?;
            }
        }
    }

    /// All of it, or nothing.
    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(text);
        if written.is_err() {
            self.file.set_len(self.bytes)?;
        }
        written?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&self, folder: &Path) -> io::Result<()> {
        self.file.sync_data()?;
        // A new name is in the folder, not in the file.
        if self.is_new { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}
