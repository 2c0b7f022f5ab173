use std::path::PathBuf;
use std::sync::Arc;

use codexec_types::{Asked, Files, Json, Language, Policy, Request};

use crate::discovery::Discovery;
use crate::sessions::{Replay, Session};
use crate::working_dir::{DirError, find};

/// Code that somebody wants to run, as an edge has read it. Nothing in it has been checked, and
/// nothing looked up.
#[derive(Clone)]
pub struct Wanted {
    pub language: Language,
    pub code: String,
    pub input: Json,
    /// As a program's arguments.
    pub args: Vec<String>,
    /// A directory of the user's to work in, as it was written.
    pub working_dir: Option<PathBuf>,
    pub asked: Asked,
    /// How the code learns of tools, if that is more than what it may call.
    pub(crate) discovery: Option<Arc<Discovery>>,
    /// The directories that this toolset opens, in place of the policy's.
    pub(crate) files: Option<Files>,
    /// Where it runs, if not in a worker of its own.
    pub(crate) session: Option<Arc<Session>>,
    /// The saved script that it is, and which version.
    pub(crate) script: Option<(String, u32)>,
    /// Answers from the record, for a cell that runs again.
    pub(crate) replayed: Option<Arc<Replay>>,
}

impl Wanted {
    /// Code for a worker of its own.
    pub fn new(language: Language, code: String) -> Wanted {
        Wanted {
            language,
            code,
            input: Json::null(),
            args: Vec::new(),
            working_dir: None,
            asked: Asked::default(),
            discovery: None,
            files: None,
            session: None,
            script: None,
            replayed: None,
        }
    }

    /// The policy, with the directories of this request.
    pub(crate) fn policy(&mut self, policy: Arc<Policy>) -> Arc<Policy> {
        match self.files.take() {
            Some(files) => Arc::new(Policy { files, ..Policy::clone(&policy) }),
            None => policy,
        }
    }

    /// The one look at the disk that a request takes.
    pub(crate) async fn found(self, files: &Files) -> Result<Request, DirError> {
        let Wanted { language, code, input, args, working_dir, asked, .. } = self;
        let working_dir = match working_dir {
            Some(path) => Some(find(path, files).await?),
            None => None,
        };
        Ok(Request { language, code, input, args, working_dir, asked })
    }
}
