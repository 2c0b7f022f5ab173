use super::*;

fn missing(name: &str, reason: MissingReason) -> MissingServer {
    MissingServer { server: ServerName::new(name).expect("a name"), reason }
}

#[test]
fn every_reason_has_a_sentence_with_the_names() {
    assert_eq!(describe_missing(&[]), Vec::<String>::new());
    let notes = describe_missing(&[
        missing("a", MissingReason::Starting),
        missing("b", MissingReason::Hung),
        missing("c", MissingReason::Stale),
        missing("d", MissingReason::Failed("it did not start: no config file".to_owned())),
        missing("e", MissingReason::Starting),
    ]);
    let expected = [
        "incomplete: the tools of these servers are missing, because they are still starting: a, \
         e; ask again in a few seconds",
        "incomplete: the tools of these servers are missing, because they do not answer: b",
        "these servers have not answered yet, and their lists are old: c",
        "server d is not available: it did not start: no config file",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn many_servers_and_long_reasons_are_shortened_between_words() {
    let names: Vec<String> = (0..12).map(|number| format!("s{number}")).collect();
    let starting: Vec<MissingServer> =
        names.iter().map(|name| missing(name, MissingReason::Starting)).collect();
    let notes = describe_missing(&starting);
    assert!(notes[0].contains(": s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 and 2 more;"), "{notes:?}");

    let reason = "abcdefg ".repeat(40);
    let failed: Vec<MissingServer> =
        names.iter().map(|name| missing(name, MissingReason::Failed(reason.clone()))).collect();
    let notes = describe_missing(&failed);
    assert_eq!(notes.len(), 6);
    assert!(notes[0].ends_with("abcdefg abcdefg…"), "{}", notes[0]);
    assert_eq!(notes[5], "7 more servers are not available; see health");
}
