use std::process::ExitCode;
use std::sync::Arc;

use codexec_server::mcp;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::parts::Parts;

pub(super) async fn run(parts: Parts) -> anyhow::Result<ExitCode> {
    let (app, connection, reloader) = parts.build_server()?;
    let app = Arc::new(app);
    let preload = app.gateway.load_saved_lists();
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let warm = tokio::spawn({
        let app = Arc::clone(&app);
        async move {
            if let Err(error) = app.records.store().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot open the store");
            }
            // Tool lists before interpreters: clients need them first, and both need the cores.
            let _ = preload.await;
            if let Err(error) = app.workers.warm().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "no code can run here");
            }
        }
    });
    let follow = tokio::spawn(reloader.follow(Arc::clone(&app)));
    let served = tokio::select! {
        served = mcp::serve_stdio(Arc::clone(&app), connection, stop.clone()) => served,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    stop.cancel();
    warm.abort();
    follow.abort();
    app.shutdown().await;
    served?;
    Ok(ExitCode::SUCCESS)
}
