//! Explains a failed install: first by what the host observed, then by the installer's output.

use super::installer::{self, InstallCaller, InstallerResult};
use super::tool::{self, InstallFailure, InstallRequest};
use super::tool_lookup::Installer;
use super::{PackageError, last_output};
use crate::pool::HostResources;

pub(super) async fn explain(
    resources: &HostResources,
    installer: &Installer,
    request: &InstallRequest<'_>,
    result: &InstallerResult,
    caller: InstallCaller<'_>,
) -> PackageError {
    let (source, package) = (&installer.source, request.package);
    let said = result.output.text();
    let is_out_of_room = said.contains("No space left on device") || said.contains("ENOSPC");
    if result.ran_out_of_memory {
        return PackageError::Memory;
    }
    if result.is_full || result.seen.is_too_much || is_out_of_room {
        return PackageError::TooBig { max_mib: resources.settings.packages.max_bytes >> 20 };
    }
    if let Some(host) = result.seen.refused.first() {
        return PackageError::OtherHost { host: host.clone(), setting: source.hosts_setting };
    }
    let unreachable = result
        .seen
        .unreachable
        .clone()
        .map(|(host, why)| PackageError::Unreachable { host, why, setting: source.index_setting });
    if let (Some(unreachable), false) = (unreachable, result.seen.has_reached) {
        return unreachable;
    }
    let name = package.name().to_owned();
    let index = source.index.to_string();
    let failure = installer.tool.classify_failure(&result.output, package);
    match failure {
        InstallFailure::Certificate => PackageError::Settings(format!(
            "the certificate of {index} is not trusted here; name a file with the certificate of \
             its authority with `packages.ca-file` in config.toml"
        )),
        InstallFailure::NotFound | InstallFailure::NoVersion => {
            let offered = match (request.runs_scripts, installer.tool.versions_command(request)) {
                (false, Some(command)) => {
                    let plan = installer.plan(installer.launch(), command);
                    installer::run(resources, plan, caller).await.ok()
                }
                _ => None,
            };
            let offered = offered.filter(|result| result.is_success);
            let wanted = package.version().map(str::to_owned);
            let exact = package.version().and_then(|version| version.strip_prefix("=="));
            let has_exact = |result: &InstallerResult| {
                exact.is_none_or(|version| tool::is_offered(&result.output.text(), version))
            };
            match (offered, wanted) {
                (Some(result), None)
                    if failure == InstallFailure::NotFound && has_exact(&result) =>
                {
                    PackageError::NeedsBuild { package: name }
                }
                (Some(result), Some(_)) if exact.is_some() && has_exact(&result) => {
                    PackageError::NeedsBuild { package: package.as_str().to_owned() }
                }
                (Some(_), Some(version)) => {
                    PackageError::NoVersion { package: name, version, index }
                }
                (_, Some(version)) if failure == InstallFailure::NoVersion => {
                    PackageError::NoVersion { package: name, version, index }
                }
                _ => PackageError::Unknown { package: name, index },
            }
        }
        InstallFailure::Conflict | InstallFailure::Other => {
            let said = result.output.error_lines().replace(source.index.for_installer(), &index);
            tracing::debug!(output = %last_output(&result.output.text()), "an install failed");
            PackageError::Failed { package: name, said }
        }
    }
}
