use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn log(home: &Path) -> (ServerLog, ServerName) {
    let name = ServerName::new("a").expect("a name");
    (ServerLog { path: log_path(home, &name), file: None }, name)
}

#[tokio::test]
async fn the_last_lines_are_kept_clean_and_private() {
    let home = tempfile::tempdir().expect("a directory");
    let (written, name) = log(home.path());
    assert_eq!(read_server_log(home.path(), &name, 9).expect("no log"), "");
    let written = append(Some(written), b"one\n\x1b[31mtwo\xff\n").await;
    append(written, b"three").await.expect("kept");
    assert_eq!(read_server_log(home.path(), &name, 2).expect("a log"), "[31mtwo\u{fffd}\nthree\n");
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&log_path(home.path(), &name)), 0o600);
    assert_eq!(mode(&home.path().join("logs/servers")), 0o700);
}

#[tokio::test]
async fn the_log_size_is_bounded() {
    let home = tempfile::tempdir().expect("a directory");
    let (written, name) = log(home.path());
    let mut written = Some(written);
    for index in 0..3_000 {
        let line = format!("{index:>1023}\n");
        written = append(written, line.as_bytes()).await;
    }
    let kept: u64 = std::fs::read_dir(home.path().join("logs/servers"))
        .expect("there")
        .map(|entry| entry.and_then(|entry| entry.metadata()).expect("there").len())
        .sum();
    assert!(kept <= 2 * LOG_BYTES + 1024, "{kept}");
    assert_eq!(read_server_log(home.path(), &name, 1).expect("a log").trim(), "2999");
}
