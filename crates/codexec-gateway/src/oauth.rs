//! OAuth 2.1 for remote servers: the login, what it gave us, and how that is kept fresh.
//!
//! The login runs on rmcp's state machine, with every request it makes going through our own
//! client and its rules. What is granted we keep and renew ourselves, because rmcp forgets the
//! secret of a client that was registered on the fly.

mod account;
mod challenge;
mod grant;
mod http;
mod listener;
mod login;
mod store;

pub(crate) use account::Account;
pub(crate) use challenge::Challenge;
pub use login::{LoggedIn, LoginError, login};
