use std::path::Path;

use codexec_sandbox::ProgramCommand;
use codexec_types::{Language, PackageName};

use super::{CONSTRAINTS, InstallFailure, InstallRequest, WORK, installer_environment, to_strings};

pub(super) fn install_command(
    python: &Path,
    uv: &Path,
    request: &InstallRequest<'_>,
) -> ProgramCommand {
    let mut arguments =
        to_strings(["pip", "install", "--no-config", "--no-cache", "--no-progress"]);
    arguments.extend(to_strings([
        "--color",
        "never",
        "--no-python-downloads",
        "--compile-bytecode",
    ]));
    arguments.extend(to_strings(["--python", &python.display().to_string()]));
    arguments.extend(to_strings(["--target", &format!("{WORK}/python")]));
    arguments.extend(to_strings(["--default-index", request.source.index.for_installer()]));
    if !request.runs_scripts {
        arguments.extend(to_strings(["--only-binary", ":all:"]));
    }
    if request.is_constrained {
        arguments.extend(to_strings(["--constraint", CONSTRAINTS]));
    }
    if request.source.index.is_plain_http() {
        let host = request.source.index.host().to_string();
        arguments.extend(to_strings(["--allow-insecure-host", &host]));
    }
    arguments.extend(to_strings(["--", request.package.as_str()]));
    let environment = installer_environment(python, request.source, Language::Python);
    ProgramCommand { program: uv.to_owned(), arguments, environment }
}

pub(super) fn classify_failure(said: &str, package: &PackageName) -> InstallFailure {
    // uv wraps its lines.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = package.key();
    if said.contains(&format!("Because {name} was not found in the package registry")) {
        InstallFailure::NotFound
    } else if said.contains(&format!("there is no version of {name}"))
        || said.contains(&format!("only {name}"))
        || said.contains(&format!("all versions of {name} have no usable wheels"))
        || said.contains(&format!("{name} has no usable wheels"))
    {
        if said.contains("no usable wheels") {
            InstallFailure::NotFound
        } else {
            InstallFailure::NoVersion
        }
    } else if said.contains("No solution found") {
        InstallFailure::Conflict
    } else {
        InstallFailure::Other
    }
}
