//! A tool's schemas as a program in some language would write them: what a model reads fastest
//! and a guest writes by.
//!
//! Whatever a schema holds, what is made of it is one line or one well-formed declaration of at
//! most 4 KiB, with nothing invisible in it and no way out of a comment or a text.

mod bash;
mod look;
mod merge;
mod model;
mod names;
mod notes;
mod python;
mod read;
mod recursion;
mod refs;
mod typescript;

use codexec_types::Language;
use serde_json::Value;

use model::{Shape, Type};
use names::Names;

/// Which language a tool is described in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    TypeScript,
    Python,
    Bash,
}

impl From<Language> for Voice {
    fn from(language: Language) -> Voice {
        match language {
            Language::TypeScript | Language::JavaScript | Language::Node => Voice::TypeScript,
            Language::Python => Voice::Python,
            Language::Bash => Voice::Bash,
        }
    }
}

/// The types of one tool, read once and written in any language.
#[derive(Clone)]
pub(crate) struct Types {
    input: Shape,
    output: Option<Shape>,
    /// Whether the output is what was seen, not what was promised.
    is_observed: bool,
    names: Names,
}

/// What is written of a tool.
struct Tool<'a> {
    server: &'a str,
    name: &'a str,
    /// On one line.
    summary: &'a str,
    input: &'a Shape,
    output: Option<&'a Shape>,
    is_observed: bool,
    names: &'a Names,
}

impl Types {
    pub(crate) fn new(input: &Value, output: Option<&Value>) -> Types {
        let mut names = Names::default();
        let input = read::read(input, "Args", &mut names);
        let output = output.map(|output| read::read(output, "Result", &mut names));
        Types { input, output, is_observed: false, names }
    }

    /// With an output that no schema promised.
    pub(crate) fn with_observed(&self, output: &Value) -> Types {
        let mut names = self.names.clone();
        let output = Some(read::read(output, "Result", &mut names));
        Types { input: self.input.clone(), output, is_observed: true, names }
    }

    /// On one line.
    pub(crate) fn line(&self, voice: Voice, server: &str, name: &str) -> String {
        let tool = self.tool(server, name, "");
        match voice {
            Voice::TypeScript => typescript::line(&tool),
            Voice::Python => python::line(&tool),
            Voice::Bash => bash::line(&tool),
        }
    }

    /// All there is to know to call it.
    pub(crate) fn declaration(
        &self,
        voice: Voice,
        server: &str,
        name: &str,
        summary: &str,
    ) -> String {
        let tool = self.tool(server, name, summary);
        match voice {
            Voice::TypeScript => typescript::declaration(&tool),
            Voice::Python => python::declaration(&tool),
            Voice::Bash => bash::declaration(&tool),
        }
    }

    fn tool<'a>(&'a self, server: &'a str, name: &'a str, summary: &'a str) -> Tool<'a> {
        let (input, output) = (&self.input, self.output.as_ref());
        Tool {
            server,
            name,
            summary,
            input,
            output,
            is_observed: self.is_observed,
            names: &self.names,
        }
    }
}

impl Tool<'_> {
    fn takes_arguments(&self) -> bool {
        match &self.input.root {
            Type::Unknown => false,
            Type::Map(values) => !matches!(**values, Type::Unknown | Type::Never),
            _ => true,
        }
    }

    fn needs_arguments(&self) -> bool {
        if matches!(self.input.root, Type::Map(_)) {
            return false;
        }
        let fields = self.input.fields();
        fields.is_none_or(|fields| fields.iter().any(|field| field.is_required))
    }
}

#[cfg(test)]
mod tests;
