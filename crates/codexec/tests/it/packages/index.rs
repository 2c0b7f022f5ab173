//! The test's own index, and a listener that nobody may reach.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

pub(crate) struct Served {
    process: Child,
    port: u16,
    /// A folder of the host's, with a secret in it.
    pub(crate) outside: TempDir,
    /// Nobody may connect here.
    other: TcpListener,
}

impl Served {
    pub(crate) fn start() -> Served {
        let outside = TempDir::new().expect("a folder");
        // Anybody on this machine could write there; a guest is not on it.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(outside.path(), mode).expect("opened");
        std::fs::write(outside.path().join("secret"), "the secret").expect("written");
        let other = TcpListener::bind("127.0.0.1:0").expect("bound");
        other.set_nonblocking(true).expect("set");
        let script = outside.path().with_extension("py");
        std::fs::write(&script, include_str!("index.py")).expect("written");
        let mut process = Command::new("python3")
            .arg(&script)
            .arg(outside.path())
            .arg(other.local_addr().expect("bound").port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let said = process.stdout.take().expect("piped");
        BufReader::new(said).read_line(&mut line).expect("a line");
        std::fs::remove_file(script).expect("removed");
        let port = line.trim().parse().expect("a port");
        Served { process, port, outside, other }
    }

    pub(crate) fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// What was planted on the host, and whether anybody came where nobody may.
    #[track_caller]
    pub(crate) fn check_untouched(&self) {
        assert_eq!(files(self.outside.path()), ["secret"]);
        assert!(self.other.accept().is_err(), "somebody has connected");
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("listed");
    entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect()
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
