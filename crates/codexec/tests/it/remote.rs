//! Remote servers, through the built binary: what is hostile in them, and a login from end to end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::startup::python;
use crate::support::{Client, command};

const SCRIPTED: &str = include_str!("../../../codexec-gateway/tests/scripted_http.py");

/// A server on this machine that does as it is told; it ends with the test.
struct Scripted {
    child: Child,
    port: u16,
}

impl Scripted {
    fn start(plan: &Value) -> Scripted {
        let mut command = Command::new(python());
        command.args(["-c", SCRIPTED, &plan.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        Scripted { child, port: line.trim().parse().expect("a port") }
    }

    fn entry(&self) -> Value {
        json!({"type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)})
    }

    /// All that it was asked so far.
    fn log(&self) -> String {
        get(&format!("http://127.0.0.1:{}/log", self.port)).1
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The head and the body of what an address of this machine answers.
fn get(address: &str) -> (String, String) {
    let rest = address.strip_prefix("http://").expect("an address of this machine");
    let (authority, target) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(authority).expect("connected");
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")
        .expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

/// A home with this server in it, and a browser that only writes down what it should open.
fn home(entry: &Value) -> TempDir {
    let home = tempfile::tempdir().expect("a directory");
    let servers = json!({"mcpServers": {"fake": entry}});
    std::fs::write(home.path().join("servers.json"), servers.to_string()).expect("written");
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).expect("made");
    let browser = bin.join("xdg-open");
    std::fs::write(&browser, "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > \"$0.opened\"\n")
        .expect("written");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a program");
    home
}

fn login(home: &Path) -> Command {
    let mut command = command(home);
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    command.args(["servers", "login", "fake", "--mcp-config", "servers.json"]);
    command.env("PATH", path).env("DISPLAY", ":99");
    command
}

fn printed_text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// UP-033, CVE-2025-6514: what a server calls its authorization endpoint is never run.
#[test]
fn rem_5_no_address_starts_a_program() {
    let out = tempfile::tempdir().expect("a directory");
    let pwn = out.path().join("pwn").display().to_string();
    for address in [
        "javascript:alert(1)".to_owned(),
        "file:///bin/sh".to_owned(),
        format!("http://a/$(touch {pwn})"),
        format!("http://a/`touch {pwn}`"),
        format!("http://a/\" & touch {pwn} & \""),
        format!("http://127.0.0.1/$(touch${{IFS}}{pwn})"),
        "vscode://x".to_owned(),
        "-e".to_owned(),
    ] {
        let plan = json!({"oauth": {"server": {"authorization_endpoint": address}}});
        let server = Scripted::start(&plan);
        let home = home(&server.entry());
        let output = login(home.path()).output().expect("codexec runs");
        assert!(!output.status.success(), "{address}");
        let said = printed_text(&output);
        assert!(said.contains("its authorization endpoint is not a trusted URL"), "{said}");
        assert!(!home.path().join("bin/xdg-open.opened").exists(), "{address}");
        assert_eq!(std::fs::read_dir(out.path()).expect("there").count(), 0, "{address}");
    }
}

#[test]
fn a_login_is_there_for_whoever_comes_next() {
    let server = Scripted::start(&json!({"oauth": {}}));
    let home = home(&server.entry());
    let mut child = login(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("codexec starts");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let shown = stderr.lines().map_while(Result::ok).find(|line| line.starts_with("http://"));
    let (head, _) = get(&shown.expect("the address is printed"));
    let back = head.lines().find_map(|line| line.strip_prefix("Location: ")).expect("back");
    let (head, page) = get(back);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(!page.contains("the-code"), "{page}");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", printed_text(&output));
    assert!(printed_text(&output).contains("logged in to fake"), "{}", printed_text(&output));

    let token = home.path().join("state/tokens/fake.json");
    let mode = std::fs::metadata(&token).expect("kept").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let code = "const { authorization } = await tools.fake.headers({}); return authorization;";
    let output = command(home.path())
        .args(["exec", "-l", "ts", "--mcp-config", "servers.json", code])
        .output()
        .expect("codexec runs");
    assert!(printed_text(&output).contains("Bearer token-1"), "{}", printed_text(&output));
}

/// UP-034: what a client shows us is not shown to anybody else.
#[test]
fn rem_4_a_clients_token_goes_nowhere() {
    let token = "client-token-0451";
    let server = Scripted::start(&json!({}));
    let mut client = Client::with(&json!({"fake": server.entry()}), |command| {
        command.env("AUTHORIZATION", format!("Bearer {token}")).env("MCP_TOKEN", token);
    });
    let call = json!({
        "name": "execute_code",
        "arguments": {"code": "return await tools.fake.echo({ n: 1 })"},
        "_meta": {"authorization": format!("Bearer {token}"), "token": token},
    });
    let reply = client.request("tools/call", &call);
    assert!(reply["result"]["content"][0]["text"].to_string().contains("\\\"n\\\":"), "{reply}");
    let log = server.log();
    assert!(log.contains("tools/call"), "{log}");
    assert!(!log.contains(token), "{log}");
}

/// UP-035: neither a credential nor a request follows a redirect to another place.
#[test]
fn rem_2_a_redirect_elsewhere_is_not_followed() {
    let other = Scripted::start(&json!({}));
    let elsewhere = format!("http://127.0.0.1:{}/steal", other.port);
    let server = Scripted::start(&json!({"redirect": elsewhere}));
    let mut entry = server.entry();
    entry["headers"] = json!({"Authorization": "Bearer hunter2"});
    let mut client = Client::start(&json!({"fake": entry}));
    let said = client.run("return await tools.fake.echo({})").failed();
    assert!(said.contains("it redirects to another origin"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert!(server.log().contains("hunter2"));
    assert_eq!(other.log(), "[]");
}

#[test]
fn a_server_that_wants_a_login_says_what_to_do() {
    let server = Scripted::start(&json!({"oauth": {}}));
    let mut client = Client::start(&json!({"fake": server.entry()}));
    let said = client.run("return await tools.fake.echo({})").failed();
    assert!(
        said.contains("it requires a login; log in with `codexec servers login fake`"),
        "{said}"
    );
}
