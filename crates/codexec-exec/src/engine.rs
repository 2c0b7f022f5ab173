use codexec_types::Language;

/// What runs a language. Each has workers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Our own, in our own binary.
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

    /// How many workers wait when nothing goes on, where JavaScript has `warm`. A waiting Node
    /// takes as much memory as everything else together, so it waits only between two uses.
    pub(crate) fn warm(self, warm: usize) -> usize {
        match self {
            Engine::Js => warm,
            Engine::Python => warm.div_ceil(2),
            Engine::Bash => warm.min(1),
            Engine::Node => 0,
        }
    }
}
