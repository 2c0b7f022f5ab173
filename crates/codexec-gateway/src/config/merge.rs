//! Many files, one list.

use std::collections::HashMap;

use super::{
    Effect, Found, Narrow, Parsed, Problem, Tuning,
    entry::{BadEntry, Entry},
    name,
};

/// Joins what several files gave, the farthest first. A nearer entry replaces a farther one of
/// the same name as a whole, and keeps its place; then our own file's word on each holds.
pub fn merge(files: Vec<Parsed>) -> Parsed {
    let mut all = Parsed::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    for file in files {
        // One file may be read for several things, and is as bad for each.
        for problem in file.problems {
            if !all.problems.contains(&problem) {
                all.problems.push(problem);
            }
        }
        all.tunings.extend(file.tunings);
        all.is_broken |= file.is_broken;
        for server in file.servers {
            // An entry that nobody has approved replaces nothing.
            if server.pending.is_some() {
                all.waiting.push(server);
                continue;
            }
            let place = *places.entry(server.config.name.to_string()).or_insert(all.servers.len());
            match all.servers.get_mut(place) {
                Some(known) if is_nearer(&server, known) => *known = server,
                Some(_) => {}
                None => all.servers.push(server),
            }
        }
    }
    for tuning in &all.tunings {
        for waiting in all.waiting.iter_mut().filter(|one| one.config.name == tuning.name) {
            tuning.apply(waiting);
        }
        let place = places.get(tuning.name.as_str());
        match place.and_then(|place| all.servers.get_mut(*place)) {
            Some(server) => tuning.apply(server),
            None if all.waiting.iter().any(|waiting| waiting.config.name == tuning.name) => {}
            None if tuning.is_alone && tuning.is_on != Some(false) => {
                all.problems.push(tuning.nobody());
            }
            None => {}
        }
    }
    all
}

/// One client's word that a server is off is no word about another client's.
fn is_nearer(server: &Found, known: &Found) -> bool {
    server.off.is_none() || known.off.is_some() || server.client == known.client
}

impl Tuning {
    fn apply(&self, server: &mut Found) {
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
                server.off = Some(format!("it is off in {}:{}", self.file.display(), self.line));
            }
            None => {}
        }
    }

    fn nobody(&self) -> Problem {
        let name = self.name.to_string();
        Problem {
            file: self.file.clone(),
            line: self.line,
            client: super::Client::Own,
            what: format!(
                "server {name:?}: no file names such a server; write its `command` or `url`, or \
                 take the entry out"
            ),
            server: Some(name),
            effect: Effect::Kept,
        }
    }
}

/// What an entry of our own file says about all servers of its name.
///
/// THREAT[CFG-4]: a bad one switches them off; it was meant to narrow, and leaves nothing open.
pub(super) fn tuning(entry: &mut Entry<'_>) -> (Option<Tuning>, Option<BadEntry>) {
    let name = match name::usable(entry.written) {
        Ok(name) => name,
        Err(error) => {
            return (None, Some(BadEntry { line: entry.node.line, what: error.to_string() }));
        }
    };
    let is_alone = entry.node.get("command").is_none() && entry.node.get("url").is_none();
    let mut tuning = Tuning {
        name,
        narrow: Narrow::default(),
        is_on: entry.node.get("enabled").map(|node| node.is(true)),
        file: entry.scope.source.to_owned(),
        line: entry.node.line,
        is_alone,
    };
    match entry.narrowing() {
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
