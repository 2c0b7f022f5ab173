//! Resolves the names that guests use to one server and one tool. An ambiguous name is an error,
//! never a guess.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, ServerName, ToolDenied, ToolFilter, find_nearest_names};

use super::{
    Gateway,
    call::{denied_error, not_found_error, shorten},
};
use crate::{
    catalogue::{CatalogueEntry, ServerTool, find_servers, split_name},
    tool::Tool,
    upstream::{ToolLookup, Upstream, WithheldReason},
};

impl Gateway {
    /// Resolves a joined or bare name to its server and tool.
    pub(super) async fn resolve_name(
        &self,
        name: &str,
        allowed: &ToolFilter,
    ) -> Result<(ServerName, String), CallError> {
        let mut pairs = split_name(name, &self.fleet().names);
        let is_allowed =
            |pair: &ServerTool<'_>| allowed.check(pair.server.as_str(), pair.tool).is_ok();
        if pairs.iter().any(is_allowed) {
            pairs.retain(is_allowed);
        }
        self.wait_for_lists(&pairs, allowed).await;
        if let Some(pair) = self.find_listed_pair(name, &pairs)? {
            return Ok((pair.server.clone(), pair.tool.to_owned()));
        }
        match (pairs.first(), self.resolve_bare_name(name, allowed).await) {
            (Some(pair), Err(_)) => Ok((pair.server.clone(), pair.tool.to_owned())),
            (_, bare) => bare,
        }
    }

    /// Resolves a server by name or alias, if any of its tools may be called.
    pub(super) fn resolve_server(
        &self,
        name: &str,
        allowed: &ToolFilter,
    ) -> Result<ServerName, CallError> {
        let fleet = self.fleet();
        let found = find_servers(name, &fleet.names);
        match found.as_slice() {
            [server] if allowed.allows_server(server.as_str()) => Ok((*server).clone()),
            [server] => Err(denied_error(ToolDenied::Server, server, "*")),
            [] => {
                if let Some(disabled) = self.disabled_error(name) {
                    return Err(disabled);
                }
                let known = fleet.names.iter().map(ServerName::as_str);
                let visible = known.filter(|server| allowed.allows_server(server));
                let near = find_nearest_names(name, visible, 3);
                Err(not_found_error(&format!("no server {:?}", shorten(name)), &near))
            }
            several => {
                let names = several.iter().map(ToString::to_string);
                Err(ambiguous_error("servers go by", name, &names.collect::<Vec<_>>()))
            }
        }
    }

    /// Returns an error if this is the name of a disabled server, or of a tool of one.
    fn disabled_error(&self, name: &str) -> Option<CallError> {
        let disabled = self.disabled_servers();
        let names: Vec<ServerName> = disabled.into_iter().map(|(server, _)| server).collect();
        let of_tool = split_name(name, &names).into_iter().next().map(|pair| pair.server);
        let server = find_servers(name, &names).first().copied().cloned().or(of_tool)?;
        let message = format!(
            "server \"{server}\" is disabled; the user can enable it with `codexec servers enable \
             {server}`"
        );
        Some(CallError::new(CallCode::ToolNotFound, message))
    }

    /// Resolves a name to a tool of this server, if it may be called.
    pub(super) async fn resolve_tool(
        &self,
        upstream: &Arc<Upstream>,
        tool: &str,
        allowed: &ToolFilter,
    ) -> Result<Arc<Tool>, CallError> {
        let mut listing = upstream.listing().unwrap_or_default();
        if matches!(listing.lookup(tool), ToolLookup::Withheld(_, WithheldReason::Held(_))) {
            // The user may have just approved it.
            upstream.tool_cache().recheck().await;
            listing = upstream.listing().unwrap_or_default();
        }
        let server = upstream.name();
        // Permission depends on the real name, which an alias may stand for.
        let permit = |real: &str| {
            allowed.check(server.as_str(), real).map_err(|err| denied_error(err, server, real))
        };
        match listing.lookup(tool) {
            ToolLookup::Found(found) => permit(&found.name).map(|()| found.clone()),
            ToolLookup::Withheld(found, why) => {
                permit(&found.name)?;
                Err(withheld_error(server, &found.name, why))
            }
            ToolLookup::Ambiguous(names) => {
                let dotted = names.iter().map(|name| format!("{server}.{name}"));
                Err(ambiguous_error("tools go by", tool, &dotted.collect::<Vec<_>>()))
            }
            ToolLookup::Missing => {
                permit(tool)?;
                Err(self.no_tool_error(server, tool, allowed))
            }
        }
    }

    /// Waits for the lists of these servers, which are needed to recognize exact names.
    async fn wait_for_lists(&self, pairs: &[ServerTool<'_>], allowed: &ToolFilter) {
        let until = self.list_deadline();
        let fleet = self.fleet();
        let wanted = fleet.upstreams.iter().filter(|upstream| {
            allowed.allows_server(upstream.name().as_str())
                && pairs.iter().any(|pair| pair.server == *upstream.name())
                && upstream.listing().is_none()
        });
        futures::future::join_all(wanted.map(|upstream| upstream.wait_until_settled(until))).await;
    }

    /// Returns the one pair whose tool is listed: by exact names, or else by aliases.
    fn find_listed_pair<'a, 'b>(
        &self,
        name: &str,
        pairs: &'a [ServerTool<'b>],
    ) -> Result<Option<&'a ServerTool<'b>>, CallError> {
        let listing =
            |pair: &ServerTool<'_>| self.upstream(&pair.server).and_then(|up| up.listing());
        let is_exact = |pair: &ServerTool<'_>| {
            pair.is_exact && listing(pair).is_some_and(|l| l.has_tool(pair.tool))
        };
        let is_listed = |pair: &ServerTool<'_>| {
            let known = listing(pair);
            known.is_some_and(|known| !matches!(known.lookup(pair.tool), ToolLookup::Missing))
        };
        let ways: [&dyn Fn(&ServerTool<'_>) -> bool; 2] = [&is_exact, &is_listed];
        for way in ways {
            let found: Vec<&ServerTool<'b>> = pairs.iter().filter(|pair| way(pair)).collect();
            match found.as_slice() {
                [] => {}
                [pair] => return Ok(Some(*pair)),
                several => {
                    let names = several.iter().map(|pair| pair.dotted_name());
                    return Err(ambiguous_error("tools go by", name, &names.collect::<Vec<_>>()));
                }
            }
        }
        // Without a list, the call itself will tell.
        Ok(pairs.iter().find(|pair| listing(pair).is_none()))
    }

    /// Resolves a tool's own name, whichever server has it.
    async fn resolve_bare_name(
        &self,
        name: &str,
        allowed: &ToolFilter,
    ) -> Result<(ServerName, String), CallError> {
        let (catalogue, _) = self.gather_all_lists(allowed).await;
        let bare: Vec<&CatalogueEntry> =
            catalogue.all(allowed).filter(|entry| entry.tool.name == name).collect();
        match bare.as_slice() {
            [entry] => Ok((entry.server.clone(), entry.tool.name.clone())),
            [] => {
                if let Some(disabled) = self.disabled_error(name) {
                    return Err(disabled);
                }
                let names: Vec<String> =
                    catalogue.all(allowed).map(CatalogueEntry::dotted_name).collect();
                let near = find_nearest_names(name, names.iter().map(String::as_str), 3);
                Err(not_found_error(&format!("no tool {:?}", shorten(name)), &near))
            }
            several => {
                let names: Vec<String> = several.iter().map(|entry| entry.dotted_name()).collect();
                let which = names.join(", ");
                let message = format!("several servers have a tool {name:?}: {which}; say which");
                Err(CallError::new(CallCode::ToolNotFound, message))
            }
        }
    }
}

fn ambiguous_error(what: &str, name: &str, names: &[String]) -> CallError {
    let which = names.join(", ");
    let message = format!("several {what} {:?}: {which}; use the exact name", shorten(name));
    CallError::new(CallCode::ToolNotFound, message)
}

fn withheld_error(server: &ServerName, tool: &str, why: WithheldReason) -> CallError {
    let error = match why {
        WithheldReason::Held(why) => CallError::new(
            CallCode::ToolQuarantined,
            format!(
                "tool \"{server}.{tool}\" is in quarantine: {}; the user can review and approve \
                 it with `codexec servers approve {server}`",
                why.reason()
            ),
        ),
        WithheldReason::SwitchedOff => CallError::new(
            CallCode::ToolNotAllowed,
            format!(
                "tool \"{server}.{tool}\" is switched off in the settings of server \"{server}\""
            ),
        ),
    };
    error.about(server.as_str(), tool)
}
