//! All scripts in memory, and the `index.json` that is generated from them.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use codexec_files::FileStamp;
use codexec_types::find_nearest_names;
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    ScriptError,
    folder::{LibraryDir, LoadedScript, ScriptStamps, is_temporary},
    meta::ScriptMeta,
    name::ScriptName,
    search::{Lexicon, MatchScore, Number, ScriptMatch, ScriptWords},
};

const INDEX: &str = "index.json";
/// More than 10,000 scripts with long descriptions need. A larger file is not ours.
const MAX_INDEX_BYTES: u64 = 256 << 20;
const SHOWN_PROBLEMS: usize = 20;

#[derive(Debug)]
pub(crate) struct ScriptIndex {
    max_scripts: usize,
    entries: BTreeMap<String, ScriptEntry>,
    lexicon: Lexicon,
    /// Folders that are not listed, each with a sentence that says why.
    problems: BTreeMap<String, String>,
    /// The stamps of the folder and of `index.json` at the last refresh.
    stamps: Option<(FileStamp, Option<FileStamp>)>,
    scanned_at: Option<Instant>,
    is_over_full: bool,
    /// A note that `index.json` was rebuilt, until it is listed.
    rebuilt: Option<String>,
}

#[derive(Debug)]
pub(crate) struct ScriptEntry {
    pub(crate) meta: ScriptMeta,
    number: Number,
    words: ScriptWords,
    /// The script's line of `index.json`.
    line: String,
    stamps: ScriptStamps,
    is_settled: bool,
    /// The size of all its files.
    bytes: u64,
}

/// The result of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    UpToDate,
    /// Something must be written, which needs the lock.
    NeedsRepair,
}

/// The result of a scan of all files.
#[derive(Default)]
struct ScanResult {
    /// A killed process has left temporary files.
    has_leftovers: bool,
    /// A script was edited by hand, or its save was interrupted.
    is_unsettled: bool,
    /// A script has changed since `index.json` was last compared.
    has_changed: bool,
}

/// The state of `index.json`, compared with the folders.
enum IndexState {
    Current,
    /// Valid, but out of date.
    Stale,
    Missing,
    Broken(String),
}

impl ScriptIndex {
    pub(crate) fn new(max_scripts: usize) -> ScriptIndex {
        ScriptIndex {
            max_scripts,
            entries: BTreeMap::new(),
            lexicon: Lexicon::default(),
            problems: BTreeMap::new(),
            stamps: None,
            scanned_at: None,
            is_over_full: false,
            rebuilt: None,
        }
    }

    /// Reads what has changed. Always checks the folder and `index.json`, but every single file
    /// only if those have changed or the last scan is longer than `scan_interval` ago.
    pub(crate) fn refresh(
        &mut self,
        root: &LibraryDir,
        scan_interval: Duration,
    ) -> io::Result<Refreshed> {
        let stamps = self.read_stamps(root)?;
        let is_recent = self.scanned_at.is_some_and(|at| at.elapsed() < scan_interval);
        let is_ambiguous = stamps.0.is_recent() || stamps.1.is_some_and(FileStamp::is_recent);
        if is_recent && self.stamps == Some(stamps) && !is_ambiguous {
            return Ok(Refreshed::UpToDate);
        }
        let scan = self.scan(root)?;
        let last_index = self.stamps.and_then(|(_, index)| index);
        let is_indexed = (!scan.has_changed && stamps.1.is_some() && stamps.1 == last_index)
            || matches!(self.check_index(root), IndexState::Current);
        self.stamps = Some(stamps);
        match scan.has_leftovers || scan.is_unsettled || !is_indexed {
            true => Ok(Refreshed::NeedsRepair),
            false => Ok(Refreshed::UpToDate),
        }
    }

    /// Removes all entries, because the folder does not exist.
    pub(crate) fn clear(&mut self) {
        *self = ScriptIndex::new(self.max_scripts);
    }

    /// Reads the changes of other processes before a write. Only under the lock.
    pub(crate) fn catch_up(&mut self, root: &LibraryDir) -> Result<(), ScriptError> {
        let stamps = self.read_stamps(root).map_err(root.failed("read"))?;
        if self.stamps == Some(stamps) { Ok(()) } else { self.repair(root) }
    }

    /// Makes versions of manual edits, removes temporary files of killed processes, and rewrites
    /// `index.json` if needed. Only under the lock.
    pub(crate) fn repair(&mut self, root: &LibraryDir) -> Result<(), ScriptError> {
        self.scan(root).map_err(root.failed("read"))?;
        for name in root.dir.names().map_err(root.failed("read"))? {
            if is_temporary(&name)
                && let Err(err) = root.dir.remove_tree(&name)
            {
                tracing::warn!(error = %err, name, "cannot remove a temporary file of a save");
            }
        }
        for slug in self.list_unsettled() {
            match root.load_settled(&slug) {
                Ok(_) => self.reload(root, &slug),
                Err(err) => tracing::warn!(error = %err, "cannot make a version of an edit yet"),
            }
        }
        let reason = match self.check_index(root) {
            IndexState::Current => None,
            IndexState::Stale => Some(None),
            IndexState::Missing => Some(Some("was missing".to_owned())),
            IndexState::Broken(problem) => Some(Some(format!("was broken ({problem})"))),
        };
        if let Some(reason) = reason {
            self.write_index(root).map_err(root.failed("written"))?;
            if let Some(reason) = reason {
                tracing::warn!(reason, "index.json of the scripts was rebuilt from the folders");
                self.rebuilt =
                    Some(format!("index.json {reason}; it was rebuilt from the folders"));
            }
        }
        self.stamps = self.read_stamps(root).ok();
        Ok(())
    }

    /// Reloads a script that was written or deleted, and writes `index.json`. Only under the lock.
    pub(crate) fn update(&mut self, root: &LibraryDir, slug: &str) {
        self.reload(root, slug);
        // Not an error: the script is saved, and `index.json` can be rebuilt at any time.
        if let Err(err) = self.write_index(root) {
            tracing::warn!(error = %err, "index.json of the scripts cannot be written");
        }
        self.stamps = self.read_stamps(root).ok();
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &ScriptEntry> {
        self.entries.values()
    }

    /// Returns the best matches first, equal ones ordered by name. A query without words matches
    /// everything.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<ScriptMatch> {
        let scores = self.lexicon.score(query);
        let mut matches: Vec<(MatchScore, &ScriptEntry)> = self
            .entries
            .values()
            .filter_map(|entry| match &scores {
                Some(scores) => {
                    let score = scores.get(entry.number).filter(|score| score.is_match())?;
                    Some((*score, entry))
                }
                None => Some((MatchScore::NO_QUERY, entry)),
            })
            .collect();
        matches.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
        let hit = |(score, entry): (MatchScore, &ScriptEntry)| ScriptMatch {
            meta: entry.meta.without_hidden(),
            relevance: score.relevance,
            score: score.score,
        };
        matches.into_iter().take(limit).map(hit).collect()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() + self.problems.len() >= self.max_scripts
    }

    /// Returns the size of all scripts with all their versions.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.values().map(|entry| entry.bytes).sum()
    }

    pub(crate) fn nearest(&self, name: &str) -> Vec<String> {
        let names = self.entries.values().map(|entry| entry.meta.name.as_str());
        find_nearest_names(name, names, 3).into_iter().map(str::to_owned).collect()
    }

    /// Returns notes for a list of the scripts. The note on a rebuilt index is returned once.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        let mut notes: Vec<String> = self.rebuilt.take().into_iter().collect();
        notes.extend(self.problems.values().take(SHOWN_PROBLEMS).cloned());
        if let Some(more) = self.problems.len().checked_sub(SHOWN_PROBLEMS).filter(|more| *more > 0)
        {
            notes.push(format!("{more} more folders cannot be used"));
        }
        if self.is_over_full {
            let max_scripts = self.max_scripts;
            notes.push(format!("only the first {max_scripts} scripts are read; delete some"));
        }
        notes
    }

    fn read_stamps(&self, root: &LibraryDir) -> io::Result<(FileStamp, Option<FileStamp>)> {
        let folder = root.dir.stamp(".").ok_or(io::ErrorKind::NotFound)?;
        Ok((folder, root.dir.stamp(INDEX)))
    }

    fn scan(&mut self, root: &LibraryDir) -> io::Result<ScanResult> {
        let names = root.dir.names()?;
        let mut result = ScanResult {
            has_leftovers: names.iter().any(|name| is_temporary(name)),
            ..ScanResult::default()
        };
        let visible = || names.iter().filter(|name| !name.starts_with('.') && *name != INDEX);
        let slugs = || visible().filter(|name| ScriptName::is_slug(name));
        self.is_over_full = slugs().count() > self.max_scripts;
        self.problems.retain(|name, _| names.binary_search(name).is_ok());
        let is_deleted = |(slug, _): &(&String, &ScriptEntry)| names.binary_search(*slug).is_err();
        let deleted: Vec<String> =
            self.entries.iter().filter(is_deleted).map(|(slug, _)| slug.clone()).collect();
        for slug in &deleted {
            self.remove(slug);
        }
        result.has_changed = !deleted.is_empty();
        for slug in slugs().take(self.max_scripts) {
            if !self.entries.get(slug).is_some_and(|entry| entry.stamps.are_current(&root.dir)) {
                self.reload(root, slug);
                result.has_changed = true;
            }
        }
        for name in visible().filter(|name| !ScriptName::is_slug(name)).take(SHOWN_PROBLEMS) {
            if matches!(root.dir.enter(name), Ok(Some(_))) {
                let problem = format!(
                    "folder {name:?} is not read; name it with a-z 0-9 _ - only, in lower case"
                );
                self.problems.insert(name.clone(), problem);
            }
        }
        self.scanned_at = Some(Instant::now());
        result.is_unsettled = !self.list_unsettled().is_empty();
        Ok(result)
    }

    fn reload(&mut self, root: &LibraryDir, slug: &str) {
        let last_problem = self.problems.remove(slug);
        self.remove(slug);
        match root.load(slug) {
            Ok(Some(loaded)) => {
                let words = ScriptWords::new(&loaded.meta, &loaded.code);
                let number = self.lexicon.add(&words);
                self.entries.insert(slug.to_owned(), ScriptEntry::new(loaded, words, number));
            }
            Ok(None) => {}
            Err(err) => {
                let problem = err.to_string();
                if last_problem.as_ref() != Some(&problem) {
                    tracing::warn!(problem, "a script is not listed");
                }
                self.problems.insert(slug.to_owned(), problem);
            }
        }
    }

    fn remove(&mut self, slug: &str) {
        if let Some(entry) = self.entries.remove(slug) {
            self.lexicon.remove(entry.number, &entry.words);
        }
    }

    fn list_unsettled(&self) -> Vec<String> {
        let unsettled = self.entries.iter().filter(|(_, entry)| !entry.is_settled);
        unsettled.map(|(slug, _)| slug.clone()).collect()
    }

    fn check_index(&self, root: &LibraryDir) -> IndexState {
        #[derive(Deserialize)]
        struct IndexFile {
            #[serde(rename = "scripts")]
            _scripts: Vec<IgnoredAny>,
        }
        match root.dir.read(INDEX, MAX_INDEX_BYTES) {
            Ok(None) if self.entries.is_empty() => IndexState::Current,
            Ok(None) => IndexState::Missing,
            Ok(Some((text, _))) if text == self.render_index() => IndexState::Current,
            Ok(Some((text, _))) => match serde_json::from_str::<IndexFile>(&text) {
                Ok(_) => IndexState::Stale,
                Err(err) => IndexState::Broken(err.to_string()),
            },
            Err(err) => IndexState::Broken(err.to_string()),
        }
    }

    fn write_index(&self, root: &LibraryDir) -> io::Result<()> {
        match root.dir.write(INDEX, &self.render_index()) {
            // A folder has the name `index.json`. It is not ours, so it is moved out of the way.
            Err(err) if err.kind() == io::ErrorKind::IsADirectory => {
                root.dir.rename(INDEX, "index.json.aside")?;
                root.dir.write(INDEX, &self.render_index())
            }
            written => written,
        }
    }

    /// Renders `index.json`, with a line for each script.
    fn render_index(&self) -> String {
        let lines: Vec<&str> = self.entries.values().map(|entry| entry.line.as_str()).collect();
        format!("{{\"scripts\": [\n{}\n]}}\n", lines.join(",\n"))
    }
}

impl ScriptEntry {
    fn new(loaded: LoadedScript, words: ScriptWords, number: Number) -> ScriptEntry {
        ScriptEntry {
            number,
            words,
            bytes: loaded.bytes(),
            line: serde_json::to_string(&loaded.meta).unwrap_or_default(),
            meta: loaded.meta,
            stamps: loaded.stamps,
            is_settled: loaded.is_settled,
        }
    }
}
