use std::path::PathBuf;

use codexec_types::{Asked, Files, Json, Language, Request};

use crate::working_dir::{DirError, find};

/// Code that somebody wants to run, as an edge has read it. Nothing in it has been checked, and
/// nothing looked up.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub language: Language,
    pub code: String,
    pub input: Json,
    /// As a program's arguments.
    pub args: Vec<String>,
    /// A directory of the user's to work in, as it was written.
    pub working_dir: Option<PathBuf>,
    pub asked: Asked,
}

impl Wanted {
    /// The one look at the disk that a request takes.
    pub(crate) async fn found(self, files: &Files) -> Result<Request, DirError> {
        let Wanted { language, code, input, args, working_dir, asked } = self;
        let working_dir = match working_dir {
            Some(path) => Some(find(path, files).await?),
            None => None,
        };
        Ok(Request { language, code, input, args, working_dir, asked })
    }
}
