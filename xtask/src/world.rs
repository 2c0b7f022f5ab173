//! Installs the programs that the tests need and cargo does not provide: real MCP servers and
//! clients, in fixed versions, in one folder (the "world").
//!
//! - `npm/node_modules/.bin/`: `mcp-server-everything`, `mcp-server-filesystem`,
//!   `mcp-inspector`, `conformance`, `tsc`, and `node`, a Node 24 (some need at least 22)
//! - `fleet/node_modules/.bin/`: more MCP servers that start without a network
//! - `venv/bin/`: `python` with the official SDK (`mcp`), common packages, and more such servers
//!
//! Debian's Chromium, for the tests of the dashboard, is installed for the whole system.

use std::{
    env::consts::ARCH,
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};

use crate::{
    step,
    test::{is_root, is_world_readable},
    workspace::Workspace,
};

const NPM: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/client@2.4.0",
    "playwright-core@1.65.1",
    "axe-core@4.14.0",
    "typescript@7.0.2",
    "@toon-format/toon@4.4.0",
];

/// MCP servers in their own folder, so that their dependencies do not replace those of `NPM`.
const FLEET: &[&str] = &[
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/server-github@2025.4.8",
    "@modelcontextprotocol/server-gitlab@2025.4.25",
    "@modelcontextprotocol/server-slack@2025.4.25",
    "@modelcontextprotocol/server-google-maps@0.6.2",
    "@modelcontextprotocol/server-brave-search@0.6.2",
    "@modelcontextprotocol/server-postgres@0.6.2",
    "@upstash/context7-mcp@4.1.1",
    "tavily-mcp@0.2.22",
    "@notionhq/notion-mcp-server@2.5.2",
    "@hubspot/mcp-server@0.4.0",
    "firecrawl-mcp@3.22.2",
    "@circleci/mcp-server-circleci@0.20.0",
    "@cyanheads/git-mcp-server@2.15.3",
];

/// The package of this version is named after the architecture.
const NODE_VERSION: &str = "24.21.0";

const PYTHON: &[&str] = &[
    "mcp==2.3.0",
    "schemathesis==4.32.5",
    "prometheus-client==0.26.0",
    "opentelemetry-proto==1.45.2",
    "mcp-server-time==2026.10.19",
    "mcp-server-fetch==2026.10.24",
    "mcp-server-git==2026.10.19",
    "duckduckgo-mcp-server==0.7.0",
    "excel-mcp-server==2.2.2",
    "office-word-mcp-server==1.1.11",
    "awslabs.aws-documentation-mcp-server==1.2.3",
    "numpy==2.4.6",
    "pandas==3.1.1",
    "matplotlib==3.11.2",
    "pillow==13.0.0",
];

/// A client whose package has the same modules as a package that a server of `PYTHON` needs.
const CLIENTS: &[&str] = &["fastmcp-slim[client]==4.1.4"];

/// Checks the oldest version that the official SDK supports, and the modules that a virtual
/// environment needs. Prints the paths of the interpreter and its library.
const PROBE: &str = "import sys, os, venv, ensurepip
assert sys.version_info >= (3, 10)
print(os.path.realpath(sys.executable)); print(os.path.realpath(os.__file__))";

/// Installs everything that is missing, and returns the folder.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    install_chromium()?;
    let world = world_folder(&workspace.target)?;
    let python = find_python()?;
    let node = node_package();
    let packages =
        [NPM.join("\n"), node.clone(), FLEET.join("\n"), PYTHON.join("\n"), CLIENTS.join("\n")];
    let stamp = format!("{}\n{}\n", packages.join("\n"), python.display());
    let stamp_path = world.join("stamp");
    if fs::read_to_string(&stamp_path).is_ok_and(|there| there == stamp) {
        return Ok(world);
    }
    // Start over: an interrupted installation is not repaired.
    for name in ["stamp", "npm", "fleet", "venv", "clients"] {
        remove(&world.join(name))?;
    }
    thread::scope(|scope| {
        let own = scope.spawn(|| {
            let packages: Vec<&str> = NPM.iter().copied().chain([node.as_str()]).collect();
            install_npm(&world.join("npm"), &packages)
        });
        let fleet = scope.spawn(|| install_npm(&world.join("fleet"), FLEET));
        let venv = install_python(&world.join("venv"), &python, PYTHON)
            .and_then(|()| install_python(&world.join("clients"), &python, CLIENTS));
        for installed in [own.join(), fleet.join()] {
            installed.map_err(|_| anyhow::anyhow!("a thread of npm panicked"))??;
        }
        venv
    })?;
    fs::write(&stamp_path, stamp).context("cannot write the stamp")?;
    Ok(world)
}

/// Returns the folder: in the target folder, unless an unprivileged user could not read it there.
#[expect(clippy::disallowed_methods, reason = "all users read this folder")]
fn world_folder(target: &Path) -> Result<PathBuf> {
    fs::create_dir_all(target).context("cannot create the target folder")?;
    if !is_root() || is_world_readable(target) {
        let world = target.join("world");
        fs::create_dir_all(&world).context("cannot create the folder `world`")?;
        return Ok(world);
    }
    let world = PathBuf::from("/var/tmp/codexec-world");
    match fs::DirBuilder::new().mode(0o755).create(&world) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err)?,
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(&world)?;
    if !found.is_dir() || found.uid() != 0 || found.mode() & 0o022 != 0 {
        bail!("{} must be a folder that only root can write; remove it", world.display());
    }
    Ok(world)
}

/// Finds the first interpreter that can create a virtual environment. For root, an unprivileged
/// user must be able to start it too (unlike one in root's home).
fn find_python() -> Result<PathBuf> {
    let names = ["python3", "/usr/bin/python3", "/usr/local/bin/python3"];
    let working: Vec<(&str, String)> = names
        .into_iter()
        .filter(|name| step::works(step::command(name).args(["-c", PROBE])))
        .filter_map(|name| {
            Some((name, step::output(step::command(name).args(["-c", PROBE])).ok()?))
        })
        .collect();
    let is_fine =
        |paths: &str| !is_root() || paths.lines().all(|path| is_world_readable(path.as_ref()));
    let Some((name, _)) = working.iter().find(|(_, paths)| is_fine(paths)) else {
        bail!(
            "none of {} is a Python 3.10 or newer with `venv` and `ensurepip` that every user can \
             start; install one (Debian: python3-venv)",
            names.join(", ")
        );
    };
    Ok(PathBuf::from(name))
}

fn node_package() -> String {
    let arch = if ARCH == "aarch64" { "arm64" } else { "x64" };
    format!("node-linux-{arch}@{NODE_VERSION}")
}

fn install_npm(prefix: &Path, packages: &[&str]) -> Result<()> {
    fs::create_dir_all(prefix)?;
    let mut npm = readable_command("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
    npm.arg("--prefix").arg(prefix).args(packages);
    step::output(&mut npm).context("npm install failed (npm comes with Node.js)")?;
    Ok(())
}

/// Installs Chromium with apt, as root on Debian. Elsewhere the tests say that it is missing.
fn install_chromium() -> Result<()> {
    let is_there = |name: &str| Path::new("/usr/bin").join(name).exists();
    if is_there("chromium") || !is_root() || !is_there("apt-get") {
        return Ok(());
    }
    let apt = || {
        let mut apt = step::command("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    step::output(apt().arg("update")).context("apt-get update failed")?;
    let packages = ["install", "-y", "--no-install-recommends", "chromium"];
    step::output(apt().args(packages)).context("cannot install the package chromium")?;
    Ok(())
}

fn install_python(venv: &Path, python: &Path, packages: &[&str]) -> Result<()> {
    step::run(readable_command("env").arg(python).args(["-m", "venv"]).arg(venv))?;
    let mut pip = readable_command("env");
    pip.arg(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(packages);
    step::run(&mut pip)
}

/// Returns a command that creates files readable by other users, whatever the umask is.
fn readable_command(program: &str) -> Command {
    let mut shell = step::command("sh");
    shell.args(["-c", "umask 022 && exec \"$0\" \"$@\"", program]);
    shell
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(err) if err.kind() != io::ErrorKind::NotFound => {
            Err(err).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
