//! Values that cannot be: each is an error that names the setting, the value and what is right.

use super::*;

#[test]
fn variables() {
    let home = Home::new(&[]);
    let all = ["codexec", "code-executor", "code-execution-mode", "mcpproxy"].join(",");
    for (name, value, right) in [
        ("CODEXEC_DEFAULT_TIMEOUT_MS", "0", "out of range; it must be 1 to 86400000"),
        ("CODEXEC_MAX_TIMEOUT_MS", "86400001", "out of range; it must be 1 to 86400000"),
        ("CODEXEC_MAX_OUTPUT_CHARS", "99", "out of range; it must be 100 to 1000000"),
        ("CODEXEC_TRUNCATION_HEAD", "-1", "out of range; it must be 0 to 1000000"),
        ("CODEXEC_MAX_SESSIONS", "101", "out of range; it must be 0 to 100"),
        ("CODEXEC_SESSION_IDLE_TIMEOUT_MS", "0", "out of range; it must be 1 to 86400000"),
        ("CODEXEC_LOG_RETENTION_DAYS_SUCCESS", "0", "out of range; it must be 1 to 36500"),
        ("CODEXEC_LOG_RETENTION_DAYS_SESSION", "1.5", "out of range; it must be 1 to 36500"),
        ("CODEXEC_MAX_PROCESSES", "7", "out of range; it must be 8 to 4096"),
        ("CODEXEC_MAX_FILE_SIZE_BYTES", "0", "out of range; it must be 1 to 16384 MiB"),
        (
            "CODEXEC_SANDBOX_MODE",
            "docker",
            "not supported: codexec starts no containers; leave it out: code never has a network, \
             and always a memory limit and a read-only root",
        ),
        ("CODEXEC_DOCKER_MEMORY", "big", "not a size; write it like 512m or 1g"),
        ("MCP_BRIDGE_TIMEOUT", "0", "out of range; it must be 1 to 86400"),
        ("MCP_BRIDGE_MAX_TIMEOUT", "soon", "out of range; it must be 1 to 86400"),
        ("MCP_BRIDGE_MEMORY", "31m", "out of range; it must be 32 to 65536 MiB"),
        ("MCP_BRIDGE_PIDS", "9999", "out of range; it must be 8 to 4096"),
        ("MCP_BRIDGE_OUTPUT_MODE", "xml", "invalid; write compact or toon"),
        ("CODE_EXECUTOR_TIMEOUT_MS", "999", "out of range; it must be 1000 to 300000"),
        ("ENABLE_AUDIT_LOG", "perhaps", "invalid; write true or false"),
        ("POOL_MAX_CONCURRENT", "1001", "out of range; it must be 1 to 1000"),
        ("POOL_QUEUE_TIMEOUT_MS", "999", "out of range; it must be 1000 to 300000"),
        ("MCPPROXY_MAX_CONCURRENT_REQUESTS", "10001", "out of range; it must be 0 to 10000"),
        ("MCPPROXY_QUEUE_TIMEOUT", "30", "not a duration; write it like 30s or 1m30s"),
    ] {
        let expected = format!("`{name} = {value}` is {right}");
        home.refused(&["--toolset", &all, "servers", "list"], &[(name, value)], &expected);
    }
}

/// What is fine by itself, and not with the rest.
#[test]
fn variables_that_do_not_fit_together() {
    let home = Home::new(&[("state/config.toml", "[limits]\nmax-timeout-ms = 5000\n")]);
    for (name, value, told) in [
        ("CODEXEC_DEFAULT_TIMEOUT_MS", "5001", "`limits.timeout-ms = 5001`"),
        ("MCP_BRIDGE_TIMEOUT", "6", "`code-execution-mode.timeout-ms = 6000`"),
        ("MCP_BRIDGE_MAX_TIMEOUT", "7", "`code-execution-mode.max-timeout-ms = 7000`"),
    ] {
        let expected = format!("{name}: {told} is out of range; it must be 1 to 5000");
        home.refused(&["servers", "list"], &[(name, value)], &expected);
    }
}

#[test]
fn a_long_value_is_cut_and_shows_nothing_odd() {
    let home = Home::new(&[]);
    let value = format!("\u{1b}[31m{}", "x".repeat(10_000));
    let (code, _, told) = home.run(&["servers", "list"], &[("CODEXEC_MAX_SESSIONS", &value)]);
    assert_eq!(code, 2);
    assert!(told.len() < 300 && !told.contains('\u{1b}'), "{told}");
}
