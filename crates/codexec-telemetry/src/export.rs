//! Sends finished spans in batches.

use std::sync::Once;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Tracer;
use crate::otlp::write_spans;
use crate::span::SpanRecord;

/// Maximum number of spans that wait; further ones are dropped.
const QUEUE: usize = 4_096;
const BATCH: usize = 512;
/// How long a span waits for others.
const PAUSE: Duration = Duration::from_secs(2);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last spans may take at the end.
const LAST_SPANS: Duration = Duration::from_secs(1);
/// A receiver that is missing is reported this often.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSettings {
    /// The receiver's whole address, such as `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: String,
    pub headers: Vec<(String, String)>,
    /// The version of the program that sends.
    pub version: &'static str,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the endpoint of traces must be a URL with http or https")]
    Endpoint,
    #[error("the header {0:?} for traces is malformed")]
    Header(String),
    #[error("cannot make an HTTP client for traces")]
    Client(#[source] reqwest::Error),
}

/// Sends spans until it is stopped.
pub struct Exporter {
    stop: CancellationToken,
    sending: JoinHandle<()>,
}

impl Exporter {
    /// Starts a task that sends spans, and returns the tracer that records them.
    pub fn start(settings: &ExportSettings) -> Result<(Exporter, Tracer), ExportError> {
        let url = Url::parse(&settings.endpoint).map_err(|_| ExportError::Endpoint)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ExportError::Endpoint);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let header = HeaderName::from_bytes(name.as_bytes()).ok();
            let header = header.zip(HeaderValue::from_str(value).ok());
            let (header, mut value) = header.ok_or_else(|| ExportError::Header(name.clone()))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let client = build_client(headers).map_err(ExportError::Client)?;
        let (sender, records) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let receiver = Receiver { client, url, version: settings.version, warned: None };
        let sending = tokio::spawn(receiver.send_batches(records, stop.clone()));
        Ok((Exporter { stop, sending }, Tracer(Some(sender))))
    }

    /// Sends the spans that wait, for a short time.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(LAST_SPANS, &mut self.sending).await.is_err() {
            self.sending.abort();
        }
    }
}

fn build_client(headers: HeaderMap) -> reqwest::Result<Client> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails if this process has already installed a provider, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    Client::builder()
        .timeout(SEND_TIMEOUT)
        .default_headers(headers)
        // Headers with credentials go to the endpoint and nowhere else.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
}

/// The other end.
struct Receiver {
    client: Client,
    url: Url,
    version: &'static str,
    warned: Option<Instant>,
}

impl Receiver {
    async fn send_batches(
        mut self,
        mut records: mpsc::Receiver<SpanRecord>,
        stop: CancellationToken,
    ) {
        let mut batch = Vec::new();
        loop {
            let is_last = tokio::select! {
                received = records.recv_many(&mut batch, BATCH) => received == 0,
                () = stop.cancelled() => true,
            };
            if !is_last {
                self.fill(&mut batch, &mut records, &stop).await;
            }
            while batch.len() < BATCH
                && let Ok(record) = records.try_recv()
            {
                batch.push(record);
            }
            if !batch.is_empty() {
                self.send(&batch).await;
                batch.clear();
            } else if is_last {
                return;
            }
        }
    }

    /// Waits for more spans, until there are enough or it is time.
    async fn fill(
        &self,
        batch: &mut Vec<SpanRecord>,
        records: &mut mpsc::Receiver<SpanRecord>,
        stop: &CancellationToken,
    ) {
        let until = Instant::now() + PAUSE;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            tokio::select! {
                received = records.recv_many(batch, room) => if received == 0 { return },
                () = tokio::time::sleep_until(until) => return,
                () = stop.cancelled() => return,
            }
        }
    }

    async fn send(&mut self, batch: &[SpanRecord]) {
        let body = write_spans(batch, self.version).to_string();
        let request = self.client.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let why = match request.send().await {
            Ok(response) if response.status().is_success() => return,
            Ok(response) => format!("it answered {}", response.status()),
            // The address may have credentials in it.
            Err(error) => error.without_url().to_string(),
        };
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARNING_PAUSE) {
            self.warned = Some(Instant::now());
            let spans = batch.len();
            tracing::warn!(why, spans, "the receiver of traces did not take spans; they are lost");
        }
    }
}
