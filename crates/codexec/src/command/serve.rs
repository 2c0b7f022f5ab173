use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use codexec_compat::ProxySettings;
use codexec_http::{HttpEdge, HttpSettings, Listener, TokenFile, ToolsetSource};
use codexec_server::{App, LivePolicy, TextBudget, mcp};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::serve::ServeArgs;
use crate::parts::{self, Parts};

/// How long the last replies may take to reach their clients.
const LAST_REPLIES: Duration = Duration::from_millis(500);
const LAST_CONNECTIONS: Duration = Duration::from_secs(1);

/// How long a client at stdin may take to be answered before the pools are filled. Filling them
/// takes all cores, and clients connect as soon as they have started the server.
const FIRST_REPLY: Duration = Duration::from_millis(20);

pub(super) async fn run(mut parts: Parts, args: ServeArgs) -> anyhow::Result<ExitCode> {
    codexec_sandbox::share_heaps();
    let http = match args.serves_http() {
        true => Some(HttpParts::prepare(&parts, &args).await?),
        false => None,
    };
    let (exporter, tracer) = parts.start_traces()?;
    let (mut app, connection, reloader) = parts.build_server()?;
    app.tracer = tracer;
    let app = Arc::new(app);
    let preload = app.gateway.load_saved_lists();
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let http = http.map(|http| http.start(&app, Arc::clone(&reloader.policy)));
    let edge = http.as_ref().map(|http| Arc::clone(&http.edge));
    let answered = CancellationToken::new();
    let warm = tokio::spawn({
        let (app, answered) = (Arc::clone(&app), answered.clone());
        let head_start = if args.serves_stdio() { FIRST_REPLY } else { Duration::ZERO };
        async move {
            let _ = tokio::time::timeout(head_start, answered.cancelled()).await;
            if let Err(error) = app.records.store().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot open the store");
            }
            // Tool lists before interpreters: clients need them first, and both need the cores.
            let _ = preload.await;
            if let Err(error) = app.workers.warm().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "no code can run here");
            } else if let Some(edge) = edge {
                edge.set_ready();
            }
        }
    });
    let follow = tokio::spawn(reloader.follow(Arc::clone(&app)));
    let stdio = async {
        if args.serves_stdio() {
            let served =
                mcp::serve_stdio(Arc::clone(&app), connection, stop.clone(), answered).await;
            // With HTTP, the end of stdin is only the end of this client.
            if !args.serves_http() || served.is_err() {
                return served;
            }
        }
        std::future::pending().await
    };
    let served = tokio::select! {
        served = stdio => served,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    if let Some(http) = &http {
        http.edge.drain();
        app.finish_executions(http.grace).await;
    }
    stop.cancel();
    warm.abort();
    follow.abort();
    app.shutdown().await;
    if let Some(http) = http {
        http.end().await;
    }
    if let Some(exporter) = exporter {
        exporter.stop().await;
    }
    served?;
    Ok(ExitCode::SUCCESS)
}

/// What the HTTP edge is made of, before the app exists.
struct HttpParts {
    listeners: Vec<Listener>,
    home: PathBuf,
    budget: TextBudget,
    toolsets: ToolsetSource,
    proxy: ProxySettings,
    settings: HttpSettings,
}

/// The running HTTP edge.
struct RunningHttp {
    edge: Arc<HttpEdge>,
    serving: JoinHandle<()>,
    grace: Duration,
}

impl HttpParts {
    /// Makes the first token, and listens.
    async fn prepare(parts: &Parts, args: &ServeArgs) -> anyhow::Result<HttpParts> {
        let mut settings = parts.config.http.clone();
        settings.allow_plain = args.allow_plain_http;
        parts::create_state_dir(&parts.home)?;
        let tokens = TokenFile::at(&parts.home);
        tokens.ensure_first().context("the first token")?;
        let mut listeners = Vec::new();
        if let Some(address) = args.http {
            listeners.push(Listener::bind_tcp(address, &settings).await?);
        }
        if let Some(path) = &args.socket {
            listeners.push(Listener::bind_unix(path)?);
        }
        for listener in &listeners {
            let token = tokens.first_path();
            writeln!(
                std::io::stderr(),
                "codexec: listening on {}; the token is in {}",
                listener.url(),
                token.display(),
            )?;
        }
        Ok(HttpParts {
            listeners,
            home: parts.home.clone(),
            budget: parts.config.budget,
            toolsets: parts.toolset_source(),
            proxy: parts.config.seeds.proxy.clone(),
            settings,
        })
    }

    fn start(self, app: &Arc<App>, policy: Arc<LivePolicy>) -> RunningHttp {
        let grace = self.settings.grace;
        let edge = HttpEdge::new(
            Arc::clone(app),
            &self.home,
            policy,
            self.budget,
            self.toolsets,
            self.proxy,
            self.settings,
        );
        let edge = Arc::new(edge);
        let serving = tokio::spawn(Arc::clone(&edge).serve(self.listeners));
        RunningHttp { edge, serving, grace }
    }
}

impl RunningHttp {
    /// Waits until the last replies are sent, and closes the rest.
    async fn end(mut self) {
        if tokio::time::timeout(LAST_REPLIES, &mut self.serving).await.is_err() {
            self.edge.end_streams();
            let _ = tokio::time::timeout(LAST_CONNECTIONS, &mut self.serving).await;
        }
        self.serving.abort();
    }
}
