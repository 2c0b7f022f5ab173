//! Resources: the complete output of executions, and their artifacts.

mod media_type;
mod uri;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codexec_store::{ExecutionRecord, ReadScope, StoreError};
use codexec_types::{Artifact, ExecutionId};
use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};

use self::uri::{PREFIX, ResourceTarget};
use crate::artifact_files::{self, ArtifactError, ArtifactFile};
use crate::escaped_text::{escape_json, escape_name};
use crate::reply::full_text;
use crate::{FinishedExecution, Records};

/// Maximum number of links in a reply; the list of artifacts has all files.
const MAX_LINKS: usize = 10;

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{PREFIX}{{id}}"), "execution")
            .with_description("The whole output and value of one execution")
            .with_mime_type("text/plain"),
        ResourceTemplate::new(format!("{PREFIX}{{id}}/artifacts"), "artifacts")
            .with_description("What one execution did to its directory, and the files kept of it")
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{PREFIX}{{id}}/artifacts/{{+path}}"), "artifact")
            .with_description("One of the files kept"),
    ]
}

/// Returns links to the files that an execution has left. Files in a directory of the user's have
/// no resource: they are there.
pub fn link_files(execution: &FinishedExecution) -> Vec<ContentBlock> {
    if execution.working_dir.is_some() {
        return Vec::new();
    }
    let changes = &execution.changes;
    let files = changes.created.iter().chain(&changes.modified).take(MAX_LINKS);
    files.map(|file| link_file(&execution.id, file)).collect()
}

fn link_file(id: &ExecutionId, file: &Artifact) -> ContentBlock {
    let path = Path::new(&file.path);
    let media_type = path.file_name().map(media_type::from_name).unwrap_or_default();
    let link = Resource::new(uri::artifact_uri(id, path), escape_name(&file.path));
    let mut link = link.with_size(file.bytes);
    link.mime_type = media_type.mime.map(str::to_owned);
    ContentBlock::resource_link(link)
}

/// Reads a resource of an execution that the scope includes.
pub(super) async fn read(
    records: &Records,
    scope: &ReadScope,
    uri: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let target = uri::parse(uri).ok_or_else(|| not_found(uri))?;
    let contents = match target {
        ResourceTarget::Execution(id) => {
            let execution = load_execution(records, &id, scope, uri).await?;
            let written = execution.written.unwrap_or_default();
            let text = full_text(written.text(), execution.value.as_deref());
            ResourceContents::text(text, uri)
        }
        ResourceTarget::Artifacts(id) => {
            let execution = load_execution(records, &id, scope, uri).await?;
            let folder = records.artifacts_folder(&id);
            let kept = blocking(move || artifact_files::list(&folder)).await?;
            let kept: Vec<Value> = kept.iter().map(|file| artifact_entry(&id, file)).collect();
            let list = json!({"id": id.as_str(), "changes": execution.changes, "kept": kept});
            ResourceContents::text(escape_json(&list.to_string()), uri)
                .with_mime_type("application/json")
        }
        ResourceTarget::Artifact(id, names) => {
            let store = records.store().await.map_err(|error| store_error(&error))?;
            if !store.contains(&id, scope).await.map_err(|error| store_error(&error))? {
                return Err(artifact_error(uri, &ArtifactError::Missing));
            }
            let folder = records.artifacts_folder(&id);
            let media_type =
                names.last().map(|name| media_type::from_name(name)).unwrap_or_default();
            let read = blocking(move || artifact_files::read(&folder, &names)).await?;
            file_contents(read.map_err(|error| artifact_error(uri, &error))?, media_type, uri)
        }
    };
    Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
}

async fn load_execution(
    records: &Records,
    id: &ExecutionId,
    scope: &ReadScope,
    uri: &str,
) -> Result<ExecutionRecord, ErrorData> {
    let store = records.store().await.map_err(|error| store_error(&error))?;
    store.get(id, scope).await.map_err(|error| store_error(&error))?.ok_or_else(|| not_found(uri))
}

fn store_error(error: &StoreError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn artifact_entry(id: &ExecutionId, file: &ArtifactFile) -> Value {
    let media_type = file.path.file_name().map(media_type::from_name).unwrap_or_default();
    json!({"uri": uri::artifact_uri(id, &file.path), "bytes": file.bytes, "mimeType": media_type.mime})
}

/// Returns the file as text if possible, otherwise as a blob.
fn file_contents(bytes: Vec<u8>, media_type: media_type::MediaType, uri: &str) -> ResourceContents {
    match String::from_utf8(bytes) {
        Ok(text) if media_type.may_be_text && !text.contains('\0') => {
            ResourceContents::text(text, uri)
                .with_mime_type(media_type.mime.unwrap_or("text/plain"))
        }
        read => {
            let bytes =
                read.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
            let mime = media_type.mime.unwrap_or("application/octet-stream");
            ResourceContents::blob(STANDARD.encode(bytes), uri).with_mime_type(mime)
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorData> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn not_found(uri: &str) -> ErrorData {
    let uri = shorten(uri);
    let message = format!(
        "there is no resource {uri:?} here; write {PREFIX}exec_<32 hex>, with /artifacts for the \
         list of its files, with /artifacts/<path> for one"
    );
    ErrorData::resource_not_found(message, None)
}

fn artifact_error(uri: &str, error: &ArtifactError) -> ErrorData {
    let uri = shorten(uri);
    match error {
        ArtifactError::Missing => {
            let message = format!(
                "there is no artifact {uri:?}; the execution's /artifacts lists them. A file \
                 written to a working_dir is only there"
            );
            ErrorData::resource_not_found(message, None)
        }
        ArtifactError::TooLong { .. } => {
            ErrorData::invalid_params(format!("{uri:?}: {error}"), None)
        }
        ArtifactError::Unreadable(source) => {
            tracing::warn!(%source, "an artifact cannot be read");
            ErrorData::internal_error(format!("{uri:?}: {error}"), None)
        }
    }
}

fn shorten(uri: &str) -> String {
    uri.chars().take(300).collect()
}

#[cfg(test)]
mod tests;
