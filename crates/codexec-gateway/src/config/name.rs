//! What a server is called here.

use codexec_types::{InvalidServerName, ServerName};

/// The name as it can be used. Clients allow more than we do: `microsoft/playwright` or
/// `My Server` are kept with `_` in place of what we have no use for. What looks like a path out
/// of somewhere, or hides something, is nobody's name.
pub(super) fn usable(written: &str) -> Result<ServerName, InvalidServerName> {
    if let Ok(name) = ServerName::new(written) {
        return Ok(name);
    }
    let is_hostile = written.contains("..")
        || written.contains('\\')
        || written.starts_with(['/', '.', '~'])
        || written.chars().any(char::is_control)
        || !written.chars().any(|c| c.is_ascii_alphanumeric());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let text: String = written.chars().map(plain).collect();
    if is_hostile {
        return Err(InvalidServerName(written.chars().take(80).collect()));
    }
    ServerName::new(&text).map_err(|_| InvalidServerName(written.chars().take(80).collect()))
}
