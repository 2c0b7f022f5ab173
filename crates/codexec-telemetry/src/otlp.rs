//! OTLP in JSON.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::SpanKind;
use crate::context::format_hex;
use crate::span::SpanRecord;

/// Writes the body of `POST /v1/traces`.
pub(crate) fn write_spans(spans: &[SpanRecord], version: &str) -> Value {
    let resource = [("service.name", "codexec"), ("service.version", version)];
    let resource: Vec<Value> =
        resource.iter().map(|(name, value)| write_attribute(name, value)).collect();
    let spans: Vec<Value> = spans.iter().map(write_span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "codexec", "version": version}, "spans": spans}],
    }]})
}

fn write_span(span: &SpanRecord) -> Value {
    let began = span.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut attributes: Vec<Value> =
        span.attributes.iter().map(|(name, value)| write_attribute(name, value)).collect();
    if let Some(code) = &span.error {
        attributes.push(write_attribute("error.type", code));
    }
    let mut written = json!({
        "traceId": format_hex(&span.context.trace_id),
        "spanId": format_hex(&span.context.span_id),
        "name": span.name,
        "kind": match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
        "startTimeUnixNano": nanos(began),
        "endTimeUnixNano": nanos(began + span.duration),
        "attributes": attributes,
        "flags": 1,
        "status": if span.error.is_some() { json!({"code": 2}) } else { json!({}) },
    });
    if let (Some(parent), Some(fields)) = (&span.parent, written.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), format_hex(parent).into());
    }
    written
}

/// JSON has no integers of 64 bits, so OTLP writes them as text.
fn nanos(time: Duration) -> String {
    time.as_nanos().to_string()
}

fn write_attribute(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}
