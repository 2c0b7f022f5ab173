use std::fmt;

/// Names one execution: `exec_` and 128 random bits in hex. The bits come in from outside.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ExecutionId(String);

impl ExecutionId {
    pub fn from_bits(bits: u128) -> ExecutionId {
        ExecutionId(format!("exec_{bits:032x}"))
    }

    /// Reads an id that somebody sends back to us.
    pub fn parse(text: &str) -> Option<ExecutionId> {
        let hex = text.strip_prefix("exec_")?;
        let is_hex = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (hex.len() == 32 && is_hex).then(|| ExecutionId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
