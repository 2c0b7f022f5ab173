//! OAuth 2.1 for remote servers: login, token storage and token renewal.
//!
//! The login uses rmcp's state machine, but sends every request through our own HTTP client and
//! its rules. Tokens are stored and renewed here, because rmcp forgets the secret of a
//! dynamically registered client.

mod account;
mod challenge;
mod grant;
mod http;
mod listener;
mod login;
mod store;

pub(crate) use account::Account;
pub(crate) use challenge::Challenge;
pub use login::{LoginError, LoginSummary, login};
