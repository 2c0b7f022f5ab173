//! Collects what the steps of a command did, so that one run shows everything that fails.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::step::say;

/// The steps that have run so far.
pub(crate) struct Report {
    start: Instant,
    steps: Mutex<Vec<FinishedStep>>,
}

struct FinishedStep {
    name: String,
    duration: Duration,
    is_ok: bool,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report { start: Instant::now(), steps: Mutex::default() }
    }

    /// Runs a step. A failure is reported at once and counted; the next step can run.
    pub(crate) fn step<T>(&self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        say(&format!("== {name}"));
        let start = Instant::now();
        let result = work();
        let duration = start.elapsed();
        let verdict = if result.is_ok() { "done" } else { "failed" };
        say(&format!("== {name}: {verdict} in {}", seconds(duration)));
        let is_ok = result.is_ok();
        self.lock().push(FinishedStep { name: name.to_owned(), duration, is_ok });
        match result {
            Ok(value) => Some(value),
            Err(err) => {
                say(&format!("error: {err:#}"));
                None
            }
        }
    }

    /// Prints the time of each step, and fails if a step has failed.
    pub(crate) fn finish(&self) -> Result<()> {
        let steps = self.lock();
        say("== time");
        for FinishedStep { name, duration, is_ok } in steps.iter() {
            let verdict = if *is_ok { "" } else { "  FAILED" };
            say(&format!("{:>10}  {name}{verdict}", seconds(*duration)));
        }
        say(&format!("{:>10}  in total", seconds(self.start.elapsed())));
        let failed: Vec<&str> =
            steps.iter().filter(|step| !step.is_ok).map(|step| step.name.as_str()).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FinishedStep>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
