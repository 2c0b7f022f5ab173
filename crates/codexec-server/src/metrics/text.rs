use std::fmt::{Display, Write as _};

use codexec_telemetry::HistogramCounts;

/// Numbers in the text format of Prometheus.
#[derive(Debug, Default)]
pub struct MetricsText(String);

/// What a family of numbers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

type Labels<'a> = [(&'a str, &'a str)];

impl MetricsText {
    /// Begins a family. All of its numbers must follow before the next one begins.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    pub fn number(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let pair = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escape(value));
            let pairs: Vec<String> = labels.iter().map(pair).collect();
            let _ = write!(self.0, "{{{}}}", pairs.join(","));
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Writes a gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, MetricKind::Gauge, help);
        self.number(name, &[], value);
    }

    pub fn histogram(&mut self, name: &str, labels: &Labels<'_>, counts: &HistogramCounts) {
        let bounds = counts.within.iter();
        let buckets = bounds.map(|(bound, count)| (bound.as_secs_f64().to_string(), *count));
        for (bound, count) in buckets.chain([("+Inf".to_owned(), counts.count)]) {
            let labels = [labels, &[("le", &*bound)]].concat();
            self.number(&format!("{name}_bucket"), &labels, count);
        }
        self.number(&format!("{name}_sum"), labels, counts.sum.as_secs_f64());
        self.number(&format!("{name}_count"), labels, counts.count);
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use codexec_telemetry::Histogram;
    use std::time::Duration;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let histogram = Histogram::new(&[100, 2_500]);
        histogram.count(Duration::from_millis(200));
        let mut text = MetricsText::default();
        text.family("a_seconds", MetricKind::Histogram, "Waits");
        text.histogram("a_seconds", &[("server", "a\"b\\c\n")], &histogram.snapshot());
        text.gauge("b", "Now", 0.5);
        let expected = "# HELP a_seconds Waits\n\
            # TYPE a_seconds histogram\n\
            a_seconds_bucket{server=\"a\\\"b\\\\c\\n\",le=\"0.1\"} 0\n\
            a_seconds_bucket{server=\"a\\\"b\\\\c\\n\",le=\"2.5\"} 1\n\
            a_seconds_bucket{server=\"a\\\"b\\\\c\\n\",le=\"+Inf\"} 1\n\
            a_seconds_sum{server=\"a\\\"b\\\\c\\n\"} 0.2\n\
            a_seconds_count{server=\"a\\\"b\\\\c\\n\"} 1\n\
            # HELP b Now\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(text.into_text(), expected);
    }
}
