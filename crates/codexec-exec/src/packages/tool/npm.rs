use std::path::Path;

use codexec_sandbox::{PROXY_PORT, ProgramCommand};
use codexec_types::{Language, PackageName};
use serde::Deserialize;

use super::{InstallFailure, InstallRequest, WORK, installer_environment, to_strings};

pub(super) fn install_command(
    node: &Path,
    npm: &Path,
    request: &InstallRequest<'_>,
) -> ProgramCommand {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let mut arguments = vec![npm.display().to_string(), "install".to_owned()];
    arguments.extend(to_strings(["--json", "--no-audit", "--no-fund", "--no-update-notifier"]));
    arguments.extend(to_strings(["--omit=dev", "--loglevel=http", "--no-color", "--no-progress"]));
    // One retry for a broken connection; an unreachable index should be reported soon.
    arguments.extend(to_strings(["--fetch-retries=1", "--fetch-timeout=30000"]));
    // No other configuration files are read.
    arguments.extend(to_strings([
        "--userconfig=/box/home/none",
        "--globalconfig=/box/home/none-either",
    ]));
    arguments.extend(to_strings(["--cache=/tmp/npm", &format!("--prefix={WORK}")]));
    arguments.push(format!("--registry={}", request.source.index.for_installer()));
    arguments.extend([format!("--proxy={proxy}"), format!("--https-proxy={proxy}")]);
    // THREAT[PKG-4]: packages are unpacked, but their scripts do not run.
    if request.runs_scripts {
        arguments.extend(to_strings(["--no-ignore-scripts", "--foreground-scripts"]));
    } else {
        arguments.push("--ignore-scripts".to_owned());
    }
    arguments.push("--".to_owned());
    arguments.extend(request.others.iter().cloned());
    arguments.push(request.package.as_str().to_owned());
    let environment = installer_environment(node, request.source, Language::Node);
    ProgramCommand { program: node.to_owned(), arguments, environment }
}

#[derive(Deserialize)]
struct NpmOutput {
    error: NpmError,
}

#[derive(Deserialize)]
struct NpmError {
    code: String,
    #[serde(default)]
    summary: String,
}

pub(super) fn classify_failure(out: &str, package: &PackageName) -> InstallFailure {
    let json = out.find('{').and_then(|at| out.get(at..)).unwrap_or_default();
    let Ok(NpmOutput { error }) = serde_json::from_str::<NpmOutput>(json) else {
        return InstallFailure::Other;
    };
    let escaped = package.name().replace('/', "%2f");
    let is_own = error.summary.contains(package.name()) || error.summary.contains(&escaped);
    match error.code.as_str() {
        "E404" if is_own => InstallFailure::NotFound,
        "ETARGET" if is_own => InstallFailure::NoVersion,
        "ERESOLVE" => InstallFailure::Conflict,
        _ => InstallFailure::Other,
    }
}
