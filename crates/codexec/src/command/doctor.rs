mod remedy;
mod servers;

use std::io::Write;
use std::process::ExitCode;

use codexec_exec::{ExecError, Workers, list_interpreters};
use codexec_sandbox::{EscapeAttempt, Layer, Posture};
use codexec_types::{Language, ServerName};
use serde_json::{Value, json};

use self::remedy::{remedy, user_namespace_remedy};
use self::servers::{CheckedServer, check_servers, print_servers};
use super::terminal::{Paint, paint_stdout};
use crate::cli::DoctorArgs;
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

pub(super) async fn run(parts: &Parts, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let probing = parts.build_workers("zygote-probe");
    let posture = probing.posture().await;
    let (attempts, probe_error) = match probing.probe().await {
        Ok(attempts) => (attempts, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let languages = check_languages(parts, &probing).await?;
    let diagnosis = Diagnosis { posture, attempts, probe_error, languages };
    let is_well = diagnosis.probe_error.is_none() && diagnosis.escapes().next().is_none();
    if !args.json {
        print_sandbox(parts, &diagnosis)?;
    }
    // Last, because it may take long.
    let servers = check_servers(parts, args.no_check).await;
    if args.json {
        print_json(parts, &diagnosis, &servers, is_well)?;
    } else {
        print_servers(parts, &servers)?;
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

fn print_sandbox(parts: &Parts, diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "codexec {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "state      {}", parts.home.display())?;
    writeln!(out, "\nSandbox")?;
    match &diagnosis.posture {
        Ok(posture) => {
            for layer in Layer::ALL {
                let missing = posture.missing.iter().find(|missing| missing.layer == layer);
                match missing {
                    None => print_line(&mut out, OK, layer.name(), layer.purpose())?,
                    Some(missing) => {
                        let remedy = remedy(layer, &parts.program);
                        let about = format!("{}; {remedy}", missing.reason);
                        print_line(&mut out, ("MISSING", Paint::Bad), layer.name(), &about)?;
                    }
                }
            }
        }
        Err(error) => {
            let what = paint_stdout(Paint::Bad, "NO CODE CAN RUN HERE");
            writeln!(out, "  {what}: {error}")?;
            let remedy = match error {
                ExecError::Sandbox(broken) => Some(remedy(broken.layer, &parts.program)),
                _ => user_namespace_remedy(&parts.program),
            };
            if let Some(remedy) = remedy {
                writeln!(out, "  what to do: {remedy}")?;
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
            Ok(interpreter) => print_line(&mut out, OK, name, interpreter)?,
            Err(why) => print_line(&mut out, ("NONE", Paint::Warning), name, why)?,
        }
    }
    Ok(())
}

fn print_json(
    parts: &Parts,
    diagnosis: &Diagnosis,
    servers: &[CheckedServer],
    is_well: bool,
) -> anyhow::Result<()> {
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
        "server_states": servers,
        "waiting": parts.named_servers.waiting_names(),
        "refused": parts.gateway.list_start_refusals().iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>(),
        "problems": parts.named_servers.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}

const OK: (&str, Paint) = ("ok", Paint::Good);

/// Prints one finding: its state, its name, and what there is to say.
fn print_line(
    out: &mut impl Write,
    (state, paint): (&str, Paint),
    name: &str,
    about: &str,
) -> std::io::Result<()> {
    let state = paint_stdout(paint, &format!("{state:<8}"));
    writeln!(out, "  {state} {name:<18} {about}")
}
