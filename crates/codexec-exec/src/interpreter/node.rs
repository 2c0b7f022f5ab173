use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_sandbox::{FirstProcess, ProgramCommand, query_program};

use super::{
    Interpreter, SHIM_DIR, add_shared_packages, check_origin, find_on_path, guest_environment,
    make_launch, make_rootfs, paths_outside_system,
};
use crate::{ExecError, Settings};

const FILES: &[(&str, &str)] = &[
    ("declarations.mjs", include_str!("../shim/node/declarations.mjs")),
    ("errors.mjs", include_str!("../shim/node/errors.mjs")),
    ("files.mjs", include_str!("../shim/node/files.mjs")),
    ("guest.mjs", include_str!("../shim/node/guest.mjs")),
    ("names.mjs", include_str!("../shim/node/names.mjs")),
    ("packages.mjs", include_str!("../shim/node/packages.mjs")),
    ("pictures.mjs", include_str!("../shim/node/pictures.mjs")),
    ("program.mjs", include_str!("../shim/node/program.mjs")),
    ("quiet.mjs", include_str!("../shim/node/quiet.mjs")),
    ("session.mjs", include_str!("../shim/node/session.mjs")),
    ("taken.mjs", include_str!("../shim/node/taken.mjs")),
    ("watcher.cjs", include_str!("../shim/node/watcher.cjs")),
    // The same files as in the built-in engine.
    ("tools.js", include_str!("../shim/node/tools.js")),
    ("hints.js", include_str!("../shim/node/hints.js")),
    ("host_functions.js", include_str!("../shim/node/host_functions.js")),
    ("host_functions.json", codexec_functions::GUEST_FUNCTIONS),
];
/// Flags that guest.mjs needs.
const FLAGS: &[&str] = &[
    "--no-warnings",
    // A cell that is interrupted leaves Node's callback counter unbalanced.
    "--no-force-async-hooks-checks",
    "--expose-internals",
    "--experimental-vm-modules",
    "--experimental-import-meta-resolve",
];
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn find(settings: &Settings) -> Result<Interpreter, ExecError> {
    let named = settings.guests.node.clone();
    let program = named.clone().or_else(|| find_on_path("node", settings));
    let problem = |what: String| ExecError::Interpreter(what);
    let program = program.ok_or_else(|| {
        let hint = "install Node.js 18 or newer, or name it with `node.interpreter` in config.toml";
        problem(format!("there is no node on PATH; {hint}"))
    })?;
    check_origin(&program, settings)?;
    let version = query_program(&program, &["--version"], &[], QUERY_TIMEOUT).map_err(|error| {
        let hint = "name a working one with `node.interpreter` in config.toml";
        problem(format!("{} cannot be started ({error}); {hint}", program.display()))
    })?;
    let version = version.trim();
    let major = version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
    if major.is_none_or(|major: u32| major < 18) {
        let found = program.display();
        return Err(problem(format!("{found} is Node.js {version}; 18 or newer is needed")));
    }
    let real = std::fs::canonicalize(&program).unwrap_or(program);
    let mut rootfs = make_rootfs(settings, paths_to_show(&real));
    let packages = add_shared_packages(settings, "node", &mut rootfs);
    for (name, text) in FILES {
        rootfs.written.push((Path::new(SHIM_DIR).join(name), (*text).to_owned()));
    }
    // Above our own limit: Node would exit with a crash, while our guard names the limit.
    let memory_mib = (settings.limits.memory_bytes >> 20) + 256;
    let mut arguments = vec![format!("--max-old-space-size={memory_mib}")];
    arguments.extend(FLAGS.iter().map(|flag| (*flag).to_owned()));
    arguments.push(format!("{SHIM_DIR}/guest.mjs"));
    let environment = guest_environment(settings, real.parent());
    let name = format!("{} {version}", real.display());
    let first = FirstProcess::Started(ProgramCommand { program: real, arguments, environment });
    Ok(Interpreter { launch: make_launch(settings, rootfs), first, python: None, packages, name })
}

/// Returns the paths to show: an installation with its own prefix needs its modules as well.
fn paths_to_show(program: &Path) -> Vec<PathBuf> {
    let prefix = program.parent().and_then(Path::parent);
    match prefix {
        Some(prefix) if prefix.join("lib/node_modules").is_dir() => paths_outside_system(prefix),
        Some(_) | None => paths_outside_system(program),
    }
}
