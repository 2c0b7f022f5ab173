//! Building the server from settings.

mod private;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use codexec_exec::Workers;
use codexec_gateway::{CacheUse, Effect, Gateway, Parsed, ServerApprovals, Warden};
use codexec_scripts::Library;
use codexec_server::{App, Records, Toolsets};

use crate::cli::Common;
use crate::config::{Config, File, Inherited, Place};
use crate::env;
use crate::servers::{Reload, Rules, Sources, used};

/// Everything that was read, before anything is started.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) home: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) gateway: Gateway,
    upstreams: codexec_gateway::Settings,
    pub(crate) approvals: ServerApprovals,
    /// The settings that were read, there or not.
    pub(crate) own_file: PathBuf,
    pub(crate) sources: Sources,
    /// What the files say about servers.
    pub(crate) found: Parsed,
    pub(crate) toolsets: Toolsets,
}

impl Parts {
    /// `catalogue_wait`: how long a list waits for servers that are still starting; `cache`: what
    /// lists on disk are good for.
    pub(crate) fn read(
        common: &Common,
        catalogue_wait: Duration,
        cache: CacheUse,
    ) -> anyhow::Result<Parts> {
        let place = place()?;
        let home = place.state.clone();
        private::check_folder(&home)?;
        let path = common.config.clone().unwrap_or_else(|| home.join("config.toml"));
        private::check_file(&path)?;
        let file = File::read(&path, common.config.is_some())?;
        let toolsets = toolsets(common, &file, &path)?;
        let discovers = env::discovers() && file.discovers();
        let inherited = Inherited::read(&toolsets, &place, discovers, file.has_project_files())?;
        let file = file.over(inherited.table()).context(path.display().to_string())?;
        let mut config = Config::new(&file, &place).map_err(|error| {
            let origin = error.key().and_then(|key| inherited.origin(key));
            let origin = origin.map_or_else(|| path.display().to_string(), str::to_owned);
            anyhow::Error::new(error).context(origin)
        })?;
        let program = std::env::current_exe().context("cannot find our own program")?;
        private::check_not_guests(&path, &config.guest_paths)?;
        let approvals = ServerApprovals::new(&home);
        let rules = Rules {
            discovery: config.discovery.clone(),
            guest_paths: config.guest_paths.clone(),
            approvals: Some(approvals.clone()),
        };
        let named: Vec<PathBuf> =
            inherited.servers.into_iter().chain(common.mcp_config.iter().cloned()).collect();
        let mut sources = Sources::new(path.clone(), &named, rules, &program);
        sources.stand_for(&toolsets, discovers);
        let found = sources.first()?;
        let warden = Warden::new(program.clone(), "warden");
        let settings = codexec_gateway::Settings {
            catalogue_wait,
            cache,
            variable: env::variable,
            home: Some(home.clone()),
            user_home: place.user_home.clone(),
            guest_paths: config.guest_paths.clone(),
            ..codexec_gateway::Settings::new(env::for_upstreams(), warden)
        };
        let upstreams = config.upstreams.applied_to(settings);
        let gateway = Gateway::new(used(&found), upstreams.clone());
        config.policy.tools = config.allowed.tools_of(&gateway.server_names())?;
        Ok(Parts {
            config,
            home,
            program,
            gateway,
            upstreams,
            approvals,
            own_file: path,
            sources,
            found,
            toolsets,
        })
    }

    /// Lets code work in this directory: the user's own word, by which what is forbidden stays so.
    pub(crate) fn allow_working_dir(&mut self, dir: Option<PathBuf>) {
        let Some(dir) = dir else { return };
        self.config.policy.files.allowed.push(dir.clone());
        self.config.guest_paths.files.allowed.push(dir);
        self.upstreams.guest_paths = self.config.guest_paths.clone();
        // Nothing is started yet, so this one knows it from the first start on.
        self.gateway = Gateway::new(used(&self.found), self.upstreams.clone());
    }

    pub(crate) fn workers(&self, role: &'static str) -> Workers {
        Workers::new(self.settings(role))
    }

    /// How guests are run; `role` makes our own binary the zygote of its engine.
    pub(crate) fn settings(&self, role: &'static str) -> codexec_exec::Settings {
        codexec_exec::Settings {
            program: self.program.clone(),
            role,
            programs_role: "zygote-programs",
            mounter_role: "mounter",
            limits: self.config.policy.limits,
            python: self.config.python.clone(),
            node: self.config.node.clone(),
            path: env::path(),
            home: env::user_home(),
            guest_paths: self.config.guest_paths.clone(),
            environment: self.config.environment.clone(),
            max: self.config.max_workers,
            warm: self.config.warm_workers,
            queue: 200,
            queue_wait: Duration::from_secs(30),
            lowered: self.config.lowered.clone(),
            packages: codexec_exec::packages::Settings {
                environment: env::for_installers(),
                ..self.config.packages.clone()
            },
        }
    }

    /// Starts nothing yet.
    pub(crate) fn app(self) -> anyhow::Result<App> {
        self.app_and_reload().map(|(app, _)| app)
    }

    /// The same, and what is needed to follow the files that name servers.
    pub(crate) fn app_and_reload(self) -> anyhow::Result<(App, Reload)> {
        for problem in &self.found.problems {
            match problem.effect {
                Effect::LeftOut => tracing::warn!(%problem, "in a file that names servers"),
                Effect::Kept => tracing::info!(%problem, "in a file that names servers"),
            }
        }
        let workers = self.workers("zygote-js");
        make_private(&self.home)?;
        let logs = self.config.logs;
        let records = Records::at(self.home.clone()).kept(logs.durability, logs.retention);
        let reload = Reload {
            sources: self.sources,
            now: self.found,
            allowed: self.config.allowed,
            home: self.home,
        };
        let scripts = Library::at(self.config.scripts);
        let (policy, sessions) = (self.config.policy, self.config.sessions);
        let app = App::new(policy, workers, self.gateway, records, sessions, scripts);
        let app = app.with_seeds(self.config.seeds).with_budget(self.config.budget);
        reload.tell(&app);
        Ok((app, reload))
    }
}

/// Where we were started, by whom.
pub(crate) fn place() -> anyhow::Result<Place> {
    let home = env::home().context("neither CODEXEC_HOME nor HOME is set")?;
    Ok(Place {
        cores: std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
        user_home: env::user_home(),
        state: std::path::absolute(&home).context("CODEXEC_HOME")?,
        here: std::env::current_dir().ok(),
        variable: env::variable,
    })
}

/// The nearest word counts: the command line's, the environment's, the settings'.
fn toolsets(common: &Common, file: &File, path: &Path) -> anyhow::Result<Toolsets> {
    let chosen = |names: &[String]| Toolsets::parse(names.iter().map(String::as_str));
    match (&common.toolset, env::toolset(), &file.toolset) {
        (Some(names), _, _) => chosen(names).context("--toolset"),
        (None, Some(names), _) => chosen(&[names]).context("CODEXEC_TOOLSET"),
        (None, None, Some(names)) => {
            chosen(names).with_context(|| format!("{}: `toolset`", path.display()))
        }
        (None, None, None) => Ok(Toolsets::default()),
    }
}

/// Our state is for its owner alone.
fn make_private(home: &Path) -> anyhow::Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
    made.with_context(|| format!("cannot make {}", home.display()))?;
    if !home.is_dir() {
        bail!("{} is not a directory", home.display());
    }
    Ok(())
}
