use std::path::PathBuf;

/// What the toolset `code-executor` is set to.
#[derive(Clone, Debug, Default)]
pub struct ExecutorSettings {
    /// The directories that `permissions.read` and `permissions.write` may name.
    pub projects: Vec<PathBuf>,
    /// Where a line about every execution and every discovery is appended, beside our own records.
    pub audit_log: Option<PathBuf>,
    /// What no request can widen; all tools without it.
    pub allowed_tools: Option<Vec<String>>,
}
