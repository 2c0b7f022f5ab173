//! Writes a tool in TypeScript.

use super::{
    TypedTool,
    detail::{self, BUDGET_BYTES, DetailLevel},
    model::{Field, ObjectType, SchemaShape, Type},
    names::{escape_block_comment, property_name, quote},
};

const SHORTENED: &str = "// shortened: the schemas have the rest";
/// An object with more fields has each on its own line.
const FIELDS_ON_A_LINE: usize = 7;

/// `get_issue(args: { owner: string; number?: number }): Promise<unknown>`
pub(super) fn signature(tool: &TypedTool<'_>) -> String {
    let write = |level| {
        let mut writer = TypeWriter::new(level, NamedTypes::Inlined);
        writer.write_function(tool);
        writer.out
    };
    detail::fit_signature(write)
        .unwrap_or_else(|| format!("{}(args?: object): Promise<unknown>", property_name(tool.name)))
}

/// `declare const tools: { github: { get_issue(..): .. } };` with comments, and an interface for
/// each type that is used more than once.
pub(super) fn declaration(tool: &TypedTool<'_>) -> String {
    let (server, name) = (property_name(tool.server), property_name(tool.name));
    let write = |level: DetailLevel| {
        let mut writer = TypeWriter::new(level, NamedTypes::Declared);
        writer.out.push_str(&format!("declare const tools: {{ {server}: {{\n"));
        let summary = escape_block_comment(tool.summary);
        if !summary.is_empty() {
            writer.out.push_str(&format!("  /** {summary} */\n"));
        }
        writer.out.push_str("  ");
        writer.indent = 1;
        writer.write_function(tool);
        writer.out.push_str(";\n} };");
        let definitions: String = writer.definitions.into_iter().flatten().collect();
        (format!("{definitions}{}", writer.out), writer.is_cut)
    };
    let minimal = || {
        format!(
            "declare const tools: {{ {server}: {{ {name}(args?: object): Promise<unknown> }} }};\n{SHORTENED}"
        )
    };
    detail::fit_declaration(write, SHORTENED).unwrap_or_else(minimal)
}

/// Writes a type on one line.
pub(super) fn type_line(shape: &SchemaShape, r#type: &Type, depth: usize) -> String {
    let level = DetailLevel { depth, note_bytes: 0, inner_note_bytes: 0, fields: 30, choices: 8 };
    let mut writer = TypeWriter::new(level, NamedTypes::Inlined);
    writer.write(shape, r#type, level.depth);
    if writer.out.len() > BUDGET_BYTES { "unknown".to_owned() } else { writer.out }
}

/// How referenced types are written.
#[derive(Clone, Copy, PartialEq)]
enum NamedTypes {
    /// In place of each reference.
    Inlined,
    /// Once, if the type is used more than once or is recursive.
    Declared,
}

struct TypeWriter {
    level: DetailLevel,
    named_types: NamedTypes,
    out: String,
    indent: usize,
    /// Definitions being written inline, to stop at recursion.
    path: Vec<usize>,
    /// The written definitions of one shape, in the shape's order.
    definitions: Vec<Option<String>>,
    is_defining: bool,
    is_cut: bool,
}

impl TypeWriter {
    fn new(level: DetailLevel, named_types: NamedTypes) -> TypeWriter {
        let (out, path, definitions) = (String::new(), Vec::new(), Vec::new());
        let (indent, is_defining, is_cut) = (0, false, false);
        TypeWriter { level, named_types, out, indent, path, definitions, is_defining, is_cut }
    }

    fn write_function(&mut self, tool: &TypedTool<'_>) {
        let mut written = Vec::new();
        self.out.push_str(&property_name(tool.name));
        self.out.push('(');
        if tool.takes_arguments() {
            self.out.push_str(if tool.needs_arguments() { "args: " } else { "args?: " });
            self.write(tool.input, &tool.input.root, self.level.depth);
        }
        self.is_cut |= tool.input.is_cut;
        written.append(&mut self.definitions);
        self.out.push_str("): Promise<");
        if tool.is_observed {
            self.out.push_str("/* observed */ ");
        }
        match tool.output {
            Some(output) => {
                self.write(output, &output.root, self.level.depth);
                self.is_cut |= output.is_cut;
            }
            None => self.out.push_str("unknown"),
        }
        written.append(&mut self.definitions);
        self.definitions = written;
        self.out.push('>');
    }

    fn write(&mut self, shape: &SchemaShape, r#type: &Type, depth: usize) {
        // Already too long: the caller retries with less detail.
        if self.out.len() > BUDGET_BYTES {
            return;
        }
        if depth == 0 && !r#type.is_leaf() {
            self.is_cut = true;
            return self.out.push_str("unknown");
        }
        let inner = depth.saturating_sub(1);
        match r#type {
            Type::Literal(value) => self.out.push_str(&match value.as_str() {
                Some(text) => quote(text),
                None => value.to_string(),
            }),
            Type::Array(items) => {
                self.write_within(shape, items, inner);
                self.out.push_str("[]");
            }
            Type::Tuple { items, rest } => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.out.push_str(if at > 0 { ", " } else { "" });
                    self.write(shape, item, inner);
                }
                if let Some(rest) = rest {
                    self.out.push_str(if items.is_empty() { "..." } else { ", ..." });
                    self.write_within(shape, rest, inner);
                    self.out.push_str("[]");
                }
                self.out.push(']');
            }
            // Not `Record`, which cannot refer to the type that contains it.
            Type::Map(values) if self.named_types == NamedTypes::Declared && !values.is_leaf() => {
                self.out.push_str("{ [key: string]: ");
                self.write(shape, values, inner);
                self.out.push_str(" }");
            }
            Type::Map(values) => {
                self.out.push_str("Record<string, ");
                self.write(shape, values, inner);
                self.out.push('>');
            }
            Type::Object(object) => self.write_object(shape, object, depth),
            Type::Union(choices) => self.write_choices(shape, choices, depth),
            Type::Intersection(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    self.out.push_str(if at > 0 { " & " } else { "" });
                    self.write_within(shape, part, depth);
                }
            }
            Type::Named(at) => self.write_named(shape, *at, depth),
            Type::Never => self.out.push_str("never"),
            Type::Null => self.out.push_str("null"),
            Type::Boolean => self.out.push_str("boolean"),
            Type::Integer | Type::Number => self.out.push_str("number"),
            Type::String => self.out.push_str("string"),
            Type::Unknown => self.out.push_str("unknown"),
        }
    }

    /// Writes a type in parentheses if `|` or `&` would bind wrongly.
    fn write_within(&mut self, shape: &SchemaShape, r#type: &Type, depth: usize) {
        let start = self.out.len();
        self.write(shape, r#type, depth);
        let is_joined = matches!(shape.resolve(r#type), Type::Union(_) | Type::Intersection(_));
        let is_name = self.out.get(start..).is_some_and(super::names::is_identifier);
        if is_joined && !is_name {
            self.out.insert(start, '(');
            self.out.push(')');
        }
    }

    fn write_choices(&mut self, shape: &SchemaShape, choices: &[Type], depth: usize) {
        let shown = choices.get(..self.level.choices).unwrap_or(choices);
        for (at, choice) in shown.iter().enumerate() {
            self.out.push_str(if at > 0 { " | " } else { "" });
            match choice {
                Type::Intersection(_) => self.write_within(shape, choice, depth),
                _ => self.write(shape, choice, depth),
            }
        }
        if shown.len() < choices.len() {
            let is_text = choices.iter().all(|choice| match choice {
                Type::Literal(value) => value.is_string(),
                other => *other == Type::String,
            });
            self.out.push_str(if is_text { " | string" } else { " | unknown" });
            self.is_cut = true;
        }
    }

    fn write_object(&mut self, shape: &SchemaShape, object: &ObjectType, depth: usize) {
        let is_outer = depth == self.level.depth && !self.is_defining;
        let note_bytes = if is_outer { self.level.note_bytes } else { self.level.inner_note_bytes };
        let is_line = note_bytes == 0
            || self.named_types == NamedTypes::Inlined
            || object.fields.iter().all(|field| {
                field.notes.is_empty() && field.r#type.is_short(&mut { FIELDS_ON_A_LINE })
            }) && object.fields.len() <= FIELDS_ON_A_LINE;
        let shown = object.fields.get(..self.level.fields).unwrap_or(&object.fields);
        let has_more = shown.len() < object.fields.len();
        self.is_cut |= has_more;
        self.out.push_str(if is_line { "{ " } else { "{\n" });
        self.indent += 1;
        for (at, field) in shown.iter().enumerate() {
            if is_line {
                self.out.push_str(if at > 0 { "; " } else { "" });
            } else {
                self.write_comment(field, note_bytes);
                self.write_indent();
            }
            self.out.push_str(&property_name(&field.name));
            self.out.push_str(if field.is_required { ": " } else { "?: " });
            self.write(shape, &field.r#type, depth - 1);
            self.out.push_str(if is_line { "" } else { ";\n" });
        }
        let others = object.has_others || has_more;
        match (others, is_line) {
            (true, true) => self.out.push_str("; [key: string]: unknown"),
            (true, false) => {
                self.write_indent();
                self.out.push_str("[key: string]: unknown;\n");
            }
            (false, _) => {}
        }
        self.indent -= 1;
        if is_line {
            self.out.push_str(" }");
        } else {
            self.write_indent();
            self.out.push('}');
        }
    }

    fn write_comment(&mut self, field: &Field, bytes: usize) {
        let comment = escape_block_comment(&field.notes.comment(bytes, true));
        if !comment.is_empty() {
            self.write_indent();
            self.out.push_str(&format!("/** {comment} */\n"));
        }
    }

    fn write_indent(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    fn write_named(&mut self, shape: &SchemaShape, at: usize, depth: usize) {
        let Some(definition) = shape.definition(at) else { return self.out.push_str("unknown") };
        let is_small =
            !matches!(definition.r#type, Type::Object(_) | Type::Union(_) | Type::Intersection(_));
        let is_declared = definition.is_recursive || (definition.uses > 1 && !is_small);
        if self.named_types == NamedTypes::Declared && is_declared {
            self.out.push_str(&definition.name);
            return self.write_definition(shape, at);
        }
        if self.path.contains(&at) {
            return self.out.push_str("unknown");
        }
        self.path.push(at);
        self.write(shape, &definition.r#type, depth);
        self.path.pop();
    }

    fn write_definition(&mut self, shape: &SchemaShape, at: usize) {
        self.definitions.resize(shape.definitions.len(), None);
        let written = self.definitions.get_mut(at).filter(|written| written.is_none());
        let (Some(written), Some(definition)) = (written, shape.definition(at)) else { return };
        // Marks the definition, so that it is not written again from within itself.
        *written = Some(String::new());
        let (out, indent) = (std::mem::take(&mut self.out), std::mem::take(&mut self.indent));
        let was_defining = std::mem::replace(&mut self.is_defining, true);
        let depth = self.level.depth;
        let name = &definition.name;
        match &definition.r#type {
            object @ Type::Object(_) => {
                self.out = format!("interface {name} ");
                self.write(shape, object, depth);
                self.out.push('\n');
            }
            other => {
                self.out = format!("type {name} = ");
                self.write(shape, other, depth);
                self.out.push_str(";\n");
            }
        }
        let text = std::mem::replace(&mut self.out, out);
        (self.indent, self.is_defining) = (indent, was_defining);
        if let Some(written) = self.definitions.get_mut(at) {
            *written = Some(text);
        }
    }
}
