//! The sections of `config.toml` for toolsets of other systems.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_compat::settings::Seeds;
use codexec_compat::{BridgeSettings, ExecutorSettings, OutputMode, ProxySettings};
use codexec_types::ToolPattern;

use super::{
    ConfigError, ConfigFile, HostEnvironment, file, guests::absolute_path, limits::within,
};

/// The default path of Code Executor MCP.
const AUDIT_LOG: &str = "~/.code-executor/audit-logs/audit.jsonl";
/// The longest timeout that MCPProxy accepts in a request.
const MAX_PROXY_MS: u64 = 600_000;

/// Returns the seeds' settings. `max_wall` bounds the time of every request, in any toolset.
pub(super) fn seeds(
    file: &ConfigFile,
    max_wall: Duration,
    host: &HostEnvironment,
) -> Result<Seeds, ConfigError> {
    let max_ms = u64::try_from(max_wall.as_millis()).unwrap_or(u64::MAX);
    Ok(Seeds {
        executor: executor(&file.code_executor, host)?,
        bridge: bridge(&file.code_execution_mode, max_ms)?,
        proxy: proxy(&file.mcpproxy, max_ms, host)?,
    })
}

fn executor(
    file: &file::CodeExecutorSection,
    host: &HostEnvironment,
) -> Result<ExecutorSettings, ConfigError> {
    let path = |key, path: &Path| {
        let path = absolute_path(key, Some(path), host)?;
        Ok::<_, ConfigError>(path.unwrap_or_default())
    };
    let projects: Result<Vec<PathBuf>, ConfigError> =
        file.projects.iter().map(|project| path("code-executor.projects", project)).collect();
    let audit_log = match (file.audit, &file.audit_log) {
        (false, _) => None,
        (true, Some(log)) => Some(path("code-executor.audit-log", log)?),
        (true, None) => Some(path("code-executor.audit-log", Path::new(AUDIT_LOG))?),
    };
    for text in file.allowed_tools.iter().flatten() {
        ToolPattern::parse(text, &[]).map_err(ConfigError::ExecutorPattern)?;
    }
    let allowed_tools = file.allowed_tools.clone();
    let usual = ExecutorSettings::REQUESTS_PER_MINUTE as u64;
    let requests = within("code-executor.rate-limit", file.rate_limit, usual, 1..=1_000)?;
    let requests_per_minute = usize::try_from(requests).unwrap_or(usize::MAX);
    Ok(ExecutorSettings { projects: projects?, audit_log, allowed_tools, requests_per_minute })
}

fn bridge(
    file: &file::CodeExecutionModeSection,
    max_ms: u64,
) -> Result<BridgeSettings, ConfigError> {
    let usual = BridgeSettings::default();
    let usual_ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let most = usual_ms(usual.max_timeout).min(max_ms);
    let most = within("code-execution-mode.max-timeout-ms", file.max_timeout_ms, most, 1..=max_ms)?;
    let timeout = usual_ms(usual.timeout).min(most);
    let timeout = within("code-execution-mode.timeout-ms", file.timeout_ms, timeout, 1..=most)?;
    let output = match file.output.as_deref() {
        None | Some("compact") => OutputMode::Compact,
        Some("toon") => OutputMode::Toon,
        Some(other) => return Err(ConfigError::Output(other.to_owned())),
    };
    Ok(BridgeSettings {
        timeout: Duration::from_millis(timeout),
        max_timeout: Duration::from_millis(most),
        output,
    })
}

fn proxy(
    file: &file::McpproxySection,
    max_ms: u64,
    host: &HostEnvironment,
) -> Result<ProxySettings, ConfigError> {
    let usual = ProxySettings::default();
    let most = max_ms.min(MAX_PROXY_MS);
    let usual_ms = u64::try_from(usual.timeout.as_millis()).unwrap_or(u64::MAX).min(most);
    let timeout = within("mcpproxy.timeout-ms", file.timeout_ms, usual_ms, 1..=most)?;
    let calls = within("mcpproxy.max-tool-calls", file.max_tool_calls, 0, 0..=100_000)?;
    let tools = usual.tools_limit as u64;
    let tools = within("mcpproxy.tools-limit", file.tools_limit, tools, 1..=1_000)?;
    Ok(ProxySettings {
        is_enabled: file.enabled.unwrap_or(usual.is_enabled),
        timeout: Duration::from_millis(timeout),
        // 0 means only the limit in `limits.tool-calls`.
        max_tool_calls: u32::try_from(calls).ok().filter(|calls| *calls > 0),
        tools_limit: usize::try_from(tools).unwrap_or(usual.tools_limit),
        scripts: absolute_path("mcpproxy.scripts", file.scripts.as_deref(), host)?,
    })
}

#[cfg(test)]
mod tests;
