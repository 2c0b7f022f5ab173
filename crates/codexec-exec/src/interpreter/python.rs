use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_sandbox::{FirstProcess, Launch, ProgramCommand, WorkerEntry, query_program};
use serde::Deserialize;
use serde_json::json;

use super::{
    Interpreter, SHIM_DIR, add_shared_packages, check_origin, find_guest_directory, find_on_path,
    guest_environment, make_launch, make_rootfs, paths_outside_system,
};
use crate::{ExecError, Settings};

/// Every file of the shim is in the rootfs, so that tracebacks can show its lines.
const FILES: &[(&str, &str)] = &[
    ("zygote.py", include_str!("../shim/python/zygote.py")),
    ("codexec_guest.py", include_str!("../shim/python/guest.py")),
    ("codexec_guest_calls.py", include_str!("../shim/python/codexec_guest_calls.py")),
    ("codexec_guest_errors.py", include_str!("../shim/python/codexec_guest_errors.py")),
    ("codexec_guest_files.py", include_str!("../shim/python/codexec_guest_files.py")),
    ("codexec_guest_imports.py", include_str!("../shim/python/codexec_guest_imports.py")),
    (
        "codexec_guest_host_functions.py",
        include_str!("../shim/python/codexec_guest_host_functions.py"),
    ),
    ("host_functions.json", codexec_functions::GUEST_FUNCTIONS),
    ("codexec_guest_input.py", include_str!("../shim/python/codexec_guest_input.py")),
    ("codexec_guest_mcp.py", include_str!("../shim/python/codexec_guest_mcp.py")),
    ("codexec_guest_pictures.py", include_str!("../shim/python/codexec_guest_pictures.py")),
    ("codexec_guest_attributed.py", include_str!("../shim/python/codexec_guest_attributed.py")),
    ("codexec_guest_running.py", include_str!("../shim/python/codexec_guest_running.py")),
    ("codexec_guest_runtime.py", include_str!("../shim/python/codexec_guest_runtime.py")),
    ("codexec_guest_session.py", include_str!("../shim/python/codexec_guest_session.py")),
    ("codexec_guest_tools.py", include_str!("../shim/python/codexec_guest_tools.py")),
    ("codexec_guest_values.py", include_str!("../shim/python/codexec_guest_values.py")),
    ("codexec_guest_wire.py", include_str!("../shim/python/codexec_guest_wire.py")),
];

const QUERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Code that prints the interpreter's version and paths. Its imports also check that the
/// interpreter can make system calls.
///
/// THREAT[CFG-8]: started with `-S`. Package directories are then collected without running code in
/// `*.pth` files or `sitecustomize`; only the directories named in `*.pth` files count.
const QUERY_CODE: &str = "import sys
sys.path[:] = [p for p in sys.path if p]
import os, json, site, ctypes, resource, socket
def addpackage(folder, name, known, **_):
    try:
        with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as file:
            lines = file.read().splitlines()
    except OSError:
        return known
    for line in lines:
        if not line.strip() or line.startswith(('#', 'import ', 'import\\t')):
            continue
        path = os.path.abspath(os.path.join(folder, line.rstrip()))
        if path not in sys.path and os.path.isdir(path):
            sys.path.append(path)
    return known
site.addpackage = addpackage
site.execsitecustomize = site.execusercustomize = lambda: None
site.main()
print(json.dumps({'executable': sys.executable, 'version': list(sys.version_info[:3]),
 'prefixes': sorted({sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}),
 'path': [p for p in sys.path if p], 'user_site': site.getusersitepackages() if site.ENABLE_USER_SITE else None}))";

const ARGUMENTS: [&str; 4] = ["-B", "-S", "-c", QUERY_CODE];

#[derive(Deserialize)]
struct PythonInfo {
    executable: PathBuf,
    version: (u32, u32, u32),
    prefixes: Vec<PathBuf>,
    path: Vec<PathBuf>,
    user_site: Option<PathBuf>,
}

/// The interpreter to keep warm: its command and its first message.
pub(crate) struct PythonZygote {
    pub(crate) command: ProgramCommand,
    pub(crate) message: serde_json::Value,
}

pub(super) fn find(settings: &Settings) -> Result<Interpreter, ExecError> {
    let program = find_program(settings)?;
    check_origin(&program, settings)?;
    let mut about = query(&program, settings)?;
    for origin in about.prefixes.iter().chain([&about.executable]) {
        check_origin(origin, settings)?;
    }
    // Modules that guests write there would be imported before a guest is confined.
    about.path.retain(|path| find_guest_directory(path, settings).is_none());
    let (major, minor, patch) = about.version;
    let version = format!("{major}.{minor}.{patch}");
    if (major, minor) < (3, 9) {
        let found = program.display();
        let hint = "name another with `python.interpreter` in config.toml";
        return Err(ExecError::Interpreter(format!(
            "{found} is Python {version}; 3.9 or newer is needed: {hint}"
        )));
    }
    let mut shown: Vec<PathBuf> =
        about.prefixes.iter().flat_map(|p| paths_outside_system(p)).collect();
    shown.extend(about.user_site.iter().cloned());
    shown.extend(paths_outside_system(&about.executable));
    // A symlink is shown as a symlink, so its target has to be shown too.
    let real = |path: &PathBuf| path.canonicalize().ok().filter(|real| real != path);
    let behind: Vec<PathBuf> = shown.iter().filter_map(real).collect();
    shown.extend(behind.iter().flat_map(|path| paths_outside_system(path)));
    // Debian keeps a part of its Python here.
    shown.push(PathBuf::from(format!("/etc/python{major}.{minor}")));
    let mut rootfs = make_rootfs(settings, shown.clone());
    let packages = add_shared_packages(settings, &format!("python-{major}.{minor}"), &mut rootfs);
    for (name, text) in FILES {
        rootfs.written.push((Path::new(SHIM_DIR).join(name), (*text).to_owned()));
    }
    let launch = make_launch(settings, rootfs);
    let zygote = make_zygote(settings, &about, &shown, &launch)?;
    let name = format!("{} {version}", about.executable.display());
    Ok(Interpreter { launch, first: FirstProcess::Enters, python: Some(zygote), packages, name })
}

fn find_program(settings: &Settings) -> Result<PathBuf, ExecError> {
    let python = &settings.guests.python;
    if let Some(venv) = &python.venv {
        let program = venv.join("bin/python");
        if program.is_file() {
            return Ok(program);
        }
        let venv = venv.display();
        return Err(ExecError::Interpreter(format!(
            "`python.venv` in config.toml names {venv}, which has no bin/python; make it anew \
             with `python3 -m venv {venv}`, or name another"
        )));
    }
    if let Some(named) = &python.interpreter {
        if named.is_file() {
            return Ok(named.clone());
        }
        return Err(ExecError::Interpreter(format!(
            "`python.interpreter` in config.toml names {}, which is not there; name another, or \
             leave it out for the python3 on PATH",
            named.display()
        )));
    }
    find_on_path("python3", settings).ok_or_else(|| {
        let hint = "install Python 3.9 or newer, or name it with `python.interpreter`";
        ExecError::Interpreter(format!("there is no python3 on PATH; {hint} in config.toml"))
    })
}

fn query(program: &Path, settings: &Settings) -> Result<PythonInfo, ExecError> {
    let broken = |why: String| {
        let hint = "name a working interpreter or virtual environment with `python.interpreter` \
                    or `python.venv` in config.toml";
        ExecError::Interpreter(format!("{} does not work: {why}; {hint}", program.display()))
    };
    let mut environment = vec![("PATH".to_owned(), settings.path.clone())];
    if let Some(home) = &settings.home {
        environment.push(("HOME".to_owned(), home.clone().into_os_string()));
    }
    let output = query_program(program, &ARGUMENTS, &environment, QUERY_TIMEOUT);
    let output = output.map_err(|error| broken(error.to_string()))?;
    serde_json::from_str(output.trim()).map_err(|_| broken(format!("it said {:?}", output.trim())))
}

fn make_zygote(
    settings: &Settings,
    about: &PythonInfo,
    shown: &[PathBuf],
    launch: &Launch,
) -> Result<PythonZygote, ExecError> {
    let entry = WorkerEntry::new(launch).ok_or_else(|| {
        let arch = std::env::consts::ARCH;
        ExecError::Interpreter(format!("there is no system-call filter for {arch}"))
    })?;
    let bin = about.executable.parent();
    let arguments = ["-I", "-B", "/opt/codexec/zygote.py"].map(str::to_owned).to_vec();
    let command = ProgramCommand {
        program: about.executable.clone(),
        arguments,
        environment: guest_environment(settings, bin.filter(|bin| !bin.starts_with("/usr"))),
    };
    // Directories that are not in the rootfs are dropped.
    let is_there = |path: &&PathBuf| {
        path.starts_with("/usr") || shown.iter().any(|shown| path.starts_with(shown))
    };
    let path: Vec<&Path> = about.path.iter().filter(is_there).map(PathBuf::as_path).collect();
    // THREAT[PKG-7]: only guests search the installed packages, never the zygote. Last on the path,
    // so that the interpreter's own modules take precedence.
    let guest_path = ["/opt/packages/python"];
    let preload = &settings.guests.python.preload;
    let message =
        json!({"path": path, "guest_path": guest_path, "preload": preload, "entry": entry});
    Ok(PythonZygote { command, message })
}

#[cfg(test)]
mod tests;
