//! The logs of executions, in the shapes of the own functions.

use codexec_functions::OwnFunction;

use super::{Answer, ApiRequest, call_function, ok};

pub(super) async fn search(mut request: ApiRequest<'_>) -> Answer {
    let arguments = std::mem::take(&mut request.query);
    ok(&call_function(&request, OwnFunction::SearchExecutionLogs, arguments).await?.into())
}

pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    let arguments = [("execution_id".to_owned(), request.path(0).into())].into_iter().collect();
    ok(&call_function(&request, OwnFunction::GetExecutionLog, arguments).await?.into())
}
