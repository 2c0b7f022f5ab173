//! The desktop's own keyring, through the program that the desktop brings for it. What is secret
//! goes through pipes, never through arguments, and no shell is involved.

use std::{io, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

use crate::Settings;

/// It may ask its owner to unlock it.
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_BYTES: u64 = 256 << 10;
const SERVICE: &str = "codexec";
/// Where the keyring is, besides what every program of ours gets.
const VARIABLES: [&str; 4] =
    ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY"];

/// What is kept under `name`.
pub(crate) async fn lookup(name: &str, settings: &Settings) -> io::Result<String> {
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
        return Err(io::Error::other("there is nothing under that name"));
    }
    Ok(found.to_owned())
}

/// Keeps it, in place of what was there.
pub(crate) async fn store(name: &str, secret: &str, settings: &Settings) -> io::Result<()> {
    if cfg!(target_os = "macos") {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("add-generic-password -U -s {SERVICE} -a \"{name}\" -X {hex}\n");
        run("security", &["-i"], line.as_bytes(), settings).await?;
    } else {
        let label = format!("--label={SERVICE} {name}");
        let args = ["store", label.as_str(), "service", SERVICE, "account", name];
        run("secret-tool", &args, secret.as_bytes(), settings).await?;
    }
    // Some say yes and keep nothing.
    match lookup(name, settings).await? == secret {
        true => Ok(()),
        false => Err(io::Error::other("it does not give back what it was given")),
    }
}

async fn run(
    program: &str,
    args: &[&str],
    input: &[u8],
    settings: &Settings,
) -> io::Result<Vec<u8>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the keyring's own program, with fixed arguments"
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
            // A program that does not want it has closed its input already.
            let _ = stdin.write_all(input).await;
            drop(stdin);
            stdout.take(MAX_BYTES).read_to_end(&mut found).await?;
        }
        let status = child.wait().await?;
        if !status.success() {
            return Err(io::Error::other(format!("{program} says no ({status})")));
        }
        Ok(found)
    };
    let late = |_| Err(io::Error::other(format!("{program} did not answer")));
    timeout(PATIENCE, talk).await.unwrap_or_else(late)
}

#[cfg(test)]
pub(crate) mod tests;
