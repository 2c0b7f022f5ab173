//! Detects programs and arguments that are relative paths, which depend on the working directory.

use std::path::Path;

/// File extensions of code.
const CODE: [&str; 20] = [
    "bash", "cjs", "cts", "jar", "js", "jsx", "lua", "mjs", "mts", "node", "php", "pl", "py",
    "pyz", "rb", "sh", "so", "ts", "tsx", "wasm",
];
/// Programs that run the file they are told first.
const INTERPRETERS: [&str; 32] = [
    "R", "Rscript", "bash", "bun", "dash", "deno", "dotnet", "elixir", "fastmcp", "fish", "java",
    "jruby", "julia", "ksh", "lua", "luajit", "mcp", "node", "nodejs", "nodemon", "perl", "php",
    "pypy", "python", "ruby", "sh", "ts-node", "tsx", "wasmer", "wasmtime", "zsh", "zx",
];

/// Returns true for a command with a relative path, which is neither absolute nor found in PATH.
pub(super) fn is_relative_program(command: &str) -> bool {
    let path = Path::new(command);
    path.is_relative() && path.components().count() > 1 || command.starts_with("./")
}

/// Returns true for `.`, `..`, `./x`, `../x`, and for a file with a code extension: in a directory,
/// or alone if the command is an interpreter. URLs, packages (`@scope/name`), `owner/name` and
/// options are not paths; the value of `--option=value` may be one.
pub(super) fn is_relative_argument(command: &str, argument: &str) -> bool {
    let value = match argument.strip_prefix('-') {
        Some(option) => option.split_once('=').map_or("", |(_, value)| value),
        None => argument,
    };
    if matches!(value, "." | "..") || value.starts_with("./") || value.starts_with("../") {
        return true;
    }
    let is_word = !value.starts_with(['/', '@', '~', '$'])
        && !value.contains("://")
        && !value.contains(char::is_whitespace);
    is_word && is_code(Path::new(value)) && (value.contains('/') || is_interpreter(command))
}

/// Returns true if the file's extension is one of code.
pub fn is_code(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| CODE.iter().any(|code| code.eq_ignore_ascii_case(ending)))
}

/// Returns true if the command runs the file that its first argument names.
pub fn is_interpreter(command: &str) -> bool {
    INTERPRETERS.contains(&program_name(command))
}

/// Returns a program's name without its directory, version and `.exe`: `python` for
/// `/usr/bin/python3.11`.
pub fn program_name(command: &str) -> &str {
    let name = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unversioned.is_empty() { name } else { unversioned }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// THREAT[CFG-7]
    #[test]
    fn cfg_7_paths_are_distinguished_from_other_arguments() {
        let check = |line: &str, expected: bool| {
            let (command, argument) = line.split_once(' ').expect("two words");
            assert_eq!(is_relative_argument(command, argument), expected, "{line}");
        };
        for path in [
            "npx .",
            "npx ..",
            "x ./data",
            "x ../data",
            "x --root=./data",
            "node server.js",
            "/usr/bin/python3.11 main.py",
            "x dist/index.js",
            "uv src/server.py",
            "x --script=dist/index.mjs",
            "sh ./run.sh now",
        ] {
            check(path, true);
        }
        for other in [
            "npx -y",
            "npx @modelcontextprotocol/server-filesystem",
            "npx chart.js",
            "npx owner/repo",
            "docker owner/image:latest",
            "x https://host/x.js",
            "x github:owner/repo",
            "node /opt/server.js",
            "x ~/server.js",
            "node --max-old-space-size=100",
            "python -c",
            "python import x.py",
            "x read-only",
            "x {\"a\":\"b\"}",
            "x .hidden",
            "x ...",
        ] {
            check(other, false);
        }
        assert!(is_relative_program("bin/server"));
        assert!(is_relative_program("./server"));
        assert!(!is_relative_program("server"));
        assert!(!is_relative_program("/bin/server"));
    }
}
