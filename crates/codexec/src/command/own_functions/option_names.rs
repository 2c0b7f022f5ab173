//! Translates field and function names in error messages to options and commands.

/// Fields of own functions, and the options for them.
const FIELDS: &[(&str, &str)] = &[
    ("allowed_tools", "--allowed-tools"),
    ("code", "the code"),
    ("description", "--description"),
    ("execution_id", "ID"),
    ("input", "--input"),
    ("language", "--language"),
    ("limit", "--limit"),
    ("name", "NAME"),
    ("offset", "--offset"),
    ("package", "PACKAGE"),
    ("packages", "--package"),
    ("parameters", "--parameters"),
    ("query", "the words"),
    ("session_id", "--session"),
    ("since", "--since"),
    ("source_execution_id", "--source"),
    ("status", "--status"),
    ("tags", "--tag"),
    ("timeout_ms", "--timeout, in milliseconds"),
    ("tool", "--tool"),
    ("until", "--until"),
    ("version", "--version"),
    ("working_dir", "--working-dir"),
];

/// OwnFunctions functions, and the commands for them.
const FUNCTIONS: &[(&str, &str)] = &[
    ("search_execution_logs", "codexec logs"),
    ("get_execution_log", "codexec logs show"),
    ("install_package", "codexec packages install"),
    ("search_scripts", "codexec scripts search"),
    ("delete_script", "codexec scripts delete"),
    ("list_scripts", "codexec scripts list"),
    ("save_script", "codexec scripts save"),
    ("list_sessions", "codexec sessions list"),
    ("start_session", "codexec sessions open"),
];

/// Replaces field and function names in a message by options and commands.
pub(super) fn use_option_names(message: &str) -> String {
    let mut text = message.to_owned();
    if let Some((field, rest)) = message.split_once(": ")
        && let Some((_, option)) = FIELDS.iter().find(|(name, _)| *name == field)
    {
        text = format!("{option}: {rest}");
    }
    for (field, option) in FIELDS {
        text = text.replace(&format!("`{field}`"), option);
    }
    for (function, command) in FUNCTIONS {
        text = text.replace(function, &format!("`{command}`"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_become_options() {
        let check = |message: &str, expected: &str| assert_eq!(use_option_names(message), expected);
        check("limit: 0 is not allowed; it must be 1", "--limit: 0 is not allowed; it must be 1");
        check("`tags` has 60 entries", "--tag has 60 entries");
        check("there is none; list_scripts shows", "there is none; `codexec scripts list` shows");
        check("a name: with a colon", "a name: with a colon");
    }
}
