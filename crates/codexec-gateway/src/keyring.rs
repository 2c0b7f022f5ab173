//! Access to the desktop's keyring through its command-line program. Secrets go through pipes,
//! never through arguments, and no shell is involved.

use std::{io, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

use crate::GatewaySettings;

/// Long, because the keyring may prompt the user to unlock it.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BYTES: u64 = 256 << 10;
const SERVICE: &str = "codexec";
/// Variables that locate the keyring, in addition to those that every child process gets.
const VARIABLES: [&str; 4] =
    ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY"];

/// Returns the secret stored under `name`.
pub(crate) async fn lookup(name: &str, settings: &GatewaySettings) -> io::Result<String> {
    let found = if cfg!(target_os = "macos") {
        let args = ["find-generic-password", "-s", SERVICE, "-a", name, "-w"];
        run("security", &args, b"", settings).await?
    } else {
        let args = ["lookup", "service", SERVICE, "account", name];
        run("secret-tool", &args, b"", settings).await?
    };
    let found = String::from_utf8(found).map_err(io::Error::other)?;
    let found = found.strip_suffix('\n').unwrap_or(&found);
    if found.is_empty() {
        return Err(io::Error::other("it has no secret of that name"));
    }
    Ok(found.to_owned())
}

/// Stores a secret under `name`, and replaces an existing one.
pub(crate) async fn store(name: &str, secret: &str, settings: &GatewaySettings) -> io::Result<()> {
    if cfg!(target_os = "macos") {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("add-generic-password -U -s {SERVICE} -a \"{name}\" -X {hex}\n");
        run("security", &["-i"], line.as_bytes(), settings).await?;
    } else {
        let label = format!("--label={SERVICE} {name}");
        let args = ["store", label.as_str(), "service", SERVICE, "account", name];
        run("secret-tool", &args, secret.as_bytes(), settings).await?;
    }
    // Some keyrings report success but store nothing.
    match lookup(name, settings).await? == secret {
        true => Ok(()),
        false => Err(io::Error::other("it did not store the secret")),
    }
}

async fn run(
    program: &str,
    args: &[&str],
    input: &[u8],
    settings: &GatewaySettings,
) -> io::Result<Vec<u8>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the desktop's keyring program, with fixed arguments"
    )]
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(settings.env.iter().cloned()).current_dir("/");
    for name in VARIABLES {
        if let Some(value) = (settings.variable)(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let talk = async {
        let mut found = Vec::new();
        if let (Some(mut stdin), Some(stdout)) = (stdin, stdout) {
            // Fails if the program has closed its stdin, which is fine.
            let _ = stdin.write_all(input).await;
            drop(stdin);
            stdout.take(MAX_BYTES).read_to_end(&mut found).await?;
        }
        let status = child.wait().await?;
        if !status.success() {
            return Err(io::Error::other(format!("{program} failed ({status})")));
        }
        Ok(found)
    };
    let timed_out = |_| Err(io::Error::other(format!("{program} timed out")));
    timeout(TIMEOUT, talk).await.unwrap_or_else(timed_out)
}

#[cfg(test)]
pub(crate) mod tests;
