//! One script's folder.
//!
//! A save first writes the complete new version under `versions/`, and then replaces the code and
//! the metadata. If the code's hash differs from the metadata, there are two cases. The code is
//! that of the next version: a save was interrupted, and is now finished. Or it is not: the code
//! was edited by hand, and the edit becomes a new version.

use std::{io, path::PathBuf, time::SystemTime};

use codexec_files::FileStamp;
use codexec_types::{Language, Principal, format_rfc3339};

use crate::{
    ScriptError,
    dir::{Dir, FileError},
    draft::MAX_CODE_BYTES,
    error::ScriptFileError,
    meta::{
        FolderFacts, MAX_METADATA_BYTES, MetadataFile, ScriptMeta, derive_script_id, hex_sha256,
    },
    name::ScriptName,
};

/// The number of stored versions of each script. The oldest are removed first.
pub(crate) const VERSIONS_KEPT: usize = 100;

const METADATA: &str = "metadata.json";
const VERSIONS: &str = "versions";
const UNFINISHED: &str = ".new";

/// The current or an earlier version of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub meta: ScriptMeta,
    pub code: String,
    pub version: u32,
}

/// A stored version of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptVersion {
    pub version: u32,
    pub saved_at: String,
    pub saved_by: Option<Principal>,
    pub language: Language,
    pub sha256: String,
    pub is_current: bool,
}

/// The folder of the library.
pub(crate) struct LibraryDir {
    pub(crate) dir: Dir,
    pub(crate) path: PathBuf,
}

/// A script read from its folder.
pub(crate) struct LoadedScript {
    pub(crate) meta: ScriptMeta,
    pub(crate) code: String,
    pub(crate) stamps: ScriptStamps,
    /// True if the version is stored and the metadata is up to date.
    pub(crate) is_settled: bool,
    dir: Dir,
}

/// The stamps of a script's files when they were read.
#[derive(Debug)]
pub(crate) struct ScriptStamps {
    metadata: (String, Option<FileStamp>),
    code: (String, Option<FileStamp>),
}

impl ScriptStamps {
    /// Returns true if the files have not changed since.
    pub(crate) fn are_current(&self, root: &Dir) -> bool {
        [&self.metadata, &self.code].iter().all(|(path, stamp)| {
            root.stamp(path) == *stamp && !stamp.is_some_and(FileStamp::is_recent)
        })
    }
}

impl LibraryDir {
    /// Opens the folder. Returns `None` if it does not exist, because nothing was saved yet.
    pub(crate) fn open(path: PathBuf) -> Result<Option<LibraryDir>, ScriptError> {
        match Dir::open(&path) {
            Ok(dir) => Ok(Some(LibraryDir { dir, path })),
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

    /// Reads a script. Returns `None` if it does not exist.
    pub(crate) fn load(&self, slug: &str) -> Result<Option<LoadedScript>, ScriptError> {
        load(&self.dir, slug)
            .map_err(|problem| ScriptError::Broken { slug: slug.to_owned(), problem })
    }

    /// Reads a script, and makes a version of a manual edit. Only under the lock.
    pub(crate) fn load_settled(&self, slug: &str) -> Result<Option<LoadedScript>, ScriptError> {
        let Some(mut loaded) = self.load(slug)? else { return Ok(None) };
        if !loaded.is_settled {
            loaded.settle().map_err(self.failed("written"))?;
            loaded.is_settled = true;
        }
        Ok(Some(loaded))
    }

    /// Creates a script. Only under the lock.
    pub(crate) fn create(
        &self,
        slug: &str,
        meta: ScriptMeta,
        code: &str,
    ) -> Result<ScriptMeta, ScriptError> {
        let now = format_rfc3339(SystemTime::now());
        let meta = ScriptMeta {
            script_id: derive_script_id(slug, &now),
            created_at: now.clone(),
            updated_at: now,
            version: 1,
            sha256: hex_sha256(code),
            ..meta
        };
        let unfinished = format!(".new-{slug}");
        let made = (|| {
            self.dir.remove_tree(&unfinished)?;
            let dir = self.dir.enter_or_create(&unfinished)?;
            write_version(&dir, &meta, code)?;
            dir.write(&file_name(meta.language), code)?;
            write_metadata(&dir, &meta)?;
            self.dir.rename(&unfinished, slug)
        })();
        if made.is_err() {
            let _ = self.dir.remove_tree(&unfinished);
        }
        made.map_err(self.failed("written")).map(|()| meta)
    }

    /// Saves the next version of a script, unless nothing has changed. Only under the lock.
    pub(crate) fn update(
        &self,
        old: &LoadedScript,
        meta: ScriptMeta,
        code: &str,
    ) -> Result<ScriptMeta, ScriptError> {
        let merged = old.merge(meta, code);
        let without_author = |meta: &ScriptMeta| ScriptMeta { saved_by: None, ..meta.clone() };
        if without_author(&merged) == without_author(&old.meta) {
            return Ok(old.meta.clone());
        }
        let next = ScriptMeta {
            updated_at: format_rfc3339(SystemTime::now()),
            version: old.meta.version.saturating_add(1),
            ..merged
        };
        replace(&old.dir, &next, code).map_err(self.failed("written")).map(|()| next)
    }

    /// Records a run in the metadata. Only under the lock.
    pub(crate) fn record_run(
        &self,
        old: LoadedScript,
        at: SystemTime,
        ok: bool,
    ) -> Result<(), ScriptError> {
        let mut meta = old.meta;
        meta.run_count = meta.run_count.saturating_add(1);
        meta.last_run_at = Some(format_rfc3339(at));
        meta.last_run_success = Some(ok);
        write_metadata(&old.dir, &meta).map_err(self.failed("written"))
    }

    /// Deletes a script. Returns false if it did not exist. Only under the lock.
    pub(crate) fn delete(&self, slug: &str) -> Result<bool, ScriptError> {
        let deleted = format!(".gone-{slug}");
        (|| {
            self.dir.remove_tree(&deleted)?;
            match self.dir.rename(slug, &deleted) {
                Ok(()) => {}
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(err) => return Err(err),
            }
            // Renamed, the script is deleted, even if not all files can be removed.
            let _ = self.dir.remove_tree(&deleted);
            Ok(true)
        })()
        .map_err(self.failed("written"))
    }
}

impl LoadedScript {
    /// Merges a draft with what only the folder knows. The result equals the current metadata if
    /// the draft changes nothing.
    pub(crate) fn merge(&self, draft: ScriptMeta, code: &str) -> ScriptMeta {
        let current = &self.meta;
        ScriptMeta {
            script_id: current.script_id.clone(),
            created_at: current.created_at.clone(),
            updated_at: current.updated_at.clone(),
            last_run_at: current.last_run_at.clone(),
            last_run_success: current.last_run_success,
            run_count: current.run_count,
            version: current.version,
            sha256: hex_sha256(code),
            others: current.others.clone(),
            ..draft
        }
    }

    /// Reads a stored version, or `None` if it is not stored.
    pub(crate) fn read_version(&self, version: u32) -> Result<Option<Script>, ScriptFileError> {
        let Some(versions) = self.versions_dir()? else { return Ok(None) };
        let Some((dir, metadata, _)) = read_metadata(&versions, &version.to_string())? else {
            return Ok(None);
        };
        let Some(CodeFile { language, code, stamp, .. }) = read_code(&dir, metadata.language)?
        else {
            return Ok(None);
        };
        let facts = FolderFacts {
            slug: &self.meta.name,
            name: Some(self.meta.name.clone()),
            language,
            changed: stamp.changed(),
        };
        let meta = ScriptMeta { version, sha256: hex_sha256(&code), ..metadata.complete(facts) };
        check(&meta)?;
        Ok(Some(Script { meta, code, version }))
    }

    /// Lists the numbers of the stored versions, oldest first.
    pub(crate) fn version_numbers(&self) -> Result<Vec<u32>, ScriptFileError> {
        let Some(versions) = self.versions_dir()? else { return Ok(Vec::new()) };
        let numbers =
            list_numbers(&versions).map_err(|err| ScriptFileError::Folder(err.to_string()))?;
        // A later version belongs to an interrupted save.
        Ok(numbers.into_iter().filter(|number| *number <= self.meta.version).collect())
    }

    /// Returns the size of all files, including those of all versions.
    pub(crate) fn bytes(&self) -> u64 {
        let files = |dir: &Dir| -> u64 {
            let names = Language::ALL.into_iter().map(file_name).chain([METADATA.to_owned()]);
            names.filter_map(|name| dir.stamp(&name)).map(FileStamp::bytes).sum()
        };
        let versions = self.versions_dir().ok().flatten();
        let versions_bytes = versions.map_or(0, |versions| {
            let numbers = list_numbers(&versions).unwrap_or_default().into_iter();
            let dirs = numbers.filter_map(|number| versions.enter(&number.to_string()).ok());
            dirs.flatten().map(|dir| files(&dir)).sum()
        });
        files(&self.dir) + versions_bytes
    }

    fn versions_dir(&self) -> Result<Option<Dir>, ScriptFileError> {
        self.dir.enter(VERSIONS).map_err(|err| file_error(VERSIONS, &err))
    }

    fn settle(&self) -> io::Result<()> {
        write_version(&self.dir, &self.meta, &self.code)?;
        write_metadata(&self.dir, &self.meta)
    }
}

fn load(root: &Dir, slug: &str) -> Result<Option<LoadedScript>, ScriptFileError> {
    let Some((dir, metadata, metadata_stamp)) = read_metadata(root, slug)? else {
        return Ok(None);
    };
    let Some(CodeFile { name: file, language, code, stamp }) = read_code(&dir, metadata.language)?
    else {
        return Err(ScriptFileError::NoCode);
    };
    let name = metadata.name().map(str::to_owned).filter(|name| has_slug(name, slug));
    let is_same_language = metadata.language == Some(language);
    let facts = FolderFacts { slug, name, language, changed: stamp.changed() };
    let meta = metadata.complete(facts);
    let sha256 = hex_sha256(&code);
    let is_settled = is_same_language && meta.version > 0 && meta.sha256 == sha256;
    let stamps = ScriptStamps {
        metadata: (format!("{slug}/{METADATA}"), metadata_stamp),
        code: (format!("{slug}/{file}"), Some(stamp)),
    };
    let mut loaded = LoadedScript { meta, code, stamps, is_settled, dir };
    if !is_settled {
        loaded.meta = loaded.infer_next_meta(sha256, stamp);
    }
    check(&loaded.meta)?;
    Ok(Some(loaded))
}

impl LoadedScript {
    /// Returns the metadata for code that differs from the saved code.
    fn infer_next_meta(&self, sha256: String, stamp: FileStamp) -> ScriptMeta {
        let version = self.meta.version.saturating_add(1);
        let interrupted_save = self.read_version(version).ok().flatten().filter(|script| {
            script.meta.sha256 == sha256 && script.meta.language == self.meta.language
        });
        let current = self.meta.clone();
        match interrupted_save {
            Some(script) => ScriptMeta {
                last_run_at: current.last_run_at,
                last_run_success: current.last_run_success,
                run_count: current.run_count,
                ..script.meta
            },
            None => ScriptMeta {
                version,
                sha256,
                updated_at: format_rfc3339(stamp.changed()),
                saved_by: None,
                ..current
            },
        }
    }
}

/// Opens a script's folder and reads its metadata, which may be missing.
fn read_metadata(
    parent: &Dir,
    name: &str,
) -> Result<Option<(Dir, MetadataFile, Option<FileStamp>)>, ScriptFileError> {
    let Some(dir) = parent.enter(name).map_err(|err| ScriptFileError::Folder(err.to_string()))?
    else {
        return Ok(None);
    };
    match dir.read(METADATA, MAX_METADATA_BYTES) {
        Ok(Some((text, stamp))) => {
            let metadata = serde_json::from_str(&text).map_err(|err| ScriptFileError::File {
                file: METADATA.to_owned(),
                problem: err.to_string(),
            })?;
            Ok(Some((dir, metadata, Some(stamp))))
        }
        Ok(None) => Ok(Some((dir, MetadataFile::default(), None))),
        Err(err) => Err(file_error(METADATA, &err)),
    }
}

/// The code of a script, as it was read.
struct CodeFile {
    name: String,
    language: Language,
    code: String,
    stamp: FileStamp,
}

/// Reads the code, in the language of the metadata or else in any other.
fn read_code(dir: &Dir, named: Option<Language>) -> Result<Option<CodeFile>, ScriptFileError> {
    // CodeExec MCP saves Node.js scripts as `script.js`.
    let node_file = named.filter(|language| *language == Language::Node);
    let node_file = node_file.map(|node| (node, file_name(Language::JavaScript)));
    let own_file = named.map(|language| (language, file_name(language)));
    let others = Language::ALL.into_iter().map(|language| (language, file_name(language)));
    for (language, name) in own_file.into_iter().chain(node_file).chain(others) {
        match dir.read(&name, MAX_CODE_BYTES as u64) {
            Ok(Some((code, stamp))) => return Ok(Some(CodeFile { name, language, code, stamp })),
            Ok(None) => {}
            Err(err) => return Err(file_error(&name, &err)),
        }
    }
    Ok(None)
}

/// Writes a version atomically, and removes the oldest ones beyond the limit.
fn write_version(dir: &Dir, meta: &ScriptMeta, code: &str) -> io::Result<()> {
    let versions = dir.enter_or_create(VERSIONS)?;
    versions.remove_tree(UNFINISHED)?;
    let unfinished = versions.enter_or_create(UNFINISHED)?;
    unfinished.write(&file_name(meta.language), code)?;
    write_metadata(&unfinished, meta)?;
    let number = meta.version.to_string();
    // Removes a version of an interrupted save.
    versions.remove_tree(&number)?;
    versions.rename(UNFINISHED, &number)?;
    let numbers = list_numbers(&versions)?;
    for old in numbers.iter().take(numbers.len().saturating_sub(VERSIONS_KEPT)) {
        versions.remove_tree(&old.to_string())?;
    }
    Ok(())
}

fn replace(dir: &Dir, meta: &ScriptMeta, code: &str) -> io::Result<()> {
    write_version(dir, meta, code)?;
    dir.write(&file_name(meta.language), code)?;
    write_metadata(dir, meta)?;
    let others = Language::ALL.into_iter().filter(|language| *language != meta.language);
    let stale = dir.names()?.into_iter().filter(|name| is_temporary(name));
    for name in others.map(file_name).chain(stale) {
        dir.remove(&name)?;
    }
    Ok(())
}

fn list_numbers(versions: &Dir) -> io::Result<Vec<u32>> {
    let is_number =
        |name: &&String| !name.starts_with('0') && name.bytes().all(|b| b.is_ascii_digit());
    let names = versions.names()?;
    let mut numbers: Vec<u32> =
        names.iter().filter(is_number).filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn write_metadata(dir: &Dir, meta: &ScriptMeta) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(meta)?;
    text.push('\n');
    dir.write(METADATA, &text)
}

/// Returns true for a temporary file, which a killed process may have left.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.')
        && (name.ends_with(".new") || name.starts_with(".new-") || name.starts_with(".gone-"))
}

pub(crate) fn file_name(language: Language) -> String {
    format!("script.{}", language.short())
}

fn has_slug(name: &str, slug: &str) -> bool {
    ScriptName::parse(name).is_ok_and(|name| name.slug == slug)
}

fn check(meta: &ScriptMeta) -> Result<(), ScriptFileError> {
    meta.check().map_err(|(field, problem)| ScriptFileError::Field { field, problem })
}

fn file_error(file: &str, error: &FileError) -> ScriptFileError {
    ScriptFileError::File { file: file.to_owned(), problem: error.to_string() }
}
