mod shapes;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use codexec_types::{GuestPaths, WorkingDirPolicy};
use tempfile::TempDir;

use super::*;
use crate::Warden;

const PROGRAMS: &str = "R bash bun bunx cargo deno docker dotnet env fastmcp go java lua make mvn \
    nice node npm npx perl php pipx pnpm podman poetry python3 ruby script server sh sudo timeout \
    tsx uv uvx wrapper xargs yarn";

/// A home directory with a project that guests may write.
struct TestHome {
    folder: TempDir,
    settings: GatewaySettings,
}

impl TestHome {
    fn new() -> TestHome {
        let folder = tempfile::tempdir().expect("a directory");
        let home = folder.path().canonicalize().expect("there");
        for name in ["bin", "project/bin", "project/lib", "trusted"] {
            std::fs::create_dir_all(home.join(name)).expect("made");
        }
        let programs = [
            "project/bin/planted",
            "project/server",
            "project/server.js",
            "trusted/server",
            "home.js",
        ];
        let installed = PROGRAMS.split_whitespace().map(|name| format!("bin/{name}"));
        for name in programs.map(str::to_owned).into_iter().chain(installed) {
            std::fs::write(home.join(&name), "").expect("written");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(home.join(name), mode).expect("runnable");
        }
        std::fs::write(home.join("project/data.txt"), "").expect("written");
        symlink(home.join("project/server.js"), home.join("linked.js")).expect("linked");
        let path = format!(".:{0}/project/bin:{0}/bin", home.display());
        let mut settings = GatewaySettings::new(vec![("PATH".to_owned(), path)], Warden::none());
        let files = WorkingDirPolicy {
            allowed: vec![home.join("project")],
            is_writable: true,
            ..WorkingDirPolicy::default()
        };
        settings.guest_paths = GuestPaths { files, run_from: Vec::new() };
        settings.user_home = Some(home);
        TestHome { folder, settings }
    }

    /// Plans a command line. `HOME` and `PROJECT` stand for the directories; `cwd` and variables
    /// come before the command.
    fn plan(&self, line: &str) -> Result<StartPlan, String> {
        let home = self.folder.path().canonicalize().expect("there").display().to_string();
        let line = fill(line, &home);
        let mut config = StdioConfig::default();
        let mut env = Vec::new();
        for word in line.split(' ') {
            match word.split_once('=') {
                _ if !config.command.is_empty() => config.args.push(word.replace('_', " ")),
                Some(("cwd", cwd)) => config.cwd = Some(cwd.into()),
                Some((name, value)) => env.push((name.to_owned(), value.replace('_', " "))),
                None => config.command = word.to_owned(),
            }
        }
        plan(&config, &env, &self.settings).map_err(|err| err.to_string().replace(&home, "HOME"))
    }

    /// Returns the arguments, and whether PYTHONSAFEPATH is set.
    #[track_caller]
    fn accept(&self, line: &str) -> (String, bool) {
        let plan = self.plan(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        let home = self.folder.path().canonicalize().expect("there").display().to_string();
        let is_safe = plan.env.get("PYTHONSAFEPATH").is_some_and(|value| value == "1");
        (plan.args.join(" ").replace(&home, "HOME"), is_safe)
    }

    #[track_caller]
    fn assert_refused(&self, line: &str, what: &str) {
        let why = self.plan(line).expect_err(line);
        assert!(why.starts_with(&format!("is not started: {what}")), "{line}: {why}");
    }
}

/// Replaces `HOME` where it is not the name of a variable.
fn fill(line: &str, home: &str) -> String {
    let line = line.replace("PROJECT", "HOME/project");
    let mut pieces = line.split("HOME");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_variable = out.ends_with(['$', '{'])
            || out.trim_end_matches('_').ends_with(|c: char| c.is_ascii_uppercase() && c != 'I');
        out.push_str(if is_variable { "HOME" } else { home });
        out.push_str(piece);
    }
    out
}

/// THREAT[CFG-8]: neither the program, nor its script, nor its modules.
#[test]
fn cfg_8_nothing_of_a_server_comes_from_where_guests_write() {
    let home = TestHome::new();
    let in_project = |file: &str| format!("HOME/project/{file} lies in HOME/project,");
    let server_js = in_project("server.js");
    home.assert_refused("PROJECT/server", &in_project("server"));
    home.assert_refused("planted", &in_project("bin/planted"));
    home.assert_refused("cwd=PROJECT ./server", &in_project("./server"));
    home.assert_refused("node PROJECT/server.js", &server_js);
    home.assert_refused("node --no-warnings PROJECT/server.js", &server_js);
    home.assert_refused("node HOME/linked.js", "HOME/linked.js lies in HOME/project,");
    home.assert_refused("node --require=PROJECT/new.js HOME/home.js", &in_project("new.js"));
    home.assert_refused("node --require PROJECT/new.js HOME/home.js", &in_project("new.js"));
    home.assert_refused("cwd=PROJECT node server.js", &server_js);
    home.assert_refused("python3 PROJECT/new.py", &in_project("new.py"));
    home.assert_refused("uv --directory PROJECT run x", "HOME/project lies in");
    home.assert_refused("sh -c exec_node_PROJECT/server.js", &server_js);
    home.assert_refused("sh -c cd_PROJECT;_run", "HOME/project lies in");
    home.assert_refused("sh PROJECT/new.sh", &in_project("new.sh"));
    home.assert_refused("server --plugin PROJECT/server.js", &server_js);
    home.assert_refused("PYTHONPATH=/opt:PROJECT/lib server", &in_project("lib"));
    home.assert_refused("NODE_OPTIONS=--import=PROJECT/x.js server", &in_project("x.js"));
    home.assert_refused("cwd=PROJECT PYTHONPATH=:/opt server", "HOME/project/ lies in");
    // Paths that a server only works on are allowed.
    for line in ["server PROJECT", "server --root PROJECT/data.txt", "npx -y fs PROJECT"] {
        home.accept(line);
    }
}

/// THREAT[CFG-8]: programs that the server itself starts are not found there either.
#[test]
fn cfg_8_the_path_has_no_folder_that_guests_write() {
    let home = TestHome::new();
    let plan = home.plan("server").expect("fine");
    let bin = home.settings.user_home.as_ref().expect("set").join("bin");
    assert_eq!(plan.env.get("PATH"), Some(&bin.display().to_string()));
    assert_eq!(plan.program, bin.join("server"));
}

#[test]
fn run_from_permits_guest_writable_directories() {
    let mut home = TestHome::new();
    let project = home.settings.guest_paths.files.allowed.clone();
    home.settings.guest_paths.run_from = project;
    for line in ["PROJECT/server", "node PROJECT/server.js", "cwd=PROJECT bun x", "planted"] {
        home.accept(line);
    }
    assert_eq!(home.accept("cwd=PROJECT python3 -m pkg"), ("-m pkg".to_owned(), false));
}

/// THREAT[CFG-7]: nothing is imported from a working directory that guests can write.
#[test]
fn cfg_7_nothing_is_imported_from_a_directory_of_guests() {
    let home = TestHome::new();
    let check = |line: &str, args: &str, is_safe: bool| {
        assert_eq!(home.accept(line), (args.to_owned(), is_safe), "{line}");
    };
    check("python3 -m pkg", "-m pkg", true);
    check("cwd=HOME/trusted python3 -m pkg", "-m pkg", false);
    check("python3 HOME/main.py", "HOME/main.py", false);
    check("cwd=PROJECT python3 -m pkg", "-P -m pkg", true);
    check("cwd=PROJECT python3 -um pkg", "-P -um pkg", true);
    check("cwd=PROJECT python3 -W ignore -m pkg", "-P -W ignore -m pkg", true);
    check("cwd=PROJECT python3 -X dev HOME/main.py", "-X dev HOME/main.py", false);
    check("cwd=PROJECT PYTHONSAFEPATH=0 python3 -c x", "-P -c x", false);
    check("cwd=PROJECT npx -y pkg", "--prefix HOME -y pkg", true);
    check("cwd=PROJECT npm exec pkg", "--prefix HOME exec pkg", true);
    check("cwd=PROJECT uv tool run pkg", "tool run pkg", true);
    check("cwd=PROJECT node HOME/home.js -e", "HOME/home.js -e", false);
    check("cwd=PROJECT server x", "x", true);
    check("bun x pkg", "x pkg", false);
    for line in [
        "bun x pkg",
        "uv run pkg",
        "npm start",
        "node -e 1",
        "node -pe 1",
        "node -r dotenv HOME/home.js",
        "NODE_OPTIONS=--import=tsx node HOME/home.js",
        "sh -c npx_-y_pkg",
    ] {
        home.assert_refused(
            &format!("cwd=PROJECT {line}"),
            "it takes what it runs from its working directory HOME/project,",
        );
    }
}

#[test]
fn missing_programs_are_reported() {
    let home = TestHome::new();
    let missing = "was not found; install it, or write its whole path";
    for line in ["nowhere", "HOME/nowhere", "cwd=HOME ./nowhere"] {
        assert_eq!(home.plan(line), Err(missing.to_owned()), "{line}");
    }
    let no_directory = "cannot be started in HOME/nowhere, which is no directory; correct `cwd`";
    assert_eq!(home.plan("cwd=HOME/nowhere server"), Err(no_directory.to_owned()));
}
