//! MCPProxy's routes, with its own shapes.

use super::{Answer, ApiRequest};
use crate::code_api;

pub(super) async fn exec(request: ApiRequest<'_>) -> Answer {
    let (app, tools) = (request.app(), &request.edge.mcpproxy);
    Ok(code_api::exec(app, tools, request.client(), &request.raw).await)
}

pub(super) async fn scripts(request: ApiRequest<'_>) -> Answer {
    Ok(code_api::scripts(request.app(), &request.edge.mcpproxy, request.connection()).await)
}
