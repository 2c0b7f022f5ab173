//! Builds the server from settings.

mod permissions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codexec_compat::settings::InheritedSettings;
use codexec_exec::Workers;
use codexec_files::private_files;
use codexec_gateway::{Gateway, SearchWait, ToolCacheMode, Warden};
use codexec_mcp_config::{
    ParsedConfig, ProblemEffect, ServerApprovals, ServerRules, ServerSources,
};
use codexec_scripts::Library;
use codexec_server::mcp::{ToolsetNames, Toolsets};
use codexec_server::{App, Connection, LivePolicy, Records, TextBudget};
use codexec_telemetry::{Exporter, Tracer};
use codexec_types::{Edge, Identity, Limits, Policy, Principal};

use crate::cli::CommonArgs;
use crate::config::{Config, ConfigFile, HostEnvironment};
use crate::env;
use crate::server_files::{Reloader, server_sources};
use crate::toolsets;

/// Everything read from settings and server files. Nothing is started yet.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) home: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) gateway: Gateway,
    upstreams: codexec_gateway::GatewaySettings,
    pub(crate) approvals: ServerApprovals,
    /// The path of `config.toml`; the file may not exist.
    pub(crate) own_file: PathBuf,
    pub(crate) sources: ServerSources,
    /// The servers that the files name.
    pub(crate) named_servers: ParsedConfig,
    toolsets: ToolsetNames,
}

impl Parts {
    /// Reads everything. `catalogue_wait` is how long a tool list waits for servers that are still
    /// starting, and `search_wait` for which; `cache` says how tool lists on disk are used.
    pub(crate) fn read(
        common: &CommonArgs,
        (catalogue_wait, search_wait): (Duration, SearchWait),
        cache: ToolCacheMode,
    ) -> anyhow::Result<Parts> {
        let host = host_environment()?;
        let home = host.state_dir.clone();
        permissions::check_state_dir(&home)?;
        let path = common.config.clone().unwrap_or_else(|| home.join("config.toml"));
        permissions::check_config_file(&path)?;
        let file = ConfigFile::read(&path, common.config.is_some())?;
        let toolsets = choose_toolsets(common, &file, &path)?;
        let discovers = env::is_discovery_enabled() && file.discovers();
        let inherited =
            InheritedSettings::read(&toolsets, &host.user(), discovers, file.has_project_files())?;
        let file = file.over(inherited.table()).context(path.display().to_string())?;
        let mut config = Config::new(&file, &host).map_err(|error| {
            let origin = error.key().and_then(|key| inherited.origin(key));
            let origin = origin.map_or_else(|| path.display().to_string(), str::to_owned);
            anyhow::Error::new(error).context(origin)
        })?;
        let program = std::env::current_exe().context("cannot find codexec's own binary")?;
        permissions::check_not_guest_writable(&path, &config.guest_paths)?;
        let approvals = ServerApprovals::new(&home);
        let rules = ServerRules {
            discovery: config.discovery.clone(),
            guest_paths: config.guest_paths.clone(),
            approvals: Some(approvals.clone()),
        };
        let named: Vec<PathBuf> =
            inherited.servers.into_iter().chain(common.mcp_config.iter().cloned()).collect();
        let replaced = (&toolsets, discovers);
        let mut sources = server_sources(path.clone(), &named, rules, &program, replaced);
        let named_servers = sources.read_at_start()?;
        let warden = Warden::new(program.clone(), "warden", "supervisor");
        let settings = codexec_gateway::GatewaySettings {
            catalogue_wait,
            search_wait,
            cache,
            variable: env::variable,
            home: Some(home.clone()),
            user_home: host.user_home.clone(),
            guest_paths: config.guest_paths.clone(),
            ..codexec_gateway::GatewaySettings::new(env::upstream_variables(), warden)
        };
        let upstreams = config.upstreams.apply_to(settings);
        let gateway = Gateway::new(named_servers.enabled_configs(), upstreams.clone());
        config.policy.tools = config.allowed.filter_for(&gateway.server_names())?;
        Ok(Parts {
            config,
            home,
            program,
            gateway,
            upstreams,
            approvals,
            own_file: path,
            sources,
            named_servers,
            toolsets,
        })
    }

    /// Lets code work in `dir`, which the user named on the command line. Forbidden directories
    /// stay forbidden.
    pub(crate) fn allow_working_dir(&mut self, dir: Option<PathBuf>) {
        let Some(dir) = dir else { return };
        self.config.policy.files.allowed.push(dir.clone());
        self.config.guest_paths.files.allowed.push(dir);
        self.upstreams.guest_paths = self.config.guest_paths.clone();
        // No server is started yet, so the gateway can simply be rebuilt with the new path.
        self.gateway = Gateway::new(self.named_servers.enabled_configs(), self.upstreams.clone());
    }

    /// Starts to send traces, if the settings say where to.
    pub(crate) fn start_traces(&mut self) -> anyhow::Result<(Option<Exporter>, Tracer)> {
        let Some(settings) = &self.config.otlp else {
            return Ok((None, Tracer::default()));
        };
        let (exporter, tracer) = Exporter::start(settings).context("otlp")?;
        self.upstreams.tracer = tracer.clone();
        // No server is started yet, so the gateway can simply be rebuilt with the tracer.
        self.gateway = Gateway::new(self.named_servers.enabled_configs(), self.upstreams.clone());
        Ok((Some(exporter), tracer))
    }

    /// Returns the chosen toolsets, joined.
    fn join_toolsets(&self) -> Toolsets {
        toolsets::join(&self.toolsets, &self.config.seeds)
    }

    /// Returns how an edge finds toolsets by name.
    pub(crate) fn toolset_source(&self) -> codexec_http::ToolsetSource {
        toolsets::source(self.toolsets.clone(), self.config.seeds.clone())
    }

    pub(crate) fn build_workers(&self, role: &'static str) -> Workers {
        Workers::new(self.exec_settings(role))
    }

    /// Returns the settings for running guests. `role` is the argument by which our binary becomes
    /// the engine's zygote.
    pub(crate) fn exec_settings(&self, role: &'static str) -> codexec_exec::Settings {
        codexec_exec::Settings {
            program: self.program.clone(),
            role,
            programs_role: "zygote-programs",
            mounter_role: "mounter",
            limits: self.worker_limits(),
            guests: self.config.guests.clone(),
            path: env::path(),
            home: env::user_home(),
            guest_paths: self.config.guest_paths.clone(),
            max: self.config.max_workers,
            warm: self.config.warm_workers,
            queue: 200,
            queue_wait: Duration::from_secs(30),
            lowered: self.config.lowered.clone(),
            files: self.config.commit_limits.clone(),
            work_dirs: self.config.policy.files.allowed.clone(),
            packages: codexec_exec::packages::PackageSettings {
                environment: env::installer_variables(),
                ..self.config.packages.clone()
            },
        }
    }

    /// Returns the limits of workers. They are made before anybody knows what a request asks for,
    /// so they allow the CPU time of the longest execution.
    fn worker_limits(&self) -> Limits {
        let Policy { limits, max_wall, .. } = &self.config.policy;
        Limits { cpu: limits.cpu_within(*max_wall), ..*limits }
    }

    /// Builds the app, and the connection of the user's terminal, without starting any process.
    pub(crate) fn build_app(self) -> anyhow::Result<(App, Arc<Connection>)> {
        let principal = Principal::new(Identity::LocalUser, Edge::CommandLine);
        let toolsets = self.join_toolsets();
        let (app, reloader) = self.build_app_and_reloader()?;
        let connection = Connection::new(principal, toolsets, reloader.policy);
        Ok((app, Arc::new(connection.with_budget(TextBudget::UNLIMITED))))
    }

    /// Builds the app, the connection of the client at standard input, and the reloader that
    /// follows changes of the server files.
    pub(crate) fn build_server(self) -> anyhow::Result<(App, Arc<Connection>, Reloader)> {
        let principal = Principal::new(Identity::LocalUser, Edge::Stdio);
        let (toolsets, budget) = (self.join_toolsets(), self.config.budget);
        let (app, reloader) = self.build_app_and_reloader()?;
        let connection = Connection::new(principal, toolsets, Arc::clone(&reloader.policy));
        Ok((app, Arc::new(connection.with_budget(budget)), reloader))
    }

    fn build_app_and_reloader(self) -> anyhow::Result<(App, Reloader)> {
        for problem in &self.named_servers.problems {
            match problem.effect {
                ProblemEffect::LeftOut => tracing::warn!(%problem, "problem in a server file"),
                ProblemEffect::Kept => tracing::info!(%problem, "problem in a server file"),
            }
        }
        let workers = self.build_workers("zygote-js");
        create_state_dir(&self.home)?;
        let logs = self.config.logs;
        let records =
            Records::at(self.home.clone()).with_retention(logs.durability, logs.retention);
        let reloader = Reloader {
            sources: self.sources,
            now: self.named_servers,
            allowed: self.config.allowed,
            policy: Arc::new(LivePolicy::new(self.config.policy)),
            home: self.home,
        };
        let scripts = Library::at(self.config.scripts);
        let app = App::new(workers, self.gateway, records, self.config.sessions, scripts);
        app.live_settings.set_approvals(self.approvals);
        reloader.publish(&app);
        Ok((app, reloader))
    }
}

/// Collects where and by whom codexec was started.
pub(crate) fn host_environment() -> anyhow::Result<HostEnvironment> {
    let home = env::home().context("neither CODEXEC_HOME nor HOME is set")?;
    Ok(HostEnvironment {
        cores: std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
        user_home: env::user_home(),
        state_dir: std::path::absolute(&home).context("CODEXEC_HOME")?,
        current_dir: std::env::current_dir().ok(),
        variable: env::variable,
    })
}

/// Returns the state directory, and creates it if missing.
pub(crate) fn state_dir() -> anyhow::Result<PathBuf> {
    let home = host_environment()?.state_dir;
    permissions::check_state_dir(&home)?;
    create_state_dir(&home)?;
    Ok(home)
}

/// Chooses the toolsets: the command line wins over the environment, which wins over settings.
fn choose_toolsets(
    common: &CommonArgs,
    file: &ConfigFile,
    path: &Path,
) -> anyhow::Result<ToolsetNames> {
    let chosen = |names: &[String]| toolsets::parse(names.iter().map(String::as_str));
    match (&common.toolset, env::toolset(), &file.toolset) {
        (Some(names), _, _) => chosen(names).context("--toolset"),
        (None, Some(names), _) => chosen(&[names]).context("CODEXEC_TOOLSET"),
        (None, None, Some(names)) => {
            chosen(names).with_context(|| format!("{}: `toolset`", path.display()))
        }
        (None, None, None) => Ok(ToolsetNames::default()),
    }
}

/// Creates the state directory with mode 0700.
pub(crate) fn create_state_dir(home: &Path) -> anyhow::Result<()> {
    let made = private_files::make_folder(home);
    made.with_context(|| format!("cannot create {}", home.display()))?;
    if !home.is_dir() {
        bail!("{} is not a directory", home.display());
    }
    Ok(())
}
