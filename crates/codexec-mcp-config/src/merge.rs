//! Merges the servers of several config files into one list.

use std::collections::HashMap;

use super::{
    ConfigProblem, DiscoveredServer, ParsedConfig, ProblemEffect, ServerOptions, ServerTuning,
    entry::{BadEntry, ConfigEntry},
    server_name::to_server_name,
};

/// Merges the results of several files, given in ascending precedence. A later entry replaces an
/// earlier one of the same name as a whole, at its position. Our own file's tunings come last.
pub(crate) fn merge_configs(files: Vec<ParsedConfig>) -> ParsedConfig {
    let mut all = ParsedConfig::default();
    let mut positions: HashMap<String, usize> = HashMap::new();
    for file in files {
        // A file that is read in several scopes reports the same problem each time.
        for problem in file.problems {
            if !all.problems.contains(&problem) {
                all.problems.push(problem);
            }
        }
        all.tunings.extend(file.tunings);
        all.is_broken |= file.is_broken;
        for server in file.servers {
            // An entry that is not approved replaces nothing.
            if server.pending.is_some() {
                all.waiting.push(server);
                continue;
            }
            let name = server.config.name.to_string();
            let position = *positions.entry(name).or_insert(all.servers.len());
            match all.servers.get_mut(position) {
                Some(known) if overrides(&server, known) => *known = server,
                Some(_) => {}
                None => all.servers.push(server),
            }
        }
    }
    for tuning in &all.tunings {
        for waiting in all.waiting.iter_mut().filter(|one| one.config.name == tuning.name) {
            tuning.apply(waiting);
        }
        let position = positions.get(tuning.name.as_str());
        match position.and_then(|position| all.servers.get_mut(*position)) {
            Some(server) => tuning.apply(server),
            None if all.waiting.iter().any(|waiting| waiting.config.name == tuning.name) => {}
            None if tuning.is_alone && tuning.is_on != Some(false) => {
                all.problems.push(tuning.undefined_server());
            }
            None => {}
        }
    }
    all
}

/// Returns true if the later entry replaces the earlier one. Disabling a server is per client: it
/// does not replace another client's enabled entry.
fn overrides(server: &DiscoveredServer, known: &DiscoveredServer) -> bool {
    server.off.is_none() || known.off.is_some() || server.client == known.client
}

impl ServerTuning {
    fn apply(&self, server: &mut DiscoveredServer) {
        let narrow = &mut server.config.narrow;
        let own = self.narrow.clone();
        narrow.enabled_tools = own.enabled_tools.or(narrow.enabled_tools.take());
        narrow.disabled_tools.extend(own.disabled_tools);
        narrow.disabled_tools.dedup();
        narrow.startup_timeout = own.startup_timeout.or(narrow.startup_timeout);
        narrow.call_timeout = own.call_timeout.or(narrow.call_timeout);
        narrow.calls_at_once = own.calls_at_once.or(narrow.calls_at_once);
        narrow.trust = own.trust.or(narrow.trust);
        match self.is_on {
            Some(true) => server.off = None,
            Some(false) => {
                server.off =
                    Some(format!("it is disabled in {}:{}", self.file.display(), self.line));
            }
            None => {}
        }
    }

    fn undefined_server(&self) -> ConfigProblem {
        let name = self.name.to_string();
        ConfigProblem {
            file: self.file.clone(),
            line: self.line,
            client: super::ConfigOwner::Codexec,
            what: format!(
                "server {name:?}: no file defines this server; add its `command` or `url`, or \
                 remove the entry"
            ),
            server: Some(name),
            effect: ProblemEffect::Kept,
        }
    }
}

/// Reads what an entry of our own file sets for all servers of its name.
///
/// THREAT[CFG-4]: an invalid entry disables them; it was meant to restrict, so nothing stays open.
pub(super) fn read_tuning(entry: &mut ConfigEntry<'_>) -> (Option<ServerTuning>, Option<BadEntry>) {
    let name = match to_server_name(entry.written) {
        Ok(name) => name,
        Err(error) => {
            return (None, Some(BadEntry { line: entry.node.line, what: error.to_string() }));
        }
    };
    let is_alone = entry.node.get("command").is_none() && entry.node.get("url").is_none();
    let mut tuning = ServerTuning {
        name,
        narrow: ServerOptions::default(),
        is_on: entry.node.get("enabled").map(|node| node.is(true)),
        file: entry.scope.source.to_owned(),
        line: entry.node.line,
        is_alone,
    };
    match entry.read_options_strictly() {
        Ok(narrow) => {
            tuning.narrow = narrow;
            (Some(tuning), None)
        }
        Err(bad) => {
            tuning.is_on = Some(false);
            (Some(tuning), Some(bad))
        }
    }
}
