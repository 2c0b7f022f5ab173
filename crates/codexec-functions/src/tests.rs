mod page;

use std::path::Path;

use super::*;

/// Compares a file that is made from the table. `CODEXEC_UPDATE=1` writes it anew.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a variable for those who run the tests")]
fn compare(file: &str, written: &str, made: &str) {
    if written == made {
        return;
    }
    assert!(
        std::env::var_os("CODEXEC_UPDATE").is_some(),
        "{file} is not what the table says; run the tests with CODEXEC_UPDATE=1"
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::write(root.join(file), made).expect("written");
}

#[test]
fn guests_bind_what_the_table_says() {
    let made = format!("{{\n{}\n}}\n", groups().map(binding_lines).collect::<Vec<_>>().join(",\n"));
    compare("crates/codexec-functions/src/guest/functions.json", GUEST_FUNCTIONS, &made);
    let parsed: serde_json::Value = serde_json::from_str(GUEST_FUNCTIONS).expect("JSON");
    assert_eq!(parsed["scripts"]["saveAndRun"], parsed["scripts"]["save_and_run"]);
}

#[test]
fn the_reference_page_is_made_from_the_table() {
    compare(
        "docs/reference/own-functions.md",
        include_str!("../../../docs/reference/own-functions.md"),
        &page::page(),
    );
}

#[test]
fn names_are_unique_and_found() {
    for &function in OwnFunction::ALL {
        assert_eq!(OwnFunction::from_name(function.name()), Some(function));
    }
    assert_eq!(OwnFunction::from_name("start_sessions"), None);
    let mut names: Vec<String> = Vec::new();
    for guest in OwnFunction::ALL.iter().filter_map(|function| function.spec().guest) {
        names.push(format!("{}.{}", guest.group, guest.name));
    }
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn functions_of_a_group_are_next_to_each_other() {
    assert_eq!(groups().collect::<Vec<_>>(), ["sessions", "packages", "scripts", "logs"]);
}

#[test]
fn positional_arguments_are_arguments_and_no_argument_is_named_twice() {
    for spec in OwnFunction::ALL.iter().map(|function| function.spec()) {
        let names: Vec<&str> = spec.arguments().map(|one| one.name).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "{}", spec.name);
        for name in spec.guest.map_or(&[][..], |guest| guest.positional) {
            assert!(names.contains(name), "{}: {name}", spec.name);
        }
    }
}

#[test]
fn an_argument_has_the_same_option_everywhere() {
    let all = || OwnFunction::ALL.iter().flat_map(|function| function.spec().arguments());
    for one in all() {
        for other in all().filter(|other| other.name == one.name) {
            assert_eq!(other.option, one.option, "{}", one.name);
        }
    }
}

#[test]
fn help_lists_every_function_of_a_group_on_one_line() {
    let javascript = describe_guest_functions(CallSyntax::JavaScript);
    let python = describe_guest_functions(CallSyntax::Python);
    let line = |text: &str, group: &str| {
        let mut lines = text.lines().filter(|line| line.contains(&format!("await {group}.")));
        let line = lines.next().expect("a line").to_owned();
        assert_eq!(lines.next(), None);
        line
    };
    assert_eq!(
        line(&javascript, "sessions"),
        "  await sessions.start(language, name, {working_dir}), .send(session_id, code, \
         {timeout_ms}), .close(session_id), .list(), .snapshot(name, session_id), .restore(name), \
         .snapshots()"
    );
    assert_eq!(
        line(&javascript, "packages"),
        "  await packages.install(package, language, {session_id}), .list({session_id, language})"
    );
    assert!(line(&javascript, "scripts").contains(
        ", .saveAndRun(name, code, {description, language, tags, packages, parameters, \
         source_execution_id, expose, args, timeout_ms}), .delete(name)"
    ));
    assert_eq!(
        line(&python, "packages"),
        "  await packages.install(package, language, session_id=..), .list(session_id=.., \
         language=..)"
    );
    assert!(line(&python, "scripts").contains(
        ".run(name, args=.., input=.., version=.., timeout_ms=..), .save_and_run(name, code, "
    ));
}

/// Returns the groups of the guests' functions, in order.
fn groups() -> impl Iterator<Item = &'static str> {
    let mut groups: Vec<&str> = OwnFunction::ALL
        .iter()
        .filter_map(|function| function.spec().guest)
        .map(|guest| guest.group)
        .collect();
    groups.dedup();
    groups.into_iter()
}

fn binding_lines(group: &str) -> String {
    let mut lines = Vec::new();
    for spec in OwnFunction::ALL.iter().map(|function| function.spec()) {
        let Some(guest) = spec.guest.filter(|guest| guest.group == group) else { continue };
        let words: Vec<String> = std::iter::once(&spec.name)
            .chain(guest.positional)
            .map(|word| format!("\"{word}\""))
            .collect();
        let mut names =
            vec![guest.name_in(CallSyntax::Python), guest.name_in(CallSyntax::JavaScript)];
        names.dedup();
        for name in names {
            lines.push(format!("    \"{name}\": [{}]", words.join(", ")));
        }
    }
    format!("  \"{group}\": {{\n{}\n  }}", lines.join(",\n"))
}
