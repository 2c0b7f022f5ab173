//! The files that name the user's MCP servers, and the servers in them.

mod approvals;
mod config_editor;
mod control;
mod reload;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use codexec_gateway::{
    ClaudeApprovals, ConfigDocument, ConfigEnv, ConfigLocation, ConfigOwner, ConfigProblem,
    ConfigScope, ConfigSource, LocationEnv, LocationKind, ParsedConfig, ProjectServers,
    ServerApprovals, ServerConfig, ServerTuning, find_config_locations, find_replaced_system,
    merge_configs, parse_config, read_text, unreadable_config,
};
use codexec_types::GuestPaths;

pub(crate) use config_editor::ConfigEditor;
pub(crate) use control::ask_for_restart;
pub(crate) use reload::Reloader;

use codexec_server::{Toolset, Toolsets};

use crate::config::DiscoverySettings;
use crate::env;

/// The size limit of files that an entry refers to, such as `envFile`.
const MAX_SMALL_FILE_BYTES: u64 = 64 << 10;
/// The most files that are read from one folder.
const MAX_FILES: usize = 200;

/// The server files, and the last valid content of each.
pub(crate) struct ServerSources {
    /// The path of `config.toml`.
    own: PathBuf,
    named: Vec<PathBuf>,
    rules: ServerRules,
    /// The seeds whose toolset is chosen.
    replaced: Vec<ConfigOwner>,
    user_home: Option<PathBuf>,
    here: Option<PathBuf>,
    /// The canonical path of codexec's own binary.
    program: PathBuf,
    last_good: HashMap<(PathBuf, ConfigScope), ParsedConfig>,
    /// Resolves `${VAR}` references in the files.
    variable: fn(&str) -> Option<String>,
}

/// The rules for servers that files name.
pub(crate) struct ServerRules {
    pub(crate) discovery: DiscoverySettings,
    pub(crate) guest_paths: GuestPaths,
    /// `None` if no server will be started.
    pub(crate) approvals: Option<ServerApprovals>,
}

impl ServerSources {
    pub(crate) fn new(
        own: PathBuf,
        named: &[PathBuf],
        mut rules: ServerRules,
        program: &Path,
    ) -> ServerSources {
        if !env::is_discovery_enabled() {
            rules.discovery.clients.clear();
        }
        ServerSources {
            own,
            named: env::mcp_config_paths()
                .into_iter()
                .chain(env::servers_config())
                .chain(named.iter().cloned())
                .collect(),
            rules,
            replaced: Vec::new(),
            user_home: env::user_home(),
            here: std::env::current_dir().ok(),
            program: program.canonicalize().unwrap_or_else(|_| program.to_owned()),
            last_good: HashMap::new(),
            variable: env::variable,
        }
    }

    /// Reads the servers from the files of one seed and the `named` files, or from these alone.
    /// References to variables stay references, in the syntax of `config.toml`.
    pub(crate) fn read_system(
        client: Option<ConfigOwner>,
        named: Vec<PathBuf>,
        is_alone: bool,
    ) -> anyhow::Result<ParsedConfig> {
        let from_variables = match client {
            _ if is_alone => Vec::new(),
            Some(ConfigOwner::CodeExecutor) => env::mcp_config_paths(),
            Some(ConfigOwner::CodeExecutionMode) => env::servers_config().into_iter().collect(),
            Some(_) | None => Vec::new(),
        };
        let clients = client.filter(|_| !is_alone).into_iter().collect();
        let mut sources = ServerSources {
            own: PathBuf::new(),
            named: named.into_iter().chain(from_variables).collect(),
            rules: ServerRules {
                discovery: DiscoverySettings {
                    clients,
                    has_project_files: false,
                    project_servers: ProjectServers::Off,
                },
                guest_paths: GuestPaths::default(),
                approvals: None,
            },
            replaced: client.into_iter().collect(),
            user_home: env::user_home(),
            here: std::env::current_dir().ok(),
            program: PathBuf::new(),
            last_good: HashMap::new(),
            variable: |name| env::variable(name).map(|_| format!("${{{name}}}")),
        };
        sources.read_at_start()
    }

    /// Treats the chosen toolsets' seeds as replaced: disables the seeds themselves as servers, and
    /// reads their server files too if `discovers`.
    pub(crate) fn replace_systems(&mut self, toolsets: &Toolsets, discovers: bool) {
        self.replaced = toolsets.iter().filter_map(replaced_client).collect();
        if discovers {
            self.rules.discovery.clients.extend(&self.replaced);
        }
    }

    /// Reads the servers at start-up. A file that the user named must exist and be valid.
    pub(crate) fn read_at_start(&mut self) -> anyhow::Result<ParsedConfig> {
        let all = self.read();
        let is_fatal = |problem: &&ConfigProblem| {
            problem.client == ConfigOwner::Named && problem.server.is_none()
        };
        if let Some(problem) = all.problems.iter().find(is_fatal) {
            bail!("{problem}");
        }
        Ok(all)
    }

    /// Reads the servers. A file that has become invalid keeps its last valid content.
    pub(crate) fn read(&mut self) -> ParsedConfig {
        let mut documents = HashMap::new();
        let approvals = self.read_claude_approvals(&mut documents);
        let places = self.source_files();
        let files = places.into_iter().filter_map(|place| {
            let document = documents
                .entry((place.path.clone(), place.client))
                .or_insert_with(|| read_document(&place));
            let parsed = self.parse_source(&place, document.as_ref()?, &approvals);
            Some((place, parsed))
        });
        let files: Vec<(ConfigLocation, ParsedConfig)> = files.collect();
        let known: Vec<_> = files.iter().map(|(place, _)| source_key(place)).collect();
        self.last_good.retain(|key, _| known.contains(key));
        let mut files: Vec<(ConfigLocation, ParsedConfig)> = files
            .into_iter()
            .map(|(place, parsed)| {
                let parsed = self.or_last_good(&place, parsed);
                (place, parsed)
            })
            .collect();
        self.apply_approvals(&mut files, &approvals);
        let mut all = merge_configs(files.into_iter().map(|(_, parsed)| parsed).collect());
        self.leave_out_replaced(&mut all);
        all
    }

    /// Disables replaced seeds, unless the user enabled them: they would run the same code again.
    fn leave_out_replaced(&self, all: &mut ParsedConfig) {
        for found in all.servers.iter_mut().filter(|found| found.off.is_none()) {
            let name = &found.config.name;
            let is_wanted = |t: &ServerTuning| t.name == *name && t.is_on == Some(true);
            let system =
                find_replaced_system(&found.config).filter(|client| self.replaced.contains(client));
            if let Some(system) = system
                && !all.tunings.iter().any(is_wanted)
            {
                found.off = Some(format!(
                    "codexec replaces it with the toolset {}; `codexec servers enable {name}` \
                     enables it anyway",
                    system.name()
                ));
            }
        }
    }

    fn parse_source(
        &self,
        place: &ConfigLocation,
        document: &Result<ConfigDocument, String>,
        approvals: &ClaudeApprovals,
    ) -> ParsedConfig {
        let world = ConfigEnv {
            home: self.user_home.as_deref(),
            here: self.here.as_deref(),
            variable: &self.variable,
            text_of: &|path| read_text(path, MAX_SMALL_FILE_BYTES).ok(),
            is_own_program: &|command| self.is_own_program(command),
        };
        let (client, reach) = (place.client, place.reach);
        let scope = ConfigSource {
            source: &place.path,
            client,
            reach,
            approvals,
            project_servers: self.rules.discovery.project_servers,
            is_guest_writable: self.is_guest_writable(&place.path),
            world,
        };
        match document {
            Ok(document) => parse_config(document, &scope),
            Err(why) => unreadable_config(why, &scope),
        }
    }

    /// Parses `text` as if it were the content of `config.toml`.
    pub(crate) fn parse_own_text(&self, text: &str) -> ParsedConfig {
        let path = self.own.clone();
        let place = ConfigLocation {
            client: ConfigOwner::Codexec,
            reach: ConfigScope::Own,
            path,
            holds: LocationKind::File,
        };
        let document = Ok(ConfigDocument::new(text, ConfigOwner::Codexec));
        self.parse_source(&place, &document, &ClaudeApprovals::default())
    }

    fn or_last_good(&mut self, place: &ConfigLocation, mut parsed: ParsedConfig) -> ParsedConfig {
        if !parsed.is_broken {
            self.last_good.insert(source_key(place), parsed.clone());
            return parsed;
        }
        if let Some(last_good) = self.last_good.get(&source_key(place)) {
            parsed.servers.clone_from(&last_good.servers);
            parsed.tunings.clone_from(&last_good.tunings);
            for problem in &mut parsed.problems {
                problem.what.push_str("; its last valid content still applies");
            }
        }
        parsed
    }

    /// Returns all files, in ascending order of precedence; folders are expanded.
    fn source_files(&self) -> Vec<ConfigLocation> {
        let whereabouts = self.whereabouts();
        let mut found = Vec::new();
        for place in find_config_locations(&self.rules.discovery.clients, &whereabouts) {
            if place.reach == ConfigScope::Project && !self.rules.discovery.has_project_files {
                continue;
            }
            match place.holds {
                LocationKind::File => found.push(place),
                LocationKind::Files => found.extend(list_json_files(&place)),
            }
        }
        let holds = LocationKind::File;
        let own = ConfigLocation {
            client: ConfigOwner::Codexec,
            reach: ConfigScope::Own,
            path: self.own.clone(),
            holds,
        };
        let named = self.named.iter().cloned();
        let named = named.map(|path| ConfigLocation {
            client: ConfigOwner::Named,
            reach: ConfigScope::Named,
            path,
            holds,
        });
        found.into_iter().chain([own]).chain(named).collect()
    }

    fn whereabouts(&self) -> LocationEnv<'_> {
        LocationEnv {
            home: self.user_home.as_deref(),
            here: self.here.as_deref(),
            variable: &env::variable,
        }
    }

    /// Returns true if a command is codexec's own binary, under any name or link.
    fn is_own_program(&self, command: &str) -> bool {
        let is_own = |path: &Path| path.canonicalize().is_ok_and(|real| real == self.program);
        if command.contains('/') {
            return is_own(Path::new(command));
        }
        std::env::split_paths(&env::path())
            .map(|folder| folder.join(command))
            .find(|path| path.is_file())
            .is_some_and(|path| is_own(&path))
    }

    /// Returns the files and folders whose changes can change the servers.
    fn paths_to_watch(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let whereabouts = self.whereabouts();
        let (files, folders): (Vec<ConfigLocation>, Vec<ConfigLocation>) =
            find_config_locations(&self.rules.discovery.clients, &whereabouts)
                .into_iter()
                .partition(|place| place.holds == LocationKind::File);
        let mut files: Vec<PathBuf> = files.into_iter().map(|place| place.path).collect();
        if self.rules.discovery.clients.contains(&ConfigOwner::ClaudeCode) {
            files.extend(whereabouts.claude_settings());
        }
        files.push(self.own.clone());
        files.extend(self.named.iter().cloned());
        // Relative paths are fixed now, so that a later chdir does not change their meaning.
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let folders = folders.into_iter().map(|place| place.path);
        let approvals = self.rules.approvals.iter().map(|kept| kept.folder().to_owned());
        (files.into_iter().map(whole).collect(), folders.chain(approvals).collect())
    }
}

/// Returns the client that a toolset replaces.
pub(crate) fn replaced_client(toolset: Toolset) -> Option<ConfigOwner> {
    match toolset {
        Toolset::CodeExecutor => Some(ConfigOwner::CodeExecutor),
        Toolset::CodeExecutionMode => Some(ConfigOwner::CodeExecutionMode),
        Toolset::Mcpproxy => Some(ConfigOwner::Mcpproxy),
        Toolset::Codexec | Toolset::Compact | Toolset::Direct => None,
    }
}

/// Returns the enabled servers.
pub(crate) fn enabled_configs(parsed: &ParsedConfig) -> Vec<ServerConfig> {
    parsed
        .servers
        .iter()
        .filter(|found| found.off.is_none())
        .map(|found| found.config.clone())
        .collect()
}

/// Returns the names of servers that wait for the user's approval.
pub(crate) fn waiting_names(parsed: &ParsedConfig) -> Vec<String> {
    let waiting = parsed.waiting.iter().filter(|found| found.off.is_none());
    let mut names: Vec<String> = waiting.map(|found| found.config.name.to_string()).collect();
    names.sort();
    names.dedup();
    names
}

/// Parsed files; `None` for a missing file.
type Documents = HashMap<(PathBuf, ConfigOwner), Option<Result<ConfigDocument, String>>>;

fn source_key(place: &ConfigLocation) -> (PathBuf, ConfigScope) {
    (place.path.clone(), place.reach)
}

fn read_document(place: &ConfigLocation) -> Option<Result<ConfigDocument, String>> {
    let (path, client) = (&place.path, place.client);
    match read_text(path, ConfigDocument::max_bytes(client, path)) {
        Ok(text) => Some(Ok(ConfigDocument::from_file(path, &text, client))),
        Err(error) if is_absent(&error) && client != ConfigOwner::Named => None,
        Err(error) => Some(Err(format!("it cannot be read: {error}"))),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn list_json_files(folder: &ConfigLocation) -> Vec<ConfigLocation> {
    let Ok(entries) = std::fs::read_dir(&folder.path) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    paths.sort();
    paths.truncate(MAX_FILES);
    let place = |path| ConfigLocation { path, holds: LocationKind::File, ..folder.clone() };
    paths.into_iter().map(place).collect()
}
