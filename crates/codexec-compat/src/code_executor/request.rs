use std::time::Duration;

use codexec_server::{App, Client, ExecutionRequest, Fields, escape_name};
use codexec_types::{Language, RequestedLimits, ServerName, ToolFilter, ToolPattern};
use serde_json::{Map, Value};

use super::permissions::Permissions;
use super::refusal::ExecutorRefusal;
use super::settings::ExecutorSettings;

pub(super) const MIN_TIMEOUT_MS: u64 = 1_000;
pub(super) const MAX_TIMEOUT_MS: u64 = 300_000;
pub(super) const MAX_SAMPLING_ROUNDS: u64 = 100;
pub(super) const MIN_SAMPLING_TOKENS: u64 = 100;
pub(super) const MAX_SAMPLING_TOKENS: u64 = 100_000;

const MAX_NAMES: usize = 500;
const MAX_NAME_CHARS: usize = 200;
const MAX_PROMPT_CHARS: usize = 100_000;

/// The parsed arguments of an execution.
pub(super) struct ExecutorRequest {
    pub(super) request: ExecutionRequest,
    pub(super) allowed_tools: Vec<String>,
    /// The tools that discovery shows.
    pub(super) visible: ToolFilter,
}

impl ExecutorRequest {
    pub(super) async fn read(
        app: &App,
        settings: &ExecutorSettings,
        client: &Client,
        language: Language,
        arguments: Map<String, Value>,
    ) -> Result<ExecutorRequest, ExecutorRefusal> {
        let mut fields = Fields::new(arguments);
        let code = fields.required_text("code")?;
        let allowed_tools = fields.texts("allowedTools")?.unwrap_or_default();
        let timeout = fields.number("timeoutMs", MIN_TIMEOUT_MS..=MAX_TIMEOUT_MS)?;
        let permissions = Permissions::read(fields.take("permissions"))?;
        // Accepted and ignored: the sandbox does not depend on what the code looks like.
        fields.boolean("skipDangerousPatternCheck")?;
        let wants_sampling = read_sampling(&mut fields)?;
        fields.finish()?;
        check_names("allowedTools", &allowed_tools)?;
        allowed_tools.iter().try_for_each(|name| check_tool(name))?;
        if wants_sampling {
            let error = "enableSampling: code cannot ask a language model here yet";
            return Err(ExecutorRefusal::validation(error)
                .suggesting("leave enableSampling out, return what is to be thought about, and think about it between two executions"));
        }
        let mut request = ExecutionRequest::new(language, code);
        request.words.tools = "allowedTools";
        request.words.are_tools_joined = true;
        request.words.directory = Some("permissions.read");
        let policy = client.connection.policy();
        let resolved = permissions.resolve(settings, &policy, language).await?;
        if let Some((dir, files)) = resolved {
            (request.working_dir, request.files) = (Some(dir), Some(files));
        }
        request.asked = RequestedLimits {
            wall: timeout.map(Duration::from_millis),
            allowed_tools: Some(allowed_tools.clone()),
            ..RequestedLimits::default()
        };
        let visible = visible_tools(app, client, settings);
        Ok(ExecutorRequest { request, allowed_tools, visible })
    }
}

/// True if sampling is requested. All its arguments are checked in any case.
fn read_sampling(fields: &mut Fields) -> Result<bool, ExecutorRefusal> {
    let is_wanted = fields.boolean("enableSampling")?.unwrap_or(false);
    fields.number("maxSamplingRounds", 1..=MAX_SAMPLING_ROUNDS)?;
    fields.number("maxSamplingTokens", MIN_SAMPLING_TOKENS..=MAX_SAMPLING_TOKENS)?;
    let prompt = fields.text("samplingSystemPrompt")?.unwrap_or_default();
    let chars = prompt.chars().count();
    if chars > MAX_PROMPT_CHARS {
        return Err(ExecutorRefusal::validation(format!(
            "samplingSystemPrompt: it has {chars} characters; at most {MAX_PROMPT_CHARS} are allowed"
        )));
    }
    let models = fields.texts("allowedSamplingModels")?.unwrap_or_default();
    check_names("allowedSamplingModels", &models)?;
    Ok(is_wanted)
}

fn check_names(field: &str, names: &[String]) -> Result<(), ExecutorRefusal> {
    if names.len() > MAX_NAMES {
        let count = names.len();
        return Err(ExecutorRefusal::validation(format!(
            "{field}: there are {count}; at most {MAX_NAMES} are allowed"
        )));
    }
    match names.iter().find(|name| name.chars().count() > MAX_NAME_CHARS) {
        Some(name) => Err(ExecutorRefusal::validation(format!(
            "{field}: \"{}\" has more than {MAX_NAME_CHARS} characters",
            escape_name(name)
        ))),
        None => Ok(()),
    }
}

/// Checks for `mcp__server__tool`, where both parts may contain `*` as a wildcard.
fn check_tool(name: &str) -> Result<(), ExecutorRefusal> {
    let parts = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    let is_tool = parts.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        && !name.chars().any(char::is_control);
    match is_tool {
        true => Ok(()),
        false => Err(ExecutorRefusal::validation(format!(
            "allowedTools: \"{}\" is not the name of a tool; write it like \"mcp__github__get_issue\" \
             or \"mcp__github__*\"",
            escape_name(name)
        ))
        .suggesting("searchTools('words') and discoverMCPTools() in the code give the names")),
    }
}

/// Returns all tools that the policy and this toolset's settings make visible. No others can be
/// called.
fn visible_tools(app: &App, client: &Client, settings: &ExecutorSettings) -> ToolFilter {
    let visible = client.connection.policy().tools.clone();
    match &settings.allowed_tools {
        Some(names) => visible.narrowed_by(parse_patterns(names, &app.gateway.server_names())),
        None => visible,
    }
}

/// Parses the patterns. An invalid pattern matches nothing.
fn parse_patterns(names: &[String], servers: &[ServerName]) -> Vec<ToolPattern> {
    let pattern = |name: &String| match ToolPattern::parse(name, servers) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            tracing::warn!(%error, "in the settings of the toolset code-executor");
            None
        }
    };
    names.iter().filter_map(pattern).collect()
}
