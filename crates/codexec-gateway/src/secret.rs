//! Looks up secrets that are stored elsewhere, at the moment a server is connected.

use std::path::Path;

use crate::{GatewaySettings, keyring};
use codexec_mcp_config::SecretSource;

/// Secrets are short; a larger file is the wrong file.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Why a secret could not be read. Names the location, never the value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("the variable {0} is not set")]
    Variable(String),
    #[error("{path} cannot be read: {why}")]
    File { path: String, why: String },
    #[error("the keyring has no {name:?}: {why}")]
    Keyring { name: String, why: String },
}

/// Returns the value of a secret.
pub(crate) async fn resolve_secret(
    secret: &SecretSource,
    settings: &GatewaySettings,
) -> Result<String, SecretError> {
    match secret {
        SecretSource::Plain(value) => Ok(value.clone()),
        SecretSource::Variable(name) => {
            (settings.variable)(name).ok_or_else(|| SecretError::Variable(name.clone()))
        }
        SecretSource::File(path) => read(path).await.map_err(|why| SecretError::File {
            path: path.display().to_string(),
            why: why.to_string(),
        }),
        SecretSource::Keyring(name) => keyring::lookup(name, settings)
            .await
            .map_err(|why| SecretError::Keyring { name: name.clone(), why: why.to_string() }),
    }
}

async fn read(path: &Path) -> std::io::Result<String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        if std::fs::metadata(&path)?.len() > MAX_FILE_BYTES {
            return Err(std::io::Error::other("it is too large to be a secret"));
        }
        std::fs::read_to_string(&path)
    });
    let text = read.await.map_err(std::io::Error::other)??;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
