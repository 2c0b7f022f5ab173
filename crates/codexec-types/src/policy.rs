use std::time::Duration;

use crate::tools::grants_named_in;
use crate::{
    DirRefusal, Grants, InvalidPattern, Json, Language, Limits, Reach, ResolvedDir, ServerName,
    ToolFilter, ToolPattern, ToolView, WorkingDir, WorkingDirPolicy,
};

/// The rules for what may run here, and with which limits. A request can only narrow them.
#[derive(Clone, Debug)]
pub struct Policy {
    pub languages: Vec<Language>,
    pub code_bytes: usize,
    pub input_bytes: usize,
    /// The limits of an execution that requests none.
    pub limits: Limits,
    /// The longest timeout that a request may set.
    pub max_wall: Duration,
    pub tools: ToolFilter,
    /// Grants that all code has.
    pub grants: Grants,
    pub files: WorkingDirPolicy,
}

/// A request to run code. Nothing in it has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionRequest {
    pub language: Language,
    pub code: String,
    pub input: Json,
    /// The program's arguments.
    pub args: Vec<String>,
    /// One of the user's directories, to work in.
    pub working_dir: Option<ResolvedDir>,
    pub asked: RequestedLimits,
    /// The tools that the code wants to see.
    pub view: ToolView,
}

impl AdmissionRequest {
    /// Creates a request with nothing but code.
    pub fn new(language: Language, code: String) -> AdmissionRequest {
        let (input, asked, view) = (Json::null(), RequestedLimits::default(), ToolView::default());
        AdmissionRequest { language, code, input, args: vec![], working_dir: None, asked, view }
    }
}

/// The execution whose code makes a request: the code that it starts can reach no more than itself.
#[derive(Clone, Copy, Debug)]
pub struct OuterLimits<'a> {
    pub reach: &'a Reach,
    /// The time that the outer execution has left.
    pub wall: Duration,
    pub tool_calls: u32,
}

/// The limits that a request may narrow. `None` means that the policy decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedLimits {
    pub wall: Option<Duration>,
    pub tool_calls: Option<u32>,
    pub allowed_tools: Option<Vec<String>>,
    pub allowed_servers: Option<Vec<String>>,
}

/// A request that passed the policy. Only [`Policy::admit`] and [`Policy::admit_session`] create
/// one, and every function that gives a worker a client's code takes `&Admitted`, so unchecked code cannot reach a
/// worker. An `Admitted` never changes.
#[derive(Debug)]
pub struct Admitted {
    request: AdmissionRequest,
    limits: Limits,
    reach: Reach,
    working_dir: Option<WorkingDir>,
}

/// The reason why a request may not run: the field, what is wrong with it, what is allowed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum PolicyRefusal {
    #[error("language: {0} is not enabled here; enabled: {enabled}", enabled = join_names(.1))]
    Language(Language, Vec<Language>),
    #[error("code: it is empty; send at least one statement")]
    Empty,
    #[error("code: it has {bytes} bytes; at most {cap} are allowed")]
    TooLong { bytes: usize, cap: usize },
    #[error("code: it has a NUL character at byte {at}; remove it")]
    Nul { at: usize },
    #[error("input: it has {bytes} bytes; at most {cap} are allowed")]
    Input { bytes: usize, cap: usize },
    #[error("args: {0}")]
    Args(String),
    #[error("timeout_ms: {asked_ms} is out of range; it must be 1 to {max_ms}")]
    Timeout { asked_ms: u128, max_ms: u128 },
    #[error("max_tool_calls: {asked} is out of range; it must be 0 to {max}")]
    ToolCalls { asked: u32, max: u32 },
    #[error("working_dir: {path} {why}", path = .path.display(), why = describe_dir_refusal(.why))]
    WorkingDir { path: std::path::PathBuf, why: DirRefusal },
    #[error("working_dir: {0} code has no files; use python, bash or node")]
    NoFiles(Language),
    #[error("allowed_tools: {0}")]
    Pattern(InvalidPattern),
}

impl PolicyRefusal {
    /// Returns a stable code for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            PolicyRefusal::Language(..) => "INVALID_LANGUAGE",
            PolicyRefusal::Empty
            | PolicyRefusal::TooLong { .. }
            | PolicyRefusal::Nul { .. }
            | PolicyRefusal::Input { .. }
            | PolicyRefusal::Args(_)
            | PolicyRefusal::Timeout { .. }
            | PolicyRefusal::ToolCalls { .. }
            | PolicyRefusal::NoFiles(_)
            | PolicyRefusal::Pattern(_) => "INVALID_ARGS",
            PolicyRefusal::WorkingDir { .. } => "WORKING_DIR_NOT_ALLOWED",
        }
    }
}

impl Policy {
    /// Checks a request. `servers` are the configured upstreams: patterns are parsed with their
    /// names. `outer` is the execution whose code makes the request, if code makes it.
    pub fn admit(
        &self,
        request: AdmissionRequest,
        servers: &[ServerName],
        outer: Option<OuterLimits<'_>>,
    ) -> Result<Admitted, PolicyRefusal> {
        self.check_language(request.language)?;
        self.check_code(&request.code)?;
        let bytes = request.input.text().len();
        if bytes > self.input_bytes {
            return Err(PolicyRefusal::Input { bytes, cap: self.input_bytes });
        }
        check_args(&request.args)?;
        self.admit_session(request, servers, outer)
    }

    /// Checks a request to open a session, which has no code yet.
    ///
    /// THREAT[SES-7]: code that is started by code has the limits of the outer code: its tools,
    /// its grants, its time, and its number of tool calls.
    pub fn admit_session(
        &self,
        mut request: AdmissionRequest,
        servers: &[ServerName],
        outer: Option<OuterLimits<'_>>,
    ) -> Result<Admitted, PolicyRefusal> {
        self.check_language(request.language)?;
        let mut limits = self.limits_for(&request.asked)?;
        if let Some(outer) = outer {
            limits.wall = limits.wall.min(outer.wall);
            limits.tool_calls = limits.tool_calls.min(outer.tool_calls);
        }
        limits.cpu = self.limits.cpu_within(limits.wall);
        let (tools, grants) = self.tools_for(&request.asked, servers)?;
        let view = std::mem::take(&mut request.view);
        let reach = Reach::new(tools, grants, view, &self.tools, outer.map(|outer| outer.reach));
        let working_dir = self.working_dir_for(&request)?;
        Ok(Admitted { request, limits, reach, working_dir })
    }

    fn check_language(&self, language: Language) -> Result<(), PolicyRefusal> {
        let refusal = || PolicyRefusal::Language(language, self.languages.clone());
        self.languages.contains(&language).then_some(()).ok_or_else(refusal)
    }

    fn working_dir_for(
        &self,
        request: &AdmissionRequest,
    ) -> Result<Option<WorkingDir>, PolicyRefusal> {
        let Some(found) = &request.working_dir else { return Ok(None) };
        match request.language {
            Language::JavaScript | Language::TypeScript => {
                return Err(PolicyRefusal::NoFiles(request.language));
            }
            Language::Python | Language::Bash | Language::Node => {}
        }
        let refused = |why| PolicyRefusal::WorkingDir { path: found.path.clone(), why };
        let allowed = self.files.check(&found.path).map_err(refused)?.to_owned();
        let is_writable = self.files.is_writable;
        Ok(Some(WorkingDir { found: found.clone(), is_writable, allowed }))
    }

    fn check_code(&self, code: &str) -> Result<(), PolicyRefusal> {
        if code.trim().is_empty() {
            return Err(PolicyRefusal::Empty);
        }
        if code.len() > self.code_bytes {
            return Err(PolicyRefusal::TooLong { bytes: code.len(), cap: self.code_bytes });
        }
        match code.bytes().position(|b| b == 0) {
            Some(at) => Err(PolicyRefusal::Nul { at }),
            None => Ok(()),
        }
    }

    fn limits_for(&self, asked: &RequestedLimits) -> Result<Limits, PolicyRefusal> {
        let mut limits = self.limits;
        if let Some(wall) = asked.wall {
            if wall.is_zero() || wall > self.max_wall {
                return Err(PolicyRefusal::Timeout {
                    asked_ms: wall.as_millis(),
                    max_ms: self.max_wall.as_millis(),
                });
            }
            limits.wall = wall;
        }
        if let Some(tool_calls) = asked.tool_calls {
            if tool_calls > self.limits.tool_calls {
                let max = self.limits.tool_calls;
                return Err(PolicyRefusal::ToolCalls { asked: tool_calls, max });
            }
            limits.tool_calls = tool_calls;
        }
        Ok(limits)
    }

    /// Returns the tools that the request leaves, and the grants of the request and the settings.
    fn tools_for(
        &self,
        asked: &RequestedLimits,
        servers: &[ServerName],
    ) -> Result<(ToolFilter, Grants), PolicyRefusal> {
        let (mut tools, mut grants) = (self.tools.clone(), self.grants);
        if let Some(list) = &asked.allowed_tools {
            let list: Result<Vec<_>, _> =
                list.iter().map(|p| ToolPattern::parse(p, servers)).collect();
            let list = list.map_err(PolicyRefusal::Pattern)?;
            grants = grants.iter().chain(grants_named_in(&list)).collect();
            tools = tools.narrowed_by(list);
        }
        if let Some(list) = &asked.allowed_servers {
            tools = tools.narrowed_by(list.iter().map(|s| ToolPattern::server(s)).collect());
        }
        Ok((tools, grants))
    }
}

impl Admitted {
    pub fn language(&self) -> Language {
        self.request.language
    }

    pub fn code(&self) -> &str {
        &self.request.code
    }

    pub fn input(&self) -> &Json {
        &self.request.input
    }

    pub fn args(&self) -> &[String] {
        &self.request.args
    }

    /// Returns how the request narrows the policy.
    pub fn asked(&self) -> &RequestedLimits {
        &self.request.asked
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    pub fn working_dir(&self) -> Option<&WorkingDir> {
        self.working_dir.as_ref()
    }
}

/// The kernel's limits are larger; these leave space for the rest of a frame.
const MAX_ARGS: usize = 1_000;
const MAX_ARG_BYTES: usize = 128 << 10;
const MAX_ARGS_BYTES: usize = 1 << 20;

fn check_args(args: &[String]) -> Result<(), PolicyRefusal> {
    if args.len() > MAX_ARGS {
        return Err(PolicyRefusal::Args(format!(
            "there are {}; at most {MAX_ARGS} are allowed",
            args.len()
        )));
    }
    for (at, arg) in args.iter().enumerate() {
        if arg.len() > MAX_ARG_BYTES {
            let bytes = arg.len();
            return Err(PolicyRefusal::Args(format!(
                "number {at} has {bytes} bytes; at most {MAX_ARG_BYTES} are allowed"
            )));
        }
        if arg.contains('\0') {
            return Err(PolicyRefusal::Args(format!("number {at} has a NUL character; remove it")));
        }
    }
    let bytes: usize = args.iter().map(String::len).sum();
    if bytes > MAX_ARGS_BYTES {
        return Err(PolicyRefusal::Args(format!(
            "all together have {bytes} bytes; at most {MAX_ARGS_BYTES} are allowed"
        )));
    }
    Ok(())
}

fn describe_dir_refusal(why: &DirRefusal) -> String {
    match why {
        DirRefusal::Forbidden(other) => {
            format!("may never be used: {} is private", other.display())
        }
        DirRefusal::NotAllowed(allowed) if allowed.is_empty() => {
            "is not allowed; no directory is; the user can add it to `allowed` under [files] in \
             config.toml"
                .to_owned()
        }
        DirRefusal::NotAllowed(allowed) => {
            let allowed: Vec<String> =
                allowed.iter().map(|path| path.display().to_string()).collect();
            format!(
                "is not allowed; allowed: {} and below; the user can add it to `allowed` under \
                 [files] in config.toml",
                allowed.join(", ")
            )
        }
    }
}

fn join_names(languages: &[Language]) -> String {
    let names: Vec<&str> = languages.iter().map(|language| language.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
