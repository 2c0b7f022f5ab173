//! Compiles the guest's text to the script that the engine runs.
//!
//! The text is parsed alone and printed anew from its syntax tree, so that no text can close the
//! function that is wrapped around it.
//!
//! THREAT[ESC-1]: the text cannot name a module either; there is no loader, and no object of
//! another realm.

mod declarations;
mod modules;
mod namespaces;

use std::path::{Path, PathBuf};

use codexec_types::{Language, Position, Thrown, ThrownCode};
use oxc_allocator::{Allocator, TakeIn};
use oxc_ast::ast::{self, Expression, Statement};
use oxc_ast::builder::AstBuilder;
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, SourceType};
use oxc_transformer::{TransformOptions, Transformer};

use self::declarations::OwnerNames;
use crate::callee::excerpt;
use crate::positions::{Positions, position_of};

pub(crate) use declarations::DeclaredNames;

/// A guest's code, ready for the engine: an expression that evaluates to an async function.
pub(crate) struct Program {
    pub(crate) script: String,
    pub(crate) positions: Positions,
    pub(crate) source_type: SourceType,
    pub(crate) declared: DeclaredNames,
}

/// The owner of the names that a text declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameScope {
    /// The text itself: it runs once.
    Own,
    /// The session: the text is one of its cells.
    Session,
}

/// On its own line, so that columns do not change.
const HEAD: &str = "({\"<main>\": async () => {\n";
/// The head for a text with `import` or `export`: modules are strict.
const STRICT_HEAD: &str = "({\"<main>\": async () => {\"use strict\";\n";
const TAIL: &str = "\n}})[\"<main>\"]";

const TYPED_HINT: &str = "; the code is valid TypeScript: set language to typescript";

/// A syntax error.
struct SyntaxFlaw {
    message: String,
    offset: Option<u32>,
}

impl Program {
    pub(crate) fn compile(
        code: &str,
        language: Language,
        names: NameScope,
    ) -> Result<Program, Thrown> {
        let source_type = source_type_of(language);
        // As a module, a text may await; as a script, it may use what strict mode forbids.
        let compiled = compile(code, source_type, names)
            .or_else(|flaw| compile(code, source_type.with_script(true), names).map_err(|_| flaw));
        compiled.map_err(|flaw| {
            let is_typed =
                language == Language::JavaScript && compile(code, SourceType::ts(), names).is_ok();
            let hint = if is_typed { TYPED_HINT } else { "" };
            Thrown {
                code: syntax_error_code(language),
                message: format!("{}{hint}", flaw.message),
                at: flaw.offset.map(|offset| position_of(code, offset)),
                stack: flaw.offset.and_then(|offset| excerpt(code, offset)),
            }
        })
    }
}

/// Returns the error code for a text that is not a valid program.
pub(crate) fn syntax_error_code(language: Language) -> ThrownCode {
    match language {
        Language::JavaScript | Language::Python | Language::Bash | Language::Node => {
            ThrownCode::SyntaxError
        }
        Language::TypeScript => ThrownCode::TranspileError,
    }
}

fn source_type_of(language: Language) -> SourceType {
    match language {
        // The host sends no other language to this engine.
        Language::JavaScript | Language::Python | Language::Bash | Language::Node => {
            SourceType::mjs().with_jsx(false)
        }
        Language::TypeScript => SourceType::ts(),
    }
}

fn compile(code: &str, source_type: SourceType, names: NameScope) -> Result<Program, SyntaxFlaw> {
    let owners = OwnerNames::unused_in(code);
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, code, source_type).with_options(options).parse();
    refuse_flaws(&parsed.diagnostics)?;
    let mut program = parsed.program;
    let head = if modules::strip(&mut program)? { STRICT_HEAD } else { HEAD };
    namespaces::refuse_long_names(&program)?;
    program.hashbang = None;
    return_last_expression(&mut program, &allocator);

    let semantic = SemanticBuilder::new()
        .with_check_syntax_error(true)
        .with_enum_eval(true)
        .with_excess_capacity(if source_type.is_typescript() { 2.0 } else { 0.0 })
        .build(&program);
    refuse_flaws(&semantic.diagnostics)?;
    let anew = declarations::list_enums(&program);
    if source_type.is_typescript() {
        let scoping = semantic.semantic.into_scoping();
        let options = TransformOptions::default();
        let transformed = Transformer::new(&allocator, Path::new("code.ts"), &options)
            .build_with_scoping(scoping, &mut program);
        refuse_flaws(&transformed.diagnostics)?;
    }
    let (head, variables) = match names {
        NameScope::Own => (head.to_owned(), Vec::new()),
        NameScope::Session => {
            let variables = declarations::share(&mut program, &owners, &allocator);
            let given = format!("async ({}, {}) =>", owners.variables, owners.constants);
            (head.replace("async () =>", &given), variables)
        }
    };
    let (script, positions) = print(&program, &head);
    Ok(Program { script, positions, source_type, declared: DeclaredNames { variables, anew } })
}

fn print(program: &ast::Program<'_>, head: &str) -> (String, Positions) {
    let options = CodegenOptions {
        source_map_path: Some(PathBuf::from("code")),
        comments: CommentOptions::disabled(),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(program);
    let script = format!("{head}{}{TAIL}", printed.code);
    let tokens = printed.map.iter().flat_map(oxc_sourcemap::SourceMap::get_tokens);
    let positions = Positions::new(
        printed.code.clone(),
        tokens.map(|token| {
            let generated = (token.get_dst_line(), token.get_dst_col());
            let line = token.get_src_line() + 1;
            (generated, Position { line, column: token.get_src_col() + 1 })
        }),
    );
    (script, positions)
}

/// Makes the last expression the result, if there is no `return`.
fn return_last_expression<'a>(program: &mut ast::Program<'a>, allocator: &'a Allocator) {
    let builder = AstBuilder::new(allocator);
    // A text that consists of string literals only is parsed as directives.
    if program.body.is_empty()
        && let Some(directive) = program.directives.pop()
    {
        let text =
            Expression::StringLiteral(oxc_allocator::Box::new_in(directive.expression, &allocator));
        program.body.push(Statement::new_return_statement(directive.span, Some(text), &builder));
        return;
    }
    let last = program.body.iter_mut().rev().find(|statement| !is_erased(statement));
    if let Some(last) = last
        && let Statement::ExpressionStatement(statement) = last
    {
        let value = statement.expression.take_in(&allocator);
        *last = Statement::new_return_statement(statement.span(), Some(value), &builder);
    }
}

fn is_erased(statement: &Statement<'_>) -> bool {
    matches!(
        statement,
        Statement::TSTypeAliasDeclaration(_)
            | Statement::TSInterfaceDeclaration(_)
            | Statement::EmptyStatement(_)
    )
}

fn refuse_flaws(diagnostics: &[oxc_diagnostics::OxcDiagnostic]) -> Result<(), SyntaxFlaw> {
    let is_error = |d: &&oxc_diagnostics::OxcDiagnostic| {
        matches!(d.severity, oxc_diagnostics::Severity::Error)
    };
    let Some(first) = diagnostics.iter().find(is_error) else {
        return Ok(());
    };
    let message = match &first.help {
        Some(help) => format!("{}; {help}", first.message),
        None => first.message.to_string(),
    };
    let offset = first.labels.first().map(oxc_diagnostics::LabeledSpan::offset);
    Err(SyntaxFlaw { message, offset })
}

#[cfg(test)]
mod tests;
