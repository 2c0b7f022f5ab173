//! The table of codexec's own functions (sessions, scripts, packages, logs). Tools, guests' API,
//! `help()`, the command line's words and docs/reference/own-functions.md are made from it.
//!
//! Invariant: plain data and pure functions. `codexec-server` attaches a handler to each row.

mod argument;
pub mod defaults;
mod guest;
mod schema;
mod spec;
mod table;

pub use argument::{Argument, ArgumentListing, ArgumentNeed, ArgumentType};
pub use guest::{CallSyntax, GUEST_FUNCTIONS, describe_guest_functions};
pub use spec::{FunctionSpec, GuestName, ToolEffect, ToolSpec};
pub use table::OwnFunction;

#[cfg(test)]
mod tests;
