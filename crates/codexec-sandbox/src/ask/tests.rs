use super::*;

fn ask(script: &str, patience: Duration) -> Result<String, String> {
    let path = ("PATH".to_owned(), OsString::from("/usr/bin:/bin"));
    let said = ask_program(Path::new("/bin/sh"), &["-c", script], &[path], patience);
    said.map_err(|error| error.to_string())
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn it_says_what_it_prints_or_how_it_failed() {
    assert_eq!(ask("echo hi", LONG), Ok("hi\n".to_owned()));
    assert_eq!(ask("echo a >&2; echo b >&2; exit 3", LONG), Err("b".to_owned()));
    assert_eq!(ask("exit 3", LONG), Err("it failed".to_owned()));
}

#[test]
fn one_that_does_not_answer_is_ended() {
    let late = Err("it did not answer in time".to_owned());
    assert_eq!(ask("exec sleep 60", Duration::from_millis(100)), late);
}

#[test]
fn what_it_leaves_behind_is_not_waited_for() {
    let begun = Instant::now();
    assert_eq!(ask("sleep 5 & echo hi", LONG), Ok("hi\n".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(5));
}
