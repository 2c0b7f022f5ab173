use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use codexec_schema::Checker;
use codexec_types::{Json, Language};
use serde_json::Value;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    Draft, Hit, Meta, Script, ScriptError, Version,
    catalogue::{Catalogue, Looked},
    folder::{Loaded, Root, file_name},
    lock::Lock,
    name::ScriptName,
    parameters,
};

/// How long a writer waits for another process of ours.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The same for what can be done another time.
const SHORT_LOCK_WAIT: Duration = Duration::from_millis(250);

const LIMITS: Limits = Limits { pause: Duration::from_secs(1), scripts: 10_000, bytes: 256 << 20 };
/// Pieces of work at a time.
const PLACES: usize = 2;

/// The saved scripts of one folder. Cheap to clone; all work on files is done on threads that may
/// wait, and what was begun is finished when the caller goes away.
#[derive(Clone, Debug)]
pub struct Library {
    folder: PathBuf,
    limits: Limits,
    catalogue: Arc<Mutex<Catalogue>>,
    /// One writer at a time in this process; the lock on the file is for the others.
    turn: Arc<Semaphore>,
    /// How much is done at a time, on threads that others need too.
    places: Arc<Semaphore>,
    checker: Arc<Checker>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a file that somebody edits may go unseen in lists and searches.
    pub(crate) pause: Duration,
    pub(crate) scripts: usize,
    /// Of all scripts with all their versions.
    pub(crate) bytes: u64,
}

/// What a save has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    pub script_id: String,
    pub name: String,
    pub version: u32,
    /// Of the code.
    pub path: PathBuf,
    pub saved_at: String,
    /// Whether the name was not there before.
    pub is_new: bool,
}

/// Which scripts, and which of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub language: Option<Language>,
    pub tag: Option<String>,
    pub offset: usize,
    pub limit: usize,
}

/// A part of the library, in the order of the names.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub scripts: Vec<Meta>,
    /// How many fit, shown or not.
    pub total: usize,
    /// Sentences about what is wrong in the folder, and what was mended.
    pub notes: Vec<String>,
}

impl Library {
    /// Reads and makes nothing yet; the folder is made by the first save.
    pub fn at(folder: PathBuf) -> Library {
        Library::with_limits(folder, LIMITS)
    }

    pub(crate) fn with_limits(folder: PathBuf, limits: Limits) -> Library {
        let catalogue = Arc::new(Mutex::new(Catalogue::new(limits.scripts)));
        Library {
            folder,
            limits,
            catalogue,
            turn: Arc::new(Semaphore::new(1)),
            places: Arc::new(Semaphore::new(PLACES)),
            checker: Arc::default(),
        }
    }

    /// A new script, or the next version of one. A draft that says nothing new makes no version.
    pub async fn save(&self, draft: Draft) -> Result<Saved, ScriptError> {
        self.put(draft, true).await
    }

    /// A new script. One that is there stays as it is: a draft that would change it is refused.
    pub async fn add(&self, draft: Draft) -> Result<Saved, ScriptError> {
        self.put(draft, false).await
    }

    async fn put(&self, draft: Draft, may_replace: bool) -> Result<Saved, ScriptError> {
        let (name, meta, code) = draft.checked()?;
        let (most, most_bytes) = (self.limits.scripts, self.limits.bytes);
        // As the current one, and as a version.
        let bytes = 2 * (code.len() + meta.bytes()) as u64;
        self.write(LOCK_WAIT, move |catalogue, root| {
            let slug = &name.slug;
            let old = root.settled(slug)?;
            // THREAT[ORD-4]: code that saves on and on fills the library, and not the disk.
            if catalogue.bytes() + bytes > most_bytes {
                return Err(ScriptError::TooLarge { most_mib: most_bytes >> 20 });
            }
            let is_new = old.is_none();
            let meta = match old {
                None if catalogue.is_full() => return Err(ScriptError::Full { most }),
                None => root.create(slug, meta, &code)?,
                Some(old) if old.meta.name != name.name => {
                    return Err(ScriptError::NameTaken { given: name.name, taken: old.meta.name });
                }
                Some(old) if !may_replace && old.with(meta.clone(), &code) != old.meta => {
                    return Err(ScriptError::Exists { name: name.name });
                }
                Some(old) => root.renew(&old, meta, &code)?,
            };
            catalogue.changed(root, slug);
            Ok(Saved {
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

    /// As it is on disk at this moment, or an earlier version of it.
    pub async fn get(&self, name: &str, version: Option<u32>) -> Result<Script, ScriptError> {
        let loaded = self.load(name).await?;
        let current = loaded.meta.version;
        let Some(version) = version.filter(|version| *version != current) else {
            let (meta, code) = (loaded.meta.shown(), loaded.code);
            return Ok(Script { meta, code, version: current });
        };
        let name = loaded.meta.name.clone();
        self.blocking(move || {
            let broken = |problem| ScriptError::Broken { slug: name.clone(), problem };
            let kept = loaded.numbers().map_err(broken)?;
            let earlier = match kept.contains(&version) {
                true => loaded.earlier(version).map_err(broken)?,
                false => None,
            };
            let script = earlier.ok_or_else(|| {
                let name = loaded.meta.name.clone();
                ScriptError::NoVersion { name, version, kept }
            })?;
            Ok(Script { meta: script.meta.shown(), ..script })
        })
        .await
    }

    /// The versions that are kept, newest first.
    pub async fn versions(&self, name: &str) -> Result<Vec<Version>, ScriptError> {
        let loaded = self.load(name).await?;
        self.blocking(move || {
            let slug = loaded.meta.name.clone();
            let broken = |problem| ScriptError::Broken { slug: slug.clone(), problem };
            let mut versions = Vec::new();
            for number in loaded.numbers().map_err(broken)?.into_iter().rev() {
                // One that was damaged by hand hides none of the others.
                if let Ok(Some(script)) = loaded.earlier(number) {
                    versions.push(Version {
                        version: number,
                        saved_at: script.meta.updated_at,
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

    pub async fn list(&self, filter: Filter) -> Result<Listed, ScriptError> {
        self.read(move |catalogue| {
            let tag = filter.tag.map(|tag| tag.to_lowercase());
            let fits = |meta: &Meta| {
                filter.language.is_none_or(|language| meta.language == language)
                    && tag.as_ref().is_none_or(|tag| {
                        meta.tags.iter().any(|known| known.to_lowercase() == *tag)
                    })
            };
            let fitting = || catalogue.entries().filter(|entry| fits(&entry.meta));
            let total = fitting().count();
            let page = fitting().skip(filter.offset).take(filter.limit);
            let scripts = page.map(|entry| entry.meta.shown()).collect();
            Listed { scripts, total, notes: catalogue.notes() }
        })
        .await
    }

    /// Best first. A query without a word in it finds everything.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, ScriptError> {
        let query = query.to_owned();
        self.read(move |catalogue| catalogue.search(&query, limit)).await
    }

    /// The scripts that are tools of their own, in the order of their names.
    pub async fn exposed(&self) -> Result<Vec<Meta>, ScriptError> {
        self.read(move |catalogue| {
            let exposed = catalogue.entries().filter(|entry| entry.meta.expose);
            exposed.map(|entry| entry.meta.shown()).collect()
        })
        .await
    }

    /// Takes a script away with all its versions, also one whose files are broken.
    pub async fn delete(&self, name: &str) -> Result<(), ScriptError> {
        let name = ScriptName::parse(name)?;
        if !self.folder.exists() {
            return Err(self.not_found(&name.name).await);
        }
        let slug = name.slug;
        let was_there = self
            .write(LOCK_WAIT, move |catalogue, root| {
                let was_there = root.delete(&slug)?;
                catalogue.changed(root, &slug);
                Ok(was_there)
            })
            .await?;
        if was_there { Ok(()) } else { Err(self.not_found(&name.name).await) }
    }

    /// Notes that a script was run.
    pub async fn ran(&self, name: &str, at: SystemTime, ok: bool) -> Result<(), ScriptError> {
        let name = ScriptName::parse(name)?;
        let given = name.name.clone();
        self.write(LOCK_WAIT, move |catalogue, root| {
            let Some(loaded) = root.settled(&name.slug)? else {
                let nearest = catalogue.nearest(&given);
                return Err(ScriptError::NotFound { name: given, nearest });
            };
            root.note_run(loaded, at, ok)?;
            catalogue.changed(root, &name.slug);
            Ok(())
        })
        .await
    }

    /// Fails if this cannot be the input of a run. A script without parameters takes anything.
    ///
    /// THREAT[ORD-3]: taken apart and checked beside the event loop, and only where it must be.
    pub async fn check_input(&self, meta: &Meta, input: &Json) -> Result<(), ScriptError> {
        let Some(schema) = meta.parameters.clone() else { return Ok(()) };
        let (checker, name, input) = (self.checker.clone(), meta.name.clone(), input.clone());
        self.blocking(move || {
            let input = input.to_value().unwrap_or(Value::Null);
            parameters::check(&checker, &schema, &input)
                .map_err(|wrong| ScriptError::Input { name, wrong })
        })
        .await
    }

    async fn load(&self, name: &str) -> Result<Loaded, ScriptError> {
        let ScriptName { name, slug } = ScriptName::parse(name)?;
        let (path, wanted) = (self.folder.clone(), slug.clone());
        let found = self
            .blocking(move || match Root::open(path)? {
                Some(root) => root.load(&wanted),
                None => Ok(None),
            })
            .await?;
        let Some(loaded) = found else { return Err(self.not_found(&name).await) };
        if loaded.is_settled {
            return Ok(loaded);
        }
        let settled = self
            .write(SHORT_LOCK_WAIT, move |catalogue, root| {
                let settled = root.settled(&slug)?;
                catalogue.changed(root, &slug);
                Ok(settled)
            })
            .await;
        match settled {
            Ok(Some(settled)) => Ok(settled),
            Ok(None) => Err(self.not_found(&name).await),
            // A library that cannot be written can be read.
            Err(err) => {
                tracing::warn!(error = %err, script = name, "an edit makes no version yet");
                Ok(loaded)
            }
        }
    }

    async fn not_found(&self, name: &str) -> ScriptError {
        let name = name.to_owned();
        let found = self.read(move |catalogue| {
            let nearest = catalogue.nearest(&name);
            ScriptError::NotFound { name, nearest }
        });
        found.await.unwrap_or_else(|err| err)
    }

    /// Works with a catalogue that is up to date with the folder.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Catalogue) -> T + Send + 'static,
    ) -> Result<T, ScriptError> {
        let (path, pause) = (self.folder.clone(), self.limits.pause);
        let done = self
            .with_catalogue(move |catalogue| {
                let Some(root) = Root::open(path)? else {
                    catalogue.clear();
                    return Ok(Ok(work(catalogue)));
                };
                match catalogue.look(&root, pause).map_err(root.failed("read"))? {
                    Looked::Fine => Ok(Ok(work(catalogue))),
                    Looked::HasWork => Ok(Err(work)),
                }
            })
            .await?;
        let work = match done {
            Ok(done) => return Ok(done),
            Err(work) => work,
        };
        // A library that cannot be written can be read.
        if let Err(err) = self.write(SHORT_LOCK_WAIT, Catalogue::mend).await {
            tracing::warn!(error = %err, "the script library cannot be mended");
        }
        self.with_catalogue(move |catalogue| Ok(work(catalogue))).await
    }

    async fn write<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Catalogue, &Root) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let failed = |source| ScriptError::Files {
            path: self.folder.display().to_string(),
            doing: "written",
            source,
        };
        let turn = self.turn.clone().acquire_owned().await;
        let lock = Lock::of(&self.folder, patience).await.map_err(failed)?;
        let lock = lock.ok_or(ScriptError::Busy)?;
        let path = self.folder.clone();
        let gone = failed(io::ErrorKind::NotFound.into());
        self.with_catalogue(move |catalogue| {
            let root = Root::open(path)?.ok_or(gone)?;
            let done = catalogue.catch_up(&root).and_then(|()| work(catalogue, &root));
            drop((lock, turn));
            done
        })
        .await
    }

    async fn with_catalogue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Catalogue) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let catalogue = self.catalogue.clone();
        self.blocking(move || work(&mut catalogue.lock().unwrap_or_else(PoisonError::into_inner)))
            .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, ScriptError> {
        let failed = |err| {
            let path = self.folder.display().to_string();
            ScriptError::Files { path, doing: "used", source: err }
        };
        let places = Arc::clone(&self.places).acquire_owned();
        let place = places.await.map_err(|err| failed(io::Error::other(err)))?;
        let done = spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.unwrap_or_else(|err| Err(failed(io::Error::other(err))))
    }
}

#[cfg(test)]
mod tests;
