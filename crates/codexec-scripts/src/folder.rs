//! One script's folder.
//!
//! A save first puts the new version under `versions/`, whole, and then replaces the code and the
//! metadata. Whoever finds code that its metadata does not know (it has another hash) can tell
//! what happened: it is the code of the next version, and a save was cut short, which is then
//! finished; or it is not, and somebody has edited it by hand, which makes a version of its own.

use std::{io, path::PathBuf, time::SystemTime};

use codexec_types::{Language, format_rfc3339};

use crate::{
    ScriptError,
    dir::{Dir, Stamp, Unfit},
    draft::MAX_CODE_BYTES,
    error::Broken,
    meta::{Found, MAX_METADATA_BYTES, Meta, Place, hex_sha256, script_id_of},
    name::ScriptName,
};

/// Of each script; the oldest go first.
pub(crate) const VERSIONS_KEPT: usize = 100;

const METADATA: &str = "metadata.json";
const VERSIONS: &str = "versions";
const UNFINISHED: &str = ".new";

/// A script as it is now, or was in an earlier version.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub meta: Meta,
    pub code: String,
    pub version: u32,
}

/// One of the versions of a script that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    pub version: u32,
    pub saved_at: String,
    pub language: Language,
    pub sha256: String,
    pub is_current: bool,
}

/// The folder of the library.
pub(crate) struct Root {
    pub(crate) dir: Dir,
    pub(crate) path: PathBuf,
}

/// What was found in a script's folder.
pub(crate) struct Loaded {
    pub(crate) meta: Meta,
    pub(crate) code: String,
    pub(crate) stamps: Stamps,
    /// Whether the version is kept and the metadata is written.
    pub(crate) is_settled: bool,
    dir: Dir,
}

/// Tells whether a script's files are still the ones that were read.
#[derive(Debug)]
pub(crate) struct Stamps {
    metadata: (String, Option<Stamp>),
    code: (String, Option<Stamp>),
}

impl Stamps {
    pub(crate) fn fit(&self, root: &Dir) -> bool {
        [&self.metadata, &self.code]
            .iter()
            .all(|(path, stamp)| root.stamp(path) == *stamp && !stamp.is_some_and(Stamp::is_recent))
    }
}

impl Root {
    /// `None`: nothing was ever saved.
    pub(crate) fn open(path: PathBuf) -> Result<Option<Root>, ScriptError> {
        match Dir::open(&path) {
            Ok(dir) => Ok(Some(Root { dir, path })),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => {
                let path = path.display().to_string();
                Err(ScriptError::Files { path, doing: "read", source })
            }
        }
    }

    pub(crate) fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> ScriptError {
        let path = self.path.display().to_string();
        move |source| ScriptError::Files { path, doing, source }
    }

    /// `None`: there is no such script.
    pub(crate) fn load(&self, slug: &str) -> Result<Option<Loaded>, ScriptError> {
        load(&self.dir, slug)
            .map_err(|problem| ScriptError::Broken { slug: slug.to_owned(), problem })
    }

    /// The same, after what was edited by hand has become a version. Only under the lock.
    pub(crate) fn settled(&self, slug: &str) -> Result<Option<Loaded>, ScriptError> {
        let Some(mut loaded) = self.load(slug)? else { return Ok(None) };
        if !loaded.is_settled {
            loaded.settle().map_err(self.failed("written"))?;
            loaded.is_settled = true;
        }
        Ok(Some(loaded))
    }

    /// Only under the lock.
    pub(crate) fn create(&self, slug: &str, meta: Meta, code: &str) -> Result<Meta, ScriptError> {
        let now = format_rfc3339(SystemTime::now());
        let meta = Meta {
            script_id: script_id_of(slug, &now),
            created_at: now.clone(),
            updated_at: now,
            version: 1,
            sha256: hex_sha256(code),
            ..meta
        };
        let unfinished = format!(".new-{slug}");
        let made = (|| {
            self.dir.remove_tree(&unfinished)?;
            let dir = self.dir.make(&unfinished)?;
            keep_version(&dir, &meta, code)?;
            dir.write(&file_name(meta.language), code)?;
            write_metadata(&dir, &meta)?;
            self.dir.rename(&unfinished, slug)
        })();
        if made.is_err() {
            let _ = self.dir.remove_tree(&unfinished);
        }
        made.map_err(self.failed("written")).map(|()| meta)
    }

    /// The next version of a script, or the same one if nothing is new. Only under the lock.
    pub(crate) fn renew(&self, old: &Loaded, meta: Meta, code: &str) -> Result<Meta, ScriptError> {
        let same = old.with(meta, code);
        if same == old.meta {
            return Ok(same);
        }
        let next = Meta {
            updated_at: format_rfc3339(SystemTime::now()),
            version: old.meta.version.saturating_add(1),
            ..same
        };
        replace(&old.dir, &next, code).map_err(self.failed("written")).map(|()| next)
    }

    /// Only under the lock.
    pub(crate) fn note_run(
        &self,
        old: Loaded,
        at: SystemTime,
        ok: bool,
    ) -> Result<(), ScriptError> {
        let mut meta = old.meta;
        meta.run_count = meta.run_count.saturating_add(1);
        meta.last_run_at = Some(format_rfc3339(at));
        meta.last_run_success = Some(ok);
        write_metadata(&old.dir, &meta).map_err(self.failed("written"))
    }

    /// Whether there was one. Only under the lock.
    pub(crate) fn delete(&self, slug: &str) -> Result<bool, ScriptError> {
        let gone = format!(".gone-{slug}");
        (|| {
            self.dir.remove_tree(&gone)?;
            match self.dir.rename(slug, &gone) {
                Ok(()) => {}
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(err) => return Err(err),
            }
            // It is gone whether or not all of it can be removed.
            let _ = self.dir.remove_tree(&gone);
            Ok(true)
        })()
        .map_err(self.failed("written"))
    }
}

impl Loaded {
    /// This script as a draft changes it, without what only the folder knows. The same as it is if
    /// the draft says nothing new.
    pub(crate) fn with(&self, draft: Meta, code: &str) -> Meta {
        let kept = &self.meta;
        Meta {
            script_id: kept.script_id.clone(),
            created_at: kept.created_at.clone(),
            updated_at: kept.updated_at.clone(),
            last_run_at: kept.last_run_at.clone(),
            last_run_success: kept.last_run_success,
            run_count: kept.run_count,
            version: kept.version,
            sha256: hex_sha256(code),
            others: kept.others.clone(),
            ..draft
        }
    }

    /// An earlier version; `None` if it is not kept.
    pub(crate) fn earlier(&self, version: u32) -> Result<Option<Script>, Broken> {
        let Some(versions) = self.versions()? else { return Ok(None) };
        let Some((dir, found, _)) = enter(&versions, &version.to_string())? else {
            return Ok(None);
        };
        let Some((language, code, stamp)) = code_of(&dir, found.language)? else {
            return Ok(None);
        };
        let place = Place {
            slug: &self.meta.name,
            name: Some(self.meta.name.clone()),
            language,
            changed: stamp.changed(),
        };
        let meta = Meta { version, sha256: hex_sha256(&code), ..found.meta(place) };
        check(&meta)?;
        Ok(Some(Script { meta, code, version }))
    }

    /// Of the versions that are kept, oldest first.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, Broken> {
        let Some(versions) = self.versions()? else { return Ok(Vec::new()) };
        let numbers = kept_numbers(&versions).map_err(|err| Broken::Folder(err.to_string()))?;
        // What is above was about to be saved, and is not.
        Ok(numbers.into_iter().filter(|number| *number <= self.meta.version).collect())
    }

    /// What its files hold, those of all its versions included.
    pub(crate) fn bytes(&self) -> u64 {
        let files = |dir: &Dir| -> u64 {
            let names = Language::ALL.into_iter().map(file_name).chain([METADATA.to_owned()]);
            names.filter_map(|name| dir.stamp(&name)).map(Stamp::bytes).sum()
        };
        let kept = self.versions().ok().flatten();
        let kept = kept.map_or(0, |versions| {
            let numbers = kept_numbers(&versions).unwrap_or_default().into_iter();
            let dirs = numbers.filter_map(|number| versions.enter(&number.to_string()).ok());
            dirs.flatten().map(|dir| files(&dir)).sum()
        });
        files(&self.dir) + kept
    }

    fn versions(&self) -> Result<Option<Dir>, Broken> {
        self.dir.enter(VERSIONS).map_err(|unfit| unusable(VERSIONS, &unfit))
    }

    fn settle(&self) -> io::Result<()> {
        keep_version(&self.dir, &self.meta, &self.code)?;
        write_metadata(&self.dir, &self.meta)
    }
}

fn load(root: &Dir, slug: &str) -> Result<Option<Loaded>, Broken> {
    let Some((dir, found, metadata)) = enter(root, slug)? else { return Ok(None) };
    let Some((language, code, stamp)) = code_of(&dir, found.language)? else {
        return Err(Broken::NoCode);
    };
    let name = found.name().map(str::to_owned).filter(|name| stands_for(name, slug));
    let is_same_language = found.language == Some(language);
    let meta = found.meta(Place { slug, name, language, changed: stamp.changed() });
    let sha256 = hex_sha256(&code);
    let is_settled = is_same_language && meta.version > 0 && meta.sha256 == sha256;
    let stamps = Stamps {
        metadata: (format!("{slug}/{METADATA}"), metadata),
        code: (format!("{slug}/{}", file_name(language)), Some(stamp)),
    };
    let mut loaded = Loaded { meta, code, stamps, is_settled, dir };
    if !is_settled {
        loaded.meta = loaded.next(sha256, stamp);
    }
    check(&loaded.meta)?;
    Ok(Some(loaded))
}

impl Loaded {
    /// The metadata that belongs to code which is not the one that was saved.
    fn next(&self, sha256: String, stamp: Stamp) -> Meta {
        let version = self.meta.version.saturating_add(1);
        let cut_short = self.earlier(version).ok().flatten().filter(|script| {
            script.meta.sha256 == sha256 && script.meta.language == self.meta.language
        });
        let now = self.meta.clone();
        match cut_short {
            Some(script) => Meta {
                last_run_at: now.last_run_at,
                last_run_success: now.last_run_success,
                run_count: now.run_count,
                ..script.meta
            },
            None => Meta { version, sha256, updated_at: format_rfc3339(stamp.changed()), ..now },
        }
    }
}

/// A folder with metadata in it, or without.
fn enter(parent: &Dir, name: &str) -> Result<Option<(Dir, Found, Option<Stamp>)>, Broken> {
    let Some(dir) = parent.enter(name).map_err(|unfit| Broken::Folder(unfit.to_string()))? else {
        return Ok(None);
    };
    match dir.read(METADATA, MAX_METADATA_BYTES) {
        Ok(Some((text, stamp))) => {
            let found = serde_json::from_str(&text).map_err(|err| Broken::File {
                file: METADATA.to_owned(),
                problem: err.to_string(),
            })?;
            Ok(Some((dir, found, Some(stamp))))
        }
        Ok(None) => Ok(Some((dir, Found::default(), None))),
        Err(unfit) => Err(unusable(METADATA, &unfit)),
    }
}

/// In the language that the metadata names, or in the one whose file is there.
fn code_of(
    dir: &Dir,
    named: Option<Language>,
) -> Result<Option<(Language, String, Stamp)>, Broken> {
    for language in named.into_iter().chain(Language::ALL) {
        let file = file_name(language);
        match dir.read(&file, MAX_CODE_BYTES as u64) {
            Ok(Some((code, stamp))) => return Ok(Some((language, code, stamp))),
            Ok(None) => {}
            Err(unfit) => return Err(unusable(&file, &unfit)),
        }
    }
    Ok(None)
}

/// Puts a version into its folder, whole or not at all, and takes away those that are too many.
fn keep_version(dir: &Dir, meta: &Meta, code: &str) -> io::Result<()> {
    let versions = dir.make(VERSIONS)?;
    versions.remove_tree(UNFINISHED)?;
    let unfinished = versions.make(UNFINISHED)?;
    unfinished.write(&file_name(meta.language), code)?;
    write_metadata(&unfinished, meta)?;
    let number = meta.version.to_string();
    // One of this number was about to be saved when its process ended.
    versions.remove_tree(&number)?;
    versions.rename(UNFINISHED, &number)?;
    let kept = kept_numbers(&versions)?;
    for old in kept.iter().take(kept.len().saturating_sub(VERSIONS_KEPT)) {
        versions.remove_tree(&old.to_string())?;
    }
    Ok(())
}

fn replace(dir: &Dir, meta: &Meta, code: &str) -> io::Result<()> {
    keep_version(dir, meta, code)?;
    dir.write(&file_name(meta.language), code)?;
    write_metadata(dir, meta)?;
    let others = Language::ALL.into_iter().filter(|language| *language != meta.language);
    let stale = dir.names()?.into_iter().filter(|name| is_temporary(name));
    for name in others.map(file_name).chain(stale) {
        dir.remove(&name)?;
    }
    Ok(())
}

fn kept_numbers(versions: &Dir) -> io::Result<Vec<u32>> {
    let is_plain =
        |name: &&String| !name.starts_with('0') && name.bytes().all(|b| b.is_ascii_digit());
    let names = versions.names()?;
    let mut numbers: Vec<u32> =
        names.iter().filter(is_plain).filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn write_metadata(dir: &Dir, meta: &Meta) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(meta)?;
    text.push('\n');
    dir.write(METADATA, &text)
}

/// Left by a process that was killed while it wrote.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.')
        && (name.ends_with(".new") || name.starts_with(".new-") || name.starts_with(".gone-"))
}

pub(crate) fn file_name(language: Language) -> String {
    format!("script.{}", language.short())
}

fn stands_for(name: &str, slug: &str) -> bool {
    ScriptName::parse(name).is_ok_and(|name| name.slug == slug)
}

fn check(meta: &Meta) -> Result<(), Broken> {
    meta.check().map_err(|(field, problem)| Broken::Field { field, problem })
}

fn unusable(file: &str, unfit: &Unfit) -> Broken {
    Broken::File { file: file.to_owned(), problem: unfit.to_string() }
}
