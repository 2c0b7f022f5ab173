//! What did not fit into a reply can be read whole: `codexec://executions/{id}`.

use codexec_types::ExecutionId;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResponse, ReadResourceResult, ResourceContents, ResourceTemplate};

use crate::Records;
use crate::reply::whole;

const PREFIX: &str = "codexec://executions/";

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{PREFIX}{{id}}"), "execution")
        .with_description("The whole output and value of one execution")
        .with_mime_type("text/plain")
}

pub(super) async fn read(records: &Records, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let missing = || {
        let message = format!("there is no resource {uri:?} here; write {PREFIX}exec_<32 hex>");
        ErrorData::resource_not_found(message, None)
    };
    let id = uri.strip_prefix(PREFIX).and_then(ExecutionId::parse).ok_or_else(missing)?;
    let failed =
        |error: codexec_store::StoreError| ErrorData::internal_error(error.to_string(), None);
    let store = records.store().await.map_err(failed)?;
    let found = store.get(&id).await.map_err(failed)?;
    let execution = found.ok_or_else(missing)?;
    let text = whole(&execution.output.unwrap_or_default(), execution.value.as_deref());
    let contents = ResourceContents::text(text, uri);
    Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
}
