use super::*;

fn read_link(path: &Path) -> Option<PathBuf> {
    let target = match path.to_str()? {
        "/home/ann/link" => "work/project",
        "/home/ann/work/project/out" => "/opt/tool",
        "/home/ann/work/project/.venv/bin/python" => "/usr/bin/python3",
        "/home/ann/loop" => "loop",
        "/usr/bin/python3" => "python3.11",
        _ => return None,
    };
    Some(target.into())
}

#[track_caller]
fn check(path: &str, expected: Option<&str>) {
    let paths = GuestPaths {
        files: WorkingDirPolicy {
            allowed: vec!["/home/ann/work".into(), "/srv".into()],
            forbidden: vec!["/home/ann/work/.secret".into()],
            is_writable: true,
            home: None,
        },
        run_from: vec!["/home/ann/work/trusted".into()],
    };
    let actual = paths.find_writable_dir(Path::new(path), &read_link);
    assert_eq!(actual, expected.map(Path::new), "{path}");
    let read_only =
        GuestPaths { files: WorkingDirPolicy { is_writable: false, ..paths.files }, ..paths };
    assert_eq!(read_only.find_writable_dir(Path::new(path), &read_link), None, "{path}");
}

/// THREAT[CFG-8]
#[test]
fn cfg_8_every_path_through_a_guest_writable_directory_is_detected() {
    let work = Some("/home/ann/work");
    check("/home/ann/work/project/server.js", work);
    check("/srv/x", Some("/srv"));
    check("/usr/bin/python3", None);
    check("/home/ann/workshop/x", None);
    check("/home/ann/link/server.js", work);
    check("/home/ann/work/project/out", work);
    check("/home/ann/link/out/bin/tool", work);
    check("/home/ann/work/project/.venv/bin/python", work);
    check("/opt/../home/ann/work/project/x", work);
    check("/home/ann/work/project/../../../../opt/x", None);
    check("/home/ann/loop", None);
}

#[test]
fn paths_that_guests_cannot_reach_or_the_user_trusts_may_be_executed() {
    check("/home/ann/work/trusted/bin/server", None);
    check("/home/ann/work/.secret/tool", None);
    check("/home/ann/work/trusted-not/tool", Some("/home/ann/work"));
}
