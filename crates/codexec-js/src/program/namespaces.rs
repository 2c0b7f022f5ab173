//! Bounds the parts of a namespace's name, because the time that the parser's checks take grows with
//! their square.

use oxc_ast::ast::{
    Declaration, Program, Statement, TSNamespaceDeclaration, TSNamespaceDeclarationBody,
};
use oxc_span::GetSpan;

use super::SyntaxFlaw;

/// The most parts of a name, such as the three of `a.b.c`.
const MAX_PARTS: usize = 100;

/// THREAT[RES-5]: refuses namespaces whose names have too many parts.
pub(super) fn refuse_long_names(program: &Program<'_>) -> Result<(), SyntaxFlaw> {
    let mut unread = vec![program.body.as_slice()];
    while let Some(statements) = unread.pop() {
        for namespace in statements.iter().filter_map(as_namespace) {
            match block_of(namespace) {
                Some(block) => unread.push(block),
                None => {
                    let message = format!("a namespace's name has more than {MAX_PARTS} parts");
                    return Err(SyntaxFlaw { message, offset: Some(namespace.span().start) });
                }
            }
        }
    }
    Ok(())
}

fn as_namespace<'a, 'b>(statement: &'b Statement<'a>) -> Option<&'b TSNamespaceDeclaration<'a>> {
    match statement {
        Statement::TSNamespaceDeclaration(namespace) => Some(namespace),
        Statement::ExportDeclaration(export) => match &export.declaration {
            Declaration::TSNamespaceDeclaration(namespace) => Some(namespace),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the statements of a namespace, or `None` if its name is too long.
fn block_of<'a, 'b>(namespace: &'b TSNamespaceDeclaration<'a>) -> Option<&'b [Statement<'a>]> {
    let mut body = &namespace.body;
    for _ in 0..MAX_PARTS {
        match body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => body = &inner.body,
            TSNamespaceDeclarationBody::TSModuleBlock(block) => return Some(&block.body),
        }
    }
    None
}
