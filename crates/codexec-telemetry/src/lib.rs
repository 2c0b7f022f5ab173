//! What operators see: histograms for metrics, and spans of requests, executions and tool calls,
//! sent over OTLP to where the user says.
//!
//! Invariant: without an endpoint nothing is recorded or sent. Spans have names, ids, times and
//! error codes; never code, arguments or output. A slow or missing receiver costs spans, and
//! neither memory nor time of a request.

mod context;
mod export;
mod histogram;
mod otlp;
mod span;

pub use context::TraceContext;
pub use export::{ExportError, ExportSettings, Exporter};
pub use histogram::{Histogram, HistogramCounts};
pub use span::{Span, SpanKind, Tracer};
