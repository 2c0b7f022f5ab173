//! Packages of pip and npm, for one session or for all guests.
//!
//! An installer is a guest like any other: it runs in a sandbox of its own, and writes to a bounded
//! file system that is deleted with it. In addition, it can reach a proxy of ours that connects to
//! the configured index and nothing else. After the installer is dead, the host copies its files
//! out and publishes them atomically.

mod address;
mod chatter;
mod error;
mod explain;
mod folder;
mod installer;
mod metadata;
mod proxy;
mod ready;
mod settings;
mod source;
mod tool;
mod tree;
mod version;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codexec_types::{Language, PackageName};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::Workers;
use crate::engine::Engine;
use crate::pool::Machine;
use crate::zygote::blocking;
use folder::{Lock, Put};
use installer::{Caller, Ran};
use metadata::Dist;
use ready::{Place, Ready};
use tool::{Failure, Tool, Wish};
use tree::{Bounds, TreeError};

pub use address::{Host, Index, InvalidAddress};
pub use error::PackageError;
pub(crate) use folder::Folder;
pub use settings::{Pattern, Settings, VARIABLES};

/// Maximum number of concurrent installs: each holds its files in memory while it runs.
const MAX_INSTALLS: usize = 2;
/// Interval between two attempts to take the lock of another server's install.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait for an install that is publishing its files.
const LAST_STEP: Duration = Duration::from_secs(10);
/// Maximum bytes of installer output in a result.
const OUTPUT_BYTES: usize = 16 << 10;
const MAX_FILES: u64 = 100_000;
/// A longer list of constraints is not passed to the installer.
const CONSTRAINTS_BYTES: usize = 16 << 10;

/// Installs packages and lists the installed ones. Cheap to clone.
#[derive(Clone)]
pub struct Packages(Arc<All>);

struct All {
    machine: Arc<Machine>,
    workers: Workers,
    python: OnceCell<Place>,
    node: OnceCell<Place>,
    pip: OnceCell<Ready>,
    npm: OnceCell<Ready>,
    installs: Semaphore,
}

/// The guests that packages are installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Everybody,
    /// A session, given by its folder; see [`Packages::folder_for_session`].
    Session(&'a Path),
}

/// The result of an install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub package: String,
    /// As stated in the package's own files.
    pub version: String,
    /// Names and versions of the dependencies that were installed with it.
    pub also: Vec<(String, String)>,
    /// The end of the installer's output.
    pub output: String,
}

impl Packages {
    pub fn new(workers: &Workers) -> Packages {
        Packages(Arc::new(All {
            machine: Arc::clone(&workers.0.machine),
            workers: workers.clone(),
            python: OnceCell::new(),
            node: OnceCell::new(),
            pip: OnceCell::new(),
            npm: OnceCell::new(),
            installs: Semaphore::new(MAX_INSTALLS),
        }))
    }

    /// Creates the packages folder of a session below `root`. The returned path is for
    /// [`Workers::open`]; `root` is for [`Target::Session`]. Blocks.
    pub fn folder_for_session(root: &Path) -> io::Result<PathBuf> {
        Folder::at(root).shown()?.canonicalize()
    }

    /// Removes the packages folder of a session or an execution. Waits for an install that is
    /// publishing files there.
    pub async fn remove_folder(root: &Path) -> io::Result<()> {
        let folder = Folder::at(root);
        let until = Instant::now() + LAST_STEP;
        let mut lock = folder.lock()?;
        while lock.is_none() && Instant::now() < until {
            sleep(LOOK).await;
            lock = folder.lock()?;
        }
        let root = root.to_owned();
        let remove = move || std::fs::remove_dir_all(root);
        tokio::task::spawn_blocking(remove).await.map_err(io::Error::other)?
    }

    /// Installs a package with its dependencies. `progress` is called with each line of the
    /// installer's output.
    pub async fn install(
        &self,
        package: &PackageName,
        target: Target<'_>,
        progress: impl Fn(&str) + Send + Sync,
        cancel: &CancellationToken,
    ) -> Result<Installed, PackageError> {
        let settings = &self.0.machine.settings.packages;
        if let Some(why) = settings.refusal(package) {
            let (package, why) = (package.name().to_owned(), why.to_owned());
            return Err(PackageError::Denied { package, why });
        }
        let until = Instant::now() + settings.timeout;
        let caller = Caller { progress: &progress, cancel, until };
        let _place = tokio::select! {
            place = timeout_at(until, self.0.installs.acquire()) => {
                place.map_err(|_| PackageError::Busy)?.map_err(|_| PackageError::Busy)?
            }
            () = cancel.cancelled() => return Err(PackageError::Cancelled),
        };
        let folder = self.folder(package.language(), target).await?;
        let lock = self.lock(&folder, caller).await?;
        let ready = self.ready(package.language()).await?;
        let before = folder.installed(package.language());
        let is_first = matches!(target, Target::Everybody) && folder.is_empty();
        let others = others(&folder, package);
        let ran = self.fetch(ready, package, &before, others.clone(), caller).await?;
        let kept = Kept { folder, lock, ran, before, others, package: package.clone() };
        let settings = settings.clone();
        let tool = ready.tool.clone();
        let password = ready.source.index.for_installer().to_owned();
        let shown = ready.source.index.to_string();
        let keep = move || kept.put(&tool, &settings);
        let done = tokio::task::spawn_blocking(keep).await.map_err(io::Error::other);
        let mut done = done.map_err(crate::ExecError::from)??;
        done.output = done.output.replace(&password, &shown);
        if is_first {
            // The mount for shared packages is missing in rootfs trees that were built without any.
            self.0.workers.0.pool(Engine::of(package.language())).renew();
        }
        Ok(done)
    }

    /// Returns the names and versions of the installed packages.
    pub async fn installed(
        &self,
        language: Language,
        target: Target<'_>,
    ) -> Result<Vec<(String, String)>, PackageError> {
        let folder = self.folder(language, target).await?;
        let found = blocking(move || Ok(folder.installed(language))).await?;
        Ok(found.into_iter().map(|dist| (dist.name, dist.version)).collect())
    }

    /// Returns the packages that a guest could not import: neither its session, nor the shared
    /// packages, nor the interpreter has them.
    pub async fn missing(
        &self,
        packages: &[PackageName],
        session: Option<&Path>,
    ) -> Result<Vec<PackageName>, PackageError> {
        let mut missing = Vec::new();
        for language in [Language::Python, Language::Node] {
            let asked = packages.iter().filter(|package| package.language() == language);
            let asked: Vec<PackageName> = asked.cloned().collect();
            if asked.is_empty() {
                continue;
            }
            let place = self.place(language).await?;
            let mut folders: Vec<Folder> = session.into_iter().map(Folder::at).collect();
            folders.extend(place.everybody.as_deref().map(Folder::at));
            let own = place.own.clone();
            let there = blocking(move || {
                let ours = folders.iter().flat_map(|folder| folder.installed(language));
                let theirs = own.iter().flat_map(|path| metadata::installed(language, path));
                Ok(ours.chain(theirs).collect::<Vec<Dist>>())
            })
            .await?;
            let is_there = |package: &PackageName| {
                let mut found = there.iter().filter(|dist| dist.key == package.key());
                found.any(|dist| version::fits(package, &dist.version))
            };
            missing.extend(asked.into_iter().filter(|package| !is_there(package)));
        }
        Ok(missing)
    }

    async fn folder(&self, language: Language, target: Target<'_>) -> Result<Folder, PackageError> {
        match target {
            Target::Session(root) => Ok(Folder::at(root)),
            Target::Everybody => {
                let everybody = self.place(language).await?.everybody.as_deref();
                everybody.map(Folder::at).ok_or_else(|| {
                    PackageError::Settings("there is no folder for packages here".to_owned())
                })
            }
        }
    }

    async fn lock(&self, folder: &Folder, caller: Caller<'_>) -> Result<Lock, PackageError> {
        loop {
            let wanted = folder.clone();
            let locked = blocking(move || Ok(wanted.lock())).await?;
            match locked.map_err(|source| unkept(folder, source))? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= caller.until => return Err(PackageError::Busy),
                None => {}
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = caller.cancel.cancelled() => return Err(PackageError::Cancelled),
            }
        }
    }

    /// Runs the installer, and explains its failure.
    async fn fetch(
        &self,
        ready: &Ready,
        package: &PackageName,
        before: &[Dist],
        others: BTreeMap<String, String>,
        caller: Caller<'_>,
    ) -> Result<Ran, PackageError> {
        let constraints = constraints(&ready.tool, package, before);
        let runs_scripts = self.0.machine.settings.packages.install_scripts;
        let mut wish = Wish {
            package,
            others: others.into_values().collect(),
            is_constrained: constraints.is_some(),
            runs_scripts,
            source: &ready.source,
        };
        let mut ran = ready.run(&self.0.machine, &wish, constraints, caller).await?;
        let is_stuck = |ran: &Ran| {
            let failure = ready.tool.failure(&ran.said, package);
            !ran.is_success && matches!(failure, Failure::Conflict | Failure::NoVersion)
        };
        if wish.is_constrained && is_stuck(&ran) {
            // Without constraints, installed packages may be upgraded, as with a plain pip.
            wish.is_constrained = false;
            ran = ready.run(&self.0.machine, &wish, None, caller).await?;
        }
        if ran.is_success {
            return Ok(ran);
        }
        Err(explain::explain(&self.0.machine, ready, &wish, &ran, caller).await)
    }
}

/// The files of a finished install, on their way to the packages folder.
struct Kept {
    folder: Folder,
    lock: Lock,
    ran: Ran,
    before: Vec<Dist>,
    others: BTreeMap<String, String>,
    package: PackageName,
}

impl Kept {
    fn put(self, tool: &Tool, settings: &Settings) -> Result<Installed, PackageError> {
        let Kept { folder, lock, ran, before, mut others, package } = self;
        let (language, from) = (package.language(), ran.left(tool.leaves()));
        let found = metadata::installed(language, &from);
        let own = found.iter().find(|dist| dist.key == package.key()).cloned();
        let Some(own) = own else {
            let said = "the installer left no package of this name".to_owned();
            return Err(PackageError::Failed { package: package.name().to_owned(), said });
        };
        let is_new = |dist: &&Dist| {
            let is_same = |old: &Dist| old.key == dist.key && old.version == dist.version;
            !before.iter().any(is_same)
        };
        // THREAT[PKG-4]: the deny list applies to dependencies, too.
        let judge = |dists: &[Dist]| {
            let name = |dist: &&Dist| PackageName::parse(language, &dist.name);
            let is_denied = |dist: &&Dist| name(dist).is_ok_and(|name| settings.denies(&name));
            match dists.iter().filter(is_new).find(is_denied) {
                Some(dist) => Err(TreeError::Denied(dist.name.clone())),
                None => Ok(()),
            }
        };
        let exact = format!("{}@{}", own.name, own.version);
        let again = PackageName::parse(language, &exact).map_or(own.name.clone(), |_| exact);
        others.insert(package.key(), again);
        let is_whole = language == Language::Node;
        let put = Put {
            bounds: Bounds { bytes: settings.max_bytes, files: MAX_FILES },
            is_whole,
            wanted: is_whole.then_some(&others),
            judge: &judge,
        };
        folder.put(language, &from, &put).map_err(|error| match error {
            TreeError::TooBig => PackageError::TooBig { max_mib: settings.max_bytes >> 20 },
            TreeError::Denied(name) => PackageError::Denied {
                package: package.name().to_owned(),
                why: format!("it brings {name} along, which `packages.deny` in config.toml names"),
            },
            TreeError::Io(source) => unkept(&folder, source),
        })?;
        drop(lock);
        let also = found.iter().filter(is_new).filter(|dist| dist.key != own.key);
        let also = also.map(|dist| (dist.name.clone(), dist.version.clone())).collect();
        let mut output = tail(&ran.said.text());
        let scripted = found.iter().filter(|dist| metadata::has_scripts(&from, dist));
        let scripted: Vec<&str> = scripted.map(|dist| dist.name.as_str()).collect();
        if is_whole && !settings.install_scripts && !scripted.is_empty() {
            let names = scripted.join(", ");
            output.push_str(&format!(
                "\n[codexec] install scripts were not run: {names}. If that is why it does not \
                 work, `packages.install-scripts = true` in config.toml runs them."
            ));
        }
        Ok(Installed { package: own.name, version: own.version, also, output })
    }
}

/// Returns the npm packages that were installed on request before and have to be kept.
fn others(folder: &Folder, package: &PackageName) -> BTreeMap<String, String> {
    if package.language() != Language::Node {
        return BTreeMap::new();
    }
    let is_other = |(name, text): &(String, String)| {
        *name != package.key() && PackageName::parse(Language::Node, text).is_ok()
    };
    folder.wanted().into_iter().filter(is_other).collect()
}

/// Returns the installed versions as constraints, so that a dependency keeps its version.
fn constraints(tool: &Tool, package: &PackageName, before: &[Dist]) -> Option<String> {
    if matches!(tool, Tool::Npm { .. }) {
        return None;
    }
    let fixed = before.iter().filter(|dist| dist.key != package.key());
    let lines = fixed.map(|dist| format!("{}=={}", dist.name, dist.version));
    let lines = lines.filter(|line| PackageName::parse(Language::Python, line).is_ok());
    let text = lines.collect::<Vec<_>>().join("\n");
    (!text.is_empty() && text.len() <= CONSTRAINTS_BYTES).then_some(text)
}

fn tail(text: &str) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_BYTES));
    let kept = text.get(from..).unwrap_or_default();
    let is_shown = |c: &char| !c.is_control() || *c == '\n' || *c == '\t';
    kept.chars().filter(is_shown).collect()
}

fn unkept(folder: &Folder, cause: io::Error) -> PackageError {
    PackageError::Keep { place: folder.to_string(), cause }
}
