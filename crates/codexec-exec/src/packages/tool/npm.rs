use std::path::Path;

use codexec_sandbox::{Command, PROXY_PORT};
use codexec_types::{Language, PackageName};
use serde::Deserialize;

use super::{Failure, WORK, Wish, environment, texts};

pub(super) fn install(node: &Path, npm: &Path, wish: &Wish<'_>) -> Command {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let mut arguments = vec![npm.display().to_string(), "install".to_owned()];
    arguments.extend(texts(["--json", "--no-audit", "--no-fund", "--no-update-notifier"]));
    arguments.extend(texts(["--omit=dev", "--loglevel=http", "--no-color", "--no-progress"]));
    // One retry for a broken connection; an unreachable index should be reported soon.
    arguments.extend(texts(["--fetch-retries=1", "--fetch-timeout=30000"]));
    // No other configuration files are read.
    arguments
        .extend(texts(["--userconfig=/box/home/none", "--globalconfig=/box/home/none-either"]));
    arguments.extend(texts(["--cache=/tmp/npm", &format!("--prefix={WORK}")]));
    arguments.push(format!("--registry={}", wish.source.index.for_installer()));
    arguments.extend([format!("--proxy={proxy}"), format!("--https-proxy={proxy}")]);
    // THREAT[PKG-4]: packages are unpacked, but their scripts do not run.
    if wish.runs_scripts {
        arguments.extend(texts(["--no-ignore-scripts", "--foreground-scripts"]));
    } else {
        arguments.push("--ignore-scripts".to_owned());
    }
    arguments.push("--".to_owned());
    arguments.extend(wish.others.iter().cloned());
    arguments.push(wish.package.as_str().to_owned());
    let environment = environment(node, wish.source, Language::Node);
    Command { program: node.to_owned(), arguments, environment }
}

#[derive(Deserialize)]
struct Said {
    error: Complaint,
}

#[derive(Deserialize)]
struct Complaint {
    code: String,
    #[serde(default)]
    summary: String,
}

pub(super) fn failure(out: &str, package: &PackageName) -> Failure {
    let json = out.find('{').and_then(|at| out.get(at..)).unwrap_or_default();
    let Ok(Said { error }) = serde_json::from_str::<Said>(json) else { return Failure::Other };
    let escaped = package.name().replace('/', "%2f");
    let is_own = error.summary.contains(package.name()) || error.summary.contains(&escaped);
    match error.code.as_str() {
        "E404" if is_own => Failure::NotFound,
        "ETARGET" if is_own => Failure::NoVersion,
        "ERESOLVE" => Failure::Conflict,
        _ => Failure::Other,
    }
}
