//! Servers that are not started because guests could have written a part of them.

use codexec_mcp_config::{SecretSource, StdioConfig, TransportConfig};
use codexec_types::ServerName;

use super::Gateway;
use crate::upstream::{StartRefusal, plan_start};

impl Gateway {
    /// Returns the servers that would be refused now, with the reason. Starts nothing.
    pub fn list_start_refusals(&self) -> Vec<(ServerName, String)> {
        let fleet = self.fleet();
        let refused = fleet.upstreams.iter().filter_map(|upstream| {
            let TransportConfig::Stdio(program) = &upstream.config().transport else { return None };
            Some((upstream.name().clone(), self.start_refusal(program)?))
        });
        refused.collect()
    }

    fn start_refusal(&self, program: &StdioConfig) -> Option<String> {
        let plain_value = |(name, secret): &(String, SecretSource)| match secret {
            SecretSource::Plain(value) => Some((name.clone(), value.clone())),
            SecretSource::Variable(_) | SecretSource::File(_) | SecretSource::Keyring(_) => None,
        };
        let env: Vec<(String, String)> = program.env.iter().filter_map(plain_value).collect();
        let refused = plan_start(program, &env, &self.inner.shared.settings).err()?;
        match refused {
            StartRefusal::GuestWritable { .. }
            | StartRefusal::InLauncher { .. }
            | StartRefusal::TakesFromWorkingDir(_) => {
                Some(format!("{:?} {refused}", program.command))
            }
            // These errors are reported when the server is started.
            StartRefusal::NotFound | StartRefusal::NoDirectory(_) => None,
        }
    }
}
