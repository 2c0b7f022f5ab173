use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use codexec_schema::Checker;
use codexec_types::{Identity, Json, Language};
use serde_json::Value;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    Script, ScriptDraft, ScriptError, ScriptMatch, ScriptMeta, ScriptVersion,
    folder::{LibraryDir, LoadedScript, file_name},
    lock,
    name::ScriptName,
    parameters,
    script_index::{Refreshed, ScriptIndex},
};

/// How long a writer waits for another process's lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for work that can be done later.
const SHORT_LOCK_TIMEOUT: Duration = Duration::from_millis(250);

const LIMITS: LibraryLimits =
    LibraryLimits { scan_interval: Duration::from_secs(1), scripts: 10_000, bytes: 256 << 20 };
/// The maximum number of concurrent operations on blocking threads.
const CONCURRENT_OPERATIONS: usize = 2;

/// The saved scripts of one folder. Cheap to clone. All file access runs on blocking threads, and a
/// started operation completes even if its caller is dropped.
#[derive(Clone, Debug)]
pub struct Library {
    folder: PathBuf,
    limits: LibraryLimits,
    index: Arc<Mutex<ScriptIndex>>,
    /// Allows one writer in this process; the lock file excludes other processes.
    writer: Arc<Semaphore>,
    /// Limits the use of blocking threads, which others need, too.
    operations: Arc<Semaphore>,
    checker: Arc<Checker>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LibraryLimits {
    /// How long a manual edit may be missing in lists and searches.
    pub(crate) scan_interval: Duration,
    pub(crate) scripts: usize,
    /// The size of all scripts with all their versions.
    pub(crate) bytes: u64,
}

/// The result of a save.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedScript {
    pub script_id: String,
    pub name: String,
    pub version: u32,
    /// The path of the code.
    pub path: PathBuf,
    pub saved_at: String,
    /// True if the script did not exist before.
    pub is_new: bool,
}

/// A filter and a page of the list of scripts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptFilter {
    pub language: Option<Language>,
    pub tag: Option<String>,
    /// Only scripts that this identity saved.
    pub owner: Option<Identity>,
    pub offset: usize,
    pub limit: usize,
}

/// A page of scripts, ordered by name.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptPage {
    pub scripts: Vec<ScriptMeta>,
    /// The number of matching scripts on all pages.
    pub total: usize,
    /// Sentences about problems in the folder, and about repairs.
    pub notes: Vec<String>,
}

impl Library {
    /// Makes a handle of the library without reading it. The first save creates the folder.
    pub fn at(folder: PathBuf) -> Library {
        Library::with_limits(folder, LIMITS)
    }

    pub(crate) fn with_limits(folder: PathBuf, limits: LibraryLimits) -> Library {
        let index = Arc::new(Mutex::new(ScriptIndex::new(limits.scripts)));
        Library {
            folder,
            limits,
            index,
            writer: Arc::new(Semaphore::new(1)),
            operations: Arc::new(Semaphore::new(CONCURRENT_OPERATIONS)),
            checker: Arc::default(),
        }
    }

    /// Saves a new script or the next version of one. An unchanged draft makes no version.
    pub async fn save(&self, draft: ScriptDraft) -> Result<SavedScript, ScriptError> {
        self.save_draft(draft, true).await
    }

    /// Saves a new script. A draft that would change an existing script is refused.
    pub async fn add(&self, draft: ScriptDraft) -> Result<SavedScript, ScriptError> {
        self.save_draft(draft, false).await
    }

    async fn save_draft(
        &self,
        draft: ScriptDraft,
        may_replace: bool,
    ) -> Result<SavedScript, ScriptError> {
        let (name, meta, code) = draft.validate()?;
        let (max_scripts, max_bytes) = (self.limits.scripts, self.limits.bytes);
        // Stored twice: as the current script, and as a version.
        let bytes = 2 * (code.len() + meta.bytes()) as u64;
        self.write(LOCK_TIMEOUT, move |index, root| {
            let slug = &name.slug;
            let old = root.load_settled(slug)?;
            // THREAT[ORD-4]: code that saves in a loop fills the library, but not the disk.
            if index.bytes() + bytes > max_bytes {
                return Err(ScriptError::TooLarge { most_mib: max_bytes >> 20 });
            }
            let is_new = old.is_none();
            let meta = match old {
                None if index.is_full() => {
                    return Err(ScriptError::Full { most: max_scripts });
                }
                None => root.create(slug, meta, &code)?,
                Some(old) if old.meta.name != name.name => {
                    return Err(ScriptError::NameTaken { given: name.name, taken: old.meta.name });
                }
                Some(old) if !may_replace && old.merge(meta.clone(), &code) != old.meta => {
                    return Err(ScriptError::Exists { name: name.name });
                }
                Some(old) => root.update(&old, meta, &code)?,
            };
            index.update(root, slug);
            Ok(SavedScript {
                path: root.path.join(slug).join(file_name(meta.language)),
                script_id: meta.script_id,
                name: meta.name,
                version: meta.version,
                saved_at: meta.updated_at,
                is_new,
            })
        })
        .await
    }

    /// Reads a script from disk: its current version, or another one.
    pub async fn get(&self, name: &str, version: Option<u32>) -> Result<Script, ScriptError> {
        let loaded = self.load(name).await?;
        let current = loaded.meta.version;
        let Some(version) = version.filter(|version| *version != current) else {
            let (meta, code) = (loaded.meta.without_hidden(), loaded.code);
            return Ok(Script { meta, code, version: current });
        };
        let name = loaded.meta.name.clone();
        self.run_blocking(move || {
            let broken = |problem| ScriptError::Broken { slug: name.clone(), problem };
            let stored = loaded.version_numbers().map_err(broken)?;
            let script = match stored.contains(&version) {
                true => loaded.read_version(version).map_err(broken)?,
                false => None,
            };
            let script = script.ok_or_else(|| {
                let name = loaded.meta.name.clone();
                ScriptError::NoVersion { name, version, kept: stored }
            })?;
            Ok(Script { meta: script.meta.without_hidden(), ..script })
        })
        .await
    }

    /// Lists the stored versions, newest first.
    pub async fn list_versions(&self, name: &str) -> Result<Vec<ScriptVersion>, ScriptError> {
        let loaded = self.load(name).await?;
        self.run_blocking(move || {
            let slug = loaded.meta.name.clone();
            let broken = |problem| ScriptError::Broken { slug: slug.clone(), problem };
            let mut versions = Vec::new();
            for number in loaded.version_numbers().map_err(broken)?.into_iter().rev() {
                // A damaged version is skipped.
                if let Ok(Some(script)) = loaded.read_version(number) {
                    versions.push(ScriptVersion {
                        version: number,
                        saved_at: script.meta.updated_at,
                        saved_by: script.meta.saved_by,
                        language: script.meta.language,
                        sha256: script.meta.sha256,
                        is_current: number == loaded.meta.version,
                    });
                }
            }
            Ok(versions)
        })
        .await
    }

    pub async fn list(&self, filter: ScriptFilter) -> Result<ScriptPage, ScriptError> {
        self.read(move |index| {
            let tag = filter.tag.map(|tag| tag.to_lowercase());
            let is_match = |meta: &ScriptMeta| {
                filter.language.is_none_or(|language| meta.language == language)
                    && filter.owner.as_ref().is_none_or(|owner| meta.is_saved_by(owner))
                    && tag.as_ref().is_none_or(|tag| {
                        meta.tags.iter().any(|known| known.to_lowercase() == *tag)
                    })
            };
            let matching = || index.entries().filter(|entry| is_match(&entry.meta));
            let total = matching().count();
            let page = matching().skip(filter.offset).take(filter.limit);
            let scripts = page.map(|entry| entry.meta.without_hidden()).collect();
            ScriptPage { scripts, total, notes: index.take_notes() }
        })
        .await
    }

    /// Returns the best matches first. A query without words matches everything.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<ScriptMatch>, ScriptError> {
        let query = query.to_owned();
        self.read(move |index| index.search(&query, limit)).await
    }

    /// Lists the scripts that are exposed as MCP tools, ordered by name.
    pub async fn list_exposed(&self) -> Result<Vec<ScriptMeta>, ScriptError> {
        self.read(move |index| {
            let exposed = index.entries().filter(|entry| entry.meta.expose);
            exposed.map(|entry| entry.meta.without_hidden()).collect()
        })
        .await
    }

    /// Deletes a script with all its versions, even if its files are broken.
    pub async fn delete(&self, name: &str) -> Result<(), ScriptError> {
        let name = ScriptName::parse(name)?;
        if !self.folder.exists() {
            return Err(self.not_found(&name.name).await);
        }
        let slug = name.slug;
        let existed = self
            .write(LOCK_TIMEOUT, move |index, root| {
                let existed = root.delete(&slug)?;
                index.update(root, &slug);
                Ok(existed)
            })
            .await?;
        if existed { Ok(()) } else { Err(self.not_found(&name.name).await) }
    }

    /// Records a run of a script.
    pub async fn record_run(
        &self,
        name: &str,
        at: SystemTime,
        ok: bool,
    ) -> Result<(), ScriptError> {
        let ScriptName { name, slug } = ScriptName::parse(name)?;
        self.write(LOCK_TIMEOUT, move |index, root| {
            let Some(loaded) = root.load_settled(&slug)? else {
                let nearest = index.nearest(&name);
                return Err(ScriptError::NotFound { name, nearest });
            };
            root.record_run(loaded, at, ok)?;
            index.update(root, &slug);
            Ok(())
        })
        .await
    }

    /// Checks the input of a run. A script without parameters accepts any input.
    ///
    /// THREAT[ORD-3]: the input is parsed and checked off the event loop, and only if needed.
    pub async fn check_input(&self, meta: &ScriptMeta, input: &Json) -> Result<(), ScriptError> {
        let Some(schema) = meta.parameters.clone() else { return Ok(()) };
        let (checker, name, input) = (self.checker.clone(), meta.name.clone(), input.clone());
        self.run_blocking(move || {
            let input = input.to_value().unwrap_or(Value::Null);
            parameters::check(&checker, &schema, &input)
                .map_err(|wrong| ScriptError::Input { name, wrong })
        })
        .await
    }

    async fn load(&self, name: &str) -> Result<LoadedScript, ScriptError> {
        let ScriptName { name, slug } = ScriptName::parse(name)?;
        let (path, slug_to_load) = (self.folder.clone(), slug.clone());
        let loaded = self
            .run_blocking(move || match LibraryDir::open(path)? {
                Some(root) => root.load(&slug_to_load),
                None => Ok(None),
            })
            .await?;
        let Some(loaded) = loaded else { return Err(self.not_found(&name).await) };
        if loaded.is_settled {
            return Ok(loaded);
        }
        let settled = self
            .write(SHORT_LOCK_TIMEOUT, move |index, root| {
                let settled = root.load_settled(&slug)?;
                index.update(root, &slug);
                Ok(settled)
            })
            .await;
        match settled {
            Ok(Some(settled)) => Ok(settled),
            Ok(None) => Err(self.not_found(&name).await),
            // A read-only library can still be read.
            Err(err) => {
                tracing::warn!(error = %err, script = name, "cannot make a version of an edit yet");
                Ok(loaded)
            }
        }
    }

    async fn not_found(&self, name: &str) -> ScriptError {
        let name = name.to_owned();
        let error = self.read(move |index| {
            let nearest = index.nearest(&name);
            ScriptError::NotFound { name, nearest }
        });
        error.await.unwrap_or_else(|err| err)
    }

    /// Runs `work` on an index that is up to date with the folder.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ScriptIndex) -> T + Send + 'static,
    ) -> Result<T, ScriptError> {
        let (path, scan_interval) = (self.folder.clone(), self.limits.scan_interval);
        let done = self
            .with_index(move |index| {
                let Some(root) = LibraryDir::open(path)? else {
                    index.clear();
                    return Ok(Ok(work(index)));
                };
                match index.refresh(&root, scan_interval).map_err(root.failed("read"))? {
                    Refreshed::UpToDate => Ok(Ok(work(index))),
                    Refreshed::NeedsRepair => Ok(Err(work)),
                }
            })
            .await?;
        let work = match done {
            Ok(done) => return Ok(done),
            Err(work) => work,
        };
        // A read-only library can still be read.
        if let Err(err) = self.write(SHORT_LOCK_TIMEOUT, ScriptIndex::repair).await {
            tracing::warn!(error = %err, "the script library cannot be repaired");
        }
        self.with_index(move |index| Ok(work(index))).await
    }

    async fn write<T: Send + 'static>(
        &self,
        lock_timeout: Duration,
        work: impl FnOnce(&mut ScriptIndex, &LibraryDir) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let failed = |source| ScriptError::Files {
            path: self.folder.display().to_string(),
            doing: "written",
            source,
        };
        let writer = self.writer.clone().acquire_owned().await;
        let lock = lock::acquire(&self.folder, lock_timeout).await.map_err(failed)?;
        let lock = lock.ok_or(ScriptError::Busy)?;
        let path = self.folder.clone();
        let missing = failed(io::ErrorKind::NotFound.into());
        self.with_index(move |index| {
            let root = LibraryDir::open(path)?.ok_or(missing)?;
            let done = index.catch_up(&root).and_then(|()| work(index, &root));
            drop((lock, writer));
            done
        })
        .await
    }

    async fn with_index<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ScriptIndex) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let index = self.index.clone();
        self.run_blocking(move || work(&mut index.lock().unwrap_or_else(PoisonError::into_inner)))
            .await
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let failed = |err| {
            let path = self.folder.display().to_string();
            ScriptError::Files { path, doing: "used", source: err }
        };
        let permit = Arc::clone(&self.operations).acquire_owned();
        let permit = permit.await.map_err(|err| failed(io::Error::other(err)))?;
        let done = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.unwrap_or_else(|err| Err(failed(io::Error::other(err))))
    }
}

#[cfg(test)]
mod tests;
