use std::collections::HashSet;

use codexec_types::Language;
use serde_json::Value;

use crate::{ScriptError, error::Problem, meta::Meta, name::ScriptName};

pub(crate) const MAX_CODE_BYTES: usize = 1 << 20;

/// A script that somebody wants to keep. Saved under a name that is there, it is the next version
/// of that script, and all that it says replaces what was said before.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub name: String,
    pub description: String,
    pub language: Language,
    pub code: String,
    pub tags: Vec<String>,
    pub packages: Vec<String>,
    /// A JSON Schema for the `input` of a run.
    pub parameters: Option<Value>,
    pub source_execution_id: Option<String>,
    /// Whether the script is to be a tool of its own.
    pub expose: bool,
}

impl Draft {
    /// The metadata without what only the folder knows: ids, moments, counts and the version.
    pub(crate) fn checked(self) -> Result<(ScriptName, Meta, String), ScriptError> {
        let name = ScriptName::parse(&self.name)?;
        let wrong = |field, problem| ScriptError::Field { field, problem };
        if self.code.trim().is_empty() {
            return Err(wrong("code", Problem::Empty));
        }
        if self.code.len() > MAX_CODE_BYTES {
            let problem = Problem::TooLong { found: self.code.len(), most: MAX_CODE_BYTES };
            return Err(wrong("code", problem));
        }
        let meta = Meta {
            script_id: String::new(),
            name: name.name.clone(),
            description: self.description,
            language: self.language,
            tags: once(self.tags),
            packages: once(self.packages),
            parameters: self.parameters,
            expose: self.expose,
            source_execution_id: self.source_execution_id,
            created_at: String::new(),
            updated_at: String::new(),
            last_run_at: None,
            last_run_success: None,
            run_count: 0,
            version: 0,
            sha256: String::new(),
            others: serde_json::Map::new(),
        };
        meta.check().map_err(|(field, problem)| wrong(field, problem))?;
        Ok((name, meta, self.code))
    }
}

/// The first of those that differ only by case.
fn once(texts: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.into_iter().filter(|text| seen.insert(text.to_lowercase())).collect()
}

#[cfg(test)]
mod tests;
