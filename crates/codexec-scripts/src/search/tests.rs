use std::path::PathBuf;

use codexec_types::Language;

use super::*;
use crate::{Library, ScriptDraft};

/// Name, tags, description and code of each script.
const SCRIPTS: &[(&str, &str, &str, &str)] = &[
    ("parse-excel-report", "excel finance", "Extracts summary rows, outputs CSV", "import pandas"),
    ("cleanCsvData", "csv", "Removes empty rows of a table", "import csv"),
    ("backup-db", "ops", "Dumps the database and compresses it", "pg_dump main | gzip"),
    ("monthly", "report", "Mails the excel file of the month", "send_mail(path)"),
    ("resize", "photos", "Makes pictures smaller", "from excel import nothing"),
];

async fn search(query: &str) -> Vec<(String, &'static str)> {
    let home = tempfile::tempdir().unwrap();
    let library = Library::at(PathBuf::from(home.path()));
    for (name, tags, description, code) in SCRIPTS {
        let draft = ScriptDraft {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            language: Language::Python,
            code: (*code).to_owned(),
            tags: tags.split(' ').map(str::to_owned).collect(),
            packages: Vec::new(),
            parameters: None,
            source_execution_id: None,
            saved_by: None,
            expose: false,
        };
        library.save(draft).await.unwrap();
    }
    let hits = library.search(query, 10).await.unwrap();
    hits.into_iter().map(|hit| (hit.meta.name, hit.relevance.as_str())).collect()
}

async fn check(query: &str, expected: &[(&str, &str)]) {
    let found = search(query).await;
    let found: Vec<(&str, &str)> = found.iter().map(|(name, how)| (name.as_str(), *how)).collect();
    assert_eq!(found, expected, "{query}");
}

#[tokio::test]
async fn names_rank_above_tags_descriptions_and_code() {
    check(
        "excel",
        &[
            ("parse-excel-report", "name_match"),
            ("monthly", "description_match"),
            ("resize", "code_match"),
        ],
    )
    .await;
    check("report", &[("parse-excel-report", "name_match"), ("monthly", "tag_match")]).await;
}

#[tokio::test]
async fn stems_and_prefixes_match() {
    check("Parsing", &[("parse-excel-report", "name_match")]).await;
    check("compress databases", &[("backup-db", "description_match")]).await;
    check("pic", &[("resize", "description_match")]).await;
    check("clean", &[("cleanCsvData", "name_match")]).await;
    check("gzip", &[("backup-db", "code_match")]).await;
    check("CLEANCSVDATA", &[("cleanCsvData", "name_match")]).await;
}

#[tokio::test]
async fn scripts_with_more_of_the_words_rank_first() {
    let found = search("mail the excel file").await;
    assert_eq!(found.first().map(|(name, _)| name.as_str()), Some("monthly"));
}

#[tokio::test]
async fn operators_are_ordinary_words() {
    for query in ["zzz", "\"", "* OR 1=1 --x", "NEAR(zzz)", "\u{0}"] {
        let found = search(query).await;
        let by_name = found.iter().filter(|(_, how)| *how == "name_match").count();
        assert!(by_name == 0 || query.chars().all(|c| !c.is_alphanumeric()), "{query}: {found:?}");
    }
    check("zzz", &[]).await;
}

#[tokio::test]
async fn a_query_without_words_lists_everything_in_order() {
    let names: Vec<String> = search(" - ").await.into_iter().map(|(name, _)| name).collect();
    let expected = ["backup-db", "cleanCsvData", "monthly", "parse-excel-report", "resize"];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn a_long_query_is_truncated() {
    let words = |count: usize| (0..count).map(|number| format!("z{number}z ")).collect::<String>();
    assert_eq!(search(&(words(23) + "excel")).await.len(), 3);
    assert_eq!(search(&(words(24) + "excel")).await.len(), 0);
}

#[test]
fn removed_words_no_longer_match() {
    let mut lexicon = Lexicon::default();
    let script = |words: &[&str]| ScriptWords {
        words: words.iter().map(|word| (MatchedField::Tag, (*word).into())).collect(),
    };
    let (first, second) = (script(&["alpha", "shared"]), script(&["shared"]));
    let numbers = [lexicon.add(&first), lexicon.add(&second)];
    let matching = |lexicon: &Lexicon, word: &str| {
        lexicon.score(word).unwrap().iter().map(MatchScore::is_match).collect::<Vec<_>>()
    };
    assert_eq!(matching(&lexicon, "shared"), [true, true]);
    lexicon.remove(numbers[0], &first);
    assert_eq!(matching(&lexicon, "alpha"), [false, false]);
    assert_eq!(matching(&lexicon, "shared"), [false, true]);
    assert_eq!(lexicon.add(&second), numbers[0]);
    for number in numbers {
        lexicon.remove(number, &second);
    }
    assert!(lexicon.words.is_empty() && lexicon.stems.is_empty());
}
