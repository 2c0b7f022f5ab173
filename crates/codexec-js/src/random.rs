//! Random numbers. They come from the kernel after the fork: what the zygote knew, every one of
//! its children would know.

/// One call to the kernel is good for this many bytes.
const POOL_BYTES: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct Random {
    unused: Vec<u8>,
}

impl Random {
    /// From zero to one, one left out.
    pub(crate) fn fraction(&mut self) -> Result<f64, getrandom::Error> {
        if self.unused.len() < size_of::<u64>() {
            self.unused = bytes(POOL_BYTES)?;
        }
        let taken = self.unused.split_off(self.unused.len() - size_of::<u64>());
        let bits = taken.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte));
        // 53 bits are all that a double can hold.
        Ok((bits >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

pub(crate) fn bytes(count: usize) -> Result<Vec<u8>, getrandom::Error> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
