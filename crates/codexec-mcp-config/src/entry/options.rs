//! The options of an entry: tool filters, timeouts, concurrency and trust.

use std::time::Duration;

use super::{BadEntry, ConfigEntry};
use crate::{ConfigOwner, ServerOptions, TrustMode, dialect::DurationUnit, node::ConfigNode};

/// A longer timeout is a mistake.
const MAX_TIMEOUT_MS: f64 = 3_600_000.0;

/// The keys that an entry of our own file may have.
const OWN_KEYS: [&str; 15] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "type",
    "headers",
    "oauth",
    "enabled",
    "enabled-tools",
    "disabled-tools",
    "startup-timeout-ms",
    "timeout-ms",
    "max-concurrency",
    "trust",
];

impl ConfigEntry<'_> {
    pub(super) fn read_options(&mut self) -> Result<ServerOptions, BadEntry> {
        let mut narrow = ServerOptions::default();
        if let Some(key) = self.dialect.enabled_tools {
            narrow.enabled_tools = self.texts(key)?;
        }
        // goose: an empty list means all tools.
        if self.scope.client == ConfigOwner::Goose {
            narrow.enabled_tools = narrow.enabled_tools.filter(|tools| !tools.is_empty());
        }
        if let Some(key) = self.dialect.disabled_tools {
            narrow.disabled_tools = self.texts(key)?.unwrap_or_default();
        }
        if let Some((key, unit)) = self.dialect.timeout {
            narrow.call_timeout = self.duration(key, unit)?;
        }
        for (key, unit) in self.dialect.startup_timeouts {
            narrow.startup_timeout = narrow.startup_timeout.or(self.duration(key, *unit)?);
        }
        if self.scope.client == ConfigOwner::Codexec {
            narrow.calls_at_once = self.concurrency()?;
            narrow.trust = self.trust()?;
        }
        if self.dialect.has_quarantine {
            narrow.calls_at_once = self.requests_at_once()?;
            narrow.trust = self.quarantine()?;
        }
        Ok(narrow)
    }

    fn duration(&self, key: &str, unit: DurationUnit) -> Result<Option<Duration>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(None) };
        let ms = match unit {
            DurationUnit::Seconds => node.number().map(|number| number * 1_000.0),
            DurationUnit::Milliseconds => node.number(),
            DurationUnit::GoDuration => node.text().and_then(parse_go_duration),
        };
        match ms {
            Some(ms) if (1.0..=MAX_TIMEOUT_MS).contains(&ms) => {
                Ok(Some(Duration::from_secs_f64(ms / 1_000.0)))
            }
            // Some clients write 0 or a huge number for "no limit"; our limit applies then.
            Some(_) if self.scope.client != ConfigOwner::Codexec => Ok(None),
            Some(_) | None => Err(self.error_at(key, "must be a number of 1 ms to 1 h")),
        }
    }

    fn concurrency(&self) -> Result<Option<usize>, BadEntry> {
        let Some(node) = self.node.get("max-concurrency") else { return Ok(None) };
        let number = node.scalar_text().and_then(|text| text.parse::<usize>().ok());
        match number {
            Some(number) if (1..=1_000).contains(&number) => Ok(Some(number)),
            Some(_) | None => Err(self.error_at("max-concurrency", "must be 1 to 1000")),
        }
    }

    fn trust(&self) -> Result<Option<TrustMode>, BadEntry> {
        let Some(node) = self.node.get("trust") else { return Ok(None) };
        match node.text().and_then(TrustMode::parse) {
            Some(mode) => Ok(Some(mode)),
            None => Err(self.error_at("trust", "must be \"auto\", \"ask\" or \"manual\"")),
        }
    }

    /// Reads MCPProxy's limit; 0 means that the entry sets none.
    fn requests_at_once(&self) -> Result<Option<usize>, BadEntry> {
        let key = "max_concurrent_requests";
        let Some(node) = self.node.get(key) else { return Ok(None) };
        match node.scalar_text().and_then(|text| text.parse::<usize>().ok()) {
            Some(0) => Ok(None),
            Some(number) if number <= 1_000 => Ok(Some(number)),
            Some(_) | None => Err(self.error_at(key, "must be 0 to 1000")),
        }
    }

    /// Maps MCPProxy's quarantine: tools that it held need approval here as well. An unreadable
    /// value is an error, because it was meant to hold something.
    fn quarantine(&self) -> Result<Option<TrustMode>, BadEntry> {
        match self.node.get("quarantined") {
            Some(node) if node.is(true) => return Ok(Some(TrustMode::Manual)),
            Some(node) if !node.is(false) => {
                return Err(self.error_at("quarantined", "must be true or false"));
            }
            Some(_) | None => {}
        }
        match self.node.get("trust_mode").map(|node| node.text().unwrap_or("?")) {
            None | Some("") => {}
            Some("auto") => return Ok(Some(TrustMode::Auto)),
            Some("scan") => return Ok(Some(TrustMode::Ask)),
            Some("manual") => return Ok(Some(TrustMode::Manual)),
            Some(_) => {
                let what = "must be \"auto\", \"scan\" or \"manual\"";
                return Err(self.error_at("trust_mode", what));
            }
        }
        let is_set = |key: &str| self.node.get(key).is_some_and(|node| node.is(true));
        let is_trusted = is_set("auto_approve_tool_changes") || is_set("skip_quarantine");
        Ok(is_trusted.then_some(TrustMode::Auto))
    }

    pub(super) fn check_keys(&self) -> Result<(), BadEntry> {
        let entries = self.node.entries().unwrap_or_default();
        let unknown = entries.iter().find(|(key, _)| !OWN_KEYS.contains(key));
        match unknown {
            None => {}
            Some((key, _)) => {
                let what = format!("is not a known key; the keys are {}", OWN_KEYS.join(", "));
                return Err(self.error_at(key, &what));
            }
        }
        let is_flag = |node: &ConfigNode| node.is(true) || node.is(false);
        if self.node.get("enabled").is_some_and(|node| !is_flag(node)) {
            return Err(self.error_at("enabled", "must be true or false"));
        }
        Ok(())
    }
}

/// Parses a Go duration into milliseconds: `500ms`, `30s`, `1m30s`, `1.5h`.
fn parse_go_duration(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut ms = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at_checked(end)?;
        let unit_end = behind.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = behind.split_at_checked(unit_end.unwrap_or(behind.len()))?;
        let factor = match unit {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        ms += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    (!text.trim().is_empty()).then_some(ms)
}
