//! One log file.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use codexec_files::private_files;

#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    path: PathBuf,
    bytes: u64,
    is_new: bool,
}

impl LogFile {
    /// Opens a log file, and cuts off an incomplete last line, which was never acknowledged.
    pub(super) fn open(path: &Path) -> io::Result<LogFile> {
        let is_new = !path.try_exists()?;
        let file = private_files::open_to_append(path)?;
        let bytes = file.metadata()?.len();
        let mut log = LogFile { file, path: path.to_owned(), bytes, is_new };
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
        let complete = self.end_of_last_line()?;
        let torn_bytes = self.bytes - complete;
        self.file.set_len(complete)?;
        self.bytes = complete;
        tracing::warn!(file = %self.path.display(), torn_bytes, "removed an incomplete last line");
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

    /// Returns those prefixes that a line begins with.
    pub(super) fn find_prefixes(
        &mut self,
        prefixes: &HashSet<&str>,
    ) -> io::Result<HashSet<String>> {
        let longest = prefixes.iter().map(|prefix| prefix.len()).max().unwrap_or_default();
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(64 << 10, &self.file);
        let mut found = HashSet::new();
        let mut start = Vec::with_capacity(longest);
        loop {
            start.clear();
            // Reads only the beginning of a line, however long it is.
            let mut head = reader.by_ref().take(longest as u64);
            if head.read_until(b'\n', &mut start)? == 0 {
                return Ok(found);
            }
            let line = start.strip_suffix(b"\n");
            let text = line.unwrap_or(&start);
            let matching = prefixes.iter().filter(|prefix| text.starts_with(prefix.as_bytes()));
            found.extend(matching.map(|prefix| (*prefix).to_owned()));
            if line.is_none() {
                reader.skip_until(b'\n')?;
            }
        }
    }

    /// Appends all of the text, or nothing.
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
        // A new file's name is in the folder, which needs its own fsync.
        if self.is_new { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}
