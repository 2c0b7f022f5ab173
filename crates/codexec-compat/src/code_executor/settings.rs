use std::path::PathBuf;

/// The settings of the toolset `code-executor`.
#[derive(Clone, Debug)]
pub struct ExecutorSettings {
    /// The directories that `permissions.read` and `permissions.write` may name.
    pub projects: Vec<PathBuf>,
    /// Beside this path are the daily files of the audit log: one line for each execution,
    /// discovery and call, in addition to the store.
    pub audit_log: Option<PathBuf>,
    /// The tools that requests are limited to; `None` means all tools.
    pub allowed_tools: Option<Vec<String>>,
    /// The maximum number of discoveries of one client in a minute, and that of its calls.
    pub requests_per_minute: usize,
}

impl Default for ExecutorSettings {
    fn default() -> ExecutorSettings {
        ExecutorSettings {
            projects: Vec::new(),
            audit_log: None,
            allowed_tools: None,
            requests_per_minute: ExecutorSettings::REQUESTS_PER_MINUTE,
        }
    }
}

impl ExecutorSettings {
    /// The default of Code Executor MCP.
    pub const REQUESTS_PER_MINUTE: usize = 30;
}
