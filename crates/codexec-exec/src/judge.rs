//! What an end means, from what the host saw. A guest's own word counts only for what it
//! returned or threw.

use codexec_sandbox::Exit;
use codexec_types::{Crash, Json, Language, Limit, Outcome, Thrown, ThrownCode};

/// What the host saw of an end.
pub(crate) struct Evidence {
    pub(crate) language: Language,
    /// The code was parsed; before that, only our own parser ran.
    pub(crate) is_compiled: bool,
    pub(crate) exit: Option<Exit>,
    /// The wait status of the guest's first process, for a guest that is a program.
    pub(crate) status: Option<i32>,
    pub(crate) ran_out_of_memory: bool,
    pub(crate) peak_bytes: u64,
    pub(crate) memory_bytes: u64,
}

/// What a guest said of its own end.
pub(crate) enum Claim {
    Returned(Json),
    Threw(Thrown),
}

const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

impl Evidence {
    /// For our own engine: it is our program that speaks, as long as it speaks.
    pub(crate) fn of_engine(&self, claim: Option<Claim>) -> Outcome {
        match claim {
            Some(Claim::Returned(value)) => Outcome::Returned(value),
            Some(Claim::Threw(thrown)) => self.thrown(thrown),
            None if self.ran_out_of_memory && self.is_compiled => Outcome::Stopped(Limit::Memory),
            None => self.died(),
        }
    }

    /// For a program: the way its first process ended, and its word only beside it.
    pub(crate) fn of_program(&self, claim: Option<Claim>) -> Outcome {
        let Some(status) = self.status else { return Outcome::Crashed(Crash::Exited) };
        let (code, signal) = ((status >> 8) & 0xff, status & 0x7f);
        match (code, signal) {
            (0, 0) => match claim {
                Some(Claim::Returned(value)) => Outcome::Returned(value),
                Some(Claim::Threw(_)) | None => Outcome::Returned(Json::null()),
            },
            _ if self.ran_out_of_memory => Outcome::Stopped(Limit::Memory),
            (code, 0) => match claim {
                Some(Claim::Threw(thrown)) => self.thrown_by_program(thrown),
                Some(Claim::Returned(_)) | None => Outcome::Exited { code },
            },
            (_, SIGXCPU) => Outcome::Stopped(Limit::Cpu),
            (_, SIGXFSZ) => Outcome::Stopped(Limit::Disk),
            (_, signal) => Outcome::Crashed(Crash::Killed { signal }),
        }
    }

    /// What a program threw, at its end or at the end of a cell.
    ///
    /// THREAT[ZYG-4]: that its memory ran out is the host's to say. A program that says so itself,
    /// with its memory not full, has thrown an error like any other.
    pub(crate) fn thrown_by_program(&self, thrown: Thrown) -> Outcome {
        match thrown.code {
            ThrownCode::MemoryLimit if self.ran_out_of_memory || self.is_full() => {
                Outcome::Stopped(Limit::Memory)
            }
            ThrownCode::MemoryLimit => {
                Outcome::Threw(Thrown { code: ThrownCode::RuntimeError, ..thrown })
            }
            ThrownCode::SyntaxError
            | ThrownCode::TranspileError
            | ThrownCode::RuntimeError
            | ThrownCode::SerializationError
            | ThrownCode::InvalidArgs
            | ThrownCode::ServerNotAllowed
            | ThrownCode::ToolNotAllowed
            | ThrownCode::ToolNotFound
            | ThrownCode::ToolQuarantined
            | ThrownCode::UpstreamError => Outcome::Threw(thrown),
        }
    }

    /// True if the guest has held most of its memory, as the host measured it.
    fn is_full(&self) -> bool {
        self.peak_bytes >= self.memory_bytes / 4 * 3
    }

    /// For a cell of our own engine, which goes on.
    pub(crate) fn of_cell(&self, thrown: Thrown) -> Outcome {
        self.thrown(thrown)
    }

    /// What our engine's guest threw, in the light of what the host saw.
    fn thrown(&self, thrown: Thrown) -> Outcome {
        // An engine without memory for an error object throws null, as any guest may, or loses
        // the promise that it was about to settle.
        let is_full = self.is_full();
        let is_out = match thrown.code {
            ThrownCode::MemoryLimit => true,
            ThrownCode::RuntimeError => {
                is_full && ["null", Thrown::STUCK].contains(&thrown.message.as_str())
            }
            ThrownCode::SyntaxError
            | ThrownCode::TranspileError
            | ThrownCode::SerializationError
            | ThrownCode::InvalidArgs
            | ThrownCode::ServerNotAllowed
            | ThrownCode::ToolNotAllowed
            | ThrownCode::ToolNotFound
            | ThrownCode::ToolQuarantined
            | ThrownCode::UpstreamError => false,
        };
        match (is_out, self.is_compiled) {
            (true, true) => Outcome::Stopped(Limit::Memory),
            (true, false) => Outcome::Threw(too_deep(self.language)),
            (false, _) => Outcome::Threw(thrown),
        }
    }

    /// What it means that a worker of our engine died without a word.
    fn died(&self) -> Outcome {
        let by = self.exit.and_then(|exit| exit.signal);
        // THREAT[RES-5]: before the guest's code ran, only our parser can have run out of stack
        // or of memory.
        let overflowed = [SIGSEGV, SIGABRT, SIGBUS].map(Some).contains(&by);
        if !self.is_compiled && (overflowed || self.ran_out_of_memory) {
            return Outcome::Threw(too_deep(self.language));
        }
        Outcome::Crashed(Crash::Exited)
    }
}

fn too_deep(language: Language) -> Thrown {
    let code = match language {
        Language::JavaScript | Language::Python | Language::Bash | Language::Node => {
            ThrownCode::SyntaxError
        }
        Language::TypeScript => ThrownCode::TranspileError,
    };
    let message = "the code is nested too deeply to be parsed".to_owned();
    Thrown { code, message, at: None, stack: None }
}

#[cfg(test)]
mod tests;
