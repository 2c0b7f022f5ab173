//! Resources: the complete output of executions, and their artifacts.

mod kind;
mod uri;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codexec_types::ExecutionId;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResponse, ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use self::uri::{PREFIX, Wanted};
use crate::Records;
use crate::kept::{self, Kept, KeptError};
use crate::plain::plain_json;
use crate::reply::whole;

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

pub(super) async fn read(records: &Records, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let wanted = uri::parse(uri).ok_or_else(|| missing(uri))?;
    let contents = match wanted {
        Wanted::Execution(id) => {
            let execution = stored(records, &id, uri).await?;
            let written = execution.written.unwrap_or_default();
            let text = whole(written.text(), execution.value.as_deref());
            ResourceContents::text(text, uri)
        }
        Wanted::Artifacts(id) => {
            let execution = stored(records, &id, uri).await?;
            let folder = records.artifacts(&id);
            let kept = blocking(move || kept::list(&folder)).await?;
            let kept: Vec<Value> = kept.iter().map(|file| entry(&id, file)).collect();
            let list = json!({"id": id.as_str(), "changes": execution.changes, "kept": kept});
            ResourceContents::text(plain_json(&list.to_string()), uri)
                .with_mime_type("application/json")
        }
        Wanted::Artifact(id, names) => {
            let folder = records.artifacts(&id);
            let kind = names.last().map(|name| kind::of(name)).unwrap_or_default();
            let read = blocking(move || kept::read(&folder, &names)).await?;
            file(read.map_err(|error| unread(uri, &error))?, kind, uri)
        }
    };
    Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
}

async fn stored(
    records: &Records,
    id: &ExecutionId,
    uri: &str,
) -> Result<codexec_store::Execution, ErrorData> {
    let failed =
        |error: codexec_store::StoreError| ErrorData::internal_error(error.to_string(), None);
    let store = records.store().await.map_err(failed)?;
    store.get(id).await.map_err(failed)?.ok_or_else(|| missing(uri))
}

fn entry(id: &ExecutionId, file: &Kept) -> Value {
    let kind = file.path.file_name().map(kind::of).unwrap_or_default();
    json!({"uri": uri::of(id, &file.path), "bytes": file.bytes, "mimeType": kind.mime})
}

/// Returns the file as text if possible, otherwise as a blob.
fn file(bytes: Vec<u8>, kind: kind::Kind, uri: &str) -> ResourceContents {
    match String::from_utf8(bytes) {
        Ok(text) if kind.may_be_text && !text.contains('\0') => {
            ResourceContents::text(text, uri).with_mime_type(kind.mime.unwrap_or("text/plain"))
        }
        read => {
            let bytes =
                read.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
            let mime = kind.mime.unwrap_or("application/octet-stream");
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

fn missing(uri: &str) -> ErrorData {
    let uri = brief(uri);
    let message = format!(
        "there is no resource {uri:?} here; write {PREFIX}exec_<32 hex>, with /artifacts for the \
         list of its files, with /artifacts/<path> for one"
    );
    ErrorData::resource_not_found(message, None)
}

fn unread(uri: &str, error: &KeptError) -> ErrorData {
    let uri = brief(uri);
    match error {
        KeptError::Missing => {
            let message = format!(
                "there is no artifact {uri:?}; the execution's /artifacts lists them. A file \
                 written to a working_dir is only there"
            );
            ErrorData::resource_not_found(message, None)
        }
        KeptError::TooLong { .. } => ErrorData::invalid_params(format!("{uri:?}: {error}"), None),
        KeptError::Unreadable(source) => {
            tracing::warn!(%source, "an artifact cannot be read");
            ErrorData::internal_error(format!("{uri:?}: {error}"), None)
        }
    }
}

fn brief(uri: &str) -> String {
    uri.chars().take(300).collect()
}

#[cfg(test)]
mod tests;
