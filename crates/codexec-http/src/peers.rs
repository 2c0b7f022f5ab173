//! Counts the connections of each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The connections by address; `None` is a Unix socket.
#[derive(Clone)]
pub(crate) struct Peers {
    max: usize,
    counts: Arc<Mutex<HashMap<Option<IpAddr>, usize>>>,
}

/// A counted connection of an address. Dropping it frees its place.
pub(crate) struct PeerGuard {
    peers: Peers,
    address: Option<IpAddr>,
}

impl Peers {
    pub(crate) fn new(max: usize) -> Peers {
        Peers { max, counts: Arc::default() }
    }

    /// Counts a connection; `None` if the address has too many.
    ///
    /// THREAT[HTTP-6]: one address cannot use all connections.
    pub(crate) fn enter(&self, address: Option<IpAddr>) -> Option<PeerGuard> {
        let address = address.map(|address| address.to_canonical());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(PeerGuard { peers: self.clone(), address })
    }
}

impl Drop for PeerGuard {
    fn drop(&mut self) {
        let mut counts = self.peers.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_6_each_address_has_its_own_count() {
        let peers = Peers::new(2);
        let (one, two) = (Some(IpAddr::from([127, 0, 0, 1])), Some(IpAddr::from([127, 0, 0, 2])));
        let first = peers.enter(one).expect("the first");
        let _second = peers.enter(one).expect("the second");
        assert!(peers.enter(one).is_none());
        assert!(peers.enter(two).is_some() && peers.enter(None).is_some());
        drop(first);
        assert!(peers.enter(one).is_some());
    }
}
