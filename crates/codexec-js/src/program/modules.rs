//! Handles `import` and `export`. A guest is one function, so nothing can be imported or exported;
//! declarations that concern only types are removed.

use oxc_ast::ast::{
    Declaration, ExportDeclaration, ImportDeclaration, ImportDeclarationSpecifier, Program,
    Statement,
};
use oxc_span::GetSpan;

use super::SyntaxFlaw;

const NO_IMPORTS: &str = "imports are not available here; call tools with `await \
    tools.<server>.<tool>({..})`, and use the globals (URL, TextEncoder, crypto, ..) as they are";
const NO_EXPORTS: &str = "exports are not available here; give a value back with `return`, or as \
    the last expression";

/// Removes type-only imports and exports, and refuses all others. Returns true if there were some:
/// they make the text a module.
pub(super) fn strip(program: &mut Program<'_>) -> Result<bool, SyntaxFlaw> {
    for statement in &program.body {
        if let Some(message) = refusal_message(statement) {
            let offset = Some(statement.span().start);
            return Err(SyntaxFlaw { message: message.to_owned(), offset });
        }
    }
    let count = program.body.len();
    program.body.retain(|statement| !statement.is_module_declaration());
    Ok(program.body.len() < count)
}

fn refusal_message(statement: &Statement<'_>) -> Option<&'static str> {
    let (is_type_only, message) = match statement {
        Statement::ImportDeclaration(import) => (imports_types(import), NO_IMPORTS),
        Statement::TSImportEqualsDeclaration(import) => (import.import_kind.is_type(), NO_IMPORTS),
        Statement::ExportAllDeclaration(export) => (export.export_kind.is_type(), NO_EXPORTS),
        Statement::ExportNamedDeclaration(export) => {
            (export.export_kind.is_type() || export.specifiers.is_empty(), NO_EXPORTS)
        }
        Statement::ExportFromDeclaration(export) => (export.export_kind.is_type(), NO_EXPORTS),
        Statement::ExportDeclaration(export) => (exports_type(export), NO_EXPORTS),
        Statement::ExportDefaultDeclaration(_)
        | Statement::TSExportAssignment(_)
        | Statement::TSNamespaceExportDeclaration(_) => (false, NO_EXPORTS),
        _ => return None,
    };
    (!is_type_only).then_some(message)
}

fn imports_types(import: &ImportDeclaration<'_>) -> bool {
    let is_type = |specifier: &ImportDeclarationSpecifier<'_>| match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(one) => one.import_kind.is_type(),
        ImportDeclarationSpecifier::ImportDefaultSpecifier(_)
        | ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => false,
    };
    let specifiers = import.specifiers.as_ref().map_or(&[][..], |list| list.as_slice());
    import.import_kind.is_type() || (!specifiers.is_empty() && specifiers.iter().all(is_type))
}

fn exports_type(export: &ExportDeclaration<'_>) -> bool {
    match &export.declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        declaration => declaration.declare(),
    }
}
