//! Which words of a command line decide what runs, and which are data.
//!
//! Unknown options count as options with a value: this reads too many words as code rather than
//! too few.

use codexec_mcp_config::{is_interpreter, program_name};

/// Wrappers and build tools: any argument may be a program, or a folder with one.
const LAUNCHERS: &str = "\
    ant bazel bundle busybox bwrap cabal cargo chpst chronic chroot chrt composer concurrently \
    conda corepack cross-env dbus-run-session devbox direnv doas docker-compose dotenv dotenvx \
    dumb-init entr env exec expect fakeroot faketime find firejail flock gdb gosu gradle gradlew \
    hatch infisical ionice just lein ltrace make mamba micromamba mise mix mvn mvnw nice nix \
    nix-shell nohup nox numactl op parallel pdm perf pipenv pixi pkexec poetry prlimit proot \
    proxychains rake rlwrap runuser rye sbt screen script setpriv setsid sg stdbuf strace su \
    sudo swift systemd-run task taskset time timeout tini tmux tox toybox unbuffer unshare \
    valgrind watch watchexec xargs xvfb-run";
/// Programs that run a package, with the arguments that follow its name.
const PACKAGE_RUNNERS: &str = "bunx go npx pipx pnpx uv uvx";
/// Commands of Docker and the like that read a file of the project.
const CONTAINER_FILES: &str = "bake build buildx compose kube stack";
/// Options of any other program whose value is code, or a folder with code.
const CODE_OPTIONS: &str = "\
    --cwd --dir --directory --experimental-loader --from --import --loader --prefix --project \
    --require --script --with --with-editable --with-requirements -C -jar -r";
const SHELLS: &str = "bash dash fish ksh sh zsh";
/// Programs with commands in front of the script or the package, and these commands.
const COMMANDERS: &str =
    "bun deno dotnet fastmcp go mcp npm pipx pnpm tsx uv wasmer wasmtime yarn yarnpkg";
const COMMANDS: &str = "dev dlx eval exec run serve task tool watch x";
/// Options without a value, whichever program has them.
const FLAGS: &str = "\
    -- --bun --isolated --native-tls --offline --prefer-offline --prefer-online \
    --preserve-symlinks --quiet --refresh --silent --smol --trace-deprecation --trace-uncaught \
    --trace-warnings --vanilla --yes";
const FLAG_PREFIXES: &str =
    "--allow- --deny- --enable- --experimental- --expose --inspect --no- --unstable --use-";
/// Options with a value that start like those.
const VALUE_PREFIXES: &str = "\
    --allow-fs --experimental-config --experimental-default --experimental-loader \
    --experimental-sea --no-binary-package --no-build-isolation-package --no-build-package \
    --no-extra --no-group --no-sources-package";
/// Short options whose value may be joined to them: `-I/opt/lib`, `-Xmx1g`, `-Wignore`.
const JOINED: &str = "-D -I -M -W -X -d";
/// The word behind these is the script or the module.
const SCRIPT_OPTIONS: &str = "--module --script -jar -m";
/// The word behind these is the name of a package, unless it looks like a path.
const NAME_OPTIONS: &str = "--from --package --python --spec --with -p -w";

/// How to search an argument for paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading {
    /// Data that the server works on.
    Data,
    /// A name, unless it looks like a path: `pkg`, `./pkg`, `pkg@file:/srv/pkg`.
    Name,
    /// An option, or its value. A bare word may be a file of the working directory.
    Text,
    /// A shell line, or code: any word in it may be a path.
    Line,
    /// A path.
    Path,
}

#[derive(Debug, PartialEq)]
pub(super) struct CommandLine {
    /// How to read each argument.
    pub(super) readings: Vec<Reading>,
    /// True for shell lines, inline code, wrappers and build tools: nothing tells code from data.
    pub(super) is_opaque: bool,
}

/// How a program treats its arguments.
#[derive(Clone, Copy, PartialEq)]
enum ProgramKind {
    Container,
    Interpreter,
    Launcher,
    PackageRunner,
    Other,
}

impl CommandLine {
    pub(super) fn read(name: &str, args: &[String]) -> CommandLine {
        match ProgramKind::of(name, args) {
            ProgramKind::Launcher => CommandLine::opaque(args),
            ProgramKind::Other => CommandLine::other(args),
            kind => CommandLine::of_subject(name, kind, args),
        }
    }

    pub(super) fn knows(name: &str) -> bool {
        ProgramKind::of(name, &[]) != ProgramKind::Other
    }

    pub(super) fn is_shell(name: &str) -> bool {
        has(SHELLS, name)
    }

    fn opaque(args: &[String]) -> CommandLine {
        CommandLine { readings: vec![Reading::Line; args.len()], is_opaque: true }
    }

    /// Interpreters, package runners and containers: everything up to the script, the package or
    /// the command is code.
    fn of_subject(name: &str, kind: ProgramKind, args: &[String]) -> CommandLine {
        let subject = subject(name, args);
        let (code, data) = args.split_at(subject.map_or(args.len(), |at| at + 1));
        if code.iter().any(|arg| is_inline(name, kind, arg)) {
            return CommandLine::opaque(args);
        }
        let is_runner = kind == ProgramKind::PackageRunner;
        let is_interpreter = kind == ProgramKind::Interpreter;
        let mut before = "";
        let mut readings = Vec::new();
        for (at, arg) in code.iter().enumerate() {
            let is_subject = subject == Some(at);
            let is_module = is_option(before) && before.ends_with('m');
            let option = if is_option(arg) { option_name(arg) } else { before };
            let names_package = is_runner && has(NAME_OPTIONS, option);
            readings.push(match is_subject {
                true if is_interpreter && !is_module => Reading::Path,
                true if is_interpreter => Reading::Text,
                true => Reading::Name,
                false if names_package || is_command(name, arg) => Reading::Name,
                false => Reading::Text,
            });
            before = arg;
        }
        // The package may be an interpreter: `npx tsx server.ts`, `uv run python server.py`.
        let package = code.last().filter(|_| is_runner).map_or("", |spec| package_name(spec));
        let rest = match ProgramKind::of(package, data) {
            _ if kind == ProgramKind::Container => CommandLine::data(data),
            ProgramKind::Other => CommandLine::wrapper(data),
            _ => CommandLine::read(package, data),
        };
        readings.extend(rest.readings);
        CommandLine { readings, is_opaque: rest.is_opaque }
    }

    /// A program that is not known.
    fn other(args: &[String]) -> CommandLine {
        let mut line = CommandLine::wrapper(args);
        let mut before = "";
        for (arg, reading) in args.iter().zip(&mut line.readings) {
            let option = if is_option(arg) { option_name(arg) } else { before };
            if *reading == Reading::Data && has(CODE_OPTIONS, option) {
                *reading = Reading::Name;
            }
            before = arg;
        }
        line
    }

    /// Data, up to a command line of a program that is known: `mcp-proxy -- node server`.
    fn wrapper(args: &[String]) -> CommandLine {
        let mut line = CommandLine::data(args);
        let mut before = "";
        for (at, arg) in args.iter().enumerate() {
            let value = if is_option(arg) { option_value(arg) } else { arg };
            let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
            let (_, rest) = args.split_at(at + 1);
            match words.split_first() {
                Some((first, [])) if is_starter(first) && !may_have_value("", before) => {
                    let inner = CommandLine::read(program_name(first), rest);
                    line.readings.truncate(at + 1);
                    line.readings.extend(inner.readings);
                    line.is_opaque |= inner.is_opaque;
                    return line;
                }
                Some((first, [_, ..])) if is_starter(first) => {
                    line.readings.splice(at..=at, [Reading::Line]);
                    line.is_opaque = true;
                }
                _ => {}
            }
            before = arg;
        }
        line
    }

    fn data(args: &[String]) -> CommandLine {
        CommandLine { readings: vec![Reading::Data; args.len()], is_opaque: false }
    }
}

impl ProgramKind {
    fn of(name: &str, args: &[String]) -> ProgramKind {
        let command = args.iter().find(|arg| !is_option(arg)).map_or("", String::as_str);
        let runs_package = matches!(command, "dlx" | "exec" | "x");
        match name {
            "bun" | "npm" | "pnpm" | "yarn" | "yarnpkg" if runs_package => {
                ProgramKind::PackageRunner
            }
            "npm" | "pnpm" | "yarn" | "yarnpkg" => ProgramKind::Launcher,
            _ if has(LAUNCHERS, name) => ProgramKind::Launcher,
            _ if has(PACKAGE_RUNNERS, name) => ProgramKind::PackageRunner,
            _ if is_interpreter(name) => ProgramKind::Interpreter,
            // These read files that can start anything on the host.
            "docker" | "nerdctl" | "podman" if has(CONTAINER_FILES, command) => {
                ProgramKind::Launcher
            }
            "docker" | "nerdctl" | "podman" => ProgramKind::Container,
            _ => ProgramKind::Other,
        }
    }
}

/// True for programs that other programs are told to start.
fn is_starter(word: &str) -> bool {
    let name = program_name(word);
    let is_word = matches!(name, "R" | "go" | "mcp" | "uv");
    let is_wrapper = matches!(name, "env" | "nohup" | "sudo" | "timeout");
    is_wrapper || (!is_word && (is_interpreter(name) || has(PACKAGE_RUNNERS, name)))
}

/// Finds the script or the package: the first word that is no option, and no option's value.
fn subject(name: &str, args: &[String]) -> Option<usize> {
    let mut before = "";
    args.iter().position(|arg| {
        let before = std::mem::replace(&mut before, arg);
        !is_option(arg) && !is_command(name, arg) && !may_have_value(name, before)
    })
}

fn is_command(name: &str, arg: &str) -> bool {
    has(COMMANDERS, name) && has(COMMANDS, arg)
}

/// True if the word behind an option may be the option's value, and not the script.
fn may_have_value(name: &str, option: &str) -> bool {
    let starts = |list| has_prefix(list, option);
    let is_flag = has(FLAGS, option) || (starts(FLAG_PREFIXES) && !starts(VALUE_PREFIXES));
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let is_short = |is_such: &dyn Fn(&str) -> bool| letters.is_some_and(is_such);
    is_option(option)
        && !is_flag
        && !option.contains('=')
        && !has(SCRIPT_OPTIONS, option)
        && !has_joined_value(option)
        // Short options may be joined: `-um pkg`.
        && !is_short(&|letters| letters.ends_with('m'))
        && !is_short(&|letters| letters.chars().all(|letter| flags_of(name).contains(letter)))
}

/// Short options without a value.
fn flags_of(name: &str) -> &'static str {
    match name {
        "pypy" | "python" => "BEIOPRSbdiqsuvx",
        "perl" | "ruby" => "STUWnsw",
        _ if has(SHELLS, name) => "aefhiklnprtuvx",
        _ => "ABUqsuvy",
    }
}

/// True if the program runs code, or a shell's line, from its command line.
fn is_inline(name: &str, kind: ProgramKind, arg: &str) -> bool {
    let letters: &[char] = match name {
        _ if kind == ProgramKind::Container => return false,
        _ if kind == ProgramKind::PackageRunner => &['c'],
        "python" | "pypy" => &['c'],
        "php" => &['r', 'R', 'B', 'E'],
        "deno" => return arg == "eval",
        "dotnet" | "fastmcp" | "java" | "mcp" | "wasmtime" => return false,
        _ if has(SHELLS, name) => &['c', 'C'],
        _ => &['e', 'E', 'p'],
    };
    let is_long = matches!(option_name(arg), "--call" | "--command" | "--eval" | "--print");
    let is_short = is_option(arg) && !arg.starts_with("--") && !has_joined_value(arg);
    is_long || (is_short && arg.contains(letters))
}

fn is_option(arg: &str) -> bool {
    arg.starts_with('-') && arg.len() > 1
}

fn option_name(arg: &str) -> &str {
    arg.split('=').next().unwrap_or_default()
}

fn option_value(arg: &str) -> &str {
    arg.split_once('=').map_or("", |(_, value)| value)
}

fn has_joined_value(option: &str) -> bool {
    option.len() > 2 && has_prefix(JOINED, option)
}

pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|other| other == word)
}

pub(super) fn has_prefix(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|prefix| word.starts_with(prefix))
}

/// The program of a package: `tsx` of `tsx@4`, `pkg` of `@scope/pkg@latest`, `mcp` of `mcp[cli]`.
fn package_name(spec: &str) -> &str {
    let last = spec.rsplit('/').next().unwrap_or_default();
    program_name(last.split(['@', '[', '=']).next().unwrap_or_default())
}
