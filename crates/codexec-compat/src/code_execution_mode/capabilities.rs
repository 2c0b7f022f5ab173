//! The page about the sandbox, for clients that read resources.

use rmcp::model::{ReadResourceResponse, ReadResourceResult, Resource, ResourceContents};

pub(super) const URI: &str = "resource://mcp-server-code-execution-mode/capabilities";

/// The text of `runtime.capability_summary()`, with examples.
const TEXT: &str = include_str!("capabilities.md");

pub(super) fn resource() -> Resource {
    Resource::new(URI, "code-execution-capabilities")
        .with_title("Code execution: helpers")
        .with_description("What code in run_python finds, with examples")
        .with_mime_type("text/markdown")
}

pub(super) fn read() -> ReadResourceResponse {
    let contents = ResourceContents::text(TEXT, URI).with_mime_type("text/markdown");
    ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents]))
}
