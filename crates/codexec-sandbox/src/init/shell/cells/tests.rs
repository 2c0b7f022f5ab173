use codexec_types::Json;

use super::*;

struct Place {
    _home: tempfile::TempDir,
    folder: PathBuf,
    cells: Cells,
}

fn place() -> Place {
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("cells");
    let cells = Cells::new(folder.clone()).expect("a folder");
    Place { _home: home, folder, cells }
}

fn cell(code: &str, args: &[&str]) -> Cell {
    Cell {
        number: 3,
        code: code.to_owned(),
        input: Json::parse("[1]".to_owned()).expect("json"),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
    }
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).expect("a file")
}

#[test]
fn a_cell_is_three_files_until_it_is_cleared() {
    let Place { _home, folder, cells } = place();
    cells.lay_out(&cell("echo 1\n", &["a b", "it's", "$(x)"])).expect("laid out");
    assert_eq!(text(folder.join("3")), "echo 1\n");
    assert_eq!(text(folder.join("3.args")), "set -- 'a b' 'it'\\''s' '$(x)'\n");
    assert_eq!(text(folder.join("3.input")), "[1]");
    cells.clear(3);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
}

/// THREAT[SES-6]: a planted link or pipe is replaced, and neither followed nor waited for.
#[test]
fn ses_6_links_and_pipes_in_the_way_are_replaced() {
    let Place { _home, folder, cells } = place();
    let other = folder.join("other");
    fs::write(&other, "as it was").expect("a file");
    std::os::unix::fs::symlink(&other, folder.join("3")).expect("a link");
    nix::unistd::mkfifo(&folder.join("3.input"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    cells.lay_out(&cell("echo 2", &[])).expect("laid out");
    assert_eq!(text(other), "as it was");
    assert_eq!(text(folder.join("3")), "echo 2");
    assert_eq!(text(folder.join("3.input")), "[1]");
    fs::remove_file(folder.join("3")).expect("removed");
    fs::create_dir(folder.join("3")).expect("a directory");
    assert!(cells.lay_out(&cell("echo 3", &[])).is_err());
}

#[test]
fn only_a_state_that_is_whole_is_one() {
    let Place { _home, folder, cells } = place();
    let state = folder.join("state");
    assert!(!cells.has_state());
    fs::write(&state, "x=1\n# who").expect("a file");
    assert!(!cells.has_state());
    fs::write(&state, "x=1\n# whole\n").expect("a file");
    assert!(cells.has_state());
    assert!(cells.opening().expect("lines").ends_with("cells/taken\n"));
    assert!(!cells.has_state());
    assert_eq!(text(folder.join("taken")), "x=1\n# whole\n");
    fs::write(&state, "x=1\n# whole\n").expect("a file");
    cells.lay_out(&cell("x", &[])).expect("laid out");
    assert!(!cells.has_state());
    nix::unistd::mkfifo(&state, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    assert!(!cells.has_state());
}
