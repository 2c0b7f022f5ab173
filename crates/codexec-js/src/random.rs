//! Random numbers. They come from the kernel after the fork: state of the zygote would be the same
//! in all its children.

/// Bytes that are fetched with one system call.
const POOL_BYTES: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct Random {
    unused: Vec<u8>,
}

impl Random {
    /// Returns a number from zero to one, excluding one.
    pub(crate) fn fraction(&mut self) -> Result<f64, getrandom::Error> {
        if self.unused.len() < size_of::<u64>() {
            self.unused = bytes(POOL_BYTES)?;
        }
        let taken = self.unused.split_off(self.unused.len() - size_of::<u64>());
        let bits = taken.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte));
        // A double holds 53 bits.
        Ok((bits >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

pub(crate) fn bytes(count: usize) -> Result<Vec<u8>, getrandom::Error> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
