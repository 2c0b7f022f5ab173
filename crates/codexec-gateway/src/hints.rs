use codexec_types::ToolKind;
use serde_json::Value;

/// A server's hints about what its tool does. Hints decide what is shown, never what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolHints {
    is_read_only: bool,
    is_destructive: bool,
}

impl ToolHints {
    /// Reads the annotations. As in the protocol, a missing hint means the worst case.
    pub(crate) fn read(definition: &Value) -> ToolHints {
        let hint = |name| definition.get("annotations")?.get(name)?.as_bool();
        let is_read_only = hint("readOnlyHint").unwrap_or(false);
        let is_destructive = !is_read_only && hint("destructiveHint").unwrap_or(true);
        ToolHints { is_read_only, is_destructive }
    }

    pub(crate) fn matches(self, kind: ToolKind) -> bool {
        match kind {
            ToolKind::Any => true,
            ToolKind::ReadOnly => self.is_read_only,
            ToolKind::Safe => !self.is_destructive,
            ToolKind::Destructive => self.is_destructive,
        }
    }
}

#[cfg(test)]
mod tests;
