//! Our own functions, called for a person.

mod words;

use std::io::Write as _;
use std::process::ExitCode;

use codexec_server::own::{OwnError, Owned};
use codexec_server::{App, Client};
use serde_json::{Map, Value};

use self::words::in_options;
use super::watched::watched;
use crate::parts::Parts;

/// The functions, for the user of this process.
pub(super) struct Own {
    pub(super) app: App,
}

/// A question that has no answer, in the words of the command line.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Own {
    pub(super) fn new(parts: Parts) -> anyhow::Result<Own> {
        Ok(Own { app: parts.app()? })
    }

    /// Fields that are null are as good as not given.
    pub(super) async fn ask(&self, name: &str, args: Value) -> Result<Owned, Refused> {
        let mut client = Client::local();
        client.takes_all = true;
        let args: Map<String, Value> = match args {
            Value::Object(args) => args,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        let args = args.into_iter().filter(|(_, value)| !value.is_null()).collect();
        watched(&client, self.app.own(name, args, &client))
            .await
            .map_err(|error| Refused::of(&error))
    }

    /// The one question of a command: prints what `show` makes of the answer, or its JSON.
    pub(super) async fn answer(
        self,
        name: &str,
        args: Value,
        as_json: bool,
        show: impl FnOnce(&Value) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let asked = self.ask(name, args).await;
        self.app.shutdown().await;
        let owned = match asked {
            Ok(owned) => owned,
            Err(refused) => return refused.exit_code(),
        };
        if as_json {
            writeln!(std::io::stdout(), "{}", owned.value)?;
            return Ok(if owned.is_failure { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        show(&owned.value)
    }
}

impl Refused {
    pub(super) fn of(error: &OwnError) -> Refused {
        Refused { code: error.code(), message: in_options(error.message()) }
    }

    /// What is not there is an answer; anything else is a mistake, ours or the person's.
    pub(super) fn exit_code(self) -> anyhow::Result<ExitCode> {
        let is_answer = |code: &str| {
            code.ends_with("_NOT_FOUND")
                || code.ends_with("_UNKNOWN")
                || matches!(code, "MISSING_PACKAGES" | "INSTALL_FAILED")
        };
        if !is_answer(self.code) {
            return Err(anyhow::anyhow!(self.message));
        }
        writeln!(std::io::stderr(), "{}", self.message)?;
        Ok(ExitCode::FAILURE)
    }
}
