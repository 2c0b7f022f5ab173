//! Manual changes in the library's folder.

use super::*;

#[tokio::test]
async fn edited_code_becomes_a_new_version() {
    let kit = Kit::new();
    kit.save("s", "print('saved')").await;
    kit.put("s/script.py", "print('edited')");
    let script = kit.library.get("s", None).await.unwrap();
    assert_eq!((script.code.as_str(), script.version), ("print('edited')", 2));
    assert_eq!(kit.code("s", Some(1)).await, "print('saved')");
    assert_eq!(kit.json("s/metadata.json")["version"], 2);
    assert_eq!(kit.json("index.json")["scripts"][0]["version"], 2);
    assert_eq!(kit.text("s/versions/2/script.py"), "print('edited')");
}

#[tokio::test]
async fn edited_code_is_not_lost_to_the_next_save() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    kit.put("s/script.py", "2");
    assert_eq!(kit.save("s", "3").await.version, 3);
    assert_eq!([kit.code("s", Some(2)).await, kit.code("s", Some(3)).await], ["2", "3"]);
}

#[tokio::test]
async fn edited_code_is_found_by_a_running_library() {
    let kit = Kit::new();
    kit.save("s", "alpha").await;
    assert_eq!(kit.library.search("alpha", 5).await.unwrap().len(), 1);
    kit.put("s/script.py", "omega");
    let hits = kit.library.search("omega", 5).await.unwrap();
    assert_eq!((hits.len(), hits[0].meta.version), (1, 2));
    assert!(kit.library.search("alpha", 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn edited_metadata_is_used_and_unknown_fields_stay() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    let mut metadata = kit.json("s/metadata.json");
    metadata["tags"] = json!(["mine"]);
    metadata["owner"] = json!("somebody");
    kit.put("s/metadata.json", &metadata.to_string());
    let listed = kit.library.list(all()).await.unwrap();
    assert_eq!(listed.scripts[0].tags, ["mine"]);
    kit.library.record_run("s", SystemTime::UNIX_EPOCH, true).await.unwrap();
    kit.save("s", "2").await;
    assert_eq!(kit.json("s/metadata.json")["owner"], "somebody");
}

#[tokio::test]
async fn a_folder_with_only_code_is_a_script() {
    let kit = Kit::new();
    kit.put("from-a-friend/script.sh", "ls");
    assert_eq!(kit.list().await.0, ["from-a-friend"]);
    let script = kit.library.get("from-a-friend", None).await.unwrap();
    assert_eq!((script.meta.language, script.version), (Language::Bash, 1));
    assert_eq!(kit.json("from-a-friend/metadata.json")["name"], "from-a-friend");
    kit.save("from-a-friend", "print(1)").await;
    assert_eq!(kit.code("from-a-friend", Some(1)).await, "ls");
}

#[tokio::test]
async fn a_copied_folder_is_a_separate_script() {
    let kit = Kit::new();
    let saved = kit.save("first", "1").await;
    kit.put("second/script.py", &kit.text("first/script.py"));
    kit.put("second/metadata.json", &kit.text("first/metadata.json"));
    assert_eq!(kit.list().await.0, ["first", "second"]);
    let copy = kit.library.get("second", None).await.unwrap().meta;
    assert_eq!(copy.name, "second");
    assert_ne!(copy.script_id, saved.script_id);
    assert_eq!(kit.save("second", "2").await.version, 2);
}

#[tokio::test]
async fn a_deleted_folder_is_no_longer_listed() {
    let kit = Kit::new();
    kit.save("stays", "1").await;
    kit.save("goes", "1").await;
    std::fs::remove_dir_all(kit.path("goes")).unwrap();
    assert_eq!(kit.list().await, (vec!["stays".to_owned()], Vec::new()));
    assert_eq!(kit.json("index.json")["scripts"].as_array().unwrap().len(), 1);
    std::fs::remove_dir_all(kit.path("")).unwrap();
    assert_eq!(kit.list().await, (Vec::new(), Vec::new()));
    assert!(kit.save("stays", "1").await.is_new);
}

#[tokio::test]
async fn a_new_file_extension_changes_the_language() {
    let kit = Kit::new();
    let plain = ScriptDraft { packages: Vec::new(), ..draft("s", "1") };
    kit.library.save(plain).await.unwrap();
    std::fs::rename(kit.path("s/script.py"), kit.path("s/script.js")).unwrap();
    let script = kit.library.get("s", None).await.unwrap();
    assert_eq!((script.meta.language, script.version), (Language::JavaScript, 2));
}

#[tokio::test]
async fn a_folder_with_an_invalid_name_is_reported_and_left_alone() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    kit.put("My Script/script.py", "1");
    kit.put("notes.txt", "not a folder");
    let (names, notes) = kit.list().await;
    assert_eq!(names, ["s"]);
    assert_eq!(
        notes,
        ["folder \"My Script\" is not read; name it with a-z 0-9 _ - only, in lower case"]
    );
    assert!(kit.path("My Script/script.py").exists() && kit.path("notes.txt").exists());
}

#[tokio::test]
async fn a_read_only_library_can_be_read() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    kit.put("s/script.py", "2");
    // With a folder in place of the lock file, not even root can lock.
    std::fs::remove_file(kit.path(".lock")).unwrap();
    std::fs::create_dir(kit.path(".lock")).unwrap();
    assert_eq!(kit.code("s", None).await, "2");
    assert_eq!(kit.list().await.0, ["s"]);
    let err = kit.library.save(draft("t", "1")).await.unwrap_err();
    assert_eq!(err.code(), "SCRIPT_LIBRARY_UNAVAILABLE");
}

#[tokio::test]
async fn scripts_of_an_older_tool_are_read() {
    let kit = Kit::new();
    kit.put("clean-csv/script.js", "console.log(1)");
    let metadata = json!({
        "name": "clean-csv", "description": "cleans", "language": "node", "tags": [],
        "packages": [], "created_at": "2026-02-09T15:00:00.000Z",
        "updated_at": "2026-02-09T15:00:00.000Z", "run_count": 3, "last_run_success": null
    });
    kit.put("clean-csv/metadata.json", &metadata.to_string());
    let script = kit.library.get("clean-csv", None).await.unwrap();
    assert_eq!((script.meta.run_count, script.version), (3, 1));
    assert_eq!((script.meta.language, script.code.as_str()), (Language::Node, "console.log(1)"));
    assert_eq!(script.meta.created_at, "2026-02-09T15:00:00.000Z");
}

#[tokio::test]
async fn a_node_script_keeps_its_language_when_it_is_changed() {
    let kit = Kit::new();
    kit.put("s/script.js", "1");
    kit.put("s/metadata.json", r#"{"name": "s", "language": "node"}"#);
    assert_eq!(kit.code("s", None).await, "1");
    kit.put("s/script.js", "2");
    let script = kit.library.get("s", None).await.unwrap();
    assert_eq!((script.meta.language, script.code.as_str()), (Language::Node, "2"));
    let new = ScriptDraft { language: Language::Node, packages: Vec::new(), ..draft("s", "3") };
    kit.library.save(new).await.unwrap();
    assert_eq!(kit.code("s", None).await, "3");
    assert!(kit.path("s/script.mjs").exists() && !kit.path("s/script.js").exists());
}
