use super::*;

fn check(text: &str, expected: &[&str]) {
    assert_eq!(split(text).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn texts_are_split_into_words() {
    check("parse-excel_report", &["parse", "excel", "report"]);
    check("parseHTMLReport v2", &["parse", "html", "report", "parsehtmlreport", "v2"]);
    check("Grüße, WELT!", &["grüße", "welt"]);
    check("  --  ", &[]);
    check(&"x".repeat(99), &[&"x".repeat(40)]);
}

#[test]
fn inflected_words_have_the_same_stem() {
    for word in ["parse", "parses", "parsed", "parsing", "parser", "parsers"] {
        assert_eq!(stem(word), "pars");
    }
    for word in ["is", "used", "bed", "s", "", "ring"] {
        assert!(stem(word).len() >= word.len().min(3), "{word}");
    }
}

#[test]
fn only_the_beginning_of_the_code_is_searched() {
    let code: String = (0..2_000).map(|number| format!("w{number} ")).collect();
    assert_eq!(code_words(&code).len(), 500);
    assert_eq!(code_words(&("ä".repeat(64 << 10) + " word")).len(), 1);
}
