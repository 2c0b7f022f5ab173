//! How much one execution may store, in addition to its own record.

use std::sync::atomic::{AtomicU64, Ordering};

use codexec_types::{CallCode, CallError};

/// Covers arguments in records of calls, saved scripts, snapshots, and the records of everything
/// that the code runs itself.
const MAX_BYTES: u64 = 32 << 20;
/// Cost of a new file or row, in addition to its bytes.
const ENTRY_BYTES: u64 = 4 << 10;

/// The bytes that are left. Shared with everything that the execution starts.
#[derive(Debug)]
pub(crate) struct Allowance(AtomicU64);

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance(AtomicU64::new(MAX_BYTES))
    }
}

impl Allowance {
    /// Takes bytes for something that is about to be stored.
    ///
    /// THREAT[ORD-4]: every byte that code makes codexec store is counted before it is written.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), CallError> {
        let cost = bytes.saturating_add(ENTRY_BYTES);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        taken.map(|_| ()).map_err(|_| {
            let most = MAX_BYTES >> 20;
            let message = format!(
                "this execution has used its storage allowance ({most} MiB of scripts, snapshots and \
                 records); go on in another one"
            );
            CallError::new(CallCode::UpstreamError, message)
        })
    }

    /// Takes bytes that are already stored, down to zero.
    pub(crate) fn spend(&self, bytes: u64) {
        let spent = |left: u64| Some(left.saturating_sub(bytes));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ord_4_the_allowance_never_grows() {
        let allowance = Allowance::default();
        assert!(allowance.take(MAX_BYTES).is_err());
        allowance.take(MAX_BYTES / 2).expect("there is room");
        allowance.spend(MAX_BYTES / 4);
        assert!(allowance.take(MAX_BYTES / 4).is_err());
        let small = (0..100_000).take_while(|_| allowance.take(0).is_ok()).count();
        assert!((1_000..3_000).contains(&small), "{small}");
        allowance.spend(u64::MAX);
        assert!(allowance.take(0).is_err());
    }
}
