//! Finds interpreters and installers, once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_sandbox::{FirstProcess, Launch, query_program};
use codexec_types::{Language, Limits};

use super::installer::{self, InstallCaller, InstallerPlan, InstallerResult};
use super::proxy::ProxyPolicy;
use super::source::{InstallerConfig, PackageSource};
use super::tool::{CERTIFICATES, CONSTRAINTS, InstallRequest, InstallerKind};
use super::{PackageError, Packages};
use crate::pool::HostResources;
use crate::worker_kind::WorkerKind;
use crate::zygote::run_blocking;
use crate::{Settings, interpreter};

const QUERY_TIMEOUT: Duration = Duration::from_secs(20);
/// An installer downloads and unpacks, so it needs disk space for both.
const FETCHED_AND_UNPACKED: u64 = 2;
/// The path of uv in the rootfs; on the host it may be anywhere.
const UV: &str = "/opt/codexec/bin/uv";
const MEMORY_BYTES: u64 = 2 << 30;
/// Idle timeout of a connection to the index.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// An interpreter, and the launch options of its guests.
pub(super) struct FoundInterpreter {
    launch: Launch,
    program: PathBuf,
    /// The directory of the shared packages.
    pub(super) everybody: Option<PathBuf>,
    /// The directories with the interpreter's own packages.
    pub(super) own: Vec<PathBuf>,
}

/// An installer, and the index that it uses.
pub(super) struct Installer {
    pub(super) tool: InstallerKind,
    pub(super) source: PackageSource,
    launch: Launch,
    limits: Limits,
}

impl Packages {
    pub(super) async fn find_interpreter(
        &self,
        language: Language,
    ) -> Result<&FoundInterpreter, PackageError> {
        let cell = if language == Language::Node { &self.0.node } else { &self.0.python };
        let settings = self.0.resources.settings.clone();
        cell.get_or_try_init(|| async {
            Ok(run_blocking(move || find_interpreter(language, &settings)).await?)
        })
        .await
    }

    pub(super) async fn find_installer(
        &self,
        language: Language,
    ) -> Result<&Installer, PackageError> {
        let interpreter = self.find_interpreter(language).await?;
        let cell = if language == Language::Node { &self.0.npm } else { &self.0.pip };
        let settings = self.0.resources.settings.clone();
        let (launch, program) = (interpreter.launch.clone(), interpreter.program.clone());
        let find = move || find_installer(language, &settings, launch, &program);
        cell.get_or_try_init(|| async {
            let found = tokio::task::spawn_blocking(find).await;
            found.map_err(|error| crate::ExecError::from(std::io::Error::other(error)))?
        })
        .await
    }
}

/// Finds the interpreter, with the limits of an installer.
fn find_interpreter(
    language: Language,
    settings: &Settings,
) -> Result<FoundInterpreter, crate::ExecError> {
    let settings =
        Settings { limits: installer_limits(settings), work_dirs: Vec::new(), ..settings.clone() };
    let found = interpreter::find(WorkerKind::of(language), &settings)?;
    let program = match (&found.python, &found.first) {
        (Some(python), _) => python.command.program.clone(),
        (
            None,
            FirstProcess::Started(command)
            | FirstProcess::Scripted(command)
            | FirstProcess::Fetches(command),
        ) => command.program.clone(),
        (None, FirstProcess::Enters) => PathBuf::new(),
    };
    let listed = found.python.as_ref().and_then(|python| python.message.get("path"));
    let listed = listed.and_then(|path| path.as_array()).into_iter().flatten();
    let own = listed.filter_map(|path| path.as_str()).map(PathBuf::from).collect();
    Ok(FoundInterpreter { launch: found.launch, program, everybody: found.packages, own })
}

fn find_installer(
    language: Language,
    settings: &Settings,
    mut launch: Launch,
    program: &Path,
) -> Result<Installer, PackageError> {
    let environment = query_environment(settings);
    let (mut shown, mut placed) = (Vec::new(), Vec::new());
    let (tool, config) = if language == Language::Node {
        let npm = find_npm(settings, program).ok_or_else(|| {
            PackageError::NoInstaller(
                "there is no npm on PATH; install it (it comes with Node.js) and try again"
                    .to_owned(),
            )
        })?;
        shown.extend(npm.parent().and_then(Path::parent).map(Path::to_owned));
        let config = InstallerConfig::query_npm(program, &npm, &environment);
        (InstallerKind::Npm { node: program.to_owned(), npm }, config)
    } else if has_pip(program, &environment) {
        let config = InstallerConfig::query_pip(program, &environment);
        (InstallerKind::Pip { python: program.to_owned() }, config)
    } else if let Some(uv) = trusted_program("uv", settings) {
        let config = InstallerConfig::query_uv(&uv, &environment);
        let (uv, inside) = (uv.canonicalize().unwrap_or(uv), PathBuf::from(UV));
        placed.push((uv, inside.clone()));
        (InstallerKind::Uv { python: program.to_owned(), uv: inside }, config)
    } else {
        let python = program.display();
        return Err(PackageError::NoInstaller(format!(
            "{python} has no pip, and there is no uv on PATH; install one of them \
             (`{python} -m ensurepip`) and try again"
        )));
    };
    let source = PackageSource::new(language, &settings.packages, &config)?;
    if let Some(rootfs) = &mut launch.rootfs {
        rootfs.placed.append(&mut placed);
        rootfs.shown.extend(shown.iter().flat_map(|path| interpreter::paths_outside_system(path)));
        if let Some(path) = &source.certificates {
            let path = path.canonicalize().map_err(|error| {
                PackageError::Settings(format!(
                    "the certificates in {} cannot be read ({error}); name another file with \
                     `packages.ca-file` in config.toml",
                    path.display()
                ))
            })?;
            rootfs.placed.push((path, PathBuf::from(CERTIFICATES)));
        }
    }
    Ok(Installer { tool, source, launch, limits: installer_limits(settings) })
}

impl Installer {
    pub(super) async fn run(
        &self,
        resources: &HostResources,
        request: &InstallRequest<'_>,
        constraints: Option<String>,
        caller: InstallCaller<'_>,
    ) -> Result<InstallerResult, PackageError> {
        let mut launch = self.launch.clone();
        if let (Some(text), Some(rootfs)) = (constraints, &mut launch.rootfs) {
            rootfs.written.push((PathBuf::from(CONSTRAINTS), text));
        }
        let command = self.tool.install_command(request);
        installer::run(resources, self.plan(launch, command), caller).await
    }

    pub(super) fn plan(
        &self,
        launch: Launch,
        command: codexec_sandbox::ProgramCommand,
    ) -> InstallerPlan {
        let reach = ProxyPolicy {
            hosts: self.source.hosts.clone(),
            route: self.source.route.clone(),
            max_bytes: self.limits.disk_bytes,
            patience: QUERY_TIMEOUT,
            idle: IDLE_TIMEOUT,
        };
        InstallerPlan { launch, command, limits: self.limits, reach }
    }

    pub(super) fn launch(&self) -> Launch {
        self.launch.clone()
    }
}

/// THREAT[PKG-3]: an installer has its own limits, including all that guests have.
fn installer_limits(settings: &Settings) -> Limits {
    let packages = &settings.packages;
    Limits {
        wall: packages.timeout,
        cpu: packages.timeout * 2,
        memory_bytes: settings.limits.memory_bytes.max(MEMORY_BYTES),
        processes: settings.limits.processes.max(256),
        open_files: settings.limits.open_files.max(4_096),
        disk_bytes: packages.max_bytes.saturating_mul(FETCHED_AND_UNPACKED),
        disk_files: 2 * u32::try_from(super::MAX_FILES).unwrap_or(u32::MAX / 2),
        ..settings.limits
    }
}

/// Returns the environment in which the user's own installers are queried for their settings.
fn query_environment(settings: &Settings) -> Vec<(String, OsString)> {
    let variables = settings.packages.environment.iter();
    let mut environment: Vec<(String, OsString)> =
        variables.map(|(name, value)| (name.clone(), OsString::from(value))).collect();
    environment.push(("PATH".to_owned(), settings.path.clone()));
    environment.extend(settings.home.clone().map(|home| ("HOME".to_owned(), home.into())));
    environment
}

fn has_pip(python: &Path, environment: &[(String, OsString)]) -> bool {
    let arguments = ["-I", "-B", "-m", "pip", "--version"];
    query_program(python, &arguments, environment, QUERY_TIMEOUT).is_ok()
}

/// Finds a program on PATH, unless a guest could have put it there: installers are queried for
/// their settings outside the sandbox.
fn trusted_program(name: &str, settings: &Settings) -> Option<PathBuf> {
    let found = interpreter::find_on_path(name, settings);
    found.filter(|program| interpreter::check_origin(program, settings).is_ok())
}

/// Finds npm's own script: the `npm` on PATH may be any wrapper.
fn find_npm(settings: &Settings, node: &Path) -> Option<PathBuf> {
    let bundled = node.parent().and_then(Path::parent);
    let bundled = bundled.map(|prefix| prefix.join("lib/node_modules/npm/bin/npm-cli.js"));
    let on_path = trusted_program("npm", settings).and_then(|npm| npm.canonicalize().ok());
    let is_script = |path: &PathBuf| path.extension().is_some_and(|end| end == "js");
    on_path.filter(is_script).or_else(|| bundled.filter(|path| path.is_file()))
}
