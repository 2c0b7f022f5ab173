//! Packages of pip and npm, for one session or for all guests.
//!
//! An installer is a guest like any other: it runs in a sandbox of its own, and writes to a bounded
//! file system that is deleted with it. In addition, it can reach a proxy of ours that connects to
//! the configured index and nothing else. After the installer is dead, the host copies its files
//! out and publishes them atomically.

mod address;
mod error;
mod explain;
mod folder;
mod installer;
mod installer_output;
mod metadata;
mod proxy;
mod settings;
mod source;
mod tool;
mod tool_lookup;
mod tree;
mod version;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codexec_files::FileLock;
use codexec_types::{Language, PackageName};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::Workers;
use crate::pool::HostResources;
use crate::worker_kind::WorkerKind;
use crate::zygote::run_blocking;
use folder::PublishPlan;
use installer::{InstallCaller, InstallerResult};
use metadata::PackageInfo;
use tool::{InstallFailure, InstallRequest, InstallerKind};
use tool_lookup::{FoundInterpreter, Installer};
use tree::{TreeError, TreeLimits};

pub use address::{IndexHost, InvalidAddress, PackageIndex};
pub use error::PackageError;
pub(crate) use folder::PackagesFolder;
pub use settings::{ENVIRONMENT_VARIABLES, PackagePattern, PackageSettings};

/// Maximum number of concurrent installs: each holds its files in memory while it runs.
const MAX_INSTALLS: usize = 2;
/// Interval between two attempts to take the lock of another server's install.
const LOCK_RETRY: Duration = Duration::from_millis(100);
/// How long to wait for an install that is publishing its files.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of installer output in a result.
const OUTPUT_BYTES: usize = 16 << 10;
const MAX_FILES: u64 = 100_000;
/// A longer list of constraints is not passed to the installer.
const CONSTRAINTS_BYTES: usize = 16 << 10;

/// Installs packages and lists the installed ones. Cheap to clone.
#[derive(Clone)]
pub struct Packages(Arc<PackagesInner>);

struct PackagesInner {
    resources: Arc<HostResources>,
    workers: Workers,
    python: OnceCell<FoundInterpreter>,
    node: OnceCell<FoundInterpreter>,
    pip: OnceCell<Installer>,
    npm: OnceCell<Installer>,
    installs: Semaphore,
}

/// The guests that packages are installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallTarget<'a> {
    Everybody,
    /// A session, given by its folder; see [`Packages::create_session_folder`].
    Session(&'a Path),
}

/// The result of an install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPackage {
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
        Packages(Arc::new(PackagesInner {
            resources: Arc::clone(&workers.0.resources),
            workers: workers.clone(),
            python: OnceCell::new(),
            node: OnceCell::new(),
            pip: OnceCell::new(),
            npm: OnceCell::new(),
            installs: Semaphore::new(MAX_INSTALLS),
        }))
    }

    /// Creates the packages folder of a session below `root`. The returned path is for
    /// [`Workers::open_session`]; `root` is for [`InstallTarget::Session`]. Blocks.
    pub fn create_session_folder(root: &Path) -> io::Result<PathBuf> {
        PackagesFolder::at(root).make_shown_dir()?.canonicalize()
    }

    /// Removes the packages folder of a session or an execution. Waits for an install that is
    /// publishing files there.
    pub async fn remove_folder(root: &Path) -> io::Result<()> {
        let folder = PackagesFolder::at(root);
        let until = Instant::now() + PUBLISH_TIMEOUT;
        let mut lock = folder.try_lock()?;
        while lock.is_none() && Instant::now() < until {
            sleep(LOCK_RETRY).await;
            lock = folder.try_lock()?;
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
        target: InstallTarget<'_>,
        progress: impl Fn(&str) + Send + Sync,
        cancel: &CancellationToken,
    ) -> Result<InstalledPackage, PackageError> {
        let settings = &self.0.resources.settings.packages;
        if let Some(why) = settings.refusal_reason(package) {
            let (package, why) = (package.name().to_owned(), why.to_owned());
            return Err(PackageError::Denied { package, why });
        }
        let until = Instant::now() + settings.timeout;
        let caller = InstallCaller { progress: &progress, cancel, until };
        let _permit = tokio::select! {
            permit = timeout_at(until, self.0.installs.acquire()) => {
                permit.map_err(|_| PackageError::Busy)?.map_err(|_| PackageError::Busy)?
            }
            () = cancel.cancelled() => return Err(PackageError::Cancelled),
        };
        let folder = self.folder(package.language(), target).await?;
        let lock = self.lock(&folder, caller).await?;
        let installer = self.find_installer(package.language()).await?;
        let before = folder.list_installed(package.language());
        let is_first = matches!(target, InstallTarget::Everybody) && folder.is_empty();
        let others = other_requests(&folder, package);
        let result = self.fetch(installer, package, &before, others.clone(), caller).await?;
        let finished =
            FinishedInstall { folder, lock, result, before, others, package: package.clone() };
        let settings = settings.clone();
        let tool = installer.tool.clone();
        let password = installer.source.index.for_installer().to_owned();
        let shown = installer.source.index.to_string();
        let keep = move || finished.publish(&tool, &settings);
        let done = tokio::task::spawn_blocking(keep).await.map_err(io::Error::other);
        let mut done = done.map_err(crate::ExecError::from)??;
        done.output = done.output.replace(&password, &shown);
        if is_first {
            // The mount for shared packages is missing in rootfs trees that were built without any.
            self.0.workers.0.pools.of(WorkerKind::of(package.language())).renew();
        }
        Ok(done)
    }

    /// Removes a package that is installed for everybody, but not its dependencies. Returns its name
    /// and version, or `None` if it is not installed.
    pub async fn remove(
        &self,
        package: &PackageName,
        cancel: &CancellationToken,
    ) -> Result<Option<(String, String)>, PackageError> {
        let until = Instant::now() + PUBLISH_TIMEOUT;
        let caller = InstallCaller { progress: &|_: &str| {}, cancel, until };
        let folder = self.folder(package.language(), InstallTarget::Everybody).await?;
        let lock = self.lock(&folder, caller).await?;
        let settings = &self.0.resources.settings.packages;
        let bounds = TreeLimits { bytes: settings.max_bytes, files: MAX_FILES };
        let (shown, package) = (folder.clone(), package.clone());
        let removing = run_blocking(move || Ok((folder.remove(&package, bounds), lock))).await?;
        match removing.0 {
            Ok(removed) => Ok(removed.map(|dist| (dist.name, dist.version))),
            Err(TreeError::Io(cause)) => Err(folder_error(&shown, cause)),
            Err(error @ (TreeError::TooBig | TreeError::Denied(_))) => {
                Err(folder_error(&shown, io::Error::other(error)))
            }
        }
    }

    /// Returns the names and versions of the installed packages.
    pub async fn list_installed(
        &self,
        language: Language,
        target: InstallTarget<'_>,
    ) -> Result<Vec<(String, String)>, PackageError> {
        let folder = self.folder(language, target).await?;
        let found = run_blocking(move || Ok(folder.list_installed(language))).await?;
        Ok(found.into_iter().map(|dist| (dist.name, dist.version)).collect())
    }

    /// Returns the packages that a guest could not import: neither its session, nor the shared
    /// packages, nor the interpreter has them.
    pub async fn find_missing(
        &self,
        packages: &[PackageName],
        session: Option<&Path>,
    ) -> Result<Vec<PackageName>, PackageError> {
        let mut missing = Vec::new();
        for language in [Language::Python, Language::Node] {
            let requested = packages.iter().filter(|package| package.language() == language);
            let requested: Vec<PackageName> = requested.cloned().collect();
            if requested.is_empty() {
                continue;
            }
            let interpreter = self.find_interpreter(language).await?;
            let mut folders: Vec<PackagesFolder> =
                session.into_iter().map(PackagesFolder::at).collect();
            folders.extend(interpreter.everybody.as_deref().map(PackagesFolder::at));
            let own = interpreter.own.clone();
            let there = run_blocking(move || {
                let from_folders =
                    folders.iter().flat_map(|folder| folder.list_installed(language));
                let from_interpreter =
                    own.iter().flat_map(|path| metadata::list_installed(language, path));
                Ok(from_folders.chain(from_interpreter).collect::<Vec<PackageInfo>>())
            })
            .await?;
            let is_there = |package: &PackageName| {
                let mut found = there.iter().filter(|dist| dist.key == package.key());
                found.any(|dist| version::satisfies(package, &dist.version))
            };
            missing.extend(requested.into_iter().filter(|package| !is_there(package)));
        }
        Ok(missing)
    }

    async fn folder(
        &self,
        language: Language,
        target: InstallTarget<'_>,
    ) -> Result<PackagesFolder, PackageError> {
        match target {
            InstallTarget::Session(root) => Ok(PackagesFolder::at(root)),
            InstallTarget::Everybody => {
                let everybody = self.find_interpreter(language).await?.everybody.as_deref();
                everybody.map(PackagesFolder::at).ok_or_else(|| {
                    PackageError::Settings("there is no folder for packages here".to_owned())
                })
            }
        }
    }

    async fn lock(
        &self,
        folder: &PackagesFolder,
        caller: InstallCaller<'_>,
    ) -> Result<FileLock, PackageError> {
        loop {
            let wanted = folder.clone();
            let locked = run_blocking(move || Ok(wanted.try_lock())).await?;
            match locked.map_err(|source| folder_error(folder, source))? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= caller.until => return Err(PackageError::Busy),
                None => {}
            }
            tokio::select! {
                () = sleep(LOCK_RETRY) => {}
                () = caller.cancel.cancelled() => return Err(PackageError::Cancelled),
            }
        }
    }

    /// Runs the installer, and explains its failure.
    async fn fetch(
        &self,
        installer: &Installer,
        package: &PackageName,
        before: &[PackageInfo],
        others: BTreeMap<String, String>,
        caller: InstallCaller<'_>,
    ) -> Result<InstallerResult, PackageError> {
        let constraints = make_constraints(&installer.tool, package, before);
        let runs_scripts = self.0.resources.settings.packages.install_scripts;
        let mut request = InstallRequest {
            package,
            others: others.into_values().collect(),
            is_constrained: constraints.is_some(),
            runs_scripts,
            source: &installer.source,
        };
        let mut result = installer.run(&self.0.resources, &request, constraints, caller).await?;
        let is_stuck = |result: &InstallerResult| {
            let failure = installer.tool.classify_failure(&result.output, package);
            !result.is_success
                && matches!(failure, InstallFailure::Conflict | InstallFailure::NoVersion)
        };
        if request.is_constrained && is_stuck(&result) {
            // Without constraints, installed packages may be upgraded, as with a plain pip.
            request.is_constrained = false;
            result = installer.run(&self.0.resources, &request, None, caller).await?;
        }
        if result.is_success {
            return Ok(result);
        }
        Err(explain::explain(&self.0.resources, installer, &request, &result, caller).await)
    }
}

/// The files of a finished install, on their way to the packages folder.
struct FinishedInstall {
    folder: PackagesFolder,
    lock: FileLock,
    result: InstallerResult,
    before: Vec<PackageInfo>,
    others: BTreeMap<String, String>,
    package: PackageName,
}

impl FinishedInstall {
    fn publish(
        self,
        tool: &InstallerKind,
        settings: &PackageSettings,
    ) -> Result<InstalledPackage, PackageError> {
        let FinishedInstall { folder, lock, result, before, mut others, package } = self;
        let (language, from) = (package.language(), result.path_of(tool.output_dir()));
        let found = metadata::list_installed(language, &from);
        let own = found.iter().find(|dist| dist.key == package.key()).cloned();
        let Some(own) = own else {
            let said = "the installer left no package of this name".to_owned();
            return Err(PackageError::Failed { package: package.name().to_owned(), said });
        };
        let is_new = |dist: &&PackageInfo| {
            let is_same = |old: &PackageInfo| old.key == dist.key && old.version == dist.version;
            !before.iter().any(is_same)
        };
        // THREAT[PKG-4]: the deny list applies to dependencies, too.
        let judge = |dists: &[PackageInfo]| {
            let name = |dist: &&PackageInfo| PackageName::parse(language, &dist.name);
            let is_denied =
                |dist: &&PackageInfo| name(dist).is_ok_and(|name| settings.denies(&name));
            match dists.iter().filter(is_new).find(is_denied) {
                Some(dist) => Err(TreeError::Denied(dist.name.clone())),
                None => Ok(()),
            }
        };
        let exact = format!("{}@{}", own.name, own.version);
        let again = PackageName::parse(language, &exact).map_or(own.name.clone(), |_| exact);
        others.insert(package.key(), again);
        let is_whole = language == Language::Node;
        let plan = PublishPlan {
            bounds: TreeLimits { bytes: settings.max_bytes, files: MAX_FILES },
            is_whole,
            wanted: is_whole.then_some(&others),
            judge: &judge,
        };
        folder.publish(language, &from, &plan).map_err(|error| match error {
            TreeError::TooBig => PackageError::TooBig { max_mib: settings.max_bytes >> 20 },
            TreeError::Denied(name) => PackageError::Denied {
                package: package.name().to_owned(),
                why: format!("it brings {name} along, which `packages.deny` in config.toml names"),
            },
            TreeError::Io(source) => folder_error(&folder, source),
        })?;
        drop(lock);
        let also = found.iter().filter(is_new).filter(|dist| dist.key != own.key);
        let also = also.map(|dist| (dist.name.clone(), dist.version.clone())).collect();
        let mut output = last_output(&result.output.text());
        let scripted = found.iter().filter(|dist| metadata::has_scripts(&from, dist));
        let scripted: Vec<&str> = scripted.map(|dist| dist.name.as_str()).collect();
        if is_whole && !settings.install_scripts && !scripted.is_empty() {
            let names = scripted.join(", ");
            output.push_str(&format!(
                "\n[codexec] install scripts were not run: {names}. If that is why it does not \
                 work, `packages.install-scripts = true` in config.toml runs them."
            ));
        }
        Ok(InstalledPackage { package: own.name, version: own.version, also, output })
    }
}

/// Returns the npm packages that were installed on request before and have to be kept.
fn other_requests(folder: &PackagesFolder, package: &PackageName) -> BTreeMap<String, String> {
    if package.language() != Language::Node {
        return BTreeMap::new();
    }
    let is_other = |(name, text): &(String, String)| {
        *name != package.key() && PackageName::parse(Language::Node, text).is_ok()
    };
    folder.read_requested().into_iter().filter(is_other).collect()
}

/// Returns the installed versions as constraints, so that a dependency keeps its version.
fn make_constraints(
    tool: &InstallerKind,
    package: &PackageName,
    before: &[PackageInfo],
) -> Option<String> {
    if matches!(tool, InstallerKind::Npm { .. }) {
        return None;
    }
    let fixed = before.iter().filter(|dist| dist.key != package.key());
    let lines = fixed.map(|dist| format!("{}=={}", dist.name, dist.version));
    let lines = lines.filter(|line| PackageName::parse(Language::Python, line).is_ok());
    let text = lines.collect::<Vec<_>>().join("\n");
    (!text.is_empty() && text.len() <= CONSTRAINTS_BYTES).then_some(text)
}

fn last_output(text: &str) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_BYTES));
    let end = text.get(from..).unwrap_or_default();
    let is_shown = |c: &char| !c.is_control() || *c == '\n' || *c == '\t';
    end.chars().filter(is_shown).collect()
}

fn folder_error(folder: &PackagesFolder, cause: io::Error) -> PackageError {
    PackageError::Keep { place: folder.to_string(), cause }
}
