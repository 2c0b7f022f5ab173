//! The metadata of a script, as in `metadata.json`.

use std::time::SystemTime;

use codexec_types::{
    Identity, Language, PackageName, Principal, format_rfc3339, is_hidden, parse_time,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{error::FieldProblem, parameters};

pub(crate) const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
pub(crate) const MAX_TAGS: usize = 50;
pub(crate) const MAX_TAG_CHARS: usize = 64;
pub(crate) const MAX_PACKAGES: usize = 100;
pub(crate) const MAX_PARAMETERS_BYTES: usize = 64 << 10;
/// The limit on `metadata.json`, including fields that people have added.
pub(crate) const MAX_METADATA_BYTES: u64 = 256 << 10;

/// The metadata of a script. Times are in RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScriptMeta {
    pub script_id: String,
    pub name: String,
    pub description: String,
    pub language: Language,
    pub tags: Vec<String>,
    pub packages: Vec<String>,
    /// A JSON Schema for the `input` of a run.
    pub parameters: Option<Value>,
    /// True if the script is exposed as an MCP tool.
    pub expose: bool,
    pub source_execution_id: Option<String>,
    /// Whoever saved this version. `None` if the code was edited by hand, or if an older codexec
    /// saved it.
    pub saved_by: Option<Principal>,
    pub created_at: String,
    pub updated_at: String,
    pub last_run_at: Option<String>,
    pub last_run_success: Option<bool>,
    pub run_count: u64,
    pub version: u32,
    /// The hash of the code. A different one means that the code was edited by hand.
    pub sha256: String,
    /// Unknown fields, which are preserved.
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

/// `metadata.json` as people may have edited it: every field may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MetadataFile {
    script_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    pub(crate) language: Option<Language>,
    tags: Option<Vec<String>>,
    packages: Option<Vec<String>>,
    parameters: Option<Value>,
    expose: Option<bool>,
    source_execution_id: Option<String>,
    saved_by: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    last_run_at: Option<String>,
    last_run_success: Option<bool>,
    run_count: Option<u64>,
    pub(crate) version: Option<u32>,
    pub(crate) sha256: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl ScriptMeta {
    /// True if this identity saved the version. Code that was edited by hand is the local user's.
    pub fn is_saved_by(&self, identity: &Identity) -> bool {
        let saver = self.saved_by.as_ref().map_or(&Identity::LocalUser, Principal::identity);
        saver == identity
    }

    /// Returns a copy without hidden characters, for people and models.
    ///
    /// THREAT[SCR-3]: a description is untrusted. The file keeps it unchanged, but hidden
    /// characters are never shown. The other texts cannot contain hidden characters.
    pub(crate) fn without_hidden(&self) -> ScriptMeta {
        let mut visible = self.clone();
        visible.description.retain(|c| !is_hidden(c));
        visible
    }

    /// Returns the length of the metadata as JSON.
    pub(crate) fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(0, |text| text.len())
    }

    pub(crate) fn check(&self) -> Result<(), (&'static str, FieldProblem)> {
        let too_long = |field, found, most| match found > most {
            true => Err((field, FieldProblem::TooLong { found, most })),
            false => Ok(()),
        };
        let too_many = |field, found, most| match found > most {
            true => Err((field, FieldProblem::TooMany { found, most })),
            false => Ok(()),
        };
        too_long("description", self.description.len(), MAX_DESCRIPTION_BYTES)?;
        too_many("tags", self.tags.len(), MAX_TAGS)?;
        if let Some(tag) = self.tags.iter().find(|tag| !is_tag(tag)) {
            return Err(("tags", FieldProblem::Tag(tag.chars().take(80).collect())));
        }
        too_many("packages", self.packages.len(), MAX_PACKAGES)?;
        for package in &self.packages {
            PackageName::parse(self.language, package).map_err(|err| ("packages", err.into()))?;
        }
        if let Some(id) = self.source_execution_id.as_deref().filter(|id| !is_execution_id(id)) {
            let id = id.chars().take(80).collect();
            return Err(("source_execution_id", FieldProblem::ExecutionId(id)));
        }
        if let Some(schema) = &self.parameters {
            let text = schema.to_string();
            too_long("parameters", text.len(), MAX_PARAMETERS_BYTES)?;
            if has_hidden(schema) {
                let problem = "it contains hidden characters".to_owned();
                return Err(("parameters", FieldProblem::Schema(problem)));
            }
            parameters::validate_parameters(schema)
                .map_err(|problem| ("parameters", FieldProblem::Schema(problem)))?;
        }
        Ok(())
    }
}

/// Facts from the folder itself, which take precedence over its metadata.
pub(crate) struct FolderFacts<'a> {
    pub(crate) slug: &'a str,
    pub(crate) name: Option<String>,
    pub(crate) language: Language,
    pub(crate) changed: SystemTime,
}

impl MetadataFile {
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Completes the metadata. `facts.name` is `None` if the name in the file does not belong to
    /// the folder: a copied folder still has the name and the id of the original.
    pub(crate) fn complete(self, facts: FolderFacts<'_>) -> ScriptMeta {
        let is_own = facts.name.is_some();
        let valid_time = |text: Option<String>| text.filter(|text| parse_time(text).is_some());
        let changed = format_rfc3339(facts.changed);
        let created_at = valid_time(self.created_at).unwrap_or_else(|| changed.clone());
        let script_id = self.script_id.filter(|id| is_own && is_script_id(id));
        ScriptMeta {
            script_id: script_id.unwrap_or_else(|| derive_script_id(facts.slug, "")),
            name: facts.name.unwrap_or_else(|| facts.slug.to_owned()),
            description: self.description.unwrap_or_default(),
            language: facts.language,
            tags: self.tags.unwrap_or_default(),
            packages: self.packages.unwrap_or_default(),
            parameters: self.parameters,
            expose: self.expose.unwrap_or_default(),
            source_execution_id: self.source_execution_id,
            saved_by: self.saved_by.as_deref().and_then(Principal::parse),
            updated_at: valid_time(self.updated_at).unwrap_or(changed),
            created_at,
            last_run_at: valid_time(self.last_run_at),
            last_run_success: self.last_run_success,
            run_count: self.run_count.unwrap_or_default(),
            version: self.version.unwrap_or_default(),
            sha256: self.sha256.unwrap_or_default(),
            others: self.others,
        }
    }
}

/// Derives a script's id, which is stable for its life, and different if a script of the same name
/// is created again.
pub(crate) fn derive_script_id(slug: &str, created_at: &str) -> String {
    let mut hex = hex_sha256(&format!("{slug}\n{created_at}"));
    hex.truncate(16);
    format!("script_{hex}")
}

pub(crate) fn hex_sha256(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn is_tag(tag: &str) -> bool {
    (1..=MAX_TAG_CHARS).contains(&tag.chars().count())
        && tag.trim() == tag
        && !tag.chars().any(|c| is_hidden(c) || c == '\n' || c == '\t')
}

fn is_script_id(text: &str) -> bool {
    text.strip_prefix("script_").is_some_and(is_short_word)
}

fn is_execution_id(text: &str) -> bool {
    text.strip_prefix("exec_").is_some_and(is_short_word)
}

fn is_short_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn has_hidden(value: &Value) -> bool {
    let is_bad = |text: &str| text.chars().any(is_hidden);
    match value {
        Value::String(text) => is_bad(text),
        Value::Array(list) => list.iter().any(has_hidden),
        Value::Object(map) => map.iter().any(|(key, value)| is_bad(key) || has_hidden(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
