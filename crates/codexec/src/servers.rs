//! Which files name the user's servers, and what they say now.

mod approvals;
mod control;
mod own_file;
mod reload;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use codexec_gateway::{
    Approvals, Client, Document, Holds, Parsed, Place, Problem, ProjectServers, Reach, Scope,
    ServerApprovals, ServerConfig, Tuning, Whereabouts, World, merge, parse, places, read_text,
    replaced, unreadable,
};
use codexec_types::GuestPaths;

pub(crate) use control::ask_for_restart;
pub(crate) use own_file::OwnFile;
pub(crate) use reload::Reload;

use codexec_server::{Toolset, Toolsets};

use crate::config::Discovery;
use crate::env;

/// Files that an entry refers to: variables, secrets.
const MAX_SMALL_FILE_BYTES: u64 = 64 << 10;
/// Files of one folder.
const MAX_FILES: usize = 200;

/// The files, and the last good that each gave.
pub(crate) struct Sources {
    /// Our own settings.
    own: PathBuf,
    named: Vec<PathBuf>,
    rules: Rules,
    /// The systems whose toolset is chosen.
    replaced: Vec<Client>,
    user_home: Option<PathBuf>,
    here: Option<PathBuf>,
    /// Our own binary, without links.
    program: PathBuf,
    good: HashMap<(PathBuf, Reach), Parsed>,
    /// What references in files stand for.
    variable: fn(&str) -> Option<String>,
}

/// What decides about the servers that files name.
pub(crate) struct Rules {
    pub(crate) discovery: Discovery,
    pub(crate) guest_paths: GuestPaths,
    /// Not set: whatever is asked for, nothing is started.
    pub(crate) approvals: Option<ServerApprovals>,
}

impl Sources {
    pub(crate) fn new(
        own: PathBuf,
        named: &[PathBuf],
        mut rules: Rules,
        program: &Path,
    ) -> Sources {
        if !env::discovers() {
            rules.discovery.clients.clear();
        }
        Sources {
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
            good: HashMap::new(),
            variable: env::variable,
        }
    }

    /// What the files of one system that we replace say, and those that were named; or these alone.
    /// References to variables are kept as our own file writes them.
    pub(crate) fn of_system(
        client: Option<Client>,
        named: Vec<PathBuf>,
        is_alone: bool,
    ) -> anyhow::Result<Parsed> {
        let from_variables = match client {
            _ if is_alone => Vec::new(),
            Some(Client::CodeExecutor) => env::mcp_config_paths(),
            Some(Client::CodeExecutionMode) => env::servers_config().into_iter().collect(),
            Some(_) | None => Vec::new(),
        };
        let clients = client.filter(|_| !is_alone).into_iter().collect();
        let mut sources = Sources {
            own: PathBuf::new(),
            named: named.into_iter().chain(from_variables).collect(),
            rules: Rules {
                discovery: Discovery {
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
            good: HashMap::new(),
            variable: |name| env::variable(name).map(|_| format!("${{{name}}}")),
        };
        sources.first()
    }

    /// The files of the systems whose toolset is chosen are read too, if files of other programs
    /// are, and the systems themselves are left out.
    pub(crate) fn stand_for(&mut self, toolsets: &Toolsets, discovers: bool) {
        self.replaced = toolsets.iter().filter_map(system).collect();
        if discovers {
            self.rules.discovery.clients.extend(&self.replaced);
        }
    }

    /// What they say at the start: a file that somebody named has to be there and whole.
    pub(crate) fn first(&mut self) -> anyhow::Result<Parsed> {
        let all = self.read();
        let is_fatal =
            |problem: &&Problem| problem.client == Client::Named && problem.server.is_none();
        if let Some(problem) = all.problems.iter().find(is_fatal) {
            bail!("{problem}");
        }
        Ok(all)
    }

    /// What they say now. A file that has become broken keeps what it said before.
    pub(crate) fn read(&mut self) -> Parsed {
        let mut documents = HashMap::new();
        let approvals = self.approvals(&mut documents);
        let places = self.places();
        let files = places.into_iter().filter_map(|place| {
            let document = documents
                .entry((place.path.clone(), place.client))
                .or_insert_with(|| document(&place));
            let parsed = self.parsed(&place, document.as_ref()?, &approvals);
            Some((place, parsed))
        });
        let files: Vec<(Place, Parsed)> = files.collect();
        let known: Vec<_> = files.iter().map(|(place, _)| key(place)).collect();
        self.good.retain(|key, _| known.contains(key));
        let mut files: Vec<(Place, Parsed)> = files
            .into_iter()
            .map(|(place, parsed)| {
                let parsed = self.last_good(&place, parsed);
                (place, parsed)
            })
            .collect();
        self.settle(&mut files, &approvals);
        let mut all = merge(files.into_iter().map(|(_, parsed)| parsed).collect());
        self.leave_out_replaced(&mut all);
        all
    }

    /// A system that we stand for would only run the same code again. The user may say otherwise.
    fn leave_out_replaced(&self, all: &mut Parsed) {
        for found in all.servers.iter_mut().filter(|found| found.off.is_none()) {
            let name = &found.config.name;
            let is_wanted = |t: &Tuning| t.name == *name && t.is_on == Some(true);
            let system = replaced(&found.config).filter(|client| self.replaced.contains(client));
            if let Some(system) = system
                && !all.tunings.iter().any(is_wanted)
            {
                found.off = Some(format!(
                    "codexec stands for it with the toolset {}; `codexec servers enable {name}` \
                     uses it all the same",
                    system.name()
                ));
            }
        }
    }

    fn parsed(
        &self,
        place: &Place,
        document: &Result<Document, String>,
        approvals: &Approvals,
    ) -> Parsed {
        let world = World {
            home: self.user_home.as_deref(),
            here: self.here.as_deref(),
            variable: &self.variable,
            text_of: &|path| read_text(path, MAX_SMALL_FILE_BYTES).ok(),
            is_own_program: &|command| self.is_own_program(command),
        };
        let (client, reach) = (place.client, place.reach);
        let scope = Scope {
            source: &place.path,
            client,
            reach,
            approvals,
            project_servers: self.rules.discovery.project_servers,
            is_guest_writable: self.is_guest_writable(&place.path),
            world,
        };
        match document {
            Ok(document) => parse(document, &scope),
            Err(why) => unreadable(why, &scope),
        }
    }

    /// What our own file would say if this were its text.
    pub(crate) fn own_text(&self, text: &str) -> Parsed {
        let path = self.own.clone();
        let place = Place { client: Client::Own, reach: Reach::Own, path, holds: Holds::File };
        let document = Ok(Document::new(text, Client::Own));
        self.parsed(&place, &document, &Approvals::default())
    }

    fn last_good(&mut self, place: &Place, mut parsed: Parsed) -> Parsed {
        if !parsed.is_broken {
            self.good.insert(key(place), parsed.clone());
            return parsed;
        }
        if let Some(good) = self.good.get(&key(place)) {
            parsed.servers.clone_from(&good.servers);
            parsed.tunings.clone_from(&good.tunings);
            for problem in &mut parsed.problems {
                problem.what.push_str("; what it said before still holds");
            }
        }
        parsed
    }

    /// Farthest first, every file by itself.
    fn places(&self) -> Vec<Place> {
        let whereabouts = self.whereabouts();
        let mut found = Vec::new();
        for place in places(&self.rules.discovery.clients, &whereabouts) {
            if place.reach == Reach::Project && !self.rules.discovery.has_project_files {
                continue;
            }
            match place.holds {
                Holds::File => found.push(place),
                Holds::Files => found.extend(files_of(&place)),
            }
        }
        let holds = Holds::File;
        let own = Place { client: Client::Own, reach: Reach::Own, path: self.own.clone(), holds };
        let named = self.named.iter().cloned();
        let named =
            named.map(|path| Place { client: Client::Named, reach: Reach::Named, path, holds });
        found.into_iter().chain([own]).chain(named).collect()
    }

    fn whereabouts(&self) -> Whereabouts<'_> {
        Whereabouts {
            home: self.user_home.as_deref(),
            here: self.here.as_deref(),
            variable: &env::variable,
        }
    }

    /// Whether a command is our binary, by whichever name or link.
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

    /// Files and folders whose change is a change of what is said.
    fn watched(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let whereabouts = self.whereabouts();
        let (files, folders): (Vec<Place>, Vec<Place>) =
            places(&self.rules.discovery.clients, &whereabouts)
                .into_iter()
                .partition(|place| place.holds == Holds::File);
        let mut files: Vec<PathBuf> = files.into_iter().map(|place| place.path).collect();
        if self.rules.discovery.clients.contains(&Client::ClaudeCode) {
            files.extend(whereabouts.claude_settings());
        }
        files.push(self.own.clone());
        files.extend(self.named.iter().cloned());
        // Relative ones are named from here on, wherever we may go.
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let folders = folders.into_iter().map(|place| place.path);
        let approvals = self.rules.approvals.iter().map(|kept| kept.folder().to_owned());
        (files.into_iter().map(whole).collect(), folders.chain(approvals).collect())
    }
}

/// Whose files and servers a toolset stands for.
pub(crate) fn system(toolset: Toolset) -> Option<Client> {
    match toolset {
        Toolset::CodeExecutor => Some(Client::CodeExecutor),
        Toolset::CodeExecutionMode => Some(Client::CodeExecutionMode),
        Toolset::Mcpproxy => Some(Client::Mcpproxy),
        Toolset::Codexec | Toolset::Compact | Toolset::Direct => None,
    }
}

/// Those that are not switched off.
pub(crate) fn used(parsed: &Parsed) -> Vec<ServerConfig> {
    parsed
        .servers
        .iter()
        .filter(|found| found.off.is_none())
        .map(|found| found.config.clone())
        .collect()
}

/// The names of those that wait for the user's approval.
pub(crate) fn waiting(parsed: &Parsed) -> Vec<String> {
    let waiting = parsed.waiting.iter().filter(|found| found.off.is_none());
    let mut names: Vec<String> = waiting.map(|found| found.config.name.to_string()).collect();
    names.sort();
    names.dedup();
    names
}

/// `None` for a file that is not there.
type Documents = HashMap<(PathBuf, Client), Option<Result<Document, String>>>;

fn key(place: &Place) -> (PathBuf, Reach) {
    (place.path.clone(), place.reach)
}

fn document(place: &Place) -> Option<Result<Document, String>> {
    let (path, client) = (&place.path, place.client);
    match read_text(path, Document::max_bytes(client, path)) {
        Ok(text) => Some(Ok(Document::at(path, &text, client))),
        Err(error) if is_absent(&error) && client != Client::Named => None,
        Err(error) => Some(Err(format!("it cannot be read: {error}"))),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn files_of(folder: &Place) -> Vec<Place> {
    let Ok(entries) = std::fs::read_dir(&folder.path) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    paths.sort();
    paths.truncate(MAX_FILES);
    let place = |path| Place { path, holds: Holds::File, ..folder.clone() };
    paths.into_iter().map(place).collect()
}
