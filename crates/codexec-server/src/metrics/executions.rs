//! Counts executions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use codexec_telemetry::Histogram;
use codexec_types::{Language, Outcome};

use super::text::{MetricKind, MetricsText};

/// The bounds of the time from a request to its result.
const BOUNDS_MS: [u64; 14] =
    [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 30_000, 120_000];

/// How an execution ended, for metrics.
const OUTCOMES: [&str; 7] =
    ["returned", "threw", "exited", "stopped", "crashed", "cancelled", "refused"];
const REFUSED: usize = 6;

/// Four characters are about one token.
const TOKEN_BYTES: u64 = 4;

/// The executions of this process, by language.
pub(crate) struct ExecutionCounts {
    languages: [LanguageCounts; Language::ALL.len()],
    tokens_saved: AtomicU64,
}

struct LanguageCounts {
    language: Language,
    outcomes: [AtomicU64; OUTCOMES.len()],
    durations: Histogram,
}

/// An execution that is being counted. It counts as refused unless it gets an outcome.
pub(crate) struct CountedExecution<'a> {
    counts: &'a ExecutionCounts,
    language: Language,
    begun: Instant,
    outcome: usize,
}

impl Default for ExecutionCounts {
    fn default() -> ExecutionCounts {
        let languages = Language::ALL.map(|language| LanguageCounts {
            language,
            outcomes: Default::default(),
            durations: Histogram::new(&BOUNDS_MS),
        });
        ExecutionCounts { languages, tokens_saved: AtomicU64::new(0) }
    }
}

impl ExecutionCounts {
    pub(crate) fn begin(&self, language: Language) -> CountedExecution<'_> {
        CountedExecution { counts: self, language, begun: Instant::now(), outcome: REFUSED }
    }

    fn count(&self, language: Language, outcome: usize, took: Duration) {
        let Some(counts) = self.languages.iter().find(|counts| counts.language == language) else {
            return;
        };
        if let Some(counter) = counts.outcomes.get(outcome) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if outcome != REFUSED {
            counts.durations.count(took);
        }
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        let name = "codexec_executions_total";
        text.family(name, MetricKind::Counter, "Executions by language and outcome");
        for counts in &self.languages {
            for (outcome, counter) in OUTCOMES.iter().zip(&counts.outcomes) {
                let labels = [("language", counts.language.name()), ("outcome", outcome)];
                text.number(name, &labels, counter.load(Ordering::Relaxed));
            }
        }
        let name = "codexec_execution_duration_seconds";
        text.family(name, MetricKind::Histogram, "Time from a request to its result");
        for counts in &self.languages {
            let labels = [("language", counts.language.name())];
            text.histogram(name, &labels, &counts.durations.snapshot());
        }
        let name = "codexec_tokens_saved_total";
        let help =
            "Tokens of tool results that code worked on and the client did not get, estimated";
        text.family(name, MetricKind::Counter, help);
        text.number(name, &[], self.tokens_saved.load(Ordering::Relaxed));
    }
}

impl CountedExecution<'_> {
    /// Sets the outcome. Saved is what the code received from tools and did not pass on.
    pub(crate) fn finish(&mut self, outcome: &Outcome, received_bytes: u64, reply_bytes: u64) {
        self.outcome = match outcome {
            Outcome::Returned(_) => 0,
            Outcome::Threw(_) => 1,
            Outcome::Exited { .. } => 2,
            Outcome::Stopped(_) => 3,
            Outcome::Crashed(_) => 4,
            Outcome::Cancelled => 5,
        };
        let saved = received_bytes.saturating_sub(reply_bytes) / TOKEN_BYTES;
        self.counts.tokens_saved.fetch_add(saved, Ordering::Relaxed);
    }
}

impl Drop for CountedExecution<'_> {
    fn drop(&mut self) {
        self.counts.count(self.language, self.outcome, self.begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_counted_by_language_and_outcome() {
        let counts = ExecutionCounts::default();
        counts.begin(Language::Bash).finish(&Outcome::Exited { code: 3 }, 1_000, 200);
        counts.begin(Language::Bash).finish(&Outcome::Cancelled, 0, 200);
        drop(counts.begin(Language::Python));
        let mut text = MetricsText::default();
        counts.write(&mut text);
        let text = text.into_text();
        for line in [
            "codexec_executions_total{language=\"bash\",outcome=\"exited\"} 1",
            "codexec_executions_total{language=\"bash\",outcome=\"cancelled\"} 1",
            "codexec_executions_total{language=\"python\",outcome=\"refused\"} 1",
            "codexec_execution_duration_seconds_count{language=\"bash\"} 2",
            "codexec_execution_duration_seconds_count{language=\"python\"} 0",
            "codexec_tokens_saved_total 200",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }
}
