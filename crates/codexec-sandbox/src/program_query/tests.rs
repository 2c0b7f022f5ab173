use super::*;

fn run_script(script: &str, timeout: Duration) -> Result<String, String> {
    let path = ("PATH".to_owned(), OsString::from("/usr/bin:/bin"));
    let stdout = query_program(Path::new("/bin/sh"), &["-c", script], &[path], timeout);
    stdout.map_err(|error| error.to_string())
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn returns_stdout_or_the_last_line_of_stderr() {
    assert_eq!(run_script("echo hi", LONG), Ok("hi\n".to_owned()));
    assert_eq!(run_script("echo a >&2; echo b >&2; exit 3", LONG), Err("b".to_owned()));
    assert_eq!(run_script("exit 3", LONG), Err("failed: exit status: 3".to_owned()));
}

#[test]
fn a_slow_program_is_killed() {
    let timed_out = Err("timed out after 100 ms".to_owned());
    assert_eq!(run_script("exec sleep 60", Duration::from_millis(100)), timed_out);
}

#[test]
fn background_processes_are_not_waited_for() {
    let begun = Instant::now();
    assert_eq!(run_script("sleep 5 & echo hi", LONG), Ok("hi\n".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(5));
}
