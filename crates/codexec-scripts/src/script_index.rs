//! All scripts, in memory, and the `index.json` that is made from them.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use codexec_types::nearest;
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    ScriptError,
    dir::Stamp,
    folder::{Loaded, Root, Stamps, is_temporary},
    meta::Meta,
    name::ScriptName,
    search::{Fit, Hit, Lexicon, Number, Places},
};

const INDEX: &str = "index.json";
/// More than 10,000 scripts with long descriptions come to; a larger one is not ours.
const MAX_INDEX_BYTES: u64 = 256 << 20;
const SHOWN_PROBLEMS: usize = 20;

#[derive(Debug)]
pub(crate) struct Catalogue {
    /// How many scripts there may be.
    most: usize,
    entries: BTreeMap<String, Entry>,
    lexicon: Lexicon,
    /// Folders that are not listed, with a sentence each.
    problems: BTreeMap<String, String>,
    /// The folder and the index as they were at the last look.
    seen: Option<(Stamp, Option<Stamp>)>,
    looked: Option<Instant>,
    is_over_full: bool,
    /// What happened to the index, until somebody was told.
    rebuilt: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    number: Number,
    places: Places,
    /// The metadata as it stands in the index.
    line: String,
    stamps: Stamps,
    is_settled: bool,
    /// Of all its files.
    bytes: u64,
}

/// What a look at the folder has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    Fine,
    /// Something must be written, for which the lock is needed.
    HasWork,
}

/// What a close look has found.
#[derive(Default)]
struct Close {
    /// A killed process was about to write.
    has_leftovers: bool,
    /// Something was edited by hand, or its save was cut short.
    is_unsettled: bool,
    /// Something is not as the index was last seen to say.
    is_new: bool,
}

/// How `index.json` stands to the folders.
enum Index {
    Fits,
    /// It can be read, and says something else.
    Stale,
    Missing,
    Broken(String),
}

impl Catalogue {
    pub(crate) fn new(most: usize) -> Catalogue {
        Catalogue {
            most,
            entries: BTreeMap::new(),
            lexicon: Lexicon::default(),
            problems: BTreeMap::new(),
            seen: None,
            looked: None,
            is_over_full: false,
            rebuilt: None,
        }
    }

    /// Learns what has changed. The folder and the index are looked at always, every single file
    /// only when they have changed or `pause` has passed since the last time.
    pub(crate) fn look(&mut self, root: &Root, pause: Duration) -> io::Result<Looked> {
        let seen = self.stamps(root)?;
        let is_recent = self.looked.is_some_and(|at| at.elapsed() < pause);
        let could_be_another = seen.0.is_recent() || seen.1.is_some_and(Stamp::is_recent);
        if is_recent && self.seen == Some(seen) && !could_be_another {
            return Ok(Looked::Fine);
        }
        let found = self.look_closely(root)?;
        let known_index = self.seen.and_then(|(_, index)| index);
        let is_indexed = (!found.is_new && seen.1.is_some() && seen.1 == known_index)
            || matches!(self.index(root), Index::Fits);
        self.seen = Some(seen);
        match found.has_leftovers || found.is_unsettled || !is_indexed {
            true => Ok(Looked::HasWork),
            false => Ok(Looked::Fine),
        }
    }

    /// Forgets everything: the folder is not there.
    pub(crate) fn clear(&mut self) {
        *self = Catalogue::new(self.most);
    }

    /// Learns what others have written, before something is written here. Only under the lock.
    pub(crate) fn catch_up(&mut self, root: &Root) -> Result<(), ScriptError> {
        let seen = self.stamps(root).map_err(root.failed("read"))?;
        if self.seen == Some(seen) { Ok(()) } else { self.mend(root) }
    }

    /// Makes versions of what was edited by hand, removes what a killed process has left, and
    /// writes the index anew if it must be. Only under the lock.
    pub(crate) fn mend(&mut self, root: &Root) -> Result<(), ScriptError> {
        self.look_closely(root).map_err(root.failed("read"))?;
        for name in root.dir.names().map_err(root.failed("read"))? {
            if is_temporary(&name)
                && let Err(err) = root.dir.remove_tree(&name)
            {
                tracing::warn!(error = %err, name, "what a save has left cannot be removed");
            }
        }
        for slug in self.unsettled() {
            match root.settled(&slug) {
                Ok(_) => self.read_again(root, &slug),
                Err(err) => tracing::warn!(error = %err, "an edit makes no version yet"),
            }
        }
        let why = match self.index(root) {
            Index::Fits => None,
            Index::Stale => Some(None),
            Index::Missing => Some(Some("was missing".to_owned())),
            Index::Broken(problem) => Some(Some(format!("was broken ({problem})"))),
        };
        if let Some(why) = why {
            self.write_index(root).map_err(root.failed("written"))?;
            if let Some(why) = why {
                tracing::warn!(why, "index.json of the scripts was rebuilt from the folders");
                self.rebuilt = Some(format!("index.json {why}; it was rebuilt from the folders"));
            }
        }
        self.seen = self.stamps(root).ok();
        Ok(())
    }

    /// After a script was written or deleted. Only under the lock.
    pub(crate) fn changed(&mut self, root: &Root, slug: &str) {
        self.read_again(root, slug);
        // The index can be made anew at any time; what was saved is saved.
        if let Err(err) = self.write_index(root) {
            tracing::warn!(error = %err, "index.json of the scripts cannot be written");
        }
        self.seen = self.stamps(root).ok();
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Best first; those that fit alike stand in the order of their names. A request without a
    /// word in it finds everything.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let fits = self.lexicon.fits(query);
        let mut found: Vec<(Fit, &Entry)> = self
            .entries
            .values()
            .filter_map(|entry| match &fits {
                Some(fits) => Some((*fits.get(entry.number).filter(|fit| fit.is_any())?, entry)),
                None => Some((Fit::UNASKED, entry)),
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
        let hit = |(fit, entry): (Fit, &Entry)| Hit {
            meta: entry.meta.shown(),
            relevance: fit.relevance,
            score: fit.score,
        };
        found.into_iter().take(limit).map(hit).collect()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() + self.problems.len() >= self.most
    }

    /// What all scripts hold, with all their versions.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.values().map(|entry| entry.bytes).sum()
    }

    pub(crate) fn nearest(&self, name: &str) -> Vec<String> {
        let names = self.entries.values().map(|entry| entry.meta.name.as_str());
        nearest(name, names, 3).into_iter().map(str::to_owned).collect()
    }

    /// Sentences for whoever lists the scripts. That the index was rebuilt is told once.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        let mut notes: Vec<String> = self.rebuilt.take().into_iter().collect();
        notes.extend(self.problems.values().take(SHOWN_PROBLEMS).cloned());
        if let Some(more) = self.problems.len().checked_sub(SHOWN_PROBLEMS).filter(|more| *more > 0)
        {
            notes.push(format!("{more} more folders cannot be used"));
        }
        if self.is_over_full {
            notes.push(format!("only the first {} scripts are read; delete some", self.most));
        }
        notes
    }

    fn stamps(&self, root: &Root) -> io::Result<(Stamp, Option<Stamp>)> {
        let folder = root.dir.stamp(".").ok_or(io::ErrorKind::NotFound)?;
        Ok((folder, root.dir.stamp(INDEX)))
    }

    fn look_closely(&mut self, root: &Root) -> io::Result<Close> {
        let names = root.dir.names()?;
        let mut found = Close {
            has_leftovers: names.iter().any(|name| is_temporary(name)),
            ..Close::default()
        };
        let visible = || names.iter().filter(|name| !name.starts_with('.') && *name != INDEX);
        let slugs = || visible().filter(|name| ScriptName::is_slug(name));
        self.is_over_full = slugs().count() > self.most;
        self.problems.retain(|name, _| names.binary_search(name).is_ok());
        let gone = |(slug, _): &(&String, &Entry)| names.binary_search(*slug).is_err();
        let gone: Vec<String> =
            self.entries.iter().filter(gone).map(|(slug, _)| slug.clone()).collect();
        for slug in &gone {
            self.forget(slug);
        }
        found.is_new = !gone.is_empty();
        for slug in slugs().take(self.most) {
            if !self.entries.get(slug).is_some_and(|entry| entry.stamps.fit(&root.dir)) {
                self.read_again(root, slug);
                found.is_new = true;
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
        self.looked = Some(Instant::now());
        found.is_unsettled = !self.unsettled().is_empty();
        Ok(found)
    }

    fn read_again(&mut self, root: &Root, slug: &str) {
        let was = self.problems.remove(slug);
        self.forget(slug);
        match root.load(slug) {
            Ok(Some(loaded)) => {
                let places = Places::of(&loaded.meta, &loaded.code);
                let number = self.lexicon.add(&places);
                self.entries.insert(slug.to_owned(), Entry::new(loaded, places, number));
            }
            Ok(None) => {}
            Err(err) => {
                let problem = err.to_string();
                if was.as_ref() != Some(&problem) {
                    tracing::warn!(problem, "a script is hidden");
                }
                self.problems.insert(slug.to_owned(), problem);
            }
        }
    }

    fn forget(&mut self, slug: &str) {
        if let Some(entry) = self.entries.remove(slug) {
            self.lexicon.remove(entry.number, &entry.places);
        }
    }

    fn unsettled(&self) -> Vec<String> {
        let unsettled = self.entries.iter().filter(|(_, entry)| !entry.is_settled);
        unsettled.map(|(slug, _)| slug.clone()).collect()
    }

    fn index(&self, root: &Root) -> Index {
        #[derive(Deserialize)]
        struct Indexed {
            #[serde(rename = "scripts")]
            _scripts: Vec<IgnoredAny>,
        }
        match root.dir.read(INDEX, MAX_INDEX_BYTES) {
            Ok(None) if self.entries.is_empty() => Index::Fits,
            Ok(None) => Index::Missing,
            Ok(Some((text, _))) if text == self.rendered() => Index::Fits,
            Ok(Some((text, _))) => match serde_json::from_str::<Indexed>(&text) {
                Ok(_) => Index::Stale,
                Err(err) => Index::Broken(err.to_string()),
            },
            Err(unfit) => Index::Broken(unfit.to_string()),
        }
    }

    fn write_index(&self, root: &Root) -> io::Result<()> {
        match root.dir.write(INDEX, &self.rendered()) {
            // A folder stands there, which nothing of ours has made.
            Err(err) if err.kind() == io::ErrorKind::IsADirectory => {
                root.dir.rename(INDEX, "index.json.aside")?;
                root.dir.write(INDEX, &self.rendered())
            }
            written => written,
        }
    }

    /// A line for each script.
    fn rendered(&self) -> String {
        let lines: Vec<&str> = self.entries.values().map(|entry| entry.line.as_str()).collect();
        format!("{{\"scripts\": [\n{}\n]}}\n", lines.join(",\n"))
    }
}

impl Entry {
    fn new(loaded: Loaded, places: Places, number: Number) -> Entry {
        Entry {
            number,
            places,
            bytes: loaded.bytes(),
            line: serde_json::to_string(&loaded.meta).unwrap_or_default(),
            meta: loaded.meta,
            stamps: loaded.stamps,
            is_settled: loaded.is_settled,
        }
    }
}
