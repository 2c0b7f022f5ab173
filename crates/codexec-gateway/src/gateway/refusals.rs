//! Servers that are not started because guests could have written a part of them.

use codexec_types::ServerName;

use super::Gateway;
use crate::{
    Secret, StdioConfig, TransportConfig,
    upstream::{StartRefusal, plan_start},
};

impl Gateway {
    /// The servers that would be refused now, each with why. Starts nothing.
    pub fn refusals(&self) -> Vec<(ServerName, String)> {
        let fleet = self.fleet();
        let refused = fleet.upstreams.iter().filter_map(|upstream| {
            let TransportConfig::Stdio(program) = &upstream.config().transport else { return None };
            Some((upstream.name().clone(), self.refusal(program)?))
        });
        refused.collect()
    }

    fn refusal(&self, program: &StdioConfig) -> Option<String> {
        let plain = |(name, secret): &(String, Secret)| match secret {
            Secret::Plain(value) => Some((name.clone(), value.clone())),
            Secret::Variable(_) | Secret::File(_) | Secret::Keyring(_) => None,
        };
        let env: Vec<(String, String)> = program.env.iter().filter_map(plain).collect();
        let refused = plan_start(program, &env, &self.inner.shared.settings).err()?;
        match refused {
            StartRefusal::GuestWritable { .. }
            | StartRefusal::InLauncher { .. }
            | StartRefusal::TakesFromWorkingDir(_) => {
                Some(format!("{:?} {refused}", program.command))
            }
            // Whoever starts it is told.
            StartRefusal::NotFound | StartRefusal::NoDirectory(_) => None,
        }
    }
}
