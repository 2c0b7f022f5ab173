use std::path::PathBuf;
use std::sync::Arc;

use codexec_types::{
    AdmissionRequest, Json, Language, Policy, RequestedLimits, ToolFilter, ToolView,
    WorkingDirPolicy,
};

use crate::denial::RequestWords;
use crate::discovery::DiscoveryRules;
use crate::sessions::{OpenSession, Replay};
use crate::working_dir::{DirError, resolve_dir};

/// A request to run code, as an edge has parsed it. Nothing in it has been checked or looked up.
#[derive(Clone)]
pub struct ExecutionRequest {
    pub language: Language,
    pub code: String,
    pub input: Json,
    /// The program's arguments.
    pub args: Vec<String>,
    /// One of the user's directories to work in, as the client wrote it.
    pub working_dir: Option<PathBuf>,
    pub asked: RequestedLimits,
    /// The tools that the code can see.
    pub view: ToolView,
    /// The toolset's names for these fields, for errors and hints.
    pub words: RequestWords,
    /// The rules for searches of the code; with [`ToolView::Discovery`].
    pub(crate) discovery: Option<Arc<DiscoveryRules>>,
    /// The directories that this toolset allows, instead of the policy's.
    pub files: Option<WorkingDirPolicy>,
    /// The session to run in, or `None` for a worker of its own.
    pub(crate) session: Option<Arc<OpenSession>>,
    /// The name and version of the saved script that this is.
    pub(crate) script: Option<(String, u32)>,
    /// Recorded answers, for a cell that is replayed.
    pub(crate) replayed: Option<Arc<Replay>>,
}

impl ExecutionRequest {
    /// Creates a request for a worker of its own.
    pub fn new(language: Language, code: String) -> ExecutionRequest {
        ExecutionRequest {
            language,
            code,
            input: Json::null(),
            args: Vec::new(),
            working_dir: None,
            asked: RequestedLimits::default(),
            view: ToolView::default(),
            words: RequestWords::default(),
            discovery: None,
            files: None,
            session: None,
            script: None,
            replayed: None,
        }
    }

    /// Moves what a session's worker is made with, such as its directory, into a request that opens
    /// the session.
    pub(crate) fn split_off_session(&mut self) -> ExecutionRequest {
        let mut opening = ExecutionRequest::new(self.language, String::new());
        opening.working_dir = self.working_dir.take();
        opening
    }

    /// Lets the code find these tools by the rules of discovery. No others can be called.
    pub fn discover(&mut self, visible: ToolFilter, rules: DiscoveryRules) {
        self.view = ToolView::Discovery(visible);
        self.discovery = Some(Arc::new(rules));
    }

    /// Returns the policy with the directories of this request.
    pub(crate) fn policy(&mut self, policy: Arc<Policy>) -> Arc<Policy> {
        match self.files.take() {
            Some(files) => Arc::new(Policy { files, ..Policy::clone(&policy) }),
            None => policy,
        }
    }

    /// Resolves the working directory. This is the only disk access before a request is
    /// admitted.
    pub(crate) async fn resolve(
        self,
        files: &WorkingDirPolicy,
    ) -> Result<AdmissionRequest, DirError> {
        let ExecutionRequest { language, code, input, args, working_dir, asked, view, .. } = self;
        let working_dir = match working_dir {
            Some(path) => Some(resolve_dir(path, files).await?),
            None => None,
        };
        Ok(AdmissionRequest { language, code, input, args, working_dir, asked, view })
    }
}
