use std::fmt;

/// The language of a guest's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    JavaScript,
    TypeScript,
    Python,
    Bash,
    /// JavaScript modules in the machine's Node.js.
    Node,
}

impl Language {
    pub const ALL: [Language; 5] = [
        Language::TypeScript,
        Language::JavaScript,
        Language::Python,
        Language::Bash,
        Language::Node,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Language::JavaScript => "javascript",
            Language::TypeScript => "typescript",
            Language::Python => "python",
            Language::Bash => "bash",
            Language::Node => "node",
        }
    }

    /// Returns the usual short form, which is also the file extension.
    pub fn short(self) -> &'static str {
        match self {
            Language::JavaScript => "js",
            Language::TypeScript => "ts",
            Language::Python => "py",
            Language::Bash => "sh",
            Language::Node => "mjs",
        }
    }

    /// Parses the name or the short form.
    pub fn parse(text: &str) -> Option<Language> {
        Language::ALL
            .into_iter()
            .find(|language| [language.name(), language.short()].contains(&text))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
