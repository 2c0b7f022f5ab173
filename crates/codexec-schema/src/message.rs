//! What is wrong, in sentences that say how to write it right.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

const SHOWN_BYTES: usize = 120;
/// A schema's choices are what somebody needs to write it right.
const SHOWN_RULE_BYTES: usize = 300;
const SHOWN_NAMES: usize = 5;
const PARAMETERS_BYTES: usize = 600;

/// Where in a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// `owner.labels[0]` below `root`.
pub(crate) fn render_place(root: &str, path: &[Step<'_>]) -> String {
    let mut place = root.to_owned();
    for step in path {
        match step {
            Step::Name(name) if place.is_empty() => place.push_str(&cut(name)),
            Step::Name(name) => {
                place.push('.');
                place.push_str(&cut(name));
            }
            Step::Index(index) => {
                let _ = write!(place, "[{index}]");
            }
        }
    }
    place
}

/// The place in backquotes; the whole value is called `arguments` where it has no name.
pub(crate) fn quote(place: &str) -> String {
    if place.is_empty() { "arguments".to_owned() } else { format!("`{place}`") }
}

/// The beginning of a value's JSON text. Costs no more than what is shown.
pub(crate) fn show(value: &Value) -> String {
    show_up_to(value, SHOWN_BYTES)
}

pub(crate) fn show_rule(rule: &Value) -> String {
    show_up_to(rule, SHOWN_RULE_BYTES)
}

fn show_up_to(value: &Value, most: usize) -> String {
    let mut shown = Shown { text: String::new(), most };
    if write!(shown, "{value}").is_err() {
        shown.text.push('…');
    }
    shown.text
}

pub(crate) fn cut(text: &str) -> String {
    match text.get(..text.floor_char_boundary(SHOWN_BYTES)) {
        Some(head) if head.len() < text.len() => format!("{head}…"),
        Some(_) | None => text.to_owned(),
    }
}

/// The names of fields that are not allowed below a place.
pub(crate) fn not_parameters(place: &str, names: &[&str]) -> String {
    let join = |name: &&str| match place {
        "" => format!("`{}`", cut(name)),
        place => format!("`{place}.{}`", cut(name)),
    };
    let names: Vec<String> = names.iter().take(SHOWN_NAMES).map(join).collect();
    format!("{} is not a parameter", names.join(", "))
}

/// The parameters that a schema names, the required ones marked, in a bounded sentence.
pub fn list_parameters(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|list| list.iter().take(1_000).any(|one| one == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut text = String::new();
    for name in properties.into_iter().flat_map(Map::keys) {
        if text.len() > PARAMETERS_BYTES {
            text.push_str(", …");
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&cut(name));
        if is_required(name) {
            text.push_str(" (required)");
        }
    }
    match text.is_empty() {
        true => "it takes no named parameters".to_owned(),
        false => format!("parameters: {text}"),
    }
}

/// Takes no more than it shows.
struct Shown {
    text: String,
    most: usize,
}

impl fmt::Write for Shown {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.most.saturating_sub(self.text.len());
        let fits = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.text.push_str(fits);
        if fits.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
