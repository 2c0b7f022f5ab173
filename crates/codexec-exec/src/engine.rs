use codexec_types::Language;

/// The interpreter that runs a language. Each engine has its own pool of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// QuickJS, embedded in our binary.
    Js,
    Python,
    Bash,
    Node,
}

impl Engine {
    pub(crate) fn of(language: Language) -> Engine {
        match language {
            Language::JavaScript | Language::TypeScript => Engine::Js,
            Language::Python => Engine::Python,
            Language::Bash => Engine::Bash,
            Language::Node => Engine::Node,
        }
    }

    /// Returns the number of workers that wait when idle, given `warm` for JavaScript. A waiting
    /// Node process takes as much memory as all the others together, so it waits only for a while
    /// after use.
    pub(crate) fn warm(self, warm: usize) -> usize {
        match self {
            Engine::Js => warm,
            Engine::Python => warm.div_ceil(2),
            Engine::Bash => warm.min(1),
            Engine::Node => 0,
        }
    }
}
