use std::path::Path;

use codexec_sandbox::{Command, PROXY_PORT};
use codexec_types::{Language, PackageName};

use super::{CERTIFICATES, CONSTRAINTS, Failure, WORK, Wish, environment, texts};

pub(super) fn install(python: &Path, wish: &Wish<'_>) -> Command {
    let mut arguments = start("install", wish);
    arguments.extend(texts(["--progress-bar", "off", "--no-warn-script-location"]));
    arguments.extend(texts(["--target", &format!("{WORK}/python")]));
    // THREAT[PKG-4]: wheels are only unpacked; anything else would run code now.
    if !wish.runs_scripts {
        arguments.extend(texts(["--only-binary", ":all:"]));
    }
    if wish.is_constrained {
        arguments.extend(texts(["--constraint", CONSTRAINTS]));
    }
    arguments.extend(texts(["--", wish.package.as_str()]));
    command(python, arguments, wish)
}

pub(super) fn versions(python: &Path, wish: &Wish<'_>) -> Command {
    let mut arguments = start("index", wish);
    arguments.extend(texts(["--pre", "versions", "--", wish.package.name()]));
    command(python, arguments, wish)
}

fn start(what: &str, wish: &Wish<'_>) -> Vec<String> {
    let source = wish.source;
    let mut arguments = texts(["-I", "-B", "-m", "pip", what, "--isolated", "--no-input"]);
    arguments.extend(texts(["--disable-pip-version-check", "--no-color", "--no-cache-dir"]));
    // One retry for a broken connection; an unreachable index should be reported soon.
    arguments.extend(texts(["--retries", "1", "--timeout", "30"]));
    arguments.extend(texts(["--proxy", &format!("http://127.0.0.1:{PROXY_PORT}")]));
    arguments.extend(texts(["--index-url", source.index.for_installer()]));
    if source.certificates.is_some() {
        arguments.extend(texts(["--cert", CERTIFICATES]));
    }
    if source.index.is_plain_http() {
        // The user configured an index without TLS; pip requires an explicit option for that.
        arguments.extend(texts(["--trusted-host", &source.index.host().to_string()]));
    }
    arguments
}

fn command(python: &Path, arguments: Vec<String>, wish: &Wish<'_>) -> Command {
    let environment = environment(python, wish.source, Language::Python);
    Command { program: python.to_owned(), arguments, environment }
}

pub(super) fn failure(said: &str, package: &PackageName) -> Failure {
    if said.contains("ResolutionImpossible") || said.contains("conflicting dependencies") {
        return Failure::Conflict;
    }
    let marker = "that satisfies the requirement ";
    let Some((_, rest)) = said.split_once(marker) else { return Failure::Other };
    let wanted = rest.split([' ', '\n']).next().unwrap_or_default();
    let is_own = PackageName::parse(Language::Python, wanted)
        .is_ok_and(|wanted| wanted.key() == package.key());
    match rest.split_once("(from versions: ") {
        Some((_, versions)) if is_own && versions.starts_with("none)") => Failure::NotFound,
        Some(_) if is_own => Failure::NoVersion,
        Some(_) | None => Failure::Other,
    }
}

pub(super) fn is_offered(said: &str, version: &str) -> bool {
    let offered = said.lines().find_map(|line| line.trim().strip_prefix("Available versions:"));
    offered.is_some_and(|offered| offered.split(',').any(|each| each.trim() == version))
}
