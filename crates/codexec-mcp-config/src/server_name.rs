//! Converts the server names of config files to codexec's server names.

use codexec_types::{InvalidServerName, ServerName};

/// Returns a valid name. Clients allow more characters: in `microsoft/playwright` or `My Server`,
/// invalid characters become `_`. Path traversal and control characters are errors.
pub(super) fn to_server_name(written: &str) -> Result<ServerName, InvalidServerName> {
    if let Ok(name) = ServerName::new(written) {
        return Ok(name);
    }
    let is_hostile = written.contains("..")
        || written.contains('\\')
        || written.starts_with(['/', '.', '~'])
        || written.chars().any(char::is_control)
        || !written.chars().any(|c| c.is_ascii_alphanumeric());
    let to_valid = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let text: String = written.chars().map(to_valid).collect();
    if is_hostile {
        return Err(InvalidServerName(written.chars().take(80).collect()));
    }
    ServerName::new(&text).map_err(|_| InvalidServerName(written.chars().take(80).collect()))
}
