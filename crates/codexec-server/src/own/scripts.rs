use codexec_scripts::{Script, ScriptDraft, ScriptError, ScriptFilter, ScriptMeta};
use codexec_types::{Grant, Language};
use serde_json::{Value, json};

use super::OwnFunctionError;
use super::running::{language_or_own, read_language, read_version};
use crate::fields::Fields;
use crate::{App, Client};

const DESCRIPTION_CHARS: usize = 300;
const DEFAULT_LISTED: u64 = 100;
const MAX_LISTED: u64 = 1_000;
const DEFAULT_FOUND: u64 = 10;
const MAX_FOUND: u64 = 100;

impl App {
    /// THREAT[OWN-4]: code adds scripts, but replaces none.
    pub(super) async fn save_script(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let named = read_language(&mut fields)?;
        let mut draft = ScriptDraft {
            name: fields.required_text("name")?,
            description: fields.text("description")?.unwrap_or_default(),
            language: named.unwrap_or(Language::Python),
            code: fields.required_text("code")?,
            tags: fields.texts("tags")?.unwrap_or_default(),
            packages: fields.texts("packages")?.unwrap_or_default(),
            parameters: fields.take("parameters").filter(|schema| !schema.is_null()),
            source_execution_id: fields.text("source_execution_id")?,
            saved_by: Some(client.principal()),
            expose: fields.boolean("expose")?.unwrap_or(false),
        };
        fields.finish()?;
        draft.language = language_or_own(named, client)?;
        self.check_script_name(&draft.name, client).await?;
        if draft.expose && !client.may(Grant::ExposeScripts) {
            let what = "expose: code may not make a script a tool of the client's";
            return Err(OwnFunctionError::needs_grant(Grant::ExposeScripts, what));
        }
        let saved = match client.may(Grant::ReplaceScripts) {
            true => self.scripts.save(draft).await?,
            false => self.scripts.add(draft).await.map_err(|error| match &error {
                ScriptError::Exists { .. } => OwnFunctionError::needs_grant(
                    Grant::ReplaceScripts,
                    &format!("name: {error}, and code may not replace it; save under another name"),
                ),
                _ => error.into(),
            })?,
        };
        Ok(json!({
            "success": true,
            "script_id": saved.script_id,
            "name": saved.name,
            "path": saved.path,
            "saved_at": saved.saved_at,
            "version": saved.version,
        }))
    }

    pub(super) async fn get_script(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let name = fields.required_text("name")?;
        let version = read_version(&mut fields)?;
        fields.finish()?;
        let script = self.find_script(&name, version, client).await?;
        let meta = &script.meta;
        let mut value = json!({
            "success": true,
            "name": meta.name,
            "description": meta.description,
            "language": meta.language.name(),
            "code": script.code,
            "tags": meta.tags,
            "packages": meta.packages,
            "created_at": meta.created_at,
            "last_run_at": meta.last_run_at,
            "run_count": meta.run_count,
            "last_run_success": meta.last_run_success,
            "version": script.version,
        });
        let more = [
            ("parameters", json!(meta.parameters)),
            ("source_execution_id", json!(meta.source_execution_id)),
            ("expose", json!(meta.expose.then_some(true))),
        ];
        if let Some(fields) = value.as_object_mut() {
            let more = more.into_iter().filter(|(_, value)| !value.is_null());
            fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
        }
        Ok(value)
    }

    pub(super) async fn list_scripts(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let language = read_language(&mut fields)?;
        let tag = fields.text("tag")?;
        let limit = fields.number("limit", 1..=MAX_LISTED)?.unwrap_or(DEFAULT_LISTED);
        let offset = fields.number("offset", 0..=u64::from(u32::MAX))?.unwrap_or(0);
        fields.finish()?;
        let (limit, offset) = (to_usize(limit), to_usize(offset));
        let owner = client.connection.script_owner().cloned();
        let filter = ScriptFilter { language, tag, owner, limit, offset };
        let listed = self.scripts.list(filter).await?;
        let scripts: Vec<Value> = listed.scripts.iter().map(listed_script).collect();
        let mut value = json!({"scripts": scripts, "total_count": listed.total});
        // Notes name scripts of everybody.
        let has_notes = !listed.notes.is_empty() && client.connection.script_owner().is_none();
        if let (Some(fields), true) = (value.as_object_mut(), has_notes) {
            fields.insert("notes".to_owned(), json!(listed.notes));
        }
        Ok(value)
    }

    pub(super) async fn search_scripts(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let query = fields.required_text("query")?;
        let limit = fields.number("limit", 1..=MAX_FOUND)?.unwrap_or(DEFAULT_FOUND);
        fields.finish()?;
        let owner = client.connection.script_owner();
        // Scripts of others are left out before the limit counts.
        let most = if owner.is_some() { MAX_LISTED } else { limit };
        let hits = self.scripts.search(&query, to_usize(most)).await?;
        let results: Vec<Value> = hits
            .iter()
            .filter(|hit| owner.is_none_or(|owner| hit.meta.is_saved_by(owner)))
            .take(to_usize(limit))
            .map(|hit| {
                json!({
                    "name": hit.meta.name,
                    "description": shorten(&hit.meta.description),
                    "language": hit.meta.language.name(),
                    "relevance": hit.relevance.as_str(),
                })
            })
            .collect();
        Ok(json!({"results": results}))
    }

    /// Lists the stored versions, newest first.
    pub(super) async fn list_script_versions(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let name = fields.required_text("name")?;
        fields.finish()?;
        self.find_script(&name, None, client).await?;
        let versions = self.scripts.list_versions(&name).await?;
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                json!({
                    "version": version.version,
                    "saved_at": version.saved_at,
                    "saved_by": version.saved_by,
                    "language": version.language.name(),
                    "sha256": version.sha256,
                    "is_current": version.is_current,
                })
            })
            .collect();
        Ok(json!({"name": name, "versions": versions}))
    }

    pub(super) async fn delete_script(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let name = fields.required_text("name")?;
        fields.finish()?;
        if !client.may(Grant::DeleteScripts) {
            let what = "name: code may not delete scripts";
            return Err(OwnFunctionError::needs_grant(Grant::DeleteScripts, what));
        }
        if client.connection.script_owner().is_some() {
            self.find_script(&name, None, client).await?;
        }
        self.scripts.delete(&name).await?;
        Ok(json!({"success": true, "name": name}))
    }

    /// Returns a script that the client may see.
    ///
    /// THREAT[HTTP-13]: a token without the scope for everyone sees, runs and replaces only the
    /// scripts that it saved.
    pub(super) async fn find_script(
        &self,
        name: &str,
        version: Option<u32>,
        client: &Client,
    ) -> Result<Script, OwnFunctionError> {
        let found = self.scripts.get(name, version).await;
        let Some(owner) = client.connection.script_owner() else { return Ok(found?) };
        match found {
            Ok(script) if script.meta.is_saved_by(owner) => Ok(script),
            // The error would name scripts that are near.
            Ok(_) | Err(ScriptError::NotFound { .. }) => {
                let name: String = name.chars().take(80).collect();
                let message = format!("there is no script {name:?}; list_scripts shows yours");
                Err(OwnFunctionError::new("SCRIPT_NOT_FOUND", message))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Fails if the name belongs to a script that the client may not see.
    async fn check_script_name(&self, name: &str, client: &Client) -> Result<(), OwnFunctionError> {
        let Some(owner) = client.connection.script_owner() else { return Ok(()) };
        match self.scripts.get(name, None).await {
            Ok(script) if !script.meta.is_saved_by(owner) => {
                let message = "name: somebody else has a script with this name; take another one";
                Err(OwnFunctionError::new("SCRIPT_NAME_TAKEN", message))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn listed_script(meta: &ScriptMeta) -> Value {
    json!({
        "name": meta.name,
        "description": shorten(&meta.description),
        "language": meta.language.name(),
        "tags": meta.tags,
        "last_run_at": meta.last_run_at,
    })
}

/// Shortens a description for lists; `get_script` returns it in full.
fn shorten(description: &str) -> String {
    let mut brief: String = description.chars().take(DESCRIPTION_CHARS).collect();
    if brief.len() < description.len() {
        brief.push('…');
    }
    brief
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
