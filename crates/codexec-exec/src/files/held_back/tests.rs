use std::fs;
use std::os::fd::OwnedFd;

use super::*;

fn held(paths: &[&str], let_through: &[&str]) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let tree = DirTree::new(OwnedFd::from(fs::File::open(home.path()).unwrap()));
    let let_through: Vec<String> = let_through.iter().map(|name| (*name).to_owned()).collect();
    let mut held = Vec::new();
    for path in paths {
        let at = home.path().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, "").unwrap();
        let found = Path::new(path).ancestors().any(|path| {
            tree.find(path)
                .ok()
                .flatten()
                .is_some_and(|node| find_reason(&tree, path, &node, &let_through).is_some())
        });
        if found {
            held.push((*path).to_owned());
        }
    }
    held
}

#[test]
fn fil_2_files_that_programs_obey_are_held_back_at_any_depth() {
    let planted = [
        ".git/hooks/pre-commit",
        "deep/er/.GIT/config",
        ".mcp.json",
        ".cursor/mcp.json",
        "sub/.vscode/tasks.json",
        "project.code-workspace",
        "CLAUDE.md",
        "docs/agents.md",
        ".github/copilot-instructions.md",
        ".github/instructions/x.md",
        "node_modules/left-pad/index.js",
        "lib/__pycache__/util.cpython-311.pyc",
        "evil.PTH",
        "sitecustomize.py",
        ".envrc",
        ".bashrc",
        ".npmrc",
        ".cargo/config.toml",
        "env/pyvenv.cfg",
        "env/bin/python",
    ];
    assert_eq!(held(&planted, &[]), planted);
}

#[test]
fn files_for_deliberate_commands_are_committed() {
    let plain = [
        "package.json",
        "Makefile",
        "pyproject.toml",
        ".gitignore",
        ".gitattributes",
        ".github/workflows/ci.yml",
        "src/git/mod.rs",
        "notes.pth.txt",
        "README.md",
        ".env",
    ];
    assert_eq!(held(&plain, &[]), Vec::<String>::new());
}

#[test]
fn names_in_the_settings_are_let_through() {
    let paths = [".venv/pyvenv.cfg", "env/pyvenv.cfg", "model.pth", "node_modules/a.js", ".envrc"];
    assert_eq!(held(&paths, &[".venv", "env", "*.pth", "node_modules"]), [".envrc"]);
}
