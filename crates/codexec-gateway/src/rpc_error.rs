//! JSON-RPC errors that are passed on as they are.

use serde_json::{Value, json};

use crate::caller::QuestionKind;

/// The error with which a server, or a client, answered a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub const METHOD_NOT_FOUND: i32 = -32_601;
    pub(crate) const INTERNAL: i32 = -32_603;
    const MISSING_CAPABILITY: i32 = -32_021;

    pub fn new(code: i32, message: &str) -> RpcError {
        RpcError { code, message: message.to_owned(), data: None }
    }

    /// Says that the client has not declared what a question needs.
    pub(crate) fn missing_capability(kind: QuestionKind) -> RpcError {
        let capability = kind.capability();
        RpcError {
            data: Some(json!({"requiredCapabilities": {capability: {}}})),
            ..RpcError::new(
                RpcError::MISSING_CAPABILITY,
                &format!("the client has not declared the capability {capability:?}"),
            )
        }
    }
}
