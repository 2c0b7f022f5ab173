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
        let rules = HeldBackRules::new(&tree, &let_through);
        let found = Path::new(path).ancestors().any(|path| {
            tree.find(path)
                .ok()
                .flatten()
                .is_some_and(|node| rules.find_reason(&tree, path, &node).is_some())
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
        "mirror/HEAD",
        ".lefthook.yml",
        ".Rprofile",
        "WARP.md",
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

/// THREAT[FIL-2]: the user's own environments, repositories, links and hooks.
#[test]
fn fil_2_what_the_users_files_make_special_is_held_back() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("env/pyvenv.cfg", "");
    write("conda/conda-meta/history", "");
    write("bare/HEAD", "ref: refs/heads/main");
    write("bare/refs/x", "");
    write(".git/config", "[core]\n\thooksPath = \"tools/hooks\"\n");
    symlink("docs/ai.md", home.path().join("CLAUDE.md")).unwrap();
    symlink("vs", home.path().join(".vscode")).unwrap();
    let target = DirTree::new(OwnedFd::from(fs::File::open(home.path()).unwrap()));
    let upper_home = tempfile::tempdir().unwrap();
    let upper = DirTree::new(OwnedFd::from(fs::File::open(upper_home.path()).unwrap()));
    let rules = HeldBackRules::new(&target, &[]);
    let is_held = |path: &str| {
        let at = upper_home.path().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, "").unwrap();
        Path::new(path).ancestors().any(|path| {
            let node = upper.find(path).ok().flatten();
            node.is_some_and(|node| rules.find_reason(&upper, path, &node).is_some())
        })
    };
    for path in ["env/bin/python3", "conda/lib/x.py", "bare/config", "tools/hooks/pre-commit"] {
        assert!(is_held(path), "{path}");
    }
    assert!(is_held("docs/ai.md") && is_held("vs/tasks.json"));
    assert!(!is_held("docs/other.md") && !is_held("tools/x") && !is_held("src/main.py"));
}

/// THREAT[FIL-11]
#[test]
fn fil_11_no_directory_is_below_what_is_held_back() {
    let home = tempfile::tempdir().unwrap();
    for folder in [".git/hooks", "src/deep", "env/bin", "bare/refs"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    for file in ["env/pyvenv.cfg", "bare/HEAD"] {
        fs::write(home.path().join(file), "").unwrap();
    }
    let tree = DirTree::new(OwnedFd::from(fs::File::open(home.path()).unwrap()));
    let is_held = |path: &str, words: &[String]| {
        find_location_reason(&tree, Path::new(path), words).is_some()
    };
    for path in [".git/hooks", ".git", "env/bin", "env", "bare/refs", "a/node_modules/x"] {
        assert!(is_held(path, &[]), "{path}");
    }
    assert!(!is_held("src/deep", &[]) && !is_held("", &[]));
    assert!(!is_held("env/bin", &["env".to_owned()]));
}
