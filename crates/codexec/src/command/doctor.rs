use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use codexec_exec::{ExecError, Workers, list_interpreters};
use codexec_mcp_config::ProblemEffect;
use codexec_sandbox::{EscapeAttempt, Layer, Posture};
use codexec_types::{Language, ServerName};
use serde_json::{Value, json};

use super::servers::explain_waiting;
use crate::parts::Parts;

/// The result of building a sandbox and trying to escape from it.
struct Diagnosis {
    posture: Result<Posture, ExecError>,
    attempts: Vec<EscapeAttempt>,
    /// Why no escape could be tried.
    probe_error: Option<ExecError>,
    /// The interpreter of each language, or why there is none.
    languages: Vec<(Language, Result<String, String>)>,
}

pub(super) async fn run(parts: &Parts, as_json: bool) -> anyhow::Result<ExitCode> {
    let probing = parts.build_workers("zygote-probe");
    let posture = probing.posture().await;
    let (attempts, probe_error) = match probing.probe().await {
        Ok(attempts) => (attempts, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let languages = check_languages(parts, &probing).await?;
    let diagnosis = Diagnosis { posture, attempts, probe_error, languages };
    let is_well = diagnosis.probe_error.is_none() && diagnosis.escapes().next().is_none();
    if as_json {
        print_json(parts, &diagnosis, is_well)?;
    } else {
        print_text(parts, &diagnosis)?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Finds the interpreter of each language, and checks that it starts in a sandbox.
async fn check_languages(
    parts: &Parts,
    workers: &Workers,
) -> anyhow::Result<Vec<(Language, Result<String, String>)>> {
    let settings = parts.exec_settings("zygote-js");
    let found = tokio::task::spawn_blocking(move || list_interpreters(&settings)).await?;
    let mut languages = Vec::new();
    for (language, mut interpreter) in found {
        if !parts.config.policy.languages.contains(&language) {
            interpreter = Err("not among `languages.enabled` in config.toml".to_owned());
        }
        if interpreter.is_ok()
            && let Err(error) = workers.posture_of(language).await
        {
            interpreter = Err(error.to_string());
        }
        languages.push((language, interpreter));
    }
    Ok(languages)
}

impl Diagnosis {
    fn escapes(&self) -> impl Iterator<Item = &EscapeAttempt> {
        self.attempts.iter().filter(|attempt| attempt.blocked_by.is_none())
    }
}

fn print_text(parts: &Parts, diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "codexec {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "state      {}", parts.home.display())?;
    writeln!(out, "\nSandbox")?;
    match &diagnosis.posture {
        Ok(posture) => {
            for layer in Layer::ALL {
                let missing = posture.missing.iter().find(|missing| missing.layer == layer);
                match missing {
                    None => writeln!(out, "  ok       {:<18} {}", layer.name(), layer.purpose())?,
                    Some(missing) => {
                        writeln!(out, "  MISSING  {:<18} {}", layer.name(), missing.reason)?;
                    }
                }
            }
        }
        Err(error) => {
            writeln!(out, "  NO CODE CAN RUN HERE: {error}")?;
            if let Some(hint) = user_namespace_hint() {
                writeln!(out, "  {hint}")?;
            }
        }
    }
    let escapes: Vec<&EscapeAttempt> = diagnosis.escapes().collect();
    match &diagnosis.probe_error {
        None => {
            let tried = diagnosis.attempts.len();
            writeln!(
                out,
                "  tried    {tried} escapes from a real worker, {} worked",
                escapes.len()
            )?;
        }
        Some(error) => writeln!(out, "  UNTRIED  escapes from a worker: {error}")?,
    }
    for escape in escapes {
        writeln!(out, "  HOLE     {}", escape.what)?;
    }
    writeln!(out, "\nLanguages")?;
    for (language, found) in &diagnosis.languages {
        let name = language.name();
        match found {
            Ok(interpreter) => writeln!(out, "  ok       {name:<18} {interpreter}")?,
            Err(why) => writeln!(out, "  NONE     {name:<18} {why}")?,
        }
    }
    print_servers(parts, &mut out)
}

fn print_servers(parts: &Parts, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "\nServers")?;
    for found in &parts.named_servers.servers {
        let (name, file) = (found.config.name.as_str(), found.config.source.display());
        match &found.off {
            None => writeln!(out, "  named    {name:<18} {file}:{}", found.line)?,
            Some(why) => writeln!(out, "  off      {name:<18} {file}:{}: {why}", found.line)?,
        }
    }
    for found in parts.named_servers.waiting.iter().filter(|found| found.off.is_none()) {
        let (name, file) = (found.config.name.as_str(), found.config.source.display());
        let why = found.pending.as_ref().map(|pending| explain_waiting(pending, name));
        let why = why.unwrap_or_default();
        writeln!(out, "  WAITING  {name:<18} {file}:{}: {why}", found.line)?;
    }
    for (name, why) in parts.gateway.list_start_refusals() {
        writeln!(out, "  REFUSED  {:<18} {why}", name.as_str())?;
    }
    for problem in &parts.named_servers.problems {
        let effect = match problem.effect {
            ProblemEffect::LeftOut => "LEFT OUT",
            ProblemEffect::Kept => "WARNING ",
        };
        writeln!(out, "  {effect} {problem}")?;
    }
    if parts.gateway.server_names().is_empty() {
        writeln!(out, "  none; add one with `codexec servers add` or --mcp-config FILE")?;
    }
    Ok(())
}

fn print_json(parts: &Parts, diagnosis: &Diagnosis, is_well: bool) -> anyhow::Result<()> {
    let (layers, missing, error) = match &diagnosis.posture {
        Ok(posture) => (posture.names(), json!(posture.missing), None),
        Err(error) => (Vec::new(), json!([]), Some(error.to_string())),
    };
    let language = |(language, found): &(Language, Result<String, String>)| {
        let (ok, about) = match found {
            Ok(interpreter) => (true, interpreter),
            Err(why) => (false, why),
        };
        json!({"name": language.name(), "ok": ok, "about": about})
    };
    let languages: Vec<Value> = diagnosis.languages.iter().map(language).collect();
    let report = json!({
        "ok": is_well,
        "version": env!("CARGO_PKG_VERSION"),
        "state": parts.home,
        "sandbox": {"layers": layers, "missing": missing, "error": error, "attempts": diagnosis.attempts},
        "languages": languages,
        "servers": parts.gateway.server_names().iter().map(ServerName::as_str).collect::<Vec<_>>(),
        "waiting": parts.named_servers.waiting_names(),
        "refused": parts.gateway.list_start_refusals().iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>(),
        "problems": parts.named_servers.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}

/// Returns a hint why the kernel refuses user namespaces here.
fn user_namespace_hint() -> Option<&'static str> {
    let is_set = |path: &str, value: &str| {
        std::fs::read_to_string(Path::new(path)).is_ok_and(|text| text.trim() == value)
    };
    if is_set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return Some(
            "AppArmor denies user namespaces to unprivileged users here: give codexec a profile \
                     with `userns,`, or set kernel.apparmor_restrict_unprivileged_userns=0",
        );
    }
    if is_set("/proc/sys/user/max_user_namespaces", "0") {
        return Some("user namespaces are off here: set user.max_user_namespaces above 0");
    }
    if Path::new("/.dockerenv").exists() {
        return Some(
            "in Docker, namespaces need --security-opt seccomp=unconfined \
                     --security-opt apparmor=unconfined --security-opt systempaths=unconfined",
        );
    }
    None
}
