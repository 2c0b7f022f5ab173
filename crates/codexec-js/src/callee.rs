//! Names the expression that was called but is not a function: the engine's error does not.

use codexec_types::Position;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, CallExpression, ClassBody, Expression, Function,
    NewExpression, TaggedTemplateExpression,
};
use oxc_ast_visit::Visit;
use oxc_ast_visit::walk::{
    walk_arrow_function_expression, walk_call_expression, walk_class_body, walk_function,
    walk_new_expression, walk_tagged_template_expression,
};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::ScopeFlags;
use oxc_span::{GetSpan, SourceType, Span};

use crate::positions::position_of;

/// A longer expression is cut at its start.
const EXPRESSION_CHARS: usize = 60;

/// Functions that exist, so that they are named only if nothing else can be meant.
const KNOWN: [&str; 14] = [
    "console.log",
    "console.error",
    "console.warn",
    "JSON.stringify",
    "JSON.parse",
    "Object.keys",
    "Object.values",
    "Object.entries",
    "Object.fromEntries",
    "Promise.all",
    "Array.from",
    "String",
    "Number",
    "Error",
];

/// Returns a text like `a.b is not a function`. The engine gives the position of what it evaluated
/// last before the call, which may belong to two calls; then both are named. Returns `None` if there
/// are more.
pub(crate) fn explain_callee(code: &str, source_type: SourceType, at: Position) -> Option<String> {
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, code, source_type).with_options(options).parse();
    let mut finder = CalleeFinder { offset: offset_of(code, at)?, callees: Vec::new() };
    finder.visit_program(&parsed.program);
    let mut callees = finder.callees;
    if callees.len() > 1 {
        callees.retain(|callee| !KNOWN.contains(&callee.span.source_text(code)));
    }
    // Thrown by the code itself.
    if callees.iter().any(|callee| callee.span.source_text(code) == "TypeError") {
        return None;
    }
    let names: Vec<String> = callees.iter().map(|callee| name_of(code, callee.span)).collect();
    let kind = match callees.iter().all(|callee| callee.is_new) {
        true => "constructor",
        false => "function",
    };
    match names.as_slice() {
        [one] => Some(format!("{one} is not a {kind}")),
        [one, other] => Some(format!("{one} or {other} is not a {kind}")),
        _ => None,
    }
}

/// A called expression.
struct Callee {
    span: Span,
    is_new: bool,
}

/// Collects the calls that may have failed at the offset.
struct CalleeFinder {
    offset: u32,
    callees: Vec<Callee>,
}

impl CalleeFinder {
    fn contains(&self, span: Span) -> bool {
        span.start <= self.offset && self.offset < span.end
    }

    /// True if the engine evaluates what is at the offset last before it calls.
    fn is_last_before_call(
        &self,
        is_new: bool,
        callee: &Expression<'_>,
        arguments: &[Argument<'_>],
    ) -> bool {
        if self.contains(callee.span()) {
            return match callee {
                _ if is_new => true,
                Expression::StaticMemberExpression(member) => {
                    self.offset >= member.property.span.start
                }
                Expression::ComputedMemberExpression(member) => {
                    self.offset >= member.object.span().end
                }
                _ => true,
            };
        }
        let last = arguments.iter().rev().find(|argument| !is_literal(argument));
        last.is_some_and(|last| self.contains(last.span()))
    }

    fn check(&mut self, span: Span, callee: &Expression<'_>, arguments: &[Argument<'_>]) {
        let is_new = span.start < callee.span().start;
        if self.contains(span) && self.is_last_before_call(is_new, callee, arguments) {
            self.callees.push(Callee { span: callee.span(), is_new });
        }
    }

    /// Calls outside the function that contains the offset were not being evaluated.
    fn enter_function(&mut self, span: Span) {
        if self.contains(span) {
            self.callees.clear();
        }
    }
}

impl<'a> Visit<'a> for CalleeFinder {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.check(call.span, &call.callee, &call.arguments);
        walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, call: &NewExpression<'a>) {
        self.check(call.span, &call.callee, &call.arguments);
        walk_new_expression(self, call);
    }

    fn visit_tagged_template_expression(&mut self, call: &TaggedTemplateExpression<'a>) {
        self.check(call.span, &call.tag, &[]);
        walk_tagged_template_expression(self, call);
    }

    fn visit_class_body(&mut self, body: &ClassBody<'a>) {
        self.enter_function(body.span);
        walk_class_body(self, body);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.enter_function(function.span);
        walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.enter_function(function.span);
        walk_arrow_function_expression(self, function);
    }
}

/// True for an argument without a position of its own in the engine's code.
fn is_literal(argument: &Argument<'_>) -> bool {
    matches!(
        argument,
        Argument::StringLiteral(_)
            | Argument::NumericLiteral(_)
            | Argument::BooleanLiteral(_)
            | Argument::NullLiteral(_)
            | Argument::RegExpLiteral(_)
            | Argument::ArrowFunctionExpression(_)
            | Argument::FunctionExpression(_)
    )
}

/// Returns the expression in one line.
fn name_of(code: &str, span: Span) -> String {
    let text: Vec<&str> = span.source_text(code).split_whitespace().collect();
    let text = text.join(" ").replace(" .", ".").replace(" ?.", "?.");
    match text.chars().count().checked_sub(EXPRESSION_CHARS) {
        Some(extra @ 1..) => format!("..{}", text.chars().skip(extra).collect::<String>()),
        Some(0) | None => text,
    }
}

/// Returns the byte offset of a position.
fn offset_of(code: &str, at: Position) -> Option<u32> {
    let before: usize = code.split_inclusive('\n').take(at.line as usize - 1).map(str::len).sum();
    let line = code.get(before..)?;
    let mut units = 1;
    for (index, character) in line.char_indices() {
        if units >= at.column as usize || character == '\n' {
            return u32::try_from(before + index).ok();
        }
        units += character.len_utf16();
    }
    u32::try_from(code.len()).ok()
}

/// Returns the line of a position, and a mark below it.
pub(crate) fn excerpt(code: &str, offset: u32) -> Option<String> {
    let at = position_of(code, offset);
    let line = code.split('\n').nth(at.line as usize - 1)?.trim_end();
    let before: usize = before_column(line, at.column);
    let skipped = before.saturating_sub(EXCERPT_CHARS / 2);
    let shown: String = line.chars().skip(skipped).take(EXCERPT_CHARS).collect();
    let keep_tab = |character| if character == '\t' { '\t' } else { ' ' };
    let padding: String = shown.chars().take(before - skipped).map(keep_tab).collect();
    (!shown.trim().is_empty()).then(|| format!("  {shown}\n  {padding}^"))
}

/// The most characters of a line in an excerpt.
const EXCERPT_CHARS: usize = 100;

/// Returns the number of characters before a UTF-16 column.
fn before_column(line: &str, column: u32) -> usize {
    let mut units = 1;
    line.chars()
        .take_while(|character| {
            let is_before = units < column as usize;
            units += character.len_utf16();
            is_before
        })
        .count()
}

#[cfg(test)]
mod tests;
