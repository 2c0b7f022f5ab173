use std::io;

use codexec_types::{InvalidPackage, Language};

/// An error of the library, with a variant for each reaction of a caller.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error(
        "{given:?} cannot be the name of a script; use 1 to 64 of the characters A-Z a-z 0-9 _ - . \
         and space, starting with a letter or digit"
    )]
    Name { given: String },
    #[error(
        "the name {given:?} is too similar to the script {taken:?}; save under exactly {taken:?} \
         to make a new version of it, or choose another name"
    )]
    NameTaken { given: String, taken: String },
    #[error("there is already a script {name:?}")]
    Exists { name: String },
    #[error("`{field}` {problem}")]
    Field { field: &'static str, problem: FieldProblem },
    #[error("there is no script {name:?}; {}", did_you_mean(.nearest))]
    NotFound { name: String, nearest: Vec<String> },
    #[error("script {name:?} has no version {version}; {}", list_stored(.kept))]
    NoVersion { name: String, version: u32, kept: Vec<u32> },
    #[error("the input does not fit the parameters of {name:?}: {}", .wrong.join("; "))]
    Input { name: String, wrong: Vec<String> },
    #[error("the library is full: {most} scripts; delete one with delete_script first")]
    Full { most: usize },
    #[error(
        "the library is full: {most_mib} MiB, versions included; delete scripts with delete_script \
         first"
    )]
    TooLarge { most_mib: u64 },
    #[error("script {slug:?} cannot be used: {problem}; repair its files, or delete it")]
    Broken { slug: String, problem: ScriptFileError },
    #[error("another codexec process holds the lock of the script library; try again")]
    Busy,
    #[error(
        "the script library at {path} cannot be {doing}; it must be a folder that you can write, \
         on a disk with free space"
    )]
    Files { path: String, doing: &'static str, source: io::Error },
}

/// The problem with a field of a draft or of a script's metadata.
#[derive(Debug, thiserror::Error)]
pub enum FieldProblem {
    #[error("has {found} bytes; at most {most} are allowed")]
    TooLong { found: usize, most: usize },
    #[error("has {found} entries; at most {most} are allowed")]
    TooMany { found: usize, most: usize },
    #[error("must not be empty")]
    Empty,
    #[error("has an invalid tag {0:?}; a tag has 1 to 64 visible characters")]
    Tag(String),
    #[error("has an invalid name: {0}")]
    Package(#[from] InvalidPackage),
    #[error("{0:?} is not the id of an execution; it looks like exec_ and letters or digits")]
    ExecutionId(String),
    #[error("cannot be used as a JSON Schema of an object: {0}")]
    Schema(String),
}

/// The problem with a script's files.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFileError {
    #[error("its folder cannot be used: {0}")]
    Folder(String),
    #[error("{file}: {problem}")]
    File { file: String, problem: String },
    #[error("it contains no script.{}", list_extensions())]
    NoCode,
    #[error("metadata.json: `{field}` {problem}")]
    Field { field: &'static str, problem: FieldProblem },
}

impl ScriptError {
    /// Returns the stable error code for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            ScriptError::Name { .. } => "INVALID_SCRIPT_NAME",
            ScriptError::NameTaken { .. } => "SCRIPT_NAME_TAKEN",
            ScriptError::Exists { .. } => "SCRIPT_EXISTS",
            ScriptError::Field { .. } => "INVALID_SCRIPT",
            ScriptError::NotFound { .. } => "SCRIPT_NOT_FOUND",
            ScriptError::NoVersion { .. } => "SCRIPT_VERSION_NOT_FOUND",
            ScriptError::Input { .. } => "INVALID_INPUT",
            ScriptError::Full { .. } | ScriptError::TooLarge { .. } => "SCRIPT_LIBRARY_FULL",
            ScriptError::Broken { .. } => "SCRIPT_UNUSABLE",
            ScriptError::Busy => "SCRIPT_LIBRARY_BUSY",
            ScriptError::Files { .. } => "SCRIPT_LIBRARY_UNAVAILABLE",
        }
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => "list_scripts shows all scripts".to_owned(),
        names => format!("did you mean {}?", names.join(", ")),
    }
}

fn list_stored(versions: &[u32]) -> String {
    match versions {
        [] => "no version is stored".to_owned(),
        [only] => format!("only version {only} is stored"),
        [first, .., last] => format!("versions {first} to {last} are stored"),
    }
}

fn list_extensions() -> String {
    Language::ALL.map(Language::short).join(" or .")
}
