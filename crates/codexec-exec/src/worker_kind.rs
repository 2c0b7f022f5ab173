use codexec_types::Language;

/// The kind of worker that a language needs. Each kind has its own pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// QuickJS, embedded in our binary.
    Engine,
    Python,
    Bash,
    Node,
}

impl WorkerKind {
    pub(crate) fn of(language: Language) -> WorkerKind {
        match language {
            Language::JavaScript | Language::TypeScript => WorkerKind::Engine,
            Language::Python => WorkerKind::Python,
            Language::Bash => WorkerKind::Bash,
            Language::Node => WorkerKind::Node,
        }
    }

    /// Returns the word for metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            WorkerKind::Engine => "javascript",
            WorkerKind::Python => "python",
            WorkerKind::Bash => "bash",
            WorkerKind::Node => "node",
        }
    }

    /// Returns the number of workers that wait when idle, given `warm` for the built-in engine. A
    /// waiting Node process takes as much memory as all the others together, so it waits only for
    /// a while after use.
    pub(crate) fn warm_workers(self, warm: usize) -> usize {
        match self {
            WorkerKind::Engine => warm,
            WorkerKind::Python => warm.div_ceil(2),
            WorkerKind::Bash => warm.min(1),
            WorkerKind::Node => 0,
        }
    }
}
