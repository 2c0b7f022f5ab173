//! Executions: start, list, read, watch, cancel.

use std::sync::Arc;
use std::time::Duration;

use codexec_server::own::OwnFunctionError;
use codexec_server::{
    App, ExecutionEvent, Fields, FinishedExecution, WatchError, last_pieces, watch_channel,
};
use codexec_store::{CoarseStatus, ExecutionRecord, LogQuery, ReadScope};
use codexec_types::{ExecutionId, Language, SessionId, parse_time};
use futures::StreamExt as _;
use futures::stream;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::artifacts::image_type;
use super::execution_view as view;
use super::{Answer, ApiError, ApiRequest, PREFIX, ok, sse};
use crate::error::json_response;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;
const MAX_OFFSET: u64 = 1_000_000_000;
/// How often the record of an execution of another process is read, until it has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

type Executed = Result<FinishedExecution, OwnFunctionError>;

/// What an execution runs.
#[derive(Clone, Copy)]
enum Source {
    Code,
    Session,
    Script,
}

pub(super) async fn start(request: ApiRequest<'_>) -> Answer {
    run(request, Source::Code).await
}

/// Runs code in the session that the path names.
pub(super) async fn send(mut request: ApiRequest<'_>) -> Answer {
    let handle = request.path(0).into();
    request.body.insert("session_id".to_owned(), handle);
    run(request, Source::Session).await
}

/// Runs the saved script that the path names.
pub(super) async fn run_script(mut request: ApiRequest<'_>) -> Answer {
    let name = request.path(0).into();
    request.body.insert("name".to_owned(), name);
    run(request, Source::Script).await
}

/// Runs code. The answer comes at the end, as a stream, or at once.
async fn run(mut request: ApiRequest<'_>, source: Source) -> Answer {
    let mut fields = Fields::new(std::mem::take(&mut request.body));
    let waits = fields.boolean("wait")?.unwrap_or(true);
    let mut client = request.client();
    client.context.agent_id = fields.text("agent")?;
    let is_streamed = sse::is_wanted(request.head) && waits;
    let (sender, events) = watch_channel();
    if is_streamed || !waits {
        client.watcher = Some(sender);
    }
    let cancel = client.cancel.clone();
    let app = Arc::clone(request.app());
    let running = tokio::spawn(async move {
        match source {
            Source::Code => app.execute_code(fields, &client).await,
            Source::Session => app.send_to_session(fields, &client).await,
            Source::Script => app.run_script(fields, &client).await,
        }
    });
    if !is_streamed && waits {
        // A client that disconnects cancels by token and never by drop.
        let guard = cancel.drop_guard();
        let executed = running.await;
        drop(guard.disarm());
        return ok(&view::finished(&executed.map_err(|_| ApiError::internal())??));
    }
    let started = wait_for_start(events, running).await?;
    if is_streamed {
        let guard = cancel.drop_guard();
        return Ok(sse::respond(started.into_events(), guard, request.stop.clone()));
    }
    let id = started.id.as_str();
    let mut response = json_response(StatusCode::ACCEPTED, &json!({"id": id, "status": "running"}));
    if let Ok(place) = HeaderValue::from_str(&format!("{PREFIX}/executions/{id}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// An execution that has begun.
struct StartedExecution {
    id: ExecutionId,
    first: ExecutionEvent,
    events: mpsc::Receiver<ExecutionEvent>,
    running: JoinHandle<Executed>,
}

/// Waits until the execution has begun, or returns the reason why it did not.
async fn wait_for_start(
    mut events: mpsc::Receiver<ExecutionEvent>,
    running: JoinHandle<Executed>,
) -> Result<StartedExecution, ApiError> {
    match events.recv().await {
        Some(ExecutionEvent::Started(about)) => {
            let (id, first) = (about.id.clone(), ExecutionEvent::Started(about));
            Ok(StartedExecution { id, first, events, running })
        }
        Some(_) | None => match running.await {
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(_)) | Err(_) => Err(ApiError::internal()),
        },
    }
}

impl StartedExecution {
    /// Returns all events up to the end, which has the whole result.
    fn into_events(self) -> impl futures::Stream<Item = sse::Event> {
        let first = view::events(&self.first);
        let state = Some((self.events, self.running));
        let rest = stream::unfold(state, |state| async move {
            let (mut events, running) = state?;
            match events.recv().await {
                Some(event) => Some((view::events(&event), Some((events, running)))),
                None => Some((vec![last_event(running.await.ok())], None)),
            }
        });
        stream::iter(first).chain(rest.flat_map(stream::iter))
    }
}

fn last_event(executed: Option<Executed>) -> sse::Event {
    match executed {
        Some(Ok(execution)) => ("finished", view::finished(&execution)),
        Some(Err(error)) => ("error", ApiError::from(error).body()),
        None => ("error", ApiError::internal().body()),
    }
}

/// Lists executions, running and ended, newest first.
pub(super) async fn list(mut request: ApiRequest<'_>) -> Answer {
    let mut fields = Fields::new(std::mem::take(&mut request.query));
    let languages = Language::ALL.map(|language| (language.name(), language));
    let language = fields.choice("language", &languages)?;
    let status = fields.choice("status", &CoarseStatus::ALL.map(|kind| (kind.name(), kind)))?;
    let session = fields.text("session")?.map(|text| {
        let invalid = || ApiError::invalid("session: it must be like sess_<32 hex digits>");
        SessionId::parse(&text).ok_or_else(invalid)
    });
    let limit = fields.number("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
    let offset = read_cursor(&mut fields)?;
    let query = LogQuery {
        language: language.map(|language| language.name().to_owned()),
        status,
        text: fields.text("text")?,
        since: read_time(&mut fields, "since")?,
        until: read_time(&mut fields, "until")?,
        session: session.transpose()?,
        agent: fields.text("agent")?,
        tool: fields.text("tool")?,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        offset,
    };
    fields.finish()?;
    let scope = request.connection().read_scope();
    let page = request.app().records.store().await?.search(&query, &scope).await?;
    let items: Vec<Value> = page.results.iter().map(view::list_entry).collect();
    let end = offset + items.len() as u64;
    let next = (end < page.total && !items.is_empty()).then(|| end.to_string());
    ok(&view::without_nulls(json!({"items": items, "total": page.total, "next": next})))
}

/// A cursor is the number of entries before the page.
fn read_cursor(fields: &mut Fields) -> Result<u64, ApiError> {
    let Some(text) = fields.text("cursor")? else { return Ok(0) };
    let offset = text.parse().ok().filter(|offset| *offset <= MAX_OFFSET);
    offset.ok_or_else(|| ApiError::invalid("cursor: it must be `next` of an earlier answer"))
}

fn read_time(
    fields: &mut Fields,
    field: &'static str,
) -> Result<Option<std::time::SystemTime>, ApiError> {
    let Some(text) = fields.text(field)? else { return Ok(None) };
    let invalid = || {
        let like = "write it like 2026-02-09 or 2026-02-09T14:30:00Z";
        ApiError::invalid(format!("{field}: it is not a valid time; {like}"))
    };
    parse_time(&text).map(Some).ok_or_else(invalid)
}

pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    ok(&view_with_images(request.app(), &load(&request).await?).await)
}

pub(super) async fn load(request: &ApiRequest<'_>) -> Result<ExecutionRecord, ApiError> {
    let id = parse_id(request)?;
    let scope = request.connection().read_scope();
    let store = request.app().records.store().await?;
    store.get(&id, &scope).await?.ok_or_else(no_execution)
}

fn parse_id(request: &ApiRequest<'_>) -> Result<ExecutionId, ApiError> {
    ExecutionId::parse(request.path(0)).ok_or_else(no_execution)
}

/// THREAT[HTTP-9]: an execution of somebody else gets the same answer as one that never existed.
fn no_execution() -> ApiError {
    let message = "there is no such execution";
    ApiError::new(StatusCode::NOT_FOUND, "EXECUTION_NOT_FOUND", message)
}

async fn view_with_images(app: &App, record: &ExecutionRecord) -> Value {
    let count = record.summary.images.unwrap_or(0) as usize;
    let files = match count {
        0 => Vec::new(),
        _ => app.records.list_artifacts(&record.summary.id).await,
    };
    let names = files.iter().filter_map(|file| file.path.to_str());
    let shown = names.filter_map(|name| Some((name, image_type(name)?)));
    let shown = shown.filter(|(name, _)| name.starts_with("image-")).take(count);
    let images: Vec<Value> =
        shown.map(|(name, mime)| json!({"artifact": name, "mime_type": mime})).collect();
    view::record(record, &images)
}

pub(super) async fn cancel(request: ApiRequest<'_>) -> Answer {
    let id = parse_id(&request)?;
    if request.app().running.cancel(&id, &request.connection().read_scope()) {
        let body = json!({"id": id.as_str(), "status": "cancelling"});
        return Ok(json_response(StatusCode::ACCEPTED, &body));
    }
    let record = load(&request).await?;
    let message = match record.summary.kind == CoarseStatus::Running {
        true => "another codexec process runs the execution; cancel it there",
        false => "the execution has ended already",
    };
    Err(ApiError::conflict("NOT_RUNNING", message))
}

/// Streams what a running execution prints and does; of an ended one, what it has printed.
pub(super) async fn events(request: ApiRequest<'_>) -> Answer {
    let id = parse_id(&request)?;
    let scope = request.connection().read_scope();
    let app = Arc::clone(request.app());
    let watch = match app.running.watch(&id, &scope) {
        Ok(watch) => Some(watch),
        Err(WatchError::NotRunning) => None,
        Err(WatchError::TooManyWatchers) => {
            let message = "too many clients watch this execution already";
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(ApiError::new(status, "TOO_MANY_WATCHERS", message));
        }
    };
    // Also checks that the client may see the execution.
    let is_watched = watch.is_some();
    let record = load(&request).await?;
    let live = stream::unfold(watch, |watch| async move {
        let mut watch = watch?;
        let event = watch.next().await?;
        Some((view::events(&event), Some(watch)))
    });
    let end = stream::once(async move {
        let ended = wait_for_end(&app, &id, &scope, record).await;
        let mut events = Vec::new();
        if let Some(written) = ended.written.as_ref().filter(|_| !is_watched) {
            let pieces = last_pieces(written, usize::MAX).1;
            events = view::events(&ExecutionEvent::Earlier(pieces));
        }
        events.push(("finished", view_with_images(&app, &ended).await));
        events
    });
    let all = live.chain(end).flat_map(stream::iter);
    Ok(sse::respond(all, (), request.stop.clone()))
}

/// Reads the record until it has an end. Of an execution of another process, only that is known.
async fn wait_for_end(
    app: &App,
    id: &ExecutionId,
    scope: &ReadScope,
    mut record: ExecutionRecord,
) -> ExecutionRecord {
    loop {
        if let Ok(store) = app.records.store().await
            && let Ok(Some(newer)) = store.get(id, scope).await
        {
            record = newer;
        }
        if record.summary.kind != CoarseStatus::Running {
            return record;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
