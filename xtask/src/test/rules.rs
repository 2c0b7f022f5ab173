//! Which integration tests run as one user only, which run alone, and which start first.
//!
//! A row is the name of a test or of a module that contains tests.

/// Tests whose behaviour cannot depend on the user. They run only as the unprivileged user; every
/// other test also runs as root, where sandbox, files, limits and sessions work differently.
const ONE_USER: &[(&str, &str)] = &[
    ("attacks::bait", "pure functions of the tests"),
    ("attacks::case", "pure functions of the tests"),
    ("bad_input", "messages that are refused before anything runs"),
    ("cli::help", "text of the command line"),
    ("clients", "other clients, over the same protocol"),
    ("conformance", "our client against a suite; no guest runs"),
    ("dashboard", "a browser as the client"),
    ("direct", "the protocol without guests"),
    ("fleet", "other servers behind one catalogue, called from JavaScript"),
    ("http::clients", "another client, over the same protocol"),
    ("http::conformance", "a suite as the client; no guest runs"),
    ("guide::page", "pure functions of the tests"),
    ("reference", "pages that are compared with the binary's texts"),
    ("remote", "servers over HTTP"),
    ("seed_code_executor", "shapes of requests and replies, with JavaScript"),
    ("seed_execution_mode", "shapes of requests and replies"),
    ("seed_mcpproxy", "shapes of requests and replies, with JavaScript"),
    ("types", "declarations for guests, as text"),
];

/// Tests that other tests disturb, or that disturb other tests.
const ALONE: &[(&str, &str)] = &[
    ("attacks::bash_resource_cases", "measures the memory of the server, and its delays"),
    ("attacks::python_bridge_cases", "measures the memory of the server"),
    ("attacks::python_resource_cases", "measures the memory of the server, and its delays"),
    ("attacks::resource_cases", "measures the memory of the server, and its delays"),
    ("dashboard", "a browser needs both cores"),
    ("durability", "kills servers under load, and fills a disk"),
    ("fleet", "starts two dozen servers at once"),
    ("http::attacks", "measures the memory of the server"),
    ("leaks", "measures the memory and the processes of a busy server"),
    ("limits::bombs", "uses all processes and memory, and measures the replies meanwhile"),
    ("limits::memory", "measures memory"),
];

/// Tests that take long start first, so that none of them is the last to end.
const FIRST: &[(&str, &str)] = &[
    ("two_people", "works for a minute"),
    ("cpython", "runs many test files of CPython"),
    ("attacks", "each test runs a whole area of cases"),
];

pub(super) fn is_for_one_user(test: &str) -> bool {
    has_rule(ONE_USER, test)
}

pub(super) fn runs_alone(test: &str) -> bool {
    has_rule(ALONE, test)
}

pub(super) fn starts_first(test: &str) -> bool {
    has_rule(FIRST, test)
}

/// Returns the rows that match no test, and are mistakes or out of date.
pub(super) fn find_unused(tests: &[&str]) -> Vec<&'static str> {
    let rows = ONE_USER.iter().chain(ALONE).chain(FIRST).map(|(row, _)| *row);
    rows.filter(|row| !tests.iter().any(|test| is_within(test, row))).collect()
}

fn has_rule(rules: &[(&str, &str)], test: &str) -> bool {
    rules.iter().any(|(row, _)| is_within(test, row))
}

fn is_within(test: &str, row: &str) -> bool {
    test.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests;
