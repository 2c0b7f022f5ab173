use std::collections::HashSet;

use codexec_types::{Language, Principal};
use serde_json::Value;

use crate::{ScriptError, error::FieldProblem, meta::ScriptMeta, name::ScriptName};

pub(crate) const MAX_CODE_BYTES: usize = 1 << 20;

/// A script to save. If the name exists, the draft becomes the next version of that script and
/// replaces all its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptDraft {
    pub name: String,
    pub description: String,
    pub language: Language,
    pub code: String,
    pub tags: Vec<String>,
    pub packages: Vec<String>,
    /// A JSON Schema for the `input` of a run.
    pub parameters: Option<Value>,
    pub source_execution_id: Option<String>,
    /// Whoever saves the script.
    pub saved_by: Option<Principal>,
    /// True if the script is to be exposed as an MCP tool.
    pub expose: bool,
}

impl ScriptDraft {
    /// Validates the draft. The metadata lacks what only the folder knows: id, times, counts and
    /// version.
    pub(crate) fn validate(self) -> Result<(ScriptName, ScriptMeta, String), ScriptError> {
        let name = ScriptName::parse(&self.name)?;
        let invalid = |field, problem| ScriptError::Field { field, problem };
        if self.code.trim().is_empty() {
            return Err(invalid("code", FieldProblem::Empty));
        }
        if self.code.len() > MAX_CODE_BYTES {
            let problem = FieldProblem::TooLong { found: self.code.len(), most: MAX_CODE_BYTES };
            return Err(invalid("code", problem));
        }
        let meta = ScriptMeta {
            script_id: String::new(),
            name: name.name.clone(),
            description: self.description,
            language: self.language,
            tags: dedup(self.tags),
            packages: dedup(self.packages),
            parameters: self.parameters,
            expose: self.expose,
            source_execution_id: self.source_execution_id,
            saved_by: self.saved_by,
            created_at: String::new(),
            updated_at: String::new(),
            last_run_at: None,
            last_run_success: None,
            run_count: 0,
            version: 0,
            sha256: String::new(),
            others: serde_json::Map::new(),
        };
        meta.check().map_err(|(field, problem)| invalid(field, problem))?;
        Ok((name, meta, self.code))
    }
}

/// Removes texts that differ from an earlier one only by case.
fn dedup(texts: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.into_iter().filter(|text| seen.insert(text.to_lowercase())).collect()
}

#[cfg(test)]
mod tests;
