//! Reading the files that name servers: our own, and other programs'. Pure: the text comes in,
//! and what lies outside of it is asked of the caller.

mod approvals;
mod client;
mod dialect;
mod entry;
mod expand;
mod merge;
mod name;
mod node;
mod ourselves;
mod pending;
mod places;
mod relative;
mod section;
mod server;
mod syntax;

use std::path::{Path, PathBuf};

use codexec_types::ServerName;

pub use approvals::Approvals;
pub use client::{Client, Reach};
use entry::Entry;
pub use merge::merge;
use node::Node;
pub use ourselves::replaced;
pub(crate) use pending::key;
pub use pending::{PendingEntry, ProjectServers};
pub use places::{Holds, Place, Whereabouts, places};
pub(crate) use relative::{is_code, is_interpreter, program_name};
use section::{Section, section};
pub use server::{
    Narrow, OAuthConfig, RemoteConfig, RemoteKind, Secret, ServerConfig, StdioConfig,
    TransportConfig, TrustMode,
};
use syntax::{Syntax, SyntaxError};

/// One file names no more servers than this; the rest is left out.
const MAX_SERVERS: usize = 1_000;
/// One file is told about no more often than this.
const MAX_PROBLEMS: usize = 100;

/// What one file gave. A bad entry never hides a good one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    pub servers: Vec<Found>,
    /// Servers that start only after the user's approval. Set by [`merge`]; until then they are
    /// among `servers`.
    pub waiting: Vec<Found>,
    /// What our own file says about servers, whoever names them.
    pub tunings: Vec<Tuning>,
    pub problems: Vec<Problem>,
    /// The file could not be read as a whole: what it gave before still holds.
    pub is_broken: bool,
}

/// A server, and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub config: ServerConfig,
    pub client: Client,
    pub line: u32,
    /// Why it is not used.
    pub off: Option<String>,
    /// What the user has to approve before it is used.
    pub pending: Option<PendingEntry>,
}

/// What our own file says about a server that any file may name.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    pub name: ServerName,
    pub narrow: Narrow,
    /// `enabled`, as far as it is written.
    pub is_on: Option<bool>,
    pub file: PathBuf,
    pub line: u32,
    /// The entry has nothing but this, so somebody else has to name the server.
    pub is_alone: bool,
}

/// Something in a file that its author should know of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}:{line}: {what}", .file.display())]
pub struct Problem {
    pub file: PathBuf,
    pub line: u32,
    pub client: Client,
    /// As written, cut to 80 characters; `None` when it is about the whole file.
    pub server: Option<String>,
    /// A sentence.
    pub what: String,
    pub effect: Effect,
}

/// What a [`Problem`] led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The file or the server is not used.
    LeftOut,
    /// It is used as it stands.
    Kept,
}

/// Where a file stands and what it is read for.
pub struct Scope<'a> {
    pub source: &'a Path,
    pub client: Client,
    pub reach: Reach,
    pub approvals: &'a Approvals,
    pub project_servers: ProjectServers,
    /// Guests may have written the file.
    pub is_guest_writable: bool,
    pub world: World<'a>,
}

/// What lies outside of a file.
#[derive(Clone, Copy)]
pub struct World<'a> {
    pub home: Option<&'a Path>,
    /// The directory we were started in.
    pub here: Option<&'a Path>,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// A short file that an entry refers to.
    pub text_of: &'a dyn Fn(&Path) -> Option<String>,
    /// Whether this command is our own binary.
    pub is_own_program: &'a dyn Fn(&str) -> bool,
}

/// The text of a file, read once for all that is looked for in it.
pub struct Document {
    root: Result<Node, SyntaxError>,
    syntax: Syntax,
}

impl Document {
    /// How long such a file may be: large, but not endless.
    pub fn max_bytes(client: Client, path: &Path) -> u64 {
        Syntax::of(client, path).max_bytes()
    }

    /// As this client writes it.
    pub fn new(text: &str, client: Client) -> Document {
        Document::at(Path::new(""), text, client)
    }

    /// The same; whoever names a file may name one in TOML.
    pub fn at(path: &Path, text: &str, client: Client) -> Document {
        let syntax = Syntax::of(client, path);
        Document { root: syntax.parse(text), syntax }
    }

    /// All of it, for whoever looks for something else in it; or a sentence why not.
    pub fn into_json(self) -> Result<serde_json::Value, String> {
        let language = self.syntax.name();
        self.root.map(Node::into_json).map_err(|error| {
            let SyntaxError { line, column, what } = error;
            format!("it is not {language}: {what}, at line {line}, column {column}")
        })
    }
}

/// What one file says about servers.
pub fn parse(document: &Document, scope: &Scope<'_>) -> Parsed {
    let mut parsed = Parsed::default();
    let root = match &document.root {
        Ok(root) => root,
        Err(error) => {
            let (language, what, column) = (document.syntax.name(), &error.what, error.column);
            let what = format!("it is not {language}: {what}, at column {column}");
            parsed.tell(scope, error.line, None, what);
            parsed.is_broken = true;
            return parsed;
        }
    };
    if let Some(section) = section(root, scope, &mut parsed) {
        read_section(&section, scope, &mut parsed);
    }
    parsed.shorten(scope);
    parsed
}

/// A file that is there and could not even be read.
pub fn unreadable(why: &str, scope: &Scope<'_>) -> Parsed {
    let mut parsed = Parsed { is_broken: true, ..Parsed::default() };
    parsed.tell(scope, 1, None, why.to_owned());
    parsed
}

fn read_section(section: &Section<'_>, scope: &Scope<'_>, parsed: &mut Parsed) {
    for (name, node) in section.entries.iter().take(MAX_SERVERS) {
        read_entry(name, node, section, scope, parsed);
    }
    if let Some((_, node)) = section.entries.get(MAX_SERVERS) {
        let left = section.entries.len() - MAX_SERVERS;
        let what = format!("{left} more servers are left out; {MAX_SERVERS} of one file are read");
        parsed.tell(scope, node.line, None, what);
    }
}

fn read_entry(
    written: &str,
    node: &Node,
    section: &Section<'_>,
    scope: &Scope<'_>,
    parsed: &mut Parsed,
) {
    let mut entry = Entry::new(written, node, scope, section.dialect);
    let mut off = entry.is_off().then(|| "it is switched off there".to_owned());
    off = off.or_else(|| section.objection(written).map(str::to_owned));
    off = off.or_else(|| pending::objection(scope));
    if scope.client == Client::Own {
        let (tuning, bad) = merge::tuning(&mut entry);
        parsed.tunings.extend(tuning);
        if let Some(bad) = bad {
            parsed.tell(scope, bad.line, Some(written), bad.what);
            return;
        }
        // Whether it is on is for all of that name, not only for this entry.
        off = None;
    }
    let line = node.line;
    match entry.read() {
        Ok(Some(config)) => {
            if off.is_none() {
                for note in std::mem::take(&mut entry.notes) {
                    parsed.note(scope, line, Some(written), note);
                }
            }
            let pending = PendingEntry::of(&entry);
            parsed.servers.push(Found { config, client: scope.client, line, off, pending });
        }
        Ok(None) => {}
        // Nobody wants to hear what is wrong with what is switched off.
        Err(_) if off.is_some() => {}
        Err(bad) => parsed.tell(scope, bad.line, Some(written), bad.what),
    }
}

impl Parsed {
    fn tell(&mut self, scope: &Scope<'_>, line: u32, server: Option<&str>, what: String) {
        self.push(scope, line, server, what, Effect::LeftOut);
    }

    fn note(&mut self, scope: &Scope<'_>, line: u32, server: Option<&str>, what: String) {
        self.push(scope, line, server, what, Effect::Kept);
    }

    fn push(
        &mut self,
        scope: &Scope<'_>,
        line: u32,
        server: Option<&str>,
        what: String,
        effect: Effect,
    ) {
        let server = server.map(|name| name.chars().take(80).collect());
        let (file, client) = (scope.source.to_owned(), scope.client);
        self.problems.push(Problem { file, line, client, server, what, effect });
    }

    fn shorten(&mut self, scope: &Scope<'_>) {
        let left = self.problems.len().saturating_sub(MAX_PROBLEMS);
        if left > 0 {
            self.problems.truncate(MAX_PROBLEMS);
            self.note(scope, 1, None, format!("it has {left} more problems like these"));
        }
    }
}

#[cfg(test)]
mod tests;
