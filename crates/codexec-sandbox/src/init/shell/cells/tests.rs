use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use codexec_types::Json;

use super::*;

struct TestFolder {
    _home: tempfile::TempDir,
    folder: PathBuf,
    cells: CellFiles,
}

fn test_folder() -> TestFolder {
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().to_owned();
    let cells = CellFiles::new(File::open(&folder).expect("a folder").into());
    TestFolder { _home: home, folder, cells }
}

fn cell(code: &str, args: &[&str]) -> Cell {
    Cell {
        number: 3,
        key: "0123456789abcdef".to_owned(),
        code: code.to_owned(),
        input: Json::parse("[1]".to_owned()).expect("json"),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
    }
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).expect("a file")
}

#[test]
fn a_cell_has_files_until_it_is_cleared() {
    let TestFolder { _home, folder, cells } = test_folder();
    let cell = cell("echo 1\n", &["a b", "it's", "$(x)"]);
    let (line, streams) = cells.write_cell(&cell).expect("files");
    // A shell reads no more at once.
    assert!(line.len() < 1_000, "{line}");
    assert_eq!(text(folder.join("3")), "echo 1\n");
    assert_eq!(text(folder.join("3.args")), "set -- 'a b' 'it'\\''s' '$(x)'\n");
    assert_eq!(text(folder.join("3.input")), "[1]");
    let [out, _] = streams.read_ends();
    let mut out = File::from(out.try_clone_to_owned().expect("a copy"));
    fs::write(folder.join("0123456789abcdef.out"), "written").expect("written");
    let mut buffer = [0; 7];
    out.read_exact(&mut buffer).expect("read");
    assert_eq!(&buffer, b"written");
    // The reader sees no end of file before the cell has ended.
    let error = out.read(&mut buffer).expect_err("no data");
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    cells.clear(&cell);
    drop(streams);
    assert_eq!(out.read(&mut buffer).expect("an end"), 0);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
}

#[test]
fn a_shell_starts_with_the_state_of_its_predecessor() {
    let TestFolder { _home, folder, cells } = test_folder();
    assert_eq!(cells.write_startup(None).expect("lines").len(), 1);
    let lines = cells.write_startup(Some(b"x=1\n# whole\n")).expect("lines");
    assert_eq!(lines.last().map(String::as_str), Some(". /box/cells/state\n"));
    assert_eq!(text(folder.join("state")), "x=1\n# whole\n");
}
