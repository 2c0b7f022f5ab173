//! Reads the config files of all clients, and keeps the last valid content of each.

mod approvals;
mod files;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use codexec_files::read_text;
use codexec_types::GuestPaths;

use files::read_document;

use crate::{
    ConfigDocument, ConfigOwner, ConfigProblem, ParsedConfig, ProjectServers, ServerApprovals,
    claude_approvals::ClaudeApprovals,
    client::ConfigScope,
    locations::{ConfigLocation, LocationKind},
    merge::merge_configs,
    own_program::find_replaced_system,
    parse::{ConfigEnv, ConfigSource, ServerTuning, parse_config, unreadable_config},
};

/// The size limit of files that an entry refers to, such as `envFile`.
const MAX_SMALL_FILE_BYTES: u64 = 64 << 10;

/// The server files, and the last valid content of each.
pub struct ServerSources {
    /// The path of `config.toml`.
    own: PathBuf,
    named: Vec<PathBuf>,
    rules: ServerRules,
    /// The seeds whose toolset is chosen.
    replaced: Vec<ConfigOwner>,
    /// The canonical path of codexec's own binary.
    program: PathBuf,
    last_good: HashMap<(PathBuf, ConfigScope), ParsedConfig>,
    host: SourceEnv,
    /// True if references to variables stay references, in the syntax of `config.toml`.
    keeps_references: bool,
}

/// The clients whose files are searched for servers.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscoverySettings {
    pub clients: Vec<ConfigOwner>,
    pub has_project_files: bool,
    pub project_servers: ProjectServers,
}

/// The directories and variables of the process that the files depend on.
pub struct SourceEnv {
    pub user_home: Option<PathBuf>,
    /// The directory that codexec was started in.
    pub here: Option<PathBuf>,
    /// The search path for programs.
    pub path: OsString,
    pub variable: fn(&str) -> Option<String>,
}

/// The rules for servers that files name.
pub struct ServerRules {
    pub discovery: DiscoverySettings,
    pub guest_paths: GuestPaths,
    /// `None` if no server will be started.
    pub approvals: Option<ServerApprovals>,
}

impl ServerSources {
    /// `own` is the path of `config.toml`, `named` are the files that the user named, and `program`
    /// is codexec's own binary.
    pub fn new(
        own: PathBuf,
        named: Vec<PathBuf>,
        rules: ServerRules,
        program: &Path,
        host: SourceEnv,
    ) -> ServerSources {
        ServerSources {
            own,
            named,
            rules,
            replaced: Vec::new(),
            program: program.canonicalize().unwrap_or_else(|_| program.to_owned()),
            last_good: HashMap::new(),
            host,
            keeps_references: false,
        }
    }

    /// Reads the servers from the `named` files and, if `client` is given, from the files of this
    /// seed. References to variables stay references, in the syntax of `config.toml`.
    pub fn read_system(
        client: Option<ConfigOwner>,
        named: Vec<PathBuf>,
        replaced: Option<ConfigOwner>,
        host: SourceEnv,
    ) -> Result<ParsedConfig, ConfigProblem> {
        let discovery = DiscoverySettings {
            clients: client.into_iter().collect(),
            has_project_files: false,
            project_servers: ProjectServers::Off,
        };
        let rules = ServerRules { discovery, guest_paths: GuestPaths::default(), approvals: None };
        let mut sources = ServerSources {
            own: PathBuf::new(),
            named,
            rules,
            replaced: replaced.into_iter().collect(),
            program: PathBuf::new(),
            last_good: HashMap::new(),
            host,
            keeps_references: true,
        };
        sources.read_at_start()
    }

    /// Disables these seeds as servers, because codexec replaces them, and reads their server files
    /// too if `discovers`.
    pub fn replace_systems(&mut self, replaced: Vec<ConfigOwner>, discovers: bool) {
        self.replaced = replaced;
        if discovers {
            self.rules.discovery.clients.extend(&self.replaced);
        }
    }

    /// Reads the servers at start-up. A file that the user named must exist and be valid.
    pub fn read_at_start(&mut self) -> Result<ParsedConfig, ConfigProblem> {
        let all = self.read();
        let is_fatal = |problem: &&ConfigProblem| {
            problem.client == ConfigOwner::Named && problem.server.is_none()
        };
        match all.problems.iter().find(is_fatal) {
            Some(problem) => Err(problem.clone()),
            None => Ok(all),
        }
    }

    /// Reads the servers. References to variables stay references, in the syntax of `config.toml`.
    pub fn read_references(&mut self) -> ParsedConfig {
        let before = std::mem::replace(&mut self.keeps_references, true);
        let parsed = self.read();
        self.keeps_references = before;
        parsed
    }

    /// Reads the servers. A file that has become invalid keeps its last valid content.
    pub fn read(&mut self) -> ParsedConfig {
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
            home: self.host.user_home.as_deref(),
            here: self.host.here.as_deref(),
            variable: &|name| self.variable(name),
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

    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.host.variable)(name)?;
        Some(if self.keeps_references { format!("${{{name}}}") } else { value })
    }

    /// Parses `text` as if it were the content of `config.toml`.
    pub fn parse_own_text(&self, text: &str) -> ParsedConfig {
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
}

/// Parsed files; `None` for a missing file.
type Documents = HashMap<(PathBuf, ConfigOwner), Option<Result<ConfigDocument, String>>>;

fn source_key(place: &ConfigLocation) -> (PathBuf, ConfigScope) {
    (place.path.clone(), place.reach)
}
