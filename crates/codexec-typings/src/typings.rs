//! The types of one tool, and the languages they are written in.

use codexec_types::Language;
use serde_json::Value;

use crate::{
    bash,
    model::{SchemaShape, Type},
    names::TypeNames,
    python, schema_reader, typescript,
};

/// The language of a tool's type declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypingsLanguage {
    TypeScript,
    Python,
    Bash,
}

impl From<Language> for TypingsLanguage {
    fn from(language: Language) -> TypingsLanguage {
        match language {
            Language::TypeScript | Language::JavaScript | Language::Node => {
                TypingsLanguage::TypeScript
            }
            Language::Python => TypingsLanguage::Python,
            Language::Bash => TypingsLanguage::Bash,
        }
    }
}

/// The types of one tool, read from its schemas, which can be written in any language.
#[derive(Clone)]
pub struct Typings {
    input: SchemaShape,
    output: Option<SchemaShape>,
    /// True if the output type was observed, not declared in an output schema.
    is_observed: bool,
    names: TypeNames,
}

/// One tool with its types, as input for the writers.
pub(crate) struct TypedTool<'a> {
    pub(crate) server: &'a str,
    pub(crate) name: &'a str,
    /// The description on one line.
    pub(crate) summary: &'a str,
    pub(crate) input: &'a SchemaShape,
    pub(crate) output: Option<&'a SchemaShape>,
    pub(crate) is_observed: bool,
    pub(crate) names: &'a TypeNames,
}

impl Typings {
    pub fn new(input: &Value, output: Option<&Value>) -> Typings {
        let mut names = TypeNames::default();
        let input = schema_reader::read_shape(input, "Args", &mut names);
        let output = output.map(|output| schema_reader::read_shape(output, "Result", &mut names));
        Typings { input, output, is_observed: false, names }
    }

    /// Returns the same typings with an observed output schema.
    pub fn with_observed(&self, output: &Value) -> Typings {
        let mut names = self.names.clone();
        let output = Some(schema_reader::read_shape(output, "Result", &mut names));
        Typings { input: self.input.clone(), output, is_observed: true, names }
    }

    /// Returns the tool's signature on one line.
    pub fn signature(&self, voice: TypingsLanguage, server: &str, name: &str) -> String {
        let tool = self.tool(server, name, "");
        match voice {
            TypingsLanguage::TypeScript => typescript::signature(&tool),
            TypingsLanguage::Python => python::signature(&tool),
            TypingsLanguage::Bash => bash::signature(&tool),
        }
    }

    /// Returns the full declaration: signature, types and comments.
    pub fn declaration(
        &self,
        voice: TypingsLanguage,
        server: &str,
        name: &str,
        summary: &str,
    ) -> String {
        let tool = self.tool(server, name, summary);
        match voice {
            TypingsLanguage::TypeScript => typescript::declaration(&tool),
            TypingsLanguage::Python => python::declaration(&tool),
            TypingsLanguage::Bash => bash::declaration(&tool),
        }
    }

    fn tool<'a>(&'a self, server: &'a str, name: &'a str, summary: &'a str) -> TypedTool<'a> {
        let (input, output) = (&self.input, self.output.as_ref());
        TypedTool {
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

impl TypedTool<'_> {
    /// Returns true if the tool has any arguments.
    pub(crate) fn takes_arguments(&self) -> bool {
        match &self.input.root {
            Type::Unknown => false,
            Type::Map(values) => !matches!(**values, Type::Unknown | Type::Never),
            _ => true,
        }
    }

    /// Returns true if the tool has required arguments.
    pub(crate) fn needs_arguments(&self) -> bool {
        if matches!(self.input.root, Type::Map(_)) {
            return false;
        }
        let fields = self.input.fields();
        fields.is_none_or(|fields| fields.iter().any(|field| field.is_required))
    }
}

#[cfg(test)]
mod tests;
