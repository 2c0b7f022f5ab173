//! Packages: installed by real installers in the sandbox, from an index that the test serves and
//! from the one that this machine is configured with.

mod everybody;
mod hostile;
pub(crate) mod index;
mod refused;
mod sessions;
mod world;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_exec::packages::{
    InstallTarget, InstalledPackage, PackageError, PackageIndex, PackageSettings, Packages,
};
use codexec_exec::{GuestSettings, PythonSettings, Run, Workers};
use codexec_types::{
    AdmissionRequest, Admitted, Grants, Language, Limits, Outcome, PackageName, Policy, RunEvent,
    ToolFilter, WorkingDirPolicy,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::codexec;
use index::Served;

/// A machine of its own: its folder, its workers, its packages.
struct Machine {
    home: TempDir,
    workers: Workers,
    packages: Packages,
}

impl Machine {
    fn new(settings: PackageSettings) -> Machine {
        Machine::with_python(
            settings,
            PythonSettings::default(),
            std::env::var_os("PATH").unwrap_or_default(),
        )
    }

    fn with_python(settings: PackageSettings, python: PythonSettings, path: OsString) -> Machine {
        let home = TempDir::new().expect("a folder");
        let settings = PackageSettings { home: Some(home.path().join("packages")), ..settings };
        let workers = Workers::new(codexec_exec::Settings {
            program: codexec(),
            role: "zygote-js",
            programs_role: "zygote-programs",
            mounter_role: "mounter",
            limits: Limits::DEFAULT,
            guests: GuestSettings {
                python,
                environment: vec![("GIVEN_TO_GUESTS".to_owned(), "a secret".to_owned())],
                ..GuestSettings::default()
            },
            path,
            home: None,
            guest_paths: codexec_types::GuestPaths::default(),
            max: 4,
            warm: 1,
            queue: 4,
            queue_wait: Duration::from_secs(30),
            files: codexec_exec::FileSettings {
                max_bytes: 1 << 20,
                max_files: 1_000,
                let_through: Vec::new(),
            },
            lowered: Vec::new(),
            work_dirs: Vec::new(),
            packages: settings,
        });
        let packages = Packages::new(&workers);
        Machine { home, workers, packages }
    }

    /// With the test's own index.
    fn with(index: &Served, settings: PackageSettings) -> Machine {
        let address = |path: &str| PackageIndex::parse(&index.address(path)).expect("an address");
        Machine::new(PackageSettings {
            python_index: Some(address("simple")),
            npm_registry: Some(address("npm/")),
            ..settings
        })
    }

    async fn install(
        &self,
        language: Language,
        package: &str,
        target: InstallTarget<'_>,
    ) -> Result<InstalledPackage, PackageError> {
        let package = PackageName::parse(language, package).expect("a name");
        let cancel = CancellationToken::new();
        self.packages.install(&package, target, |_| {}, &cancel).await
    }

    fn session(&self) -> PathBuf {
        self.home.path().join("session")
    }

    /// What the code comes to, as text.
    async fn run(&self, language: Language, code: &str) -> String {
        let run = self.workers.start(&admitted(language, code), Vec::new()).await;
        ended(&mut run.expect("started")).await
    }

    /// Opens the session whose packages are in [`Machine::session`].
    async fn open(&self, language: Language) -> Run {
        let folder = Packages::create_session_folder(&self.session()).expect("made");
        let run =
            self.workers.open_session(&admitted(language, "0"), Vec::new(), Some(folder)).await;
        run.expect("opened")
    }
}

async fn ended(run: &mut Run) -> String {
    loop {
        match run.next().await {
            RunEvent::Ended(Outcome::Returned(value)) => return value.text().to_owned(),
            RunEvent::Ended(other) => return format!("{other:?}"),
            _ => {}
        }
    }
}

/// What a cell comes to, as text.
async fn cell(run: &mut Run, number: u32, language: Language, code: &str) -> String {
    run.send(&admitted(language, code), number).expect("sent");
    ended(run).await
}

fn admitted(language: Language, code: &str) -> Admitted {
    let policy = Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1 << 20,
        input_bytes: 1 << 20,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(60),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    };
    let request = AdmissionRequest::new(language, code.to_owned());
    policy.admit(request, &[], None).expect("admitted")
}

fn pairs(list: &[(String, String)]) -> Vec<(&str, &str)> {
    list.iter().map(|(name, version)| (name.as_str(), version.as_str())).collect()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

/// Everything below a folder, from there.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("listed") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path().strip_prefix(folder).expect("below").to_owned());
        }
    }
    found
}
