use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use codexec_types::ExecutionId;

pub(super) const PREFIX: &str = "codexec://executions/";

/// The resource that a URI names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResourceTarget {
    Execution(ExecutionId),
    Artifacts(ExecutionId),
    /// The path components of the file; none is empty, `.` or `..`, none contains a `/` or a NUL.
    Artifact(ExecutionId, Vec<OsString>),
}

pub(super) fn parse(uri: &str) -> Option<ResourceTarget> {
    let mut parts = uri.strip_prefix(PREFIX)?.split('/');
    let id = ExecutionId::parse(parts.next()?)?;
    match parts.next() {
        None => return Some(ResourceTarget::Execution(id)),
        Some("artifacts") => {}
        Some(_) => return None,
    }
    let names: Option<Vec<OsString>> = parts.map(percent_decode).collect();
    match names? {
        names if names.is_empty() => Some(ResourceTarget::Artifacts(id)),
        names => Some(ResourceTarget::Artifact(id, names)),
    }
}

/// Returns the URI of an artifact.
pub(super) fn artifact_uri(id: &ExecutionId, path: &Path) -> String {
    let mut uri = format!("{PREFIX}{id}/artifacts");
    for name in path {
        uri.push('/');
        for byte in name.as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(*byte));
                }
                byte => {
                    let _ = write!(uri, "%{byte:02X}");
                }
            }
        }
    }
    uri
}

/// Percent-decodes one path component.
fn percent_decode(part: &str) -> Option<OsString> {
    let mut name = Vec::new();
    let mut rest = part.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let (hex, behind) = rest.split_at_checked(2)?;
        // `from_str_radix` would accept a sign.
        if !hex.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        name.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
        rest = behind;
    }
    let is_odd = name.contains(&b'/') || name.contains(&0);
    let is_step = [&b""[..], b".", b".."].contains(&name.as_slice());
    (!is_odd && !is_step).then(|| OsString::from_vec(name))
}
