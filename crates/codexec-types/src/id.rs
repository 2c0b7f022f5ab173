use std::fmt;

/// The id of an execution: `exec_` and 128 random bits in hex. The caller supplies the bits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId(String);

/// The id of a session, and all that a client needs to use it: `sess_` and 128 random bits in hex.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl ExecutionId {
    pub fn from_bits(bits: u128) -> ExecutionId {
        ExecutionId(format!("exec_{bits:032x}"))
    }

    /// Parses an id that a client sends back.
    pub fn parse(text: &str) -> Option<ExecutionId> {
        is_id(text, "exec_").then(|| ExecutionId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SessionId {
    pub fn from_bits(bits: u128) -> SessionId {
        SessionId(format!("sess_{bits:032x}"))
    }

    /// Parses an id that a client sends back.
    pub fn parse(text: &str) -> Option<SessionId> {
        is_id(text, "sess_").then(|| SessionId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_id(text: &str, prefix: &str) -> bool {
    let is_hex = |hex: &str| {
        hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    text.strip_prefix(prefix).is_some_and(is_hex)
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

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
