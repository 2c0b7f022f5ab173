//! Permissions for codexec's own functions that code has only if the user grants them.

/// A permission that code does not have by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Save a script under a name that is already taken.
    ReplaceScripts,
    DeleteScripts,
    /// Save a script that is exposed to clients as a tool.
    ExposeScripts,
    /// Use sessions and snapshots that the code did not create.
    AllSessions,
    /// Open sessions that outlive the code.
    KeepSessions,
    /// Read the logs of other clients.
    AllLogs,
}

/// A set of grants, given to code by the settings or by a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grants(u8);

impl Grant {
    pub const ALL: [Grant; 6] = [
        Grant::ReplaceScripts,
        Grant::DeleteScripts,
        Grant::ExposeScripts,
        Grant::AllSessions,
        Grant::KeepSessions,
        Grant::AllLogs,
    ];

    /// The server name of codexec's own functions and grants in tool patterns.
    pub const SERVER: &'static str = "codexec";

    pub fn name(self) -> &'static str {
        match self {
            Grant::ReplaceScripts => "scripts.replace",
            Grant::DeleteScripts => "scripts.delete",
            Grant::ExposeScripts => "scripts.expose",
            Grant::AllSessions => "sessions.all",
            Grant::KeepSessions => "sessions.keep",
            Grant::AllLogs => "logs.all",
        }
    }

    pub fn parse(name: &str) -> Option<Grant> {
        Grant::ALL.into_iter().find(|grant| grant.name() == name)
    }

    /// Tells, for an error message, how the user can give the grant.
    pub fn describe_how_to_grant(self) -> String {
        let name = self.name();
        format!(
            "the user allows it by {name:?} in `may` under [code] in config.toml, or by \
             \"{server}.{name}\" in the request's allowed_tools, beside \"*\" or the other tools",
            server = Grant::SERVER
        )
    }

    fn bit(self) -> u8 {
        1 << (self as u8)
    }
}

impl Grants {
    pub fn has(self, grant: Grant) -> bool {
        self.0 & grant.bit() != 0
    }

    /// Iterates in the order of [`Grant::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Grant> {
        Grant::ALL.into_iter().filter(move |grant| self.has(*grant))
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<T: IntoIterator<Item = Grant>>(grants: T) -> Grants {
        Grants(grants.into_iter().fold(0, |bits, grant| bits | grant.bit()))
    }
}
