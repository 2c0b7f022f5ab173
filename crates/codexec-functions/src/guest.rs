//! The functions as guests see them.

use std::fmt::Write as _;

use codexec_types::Language;

use crate::{ArgumentListing, FunctionSpec, GuestName, OwnFunction};

/// The bindings of the guests' shims: a JSON object of groups, each an object of functions, each an array
/// of the function's name and of its positional arguments. Checked in, because the shims' own tests
/// read the file; a test compares it with the table.
pub const GUEST_FUNCTIONS: &str = include_str!("guest/functions.json");

/// How a language writes named arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSyntax {
    /// `f(a, {b})`
    JavaScript,
    /// `f(a, b=..)`
    Python,
}

impl CallSyntax {
    /// Returns `None` if the language's guests cannot call own functions.
    pub fn of(language: Language) -> Option<CallSyntax> {
        match language {
            Language::JavaScript | Language::TypeScript | Language::Node => {
                Some(CallSyntax::JavaScript)
            }
            Language::Python => Some(CallSyntax::Python),
            Language::Bash => None,
        }
    }
}

/// Lists the functions that code can call for `help()`, one group per line.
pub fn describe_guest_functions(syntax: CallSyntax) -> String {
    let mut lines = String::new();
    let mut last_group = "";
    for spec in OwnFunction::ALL.iter().map(|function| function.spec()) {
        let Some(guest) = spec.guest else { continue };
        let start = match guest.group == last_group {
            true => ", ".to_owned(),
            false if lines.is_empty() => format!("  await {}", guest.group),
            false => format!("\n  await {}", guest.group),
        };
        let _ =
            write!(lines, "{start}.{}({})", guest.name_in(syntax), arguments(spec, guest, syntax));
        last_group = guest.group;
    }
    lines
}

impl GuestName {
    /// Returns the function's name as the language's users would write it.
    pub fn name_in(&self, syntax: CallSyntax) -> String {
        match syntax {
            CallSyntax::JavaScript => to_camel_case(self.name),
            CallSyntax::Python => self.name.to_owned(),
        }
    }
}

fn arguments(spec: &FunctionSpec, guest: GuestName, syntax: CallSyntax) -> String {
    let named: Vec<&str> = spec
        .arguments()
        .filter(|one| one.listing != ArgumentListing::Hidden)
        .map(|one| one.name)
        .filter(|name| !guest.positional.contains(name))
        .collect();
    let mut arguments: Vec<String> =
        guest.positional.iter().map(|name| (*name).to_owned()).collect();
    match syntax {
        CallSyntax::JavaScript if named.is_empty() => {}
        CallSyntax::JavaScript => arguments.push(format!("{{{}}}", named.join(", "))),
        CallSyntax::Python => arguments.extend(named.iter().map(|name| format!("{name}=.."))),
    }
    arguments.join(", ")
}

fn to_camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}
