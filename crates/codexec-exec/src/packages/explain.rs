//! Explains a failed install: first by what the host observed, then by the installer's output.

use super::installer::{self, Caller, Ran};
use super::ready::Ready;
use super::tool::{self, Failure, Wish};
use super::{PackageError, tail};
use crate::pool::Machine;

pub(super) async fn explain(
    machine: &Machine,
    ready: &Ready,
    wish: &Wish<'_>,
    ran: &Ran,
    caller: Caller<'_>,
) -> PackageError {
    let (source, package) = (&ready.source, wish.package);
    let said = ran.said.text();
    let is_out_of_room = said.contains("No space left on device") || said.contains("ENOSPC");
    if ran.ran_out_of_memory {
        return PackageError::Memory;
    }
    if ran.is_full || ran.seen.is_too_much || is_out_of_room {
        return PackageError::TooBig { max_mib: machine.settings.packages.max_bytes >> 20 };
    }
    if let Some(host) = ran.seen.refused.first() {
        return PackageError::OtherHost { host: host.clone(), setting: source.hosts_setting };
    }
    let unreachable = ran.seen.unreachable.clone().map(|(host, why)| PackageError::Unreachable {
        host,
        why,
        setting: source.index_setting,
    });
    if let (Some(unreachable), false) = (unreachable, ran.seen.has_reached) {
        return unreachable;
    }
    let name = package.name().to_owned();
    let index = source.index.to_string();
    let failure = ready.tool.failure(&ran.said, package);
    match failure {
        Failure::Certificate => PackageError::Settings(format!(
            "the certificate of {index} is not trusted here; name a file with the certificate of \
             its authority with `packages.ca-file` in config.toml"
        )),
        Failure::NotFound | Failure::NoVersion => {
            let offered = match (wish.runs_scripts, ready.tool.versions(wish)) {
                (false, Some(command)) => {
                    let plan = ready.plan(ready.launch(), command);
                    installer::run(machine, plan, caller).await.ok()
                }
                _ => None,
            };
            let offered = offered.filter(|ran| ran.is_success);
            let wanted = package.version().map(str::to_owned);
            let exact = package.version().and_then(|version| version.strip_prefix("=="));
            let has_exact =
                |ran: &Ran| exact.is_none_or(|version| tool::is_offered(&ran.said.text(), version));
            match (offered, wanted) {
                (Some(ran), None) if failure == Failure::NotFound && has_exact(&ran) => {
                    PackageError::NeedsBuild { package: name }
                }
                (Some(ran), Some(_)) if exact.is_some() && has_exact(&ran) => {
                    PackageError::NeedsBuild { package: package.as_str().to_owned() }
                }
                (Some(_), Some(version)) => {
                    PackageError::NoVersion { package: name, version, index }
                }
                (_, Some(version)) if failure == Failure::NoVersion => {
                    PackageError::NoVersion { package: name, version, index }
                }
                _ => PackageError::Unknown { package: name, index },
            }
        }
        Failure::Conflict | Failure::Other => {
            let said = ran.said.complaint().replace(source.index.for_installer(), &index);
            tracing::debug!(output = %tail(&ran.said.text()), "an install failed");
            PackageError::Failed { package: name, said }
        }
    }
}
