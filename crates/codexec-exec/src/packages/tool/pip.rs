use std::path::Path;

use codexec_sandbox::{PROXY_PORT, ProgramCommand};
use codexec_types::{Language, PackageName};

use super::{
    CERTIFICATES, CONSTRAINTS, InstallFailure, InstallRequest, WORK, installer_environment,
    to_strings,
};

pub(super) fn install_command(python: &Path, request: &InstallRequest<'_>) -> ProgramCommand {
    let mut arguments = common_arguments("install", request);
    arguments.extend(to_strings(["--progress-bar", "off", "--no-warn-script-location"]));
    arguments.extend(to_strings(["--target", &format!("{WORK}/python")]));
    // THREAT[PKG-4]: wheels are only unpacked; anything else would run code now.
    if !request.runs_scripts {
        arguments.extend(to_strings(["--only-binary", ":all:"]));
    }
    if request.is_constrained {
        arguments.extend(to_strings(["--constraint", CONSTRAINTS]));
    }
    arguments.extend(to_strings(["--", request.package.as_str()]));
    command(python, arguments, request)
}

pub(super) fn versions_command(python: &Path, request: &InstallRequest<'_>) -> ProgramCommand {
    let mut arguments = common_arguments("index", request);
    arguments.extend(to_strings(["--pre", "versions", "--", request.package.name()]));
    command(python, arguments, request)
}

fn common_arguments(what: &str, request: &InstallRequest<'_>) -> Vec<String> {
    let source = request.source;
    let mut arguments = to_strings(["-I", "-B", "-m", "pip", what, "--isolated", "--no-input"]);
    arguments.extend(to_strings(["--disable-pip-version-check", "--no-color", "--no-cache-dir"]));
    // One retry for a broken connection; an unreachable index should be reported soon.
    arguments.extend(to_strings(["--retries", "1", "--timeout", "30"]));
    arguments.extend(to_strings(["--proxy", &format!("http://127.0.0.1:{PROXY_PORT}")]));
    arguments.extend(to_strings(["--index-url", source.index.for_installer()]));
    if source.certificates.is_some() {
        arguments.extend(to_strings(["--cert", CERTIFICATES]));
    }
    if source.index.is_plain_http() {
        // The user configured an index without TLS; pip requires an explicit option for that.
        arguments.extend(to_strings(["--trusted-host", &source.index.host().to_string()]));
    }
    arguments
}

fn command(python: &Path, arguments: Vec<String>, request: &InstallRequest<'_>) -> ProgramCommand {
    let environment = installer_environment(python, request.source, Language::Python);
    ProgramCommand { program: python.to_owned(), arguments, environment }
}

pub(super) fn classify_failure(said: &str, package: &PackageName) -> InstallFailure {
    if said.contains("ResolutionImpossible") || said.contains("conflicting dependencies") {
        return InstallFailure::Conflict;
    }
    let marker = "that satisfies the requirement ";
    let Some((_, rest)) = said.split_once(marker) else { return InstallFailure::Other };
    let wanted = rest.split([' ', '\n']).next().unwrap_or_default();
    let is_own = PackageName::parse(Language::Python, wanted)
        .is_ok_and(|wanted| wanted.key() == package.key());
    match rest.split_once("(from versions: ") {
        Some((_, versions)) if is_own && versions.starts_with("none)") => InstallFailure::NotFound,
        Some(_) if is_own => InstallFailure::NoVersion,
        Some(_) | None => InstallFailure::Other,
    }
}

pub(super) fn is_offered(said: &str, version: &str) -> bool {
    let offered = said.lines().find_map(|line| line.trim().strip_prefix("Available versions:"));
    offered.is_some_and(|offered| offered.split(',').any(|each| each.trim() == version))
}
