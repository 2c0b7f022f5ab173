use std::path::Path;

use codexec_sandbox::Command;
use codexec_types::{Language, PackageName};

use super::{CONSTRAINTS, Failure, WORK, Wish, environment, texts};

pub(super) fn install(python: &Path, uv: &Path, wish: &Wish<'_>) -> Command {
    let mut arguments = texts(["pip", "install", "--no-config", "--no-cache", "--no-progress"]);
    arguments.extend(texts(["--color", "never", "--no-python-downloads", "--compile-bytecode"]));
    arguments.extend(texts(["--python", &python.display().to_string()]));
    arguments.extend(texts(["--target", &format!("{WORK}/python")]));
    arguments.extend(texts(["--default-index", wish.source.index.for_installer()]));
    if !wish.runs_scripts {
        arguments.extend(texts(["--only-binary", ":all:"]));
    }
    if wish.is_constrained {
        arguments.extend(texts(["--constraint", CONSTRAINTS]));
    }
    if wish.source.index.is_plain_http() {
        let host = wish.source.index.host().to_string();
        arguments.extend(texts(["--allow-insecure-host", &host]));
    }
    arguments.extend(texts(["--", wish.package.as_str()]));
    let environment = environment(python, wish.source, Language::Python);
    Command { program: uv.to_owned(), arguments, environment }
}

pub(super) fn failure(said: &str, package: &PackageName) -> Failure {
    // uv wraps its lines.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = package.key();
    if said.contains(&format!("Because {name} was not found in the package registry")) {
        Failure::NotFound
    } else if said.contains(&format!("there is no version of {name}"))
        || said.contains(&format!("only {name}"))
        || said.contains(&format!("all versions of {name} have no usable wheels"))
        || said.contains(&format!("{name} has no usable wheels"))
    {
        if said.contains("no usable wheels") { Failure::NotFound } else { Failure::NoVersion }
    } else if said.contains("No solution found") {
        Failure::Conflict
    } else {
        Failure::Other
    }
}
