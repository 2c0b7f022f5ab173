//! Decides the outcome of a run from what the host observed. The guest's own report counts only for
//! the value that it returned or threw.

use codexec_sandbox::WorkerExit;
use codexec_types::{Crash, Json, Language, Limit, Outcome, Thrown, ThrownCode};

/// The host's observations about the end of a guest.
pub(crate) struct Evidence {
    pub(crate) language: Language,
    /// The code was parsed. Before that, only our own parser has run.
    pub(crate) is_compiled: bool,
    pub(crate) exit: Option<WorkerExit>,
    /// The wait status of the guest's first process, if the guest is a program.
    pub(crate) status: Option<i32>,
    pub(crate) ran_out_of_memory: bool,
    pub(crate) peak_bytes: u64,
    pub(crate) memory_bytes: u64,
}

/// The guest's own report about its end.
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
    /// Judges a run of the built-in engine, whose report is trusted as long as there is one.
    pub(crate) fn judge_engine(&self, claim: Option<Claim>) -> Outcome {
        match claim {
            Some(Claim::Returned(value)) => Outcome::Returned(value),
            Some(Claim::Threw(thrown)) => self.judge_thrown_by_engine(thrown),
            None if self.ran_out_of_memory && self.is_compiled => Outcome::Stopped(Limit::Memory),
            None => self.judge_silent_death(),
        }
    }

    /// Judges a run of a program by its exit status; its report only adds details.
    pub(crate) fn judge_program(&self, claim: Option<Claim>) -> Outcome {
        let Some(status) = self.status else { return Outcome::Crashed(Crash::Exited) };
        let (code, signal) = ((status >> 8) & 0xff, status & 0x7f);
        match (code, signal) {
            (0, 0) => match claim {
                Some(Claim::Returned(value)) => Outcome::Returned(value),
                Some(Claim::Threw(_)) | None => Outcome::Returned(Json::null()),
            },
            _ if self.ran_out_of_memory => Outcome::Stopped(Limit::Memory),
            (code, 0) => match claim {
                Some(Claim::Threw(thrown)) => self.judge_thrown_by_program(thrown),
                Some(Claim::Returned(_)) | None => Outcome::Exited { code },
            },
            (_, SIGXCPU) => Outcome::Stopped(Limit::Cpu),
            (_, SIGXFSZ) => Outcome::Stopped(Limit::Disk),
            (_, signal) => Outcome::Crashed(Crash::Killed { signal }),
        }
    }

    /// Judges an error that a program threw, at its end or at the end of a cell.
    ///
    /// THREAT[ZYG-4]: only the host decides that memory ran out. A program that claims it while its
    /// memory is not full has thrown an ordinary error.
    pub(crate) fn judge_thrown_by_program(&self, thrown: Thrown) -> Outcome {
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
            | ThrownCode::UpstreamError
            | ThrownCode::CircuitOpen
            | ThrownCode::ServiceUnavailable
            | ThrownCode::RateLimited => Outcome::Threw(thrown),
        }
    }

    /// True if the guest has held most of its memory, as the host measured it.
    fn is_full(&self) -> bool {
        self.peak_bytes >= self.memory_bytes / 4 * 3
    }

    /// Judges an error thrown by a cell of the built-in engine, which keeps running.
    pub(crate) fn judge_cell(&self, thrown: Thrown) -> Outcome {
        self.judge_thrown_by_engine(thrown)
    }

    /// Judges an error thrown in the built-in engine, using the host's observations.
    fn judge_thrown_by_engine(&self, thrown: Thrown) -> Outcome {
        // An engine without memory for an error object throws null, as any guest may, or loses the
        // promise that it was about to settle.
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
            | ThrownCode::UpstreamError
            | ThrownCode::CircuitOpen
            | ThrownCode::ServiceUnavailable
            | ThrownCode::RateLimited => false,
        };
        match (is_out, self.is_compiled) {
            (true, true) => Outcome::Stopped(Limit::Memory),
            (true, false) => Outcome::Threw(nesting_error(self.language)),
            (false, _) => Outcome::Threw(thrown),
        }
    }

    /// Judges a worker of the built-in engine that died without a report.
    fn judge_silent_death(&self) -> Outcome {
        let by = self.exit.and_then(|exit| exit.signal);
        // THREAT[RES-5]: before the guest's code runs, only our parser can run out of stack or
        // memory.
        let overflowed = [SIGSEGV, SIGABRT, SIGBUS].map(Some).contains(&by);
        if !self.is_compiled && (overflowed || self.ran_out_of_memory) {
            return Outcome::Threw(nesting_error(self.language));
        }
        Outcome::Crashed(Crash::Exited)
    }
}

fn nesting_error(language: Language) -> Thrown {
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
