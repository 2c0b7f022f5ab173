use codexec_types::Principal;
use serde_json::json;
use tempfile::TempDir;

use super::*;

mod damage;
mod hostile;
mod manual_edits;
mod many;
mod sharing;

pub(super) const ALWAYS_SCAN: LibraryLimits =
    LibraryLimits { scan_interval: Duration::ZERO, ..LIMITS };

/// A library in a temporary folder, which scans all files every time.
pub(super) struct Kit {
    pub(super) library: Library,
    pub(super) home: TempDir,
}

impl Kit {
    pub(super) fn new() -> Kit {
        let home = tempfile::tempdir().unwrap();
        let library = Library::with_limits(home.path().join("scripts"), ALWAYS_SCAN);
        Kit { library, home }
    }

    /// Returns a path below the library's folder.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.home.path().join("scripts").join(below)
    }

    pub(super) fn text(&self, below: &str) -> String {
        std::fs::read_to_string(self.path(below)).unwrap()
    }

    pub(super) fn put(&self, below: &str, text: &str) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn json(&self, below: &str) -> Value {
        serde_json::from_str(&self.text(below)).unwrap()
    }

    pub(super) async fn save(&self, name: &str, code: &str) -> SavedScript {
        self.library.save(draft(name, code)).await.unwrap()
    }

    pub(super) async fn code(&self, name: &str, version: Option<u32>) -> String {
        self.library.get(name, version).await.unwrap().code
    }

    pub(super) async fn list(&self) -> (Vec<String>, Vec<String>) {
        let listed = self.library.list(all()).await.unwrap();
        assert_eq!(listed.total, listed.scripts.len());
        (listed.scripts.into_iter().map(|meta| meta.name).collect(), listed.notes)
    }
}

pub(super) fn all() -> ScriptFilter {
    ScriptFilter { limit: 20_000, ..ScriptFilter::default() }
}

pub(super) fn draft(name: &str, code: &str) -> ScriptDraft {
    ScriptDraft {
        name: name.to_owned(),
        description: format!("does {name}"),
        language: Language::Python,
        code: code.to_owned(),
        tags: vec!["excel".to_owned(), "finance".to_owned()],
        packages: vec!["pandas>=2".to_owned()],
        parameters: None,
        source_execution_id: Some("exec_a1b2c3".to_owned()),
        saved_by: None,
        expose: false,
    }
}

#[tokio::test]
async fn a_script_is_saved_updated_and_read_in_both_versions() {
    let kit = Kit::new();
    let first = kit.save("parse-report", "print(1)").await;
    assert_eq!((first.version, first.is_new), (1, true));
    assert_eq!(first.path, kit.path("parse-report/script.py"));
    let second = kit.save("parse-report", "print(2)").await;
    assert_eq!((second.version, second.is_new), (2, false));
    assert_eq!(second.script_id, first.script_id);

    let now = kit.library.get("parse-report", None).await.unwrap();
    assert_eq!((now.code.as_str(), now.version), ("print(2)", 2));
    assert_eq!(now.meta.created_at, first.saved_at);
    assert_eq!(now.meta.updated_at, second.saved_at);
    assert_eq!(kit.code("parse-report", Some(1)).await, "print(1)");
    assert_eq!(kit.code("parse-report", Some(2)).await, "print(2)");
    let missing = kit.library.get("parse-report", Some(3)).await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "script \"parse-report\" has no version 3; versions 1 to 2 are stored"
    );
    let versions = kit.library.list_versions("parse-report").await.unwrap();
    let versions: Vec<(u32, bool)> = versions.iter().map(|v| (v.version, v.is_current)).collect();
    assert_eq!(versions, [(2, true), (1, false)]);
}

#[tokio::test]
async fn every_version_records_who_saved_it() {
    let kit = Kit::new();
    let by = |name: &str| Principal::parse(name);
    let save = async |code: &str, saved_by: Option<Principal>| {
        kit.library.save(ScriptDraft { saved_by, ..draft("s", code) }).await.unwrap().version
    };
    assert_eq!(save("1", by("local@stdio")).await, 1);
    assert_eq!(save("2", by("token:ann@http")).await, 2);
    assert_eq!(save("2", by("local@cli")).await, 2, "the same script is no new version");
    let versions = kit.library.list_versions("s").await.unwrap();
    let saved_by: Vec<Option<Principal>> = versions.into_iter().map(|v| v.saved_by).collect();
    assert_eq!(saved_by, [by("token:ann@http"), by("local@stdio")]);
    let shown = kit.library.get("s", None).await.unwrap();
    assert_eq!(shown.meta.saved_by, by("token:ann@http"));
}

#[tokio::test]
async fn a_script_has_two_files_and_an_entry_in_the_index() {
    let kit = Kit::new();
    kit.save("parse-report", "print(1)").await;
    assert_eq!(kit.text("parse-report/script.py"), "print(1)");
    let metadata = kit.json("parse-report/metadata.json");
    let fields: Vec<&String> = metadata.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "script_id",
            "name",
            "description",
            "language",
            "tags",
            "packages",
            "parameters",
            "expose",
            "source_execution_id",
            "saved_by",
            "created_at",
            "updated_at",
            "last_run_at",
            "last_run_success",
            "run_count",
            "version",
            "sha256"
        ]
    );
    assert_eq!(kit.json("index.json"), json!({"scripts": [metadata]}));
}

#[tokio::test]
async fn every_language_has_its_file_name_and_a_change_removes_the_old_file() {
    let kit = Kit::new();
    for language in Language::ALL {
        let draft = ScriptDraft { language, packages: Vec::new(), ..draft("s", "1") };
        kit.library.save(draft).await.unwrap();
        let mut names: Vec<String> = std::fs::read_dir(kit.path("s"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let file = format!("script.{}", language.short());
        assert_eq!(names, ["metadata.json".to_owned(), file, "versions".to_owned()]);
    }
    let first = kit.library.get("s", Some(1)).await.unwrap();
    assert_eq!(first.meta.language, Language::TypeScript);
}

#[tokio::test]
async fn an_unchanged_save_makes_no_version() {
    let kit = Kit::new();
    let first = kit.save("s", "1").await;
    let again = kit.save("s", "1").await;
    assert_eq!((again.version, again.saved_at, again.is_new), (1, first.saved_at, false));
    let other = ScriptDraft { description: "else".to_owned(), ..draft("s", "1") };
    assert_eq!(kit.library.save(other).await.unwrap().version, 2);
}

#[tokio::test]
async fn runs_are_counted_and_a_save_keeps_the_count() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    let at = codexec_types::parse_time("2026-02-15T09:30:00Z").unwrap();
    kit.library.record_run("s", at, false).await.unwrap();
    kit.library.record_run("S", at, true).await.unwrap();
    kit.save("s", "2").await;
    let meta = kit.library.get("s", None).await.unwrap().meta;
    assert_eq!((meta.run_count, meta.last_run_success), (2, Some(true)));
    assert_eq!(meta.last_run_at.as_deref(), Some("2026-02-15T09:30:00.000Z"));
    assert_eq!(kit.json("index.json")["scripts"][0]["run_count"], 2);
    assert_eq!(kit.library.record_run("t", at, true).await.unwrap_err().code(), "SCRIPT_NOT_FOUND");
}

#[tokio::test]
async fn a_list_is_filtered_and_paged() {
    let kit = Kit::new();
    for name in ["c", "a", "b"] {
        kit.save(name, "1").await;
    }
    let bash = ScriptDraft {
        language: Language::Bash,
        tags: vec!["Ops".to_owned()],
        packages: Vec::new(),
        ..draft("d", "ls")
    };
    kit.library.save(bash).await.unwrap();
    let names = async |filter: ScriptFilter| {
        let listed = kit.library.list(filter).await.unwrap();
        let names: Vec<String> = listed.scripts.into_iter().map(|meta| meta.name).collect();
        (names.concat(), listed.total)
    };
    assert_eq!(names(all()).await, ("abcd".to_owned(), 4));
    assert_eq!(names(ScriptFilter { offset: 1, limit: 2, ..all() }).await, ("bc".to_owned(), 4));
    let python = ScriptFilter { language: Some(Language::Python), ..all() };
    assert_eq!(names(python).await, ("abc".to_owned(), 3));
    assert_eq!(
        names(ScriptFilter { tag: Some("OPS".to_owned()), ..all() }).await,
        ("d".to_owned(), 1)
    );
    assert_eq!(
        names(ScriptFilter { tag: Some("none".to_owned()), ..all() }).await,
        (String::new(), 0)
    );
}

#[tokio::test]
async fn a_deleted_script_is_gone_and_similar_names_are_suggested() {
    let kit = Kit::new();
    kit.save("parse-report", "1").await;
    kit.save("other", "1").await;
    kit.library.delete("other").await.unwrap();
    assert!(!kit.path("other").exists());
    assert_eq!(kit.list().await.0, ["parse-report"]);
    for err in [
        kit.library.get("parse-reprot", None).await.unwrap_err(),
        kit.library.delete("parse-reprot").await.unwrap_err(),
    ] {
        let message = "there is no script \"parse-reprot\"; did you mean parse-report?";
        assert_eq!((err.to_string().as_str(), err.code()), (message, "SCRIPT_NOT_FOUND"));
    }
    let again = kit.save("other", "2").await;
    assert_eq!((again.version, again.is_new), (1, true));
}

#[tokio::test]
async fn an_empty_library_creates_no_folder() {
    let kit = Kit::new();
    assert_eq!(kit.list().await, (Vec::new(), Vec::new()));
    assert!(kit.library.search("x", 5).await.unwrap().is_empty());
    assert!(kit.library.get("x", None).await.is_err() && kit.library.delete("x").await.is_err());
    assert!(!kit.path("").exists());
}

#[tokio::test]
async fn exposed_scripts_are_listed_with_their_parameters() {
    let kit = Kit::new();
    kit.save("plain", "1").await;
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = ScriptDraft { expose: true, parameters: Some(schema.clone()), ..draft("tool", "1") };
    kit.library.save(tool).await.unwrap();
    let exposed = kit.library.list_exposed().await.unwrap();
    assert_eq!(exposed.len(), 1);
    assert_eq!((exposed[0].name.as_str(), &exposed[0].parameters), ("tool", &Some(schema)));
    let input = |value: Value| Json::from_value(&value);
    let error = kit.library.check_input(&exposed[0], &input(json!({"path": 5}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the input does not fit the parameters of \"tool\": `input.path`: 5 is not of type \
         \"string\"; parameters: path"
    );
    kit.library.check_input(&exposed[0], &input(json!({"path": "x"}))).await.unwrap();
}

#[tokio::test]
async fn only_the_newest_hundred_versions_are_stored() {
    let kit = Kit::new();
    for number in 1..=103 {
        kit.save("s", &number.to_string()).await;
    }
    let missing = kit.library.get("s", Some(3)).await.unwrap_err();
    let message = "script \"s\" has no version 3; versions 4 to 103 are stored";
    assert_eq!(missing.to_string(), message);
    assert_eq!(kit.code("s", Some(4)).await, "4");
    assert_eq!(kit.library.list_versions("s").await.unwrap().len(), 100);
}
