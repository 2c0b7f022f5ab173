//! Finds the user's interpreters, and the files of the machine that guests need to run them.

mod node;
mod python;

use std::path::{Path, PathBuf};

use codexec_sandbox::{FirstProcess, Launch, ProgramCommand, Rlimits, Rootfs};
use codexec_types::Language;

use crate::packages::PackagesFolder;
use crate::worker_kind::WorkerKind;
use crate::{ExecError, Settings};

pub(crate) use python::PythonZygote;

/// The plan to start guests of one kind.
pub(crate) struct Interpreter {
    pub(crate) launch: Launch,
    pub(crate) first: FirstProcess,
    pub(crate) python: Option<PythonZygote>,
    /// The directory of the packages that all guests of the language share.
    pub(crate) packages: Option<PathBuf>,
    /// The path and version, for people.
    pub(crate) name: String,
}

/// Returns every language with its interpreter, or the reason why there is none. Starts
/// interpreters, so it must not be called while serving a request.
pub fn list_interpreters(settings: &Settings) -> Vec<(Language, Result<String, String>)> {
    let about = |language| {
        let found = match WorkerKind::of(language) {
            WorkerKind::Engine => Ok("built in".to_owned()),
            kind @ (WorkerKind::Python | WorkerKind::Bash | WorkerKind::Node) => {
                find(kind, settings).map(|found| found.name)
            }
        };
        (language, found.map_err(|error| error.to_string()))
    };
    Language::ALL.into_iter().map(about).collect()
}

pub(crate) fn find(kind: WorkerKind, settings: &Settings) -> Result<Interpreter, ExecError> {
    match kind {
        WorkerKind::Python => python::find(settings),
        WorkerKind::Node => node::find(settings),
        WorkerKind::Engine | WorkerKind::Bash => find_bash(settings),
    }
}

fn find_bash(settings: &Settings) -> Result<Interpreter, ExecError> {
    let program = find_on_path("bash", settings).ok_or_else(|| {
        ExecError::Interpreter("there is no bash on PATH; install it (package `bash`)".to_owned())
    })?;
    check_origin(&program, settings)?;
    let rootfs = make_rootfs(settings, paths_outside_system(&program));
    let arguments = ["--noprofile", "--norc"].map(str::to_owned).to_vec();
    let environment = guest_environment(settings, None);
    let name = program.display().to_string();
    let first = FirstProcess::Scripted(ProgramCommand { program, arguments, environment });
    Ok(Interpreter {
        launch: make_launch(settings, rootfs),
        first,
        python: None,
        packages: None,
        name,
    })
}

/// Returns the launch options that all programs share.
fn make_launch(settings: &Settings, rootfs: Rootfs) -> Launch {
    let limits = settings.limits;
    let rlimits = Rlimits {
        // Engines reserve far more address space than they use; the memory of the whole tree is
        // limited instead.
        address_space_bytes: None,
        stack_bytes: 8 << 20,
        open_files: limits.open_files.into(),
        // More than the slot's cgroup allows, because only the cgroup reports that the limit was
        // reached.
        processes: Some(u64::from(limits.processes) + 8),
        // Applies to each process; the host limits the whole tree, and should be the first to
        // notice.
        cpu_s: Some(limits.cpu.as_secs() + 1),
        file_bytes: limits.disk_bytes,
    };
    Launch::for_programs(rootfs, rlimits, settings.lowered.clone())
}

/// System programs and libraries. Files of the user are shown only if they are added by name.
const SYSTEM_PATHS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
];

const GENERATED_FILES: &[(&str, &str)] = &[
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/box/home:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 sandbox\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
];

/// The directory of our own files in the rootfs.
const SHIM_DIR: &str = "/opt/codexec";

fn make_rootfs(settings: &Settings, more: Vec<PathBuf>) -> Rootfs {
    let mut shown: Vec<PathBuf> = SYSTEM_PATHS.iter().map(PathBuf::from).collect();
    shown.extend(more);
    let written =
        GENERATED_FILES.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
    let mcp = (settings.program.clone(), Path::new(SHIM_DIR).join("bin/mcp"));
    Rootfs {
        shown,
        placed: vec![mcp],
        written: written.collect(),
        work_dirs: settings.work_dirs.clone(),
        disk_bytes: settings.limits.disk_bytes,
        disk_files: settings.limits.disk_files,
    }
}

/// THREAT[LEAK-2]: the only place where a guest's environment is made.
fn guest_environment(settings: &Settings, first_on_path: Option<&Path>) -> Vec<(String, String)> {
    let usual = "/opt/codexec/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    let path = match first_on_path {
        Some(first) => format!("{}:{usual}", first.display()),
        None => usual.to_owned(),
    };
    let mut environment: Vec<(String, String)> =
        [("PATH", path.as_str()), ("HOME", "/box/home"), ("LANG", "C.UTF-8"), ("TERM", "dumb")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
    environment.extend(settings.guests.environment.iter().cloned());
    environment
}

/// Adds the shared packages to the rootfs and returns their directory. Without packages nothing is
/// mounted, because guests can read the source path of a mount.
fn add_shared_packages(settings: &Settings, name: &str, rootfs: &mut Rootfs) -> Option<PathBuf> {
    let root = settings.packages.home.as_ref()?.join(name);
    let folder = PackagesFolder::at(&root);
    match folder.make_shown_dir() {
        Ok(_) if folder.is_empty() => {}
        Ok(shown) => rootfs.placed.push((shown, PathBuf::from("/opt/packages"))),
        Err(error) => {
            tracing::warn!(path = %root.display(), %error, "cannot create the packages directory");
        }
    }
    Some(root)
}

pub(crate) fn find_on_path(name: &str, settings: &Settings) -> Option<PathBuf> {
    let directories = std::env::split_paths(&settings.path).filter(|path| path.is_absolute());
    let candidates = directories.map(|directory| directory.join(name));
    candidates.chain([Path::new("/usr/bin").join(name)]).find(|path| path.is_file())
}

/// Refuses an interpreter from a directory that guests can write to.
///
/// THREAT[CFG-8]: an interpreter is started outside the sandbox to query its version and paths.
pub(crate) fn check_origin(program: &Path, settings: &Settings) -> Result<(), ExecError> {
    match find_guest_directory(program, settings) {
        None => Ok(()),
        Some(directory) => Err(ExecError::Interpreter(format!(
            "{} lies in {}, where code may write, and is not started; name another in config.toml, \
             or this one with `files.run-from` there",
            program.display(),
            directory.display()
        ))),
    }
}

fn find_guest_directory<'a>(path: &Path, settings: &'a Settings) -> Option<&'a Path> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    settings.guest_paths.find_writable_dir(&whole, &|link| std::fs::read_link(link).ok())
}

/// Returns the program itself if it is outside the system directories and has to be shown
/// separately.
pub(crate) fn paths_outside_system(program: &Path) -> Vec<PathBuf> {
    let is_system = SYSTEM_PATHS.iter().any(|shown| program.starts_with(shown));
    if is_system { Vec::new() } else { vec![program.to_owned()] }
}

#[cfg(test)]
mod tests;
