use std::fs::File;

use super::*;

/// THREAT[CFG-2]
#[test]
fn cfg_2_special_and_oversized_files_are_rejected_at_once() {
    let folder = tempfile::tempdir().expect("a directory");
    let at = |name: &str| folder.path().join(name);
    let read = |path: &Path| read_text(path, 10).map_err(|error| error.to_string());
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    assert_eq!(read(&at("pipe")), Err("it is not a file".to_owned()));
    assert_eq!(read(Path::new("/dev/zero")), Err("it is not a file".to_owned()));
    assert_eq!(read(folder.path()), Err("it is not a file".to_owned()));
    std::os::unix::fs::symlink("loop", at("loop")).expect("a link");
    assert!(read(&at("loop")).is_err());
    File::create(at("huge")).and_then(|file| file.set_len(2 << 30)).expect("a file");
    assert_eq!(read(&at("huge")), Err("it has 2147483648 bytes; at most 10 are read".to_owned()));
    assert_eq!(read(Path::new("/proc/self/maps")), Err("it is longer than 10 bytes".to_owned()));
    std::fs::write(at("binary"), [0xff]).expect("written");
    assert_eq!(read(&at("binary")), Err("it is not UTF-8".to_owned()));
    std::fs::write(at("text"), "0123456789").expect("written");
    assert_eq!(read(&at("text")), Ok("0123456789".to_owned()));
}
