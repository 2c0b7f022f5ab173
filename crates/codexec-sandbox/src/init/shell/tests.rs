use super::*;

#[test]
fn ses_8_a_shell_killed_by_a_signal_has_failed() {
    assert_eq!(exit_status(0), 0);
    assert_eq!(exit_status(7 << 8), 7);
    assert_eq!(exit_status(libc::SIGHUP), 129);
    assert_eq!(exit_status(libc::SIGKILL | 0x80), 137);
}
