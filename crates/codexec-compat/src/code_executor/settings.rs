use std::path::PathBuf;

/// The settings of the toolset `code-executor`.
#[derive(Clone, Debug, Default)]
pub struct ExecutorSettings {
    /// The directories that `permissions.read` and `permissions.write` may name.
    pub projects: Vec<PathBuf>,
    /// The audit log: one line for each execution and discovery, in addition to the store.
    pub audit_log: Option<PathBuf>,
    /// The tools that requests are limited to; `None` means all tools.
    pub allowed_tools: Option<Vec<String>>,
}
