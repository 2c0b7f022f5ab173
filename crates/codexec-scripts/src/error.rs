use std::io;

use codexec_types::{InvalidPackage, Language};

/// Why the library could not do what was asked; a variant for each thing a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error(
        "{given:?} cannot be the name of a script; use 1 to 64 of the characters A-Z a-z 0-9 _ - . \
         and space, beginning with a letter or digit"
    )]
    Name { given: String },
    #[error(
        "the name {given:?} is too like {taken:?}, which is another script; save under exactly \
         {taken:?} to make a new version of it, or choose another name"
    )]
    NameTaken { given: String, taken: String },
    #[error("there is a script {name:?} already")]
    Exists { name: String },
    #[error("`{field}` {problem}")]
    Field { field: &'static str, problem: Problem },
    #[error("there is no script {name:?}; {}", did_you_mean(.nearest))]
    NotFound { name: String, nearest: Vec<String> },
    #[error("script {name:?} has no version {version}; {}", which_are_kept(.kept))]
    NoVersion { name: String, version: u32, kept: Vec<u32> },
    #[error("the input does not fit the parameters of {name:?}: {}", .wrong.join("; "))]
    Input { name: String, wrong: Vec<String> },
    #[error("the library has its {most} scripts; delete one with delete_script first")]
    Full { most: usize },
    #[error(
        "the library holds its {most_mib} MiB, versions included; delete scripts with \
         delete_script first"
    )]
    TooLarge { most_mib: u64 },
    #[error("script {slug:?} cannot be used: {problem}; mend its files by hand, or delete it")]
    Broken { slug: String, problem: Broken },
    #[error("another codexec does not let go of the script library; try again")]
    Busy,
    #[error("the script library at {path} cannot be {doing}; is it a folder of yours with room?")]
    Files { path: String, doing: &'static str, source: io::Error },
}

/// What is wrong with a field that somebody has given.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("has {found} bytes; at most {most} are allowed")]
    TooLong { found: usize, most: usize },
    #[error("has {found} entries; at most {most} are allowed")]
    TooMany { found: usize, most: usize },
    #[error("must not be empty")]
    Empty,
    #[error("has {0:?} in it; a tag has 1 to 64 characters, none of them invisible")]
    Tag(String),
    #[error("has a name that is none: {0}")]
    Package(#[from] InvalidPackage),
    #[error("{0:?} is not the id of an execution; it looks like exec_ and letters or digits")]
    ExecutionId(String),
    #[error("cannot be used as a JSON Schema of an object: {0}")]
    Schema(String),
}

/// What is wrong with a script's files.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("its folder cannot be used: {0}")]
    Folder(String),
    #[error("{file}: {problem}")]
    File { file: String, problem: String },
    #[error("it has no script.{} in it", endings())]
    NoCode,
    #[error("metadata.json: `{field}` {problem}")]
    Field { field: &'static str, problem: Problem },
}

impl ScriptError {
    /// Stable word for clients and metrics.
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
        [] => "list_scripts shows those there are".to_owned(),
        names => format!("did you mean {}?", names.join(", ")),
    }
}

fn which_are_kept(kept: &[u32]) -> String {
    match kept {
        [] => "no version is kept".to_owned(),
        [only] => format!("kept is version {only}"),
        [first, .., last] => format!("kept are versions {first} to {last}"),
    }
}

fn endings() -> String {
    Language::ALL.map(Language::short).join(" or .")
}
