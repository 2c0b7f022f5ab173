//! The progress of a running execution, for its client.

use std::sync::{Arc, Mutex, PoisonError};

use codexec_gateway::{CallProgress, FollowCall};
use tokio::sync::watch;

use crate::OutputLines;

#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub tool_calls: u32,
    /// The last progress message of the guest, or of a server that it calls.
    pub message: Option<String>,
    /// The progress that servers report, summed over the calls: of one call it is the server's own.
    pub(crate) upstream: Option<UpstreamProgress>,
    /// The lines that the guest has printed.
    pub output: OutputLines,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct UpstreamProgress {
    pub(crate) done: f64,
    total: f64,
    /// True if some call reports no total.
    is_open: bool,
}

/// What one call has reported.
#[derive(Clone, Copy, Default)]
struct ReportedCall {
    done: f64,
    total: f64,
}

impl UpstreamProgress {
    pub(crate) fn total(&self) -> Option<f64> {
        (!self.is_open).then_some(self.total)
    }
}

impl Progress {
    /// Adds what a call reports to what it has reported before. Progress never decreases.
    fn add(&mut self, call: &mut ReportedCall, report: CallProgress) {
        let upstream = self.upstream.get_or_insert_default();
        let is_valid = |number: &f64| number.is_finite() && *number >= 0.0;
        let done = Some(report.progress).filter(is_valid).unwrap_or_default().max(call.done);
        upstream.done += done - call.done;
        match report.total.filter(is_valid) {
            Some(total) => {
                upstream.total += total - call.total;
                call.total = total;
            }
            None => upstream.is_open = true,
        }
        call.done = done;
        self.message = report.message.or(self.message.take());
    }
}

/// Returns the callbacks that pass the progress of upstream calls on.
pub(crate) fn follow_calls(progress: &watch::Sender<Progress>) -> FollowCall {
    let progress = progress.clone();
    Arc::new(move || {
        let (progress, call) = (progress.clone(), Mutex::new(ReportedCall::default()));
        Arc::new(move |report| {
            let mut call = call.lock().unwrap_or_else(PoisonError::into_inner);
            progress.send_modify(|progress| progress.add(&mut call, report));
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_passes_through_and_several_are_summed() {
        let sender = watch::Sender::new(Progress::default());
        let follow = follow_calls(&sender);
        let (first, second) = (follow(), follow());
        let report = |progress, total, message: Option<&str>| CallProgress {
            progress,
            total,
            message: message.map(str::to_owned),
        };
        let seen = || {
            let progress = sender.borrow();
            let upstream = progress.upstream.expect("progress");
            (upstream.done, upstream.total(), progress.message.clone().unwrap_or_default())
        };
        first(report(2.0, Some(5.0), Some("step 2")));
        assert_eq!(seen(), (2.0, Some(5.0), "step 2".to_owned()));
        first(report(1.0, Some(5.0), None));
        first(report(f64::NAN, Some(f64::INFINITY), None));
        assert_eq!((seen().0, seen().2), (2.0, "step 2".to_owned()));
        second(report(0.5, Some(1.0), Some("half")));
        assert_eq!((seen().0, seen().2), (2.5, "half".to_owned()));
        let other = watch::Sender::new(Progress::default());
        let follow = follow_calls(&other);
        follow()(report(3.0, Some(4.0), None));
        follow()(report(1.0, Some(6.0), None));
        let sum = other.borrow().upstream.expect("progress");
        assert_eq!((sum.done, sum.total()), (4.0, Some(10.0)));
    }
}
