//! Size limits on what a guest asks for. They are checked before anything else is done with an ask.

use crate::{Ask, CallCode, CallError, Json};

/// Maximum length of an ask, in bytes of its frame.
pub const MAX_ASK_BYTES: usize = 4 << 20;
/// Longer frames are parsed off the event loop.
pub const LONG_FRAME_BYTES: usize = 32 << 10;

/// Maximum nesting of arrays and objects.
const MAX_DEPTH: usize = 64;
/// Maximum number of JSON values of all types in one call's arguments.
const MAX_VALUES: usize = 100_000;
const MAX_NAME_BYTES: usize = 1 << 10;
const MAX_TEXT_BYTES: usize = 16 << 10;
pub(crate) const MAX_WORDS: usize = 200;
/// Estimated memory of one parsed value, in addition to its text.
const VALUE_BYTES: usize = 48;
/// Number of values and depth of a JSON text: enough to estimate the cost of parsing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonShape {
    pub values: usize,
    pub depth: usize,
}

impl JsonShape {
    /// Counts in one pass, without parsing the text.
    pub fn of(json: &Json) -> JsonShape {
        JsonShape::of_text(json.text())
    }

    /// Counts in a text that may not be JSON: no parser gets deeper before it fails.
    pub fn of_text(text: &str) -> JsonShape {
        let mut shape = JsonShape { values: 1, depth: 0 };
        let (mut depth, mut is_text) = (0_usize, false);
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' if is_text => {
                    bytes.next();
                }
                b'"' => is_text = !is_text,
                _ if is_text => {}
                b'{' | b'[' => {
                    depth += 1;
                    shape.depth = shape.depth.max(depth);
                    shape.values += 1;
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => shape.values += 1,
                _ => {}
            }
        }
        shape
    }
}

impl Ask {
    /// Returns the ask's estimated size in the host's memory, or an error if it exceeds a limit.
    ///
    /// THREAT[ORD-1]: bytes, depth and counts are checked before parsing, copying, hashing and
    /// searching.
    pub fn estimate_size(&self) -> Result<usize, CallError> {
        let names: &[(&str, &str)] = match self {
            Ask::Tool { server, tool, args: _ } => &[("server", server), ("tool", tool)],
            Ask::Named { name, args: _ } | Ask::Own { name, args: _ } | Ask::Schema { name } => {
                &[("name", name)]
            }
            Ask::Prompt { server, name, args: _ } => &[("server", server), ("name", name)],
            Ask::ToolNames { server } => &[("server", server)],
            Ask::ReadResource { server, uri: _ } => &[("server", server)],
            Ask::Help { name: Some(name) } => &[("name", name)],
            Ask::Search { server: Some(server), .. }
            | Ask::Resources { server: Some(server) }
            | Ask::ResourceTemplates { server: Some(server) }
            | Ask::Prompts { server: Some(server) } => &[("server", server)],
            Ask::Servers {}
            | Ask::Discover { .. }
            | Ask::Help { name: None }
            | Ask::Search { server: None, .. }
            | Ask::Resources { server: None }
            | Ask::ResourceTemplates { server: None }
            | Ask::Prompts { server: None } => &[],
        };
        let mut bytes = 0;
        for (field, text) in names {
            bytes += check_length(field, text, MAX_NAME_BYTES)?;
        }
        match self {
            Ask::Tool { args, .. }
            | Ask::Named { args, .. }
            | Ask::Prompt { args, .. }
            | Ask::Own { args, .. } => bytes += estimate_arguments_size(args)?,
            Ask::ReadResource { uri, .. } => bytes += check_length("uri", uri, MAX_TEXT_BYTES)?,
            Ask::Search { query, .. } => bytes += check_length("query", query, MAX_TEXT_BYTES)?,
            Ask::Discover { words } => {
                if words.len() > MAX_WORDS {
                    return Err(invalid_args(format!(
                        "words: there are more than {MAX_WORDS}; at most {MAX_WORDS} are allowed"
                    )));
                }
                let all = words.iter().map(String::len).sum::<usize>();
                if all > MAX_TEXT_BYTES {
                    return Err(invalid_args(format!(
                        "words: they have {all} bytes; at most {MAX_TEXT_BYTES} are allowed"
                    )));
                }
                bytes += all;
            }
            Ask::Servers {}
            | Ask::ToolNames { .. }
            | Ask::Schema { .. }
            | Ask::Help { .. }
            | Ask::Resources { .. }
            | Ask::ResourceTemplates { .. }
            | Ask::Prompts { .. } => {}
        }
        Ok(bytes)
    }
}

/// Returns the estimated memory of the parsed arguments, or an error if they exceed a limit.
pub fn estimate_arguments_size(args: &Json) -> Result<usize, CallError> {
    let bytes = args.text().len();
    // A text this short cannot exceed the other limits.
    if bytes <= MAX_DEPTH {
        return Ok(bytes);
    }
    let shape = JsonShape::of(args);
    if shape.depth > MAX_DEPTH {
        return Err(invalid_args(format!(
            "arguments: {} levels of lists and objects; at most {MAX_DEPTH} are allowed",
            shape.depth
        )));
    }
    if shape.values > MAX_VALUES {
        return Err(invalid_args(format!(
            "arguments: {} values; at most {MAX_VALUES} are allowed in one call",
            shape.values
        )));
    }
    Ok(bytes + shape.values * VALUE_BYTES)
}

fn check_length(field: &str, text: &str, most: usize) -> Result<usize, CallError> {
    match text.len() {
        bytes if bytes > most => {
            Err(invalid_args(format!("{field}: it has {bytes} bytes; at most {most} are allowed")))
        }
        bytes => Ok(bytes),
    }
}

fn invalid_args(message: String) -> CallError {
    CallError::new(CallCode::InvalidArgs, message)
}

#[cfg(test)]
mod tests;
