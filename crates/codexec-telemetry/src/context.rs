use std::fmt;

/// The place of a span in a trace, as W3C's `traceparent` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    /// False if the caller does not want this trace to be recorded.
    pub(crate) is_sampled: bool,
}

impl TraceContext {
    /// Begins a trace; `None` if the operating system has no random numbers.
    pub(crate) fn new_root() -> Option<TraceContext> {
        let mut trace_id = [0; 16];
        getrandom::fill(&mut trace_id).ok()?;
        TraceContext { trace_id, span_id: [0; 8], is_sampled: true }.new_child()
    }

    /// Returns the context of a new span in the same trace.
    pub(crate) fn new_child(self) -> Option<TraceContext> {
        let mut span_id = [0; 8];
        getrandom::fill(&mut span_id).ok()?;
        Some(TraceContext { span_id, ..self })
    }

    /// Parses `traceparent`. A malformed one is none, as the standard says.
    pub fn parse(text: &str) -> Option<TraceContext> {
        let mut parts = text.split('-');
        let (version, trace_id) = (parts.next()?, parts.next()?);
        let (span_id, flags) = (parts.next()?, parts.next()?);
        let [version] = parse_hex(version)?;
        // Later versions may have further parts; version 0 has none, and 255 is forbidden.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace_id, span_id) = (parse_hex(trace_id)?, parse_hex(span_id)?);
        let [flags] = parse_hex(flags)?;
        if trace_id == [0; 16] || span_id == [0; 8] {
            return None;
        }
        Some(TraceContext { trace_id, span_id, is_sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace_id, span_id) = (format_hex(&self.trace_id), format_hex(&self.span_id));
        write!(f, "00-{trace_id}-{span_id}-{:02x}", u8::from(self.is_sampled))
    }
}

pub(crate) fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses lower-case digits only: the standard allows no others.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = (digit(high)? << 4) | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_contexts_are_accepted() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(text).expect("the standard's example");
        assert_eq!(context.to_string(), text);
        let child = context.new_child().expect("random numbers");
        assert_eq!(child.trace_id, context.trace_id);
        assert_ne!(child.span_id, context.span_id);
        let later = text.replacen("00", "cc", 1) + "-what-comes";
        assert!(TraceContext::parse(&later).is_some());
        for wrong in [
            "",
            "00",
            &text.replacen("00", "ff", 1),
            &text.to_uppercase(),
            &format!("{text}-more"),
            &text[..text.len() - 1],
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}
