//! The project's own commands: `cargo xtask check`, `cargo xtask test [filter]`,
//! `cargo xtask tidy`, `cargo xtask suite`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

mod report;
mod step;
mod suite;
mod test;
mod tidy;
mod workspace;
mod world;

const USAGE: &str = "\
usage: cargo xtask <command>
  check          format, lints and tidy, without tests
  test [filter]  what CI runs; with a filter, only the tests whose names contain it
  tidy           the project's own rules, which no compiler checks
  suite [--jobs N] [--interpreter P] [test_name]..
                 run CPython's own tests in a guest and outside, and compare
  world          install the programs that the tests need, and print the folder";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            step::say(&format!("error: {err:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<()> {
    let workspace = Workspace::read()?;
    match args {
        ["check"] => test::check(&workspace),
        ["test"] => test::run_all(&workspace),
        ["test", filter] => test::run_filtered(&workspace, filter),
        ["tidy"] => tidy::run(&workspace),
        ["suite", options @ ..] => suite::run(&workspace, options),
        ["world"] => {
            let world: PathBuf = world::install(&workspace)?;
            step::say(&world.display().to_string());
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}
