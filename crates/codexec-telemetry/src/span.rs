//! A span is recorded from its start until it is dropped.

use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc;

use crate::TraceContext;

/// Maximum characters of an attribute.
const MAX_CHARS: usize = 200;

/// Starts spans. The default records none. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracer(pub(crate) Option<mpsc::Sender<SpanRecord>>);

/// Which side of a request a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
}

/// An operation. Dropping it ends it.
#[derive(Debug)]
pub struct Span {
    context: Option<TraceContext>,
    recording: Option<Box<Recording>>,
}

#[derive(Debug)]
struct Recording {
    record: SpanRecord,
    begun: Instant,
    queue: mpsc::Sender<SpanRecord>,
}

/// A finished span.
#[derive(Debug)]
pub(crate) struct SpanRecord {
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    pub(crate) started: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) attributes: Vec<(&'static str, String)>,
    /// The code of an error.
    pub(crate) error: Option<String>,
}

impl Tracer {
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Starts a span below `parent`, or a trace.
    pub fn start(
        &self,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
        parent: Option<TraceContext>,
    ) -> Span {
        let is_wanted = parent.is_none_or(|parent| parent.is_sampled);
        let Some(queue) = self.0.as_ref().filter(|_| is_wanted) else {
            // Whoever comes after us continues the trace of whoever came before us.
            return Span { context: parent, recording: None };
        };
        let context = match parent {
            Some(parent) => parent.new_child(),
            None => TraceContext::new_root(),
        };
        let Some(context) = context else { return Span { context: parent, recording: None } };
        let record = SpanRecord {
            context,
            parent: parent.map(|parent| parent.span_id),
            name: name.into(),
            kind,
            started: SystemTime::now(),
            duration: Duration::ZERO,
            attributes: Vec::new(),
            error: None,
        };
        let recording = Recording { record, begun: Instant::now(), queue: queue.clone() };
        Span { context: Some(context), recording: Some(Box::new(recording)) }
    }
}

impl Span {
    /// Returns the parent for spans below this one, also in other processes.
    pub fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// Sets an attribute.
    ///
    /// THREAT[OTL-1]: it must be a word of ours, an id, or a name; never code, arguments or output.
    pub fn set(&mut self, name: &'static str, value: &str) {
        if let Some(recording) = &mut self.recording {
            let value = value.chars().take(MAX_CHARS).collect();
            recording.record.attributes.push((name, value));
        }
    }

    /// Marks the operation as failed, with a code.
    pub fn fail(&mut self, code: &str) {
        if let Some(recording) = &mut self.recording {
            recording.record.error = Some(code.chars().take(MAX_CHARS).collect());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(recording) = self.recording.take() {
            let Recording { mut record, begun, queue } = *recording;
            record.duration = begun.elapsed();
            // A full queue drops the span: nobody waits for the receiver.
            let _ = queue.try_send(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn spans_chain_and_a_full_queue_drops_them() {
        let (sender, mut records) = mpsc::channel(2);
        let tracer = Tracer(Some(sender));
        let parent = TraceContext::parse(PARENT);
        let outer = tracer.start(SpanKind::Server, "outer", parent);
        let mut inner = tracer.start(SpanKind::Internal, "inner", outer.context());
        inner.fail("TIMEOUT");
        drop(inner);
        drop(outer);
        drop(tracer.start(SpanKind::Internal, "too many", None));
        let (inner, outer) = (records.try_recv().expect("one"), records.try_recv().expect("two"));
        assert_eq!((&*inner.name, &*outer.name), ("inner", "outer"));
        assert_eq!(inner.parent, Some(outer.context.span_id));
        assert_eq!(outer.parent, parent.map(|parent| parent.span_id));
        assert_eq!(inner.context.trace_id, parent.expect("valid").trace_id);
        assert_eq!(inner.error.as_deref(), Some("TIMEOUT"));
        assert!(records.try_recv().is_err());
    }

    #[test]
    fn what_is_not_recorded_is_passed_on() {
        let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00"));
        let (sender, mut records) = mpsc::channel(2);
        for (tracer, parent) in [
            (Tracer::default(), TraceContext::parse(PARENT)),
            (Tracer(Some(sender)), unsampled),
            (Tracer::default(), None),
        ] {
            assert_eq!(tracer.start(SpanKind::Server, "one", parent).context(), parent);
        }
        assert!(records.try_recv().is_err());
    }
}
