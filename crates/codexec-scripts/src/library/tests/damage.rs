//! Damaged files. Whenever a process is killed, either the old or the new script remains.

use super::*;

#[tokio::test]
async fn a_broken_or_missing_index_is_rebuilt_and_reported_once() {
    for (broken, message) in [
        (Some("{\"scripts\": [{\"na"), "index.json was broken ("),
        (Some(""), "index.json was broken ("),
        (Some("[]"), "index.json was broken ("),
        (Some("\u{0}\u{0}"), "index.json was broken ("),
        (None, "index.json was missing; "),
    ] {
        let kit = Kit::new();
        kit.save("s", "1").await;
        let whole = kit.text("index.json");
        match broken {
            Some(text) => kit.put("index.json", text),
            None => std::fs::remove_file(kit.path("index.json")).unwrap(),
        }
        let (names, notes) = kit.list().await;
        assert_eq!((names.len(), notes.len()), (1, 1), "{broken:?}");
        assert!(notes[0].starts_with(message), "{notes:?}");
        assert!(notes[0].ends_with("it was rebuilt from the folders"), "{notes:?}");
        assert_eq!(kit.text("index.json"), whole);
        assert_eq!(kit.list().await.1, [""; 0]);
    }
}

#[tokio::test]
async fn an_index_that_is_a_folder_is_moved_away() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    std::fs::remove_file(kit.path("index.json")).unwrap();
    kit.put("index.json/x", "1");
    assert_eq!(kit.list().await.1.len(), 1);
    assert_eq!(kit.json("index.json")["scripts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn broken_metadata_hides_one_script_and_is_reported() {
    let kit = Kit::new();
    kit.save("fine", "1").await;
    kit.save("torn", "1").await;
    kit.put("torn/metadata.json", "{\"name\": \"to");
    let (names, notes) = kit.list().await;
    assert_eq!(names, ["fine"]);
    assert_eq!(
        notes,
        ["script \"torn\" cannot be used: metadata.json: EOF while parsing a string at line 1 \
          column 12; repair its files, or delete it"]
    );
    let err = kit.library.get("torn", None).await.unwrap_err();
    assert_eq!((err.to_string(), err.code()), (notes[0].clone(), "SCRIPT_UNUSABLE"));
    assert_eq!(kit.library.save(draft("torn", "2")).await.unwrap_err().code(), "SCRIPT_UNUSABLE");
    kit.library.delete("torn").await.unwrap();
    assert_eq!(kit.list().await.1, [""; 0]);
}

#[tokio::test]
async fn a_hidden_script_is_listed_again_after_its_repair() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    let whole = kit.text("s/metadata.json");
    kit.put("s/metadata.json", "{}}");
    assert_eq!(kit.list().await.0, [""; 0]);
    kit.put("s/metadata.json", &whole);
    assert_eq!(kit.list().await, (vec!["s".to_owned()], Vec::new()));
}

#[tokio::test]
async fn a_save_interrupted_before_the_code_leaves_the_old_version() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    let old = kit.text("s/metadata.json");
    let next = ScriptDraft { description: "new".to_owned(), ..draft("s", "2") };
    kit.library.save(next).await.unwrap();
    // The version was written, but neither code nor metadata were replaced.
    kit.put("s/metadata.json", &old);
    kit.put("s/script.py", "1");
    let script = kit.library.get("s", None).await.unwrap();
    assert_eq!((script.code.as_str(), script.version), ("1", 1));
    assert!(kit.library.get("s", Some(2)).await.is_err());
    assert_eq!(kit.save("s", "3").await.version, 2);
    assert_eq!(kit.code("s", Some(2)).await, "3");
}

#[tokio::test]
async fn a_save_interrupted_after_the_code_is_finished() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    let old = kit.text("s/metadata.json");
    let next = ScriptDraft { description: "new".to_owned(), ..draft("s", "2") };
    kit.library.save(next).await.unwrap();
    kit.put("s/metadata.json", &old);
    let script = kit.library.get("s", None).await.unwrap();
    assert_eq!((script.code.as_str(), script.version), ("2", 2));
    assert_eq!(script.meta.description, "new");
    assert_eq!(kit.json("s/metadata.json")["description"], "new");
}

#[tokio::test]
async fn temporary_files_of_a_killed_process_are_removed() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    kit.put(".new-half/script.py", "1");
    kit.put(".new-half/versions/1/script.py", "1");
    kit.put(".gone-old/script.py", "1");
    kit.put(".index.json.77.0.new", "{\"scr");
    kit.put("s/.script.py.77.0.new", "pri");
    kit.put("s/.metadata.json.77.1.new", "{");
    kit.put("s/versions/.new/script.py", "pri");
    assert_eq!(kit.list().await, (vec!["s".to_owned()], Vec::new()));
    assert_eq!(kit.code("s", None).await, "1");
    for left in [".new-half", ".gone-old", ".index.json.77.0.new"] {
        assert!(!kit.path(left).exists(), "{left}");
    }
    kit.save("s", "2").await;
    for left in ["s/.script.py.77.0.new", "s/.metadata.json.77.1.new", "s/versions/.new"] {
        assert!(!kit.path(left).exists(), "{left}");
    }
}

#[tokio::test]
async fn a_damaged_version_does_not_hide_others() {
    let kit = Kit::new();
    for code in ["1", "2", "3"] {
        kit.save("s", code).await;
    }
    kit.put("s/versions/2/metadata.json", "{");
    let numbers: Vec<u32> = kit
        .library
        .list_versions("s")
        .await
        .unwrap()
        .iter()
        .map(|version| version.version)
        .collect();
    assert_eq!(numbers, [3, 1]);
    assert_eq!(kit.library.get("s", Some(2)).await.unwrap_err().code(), "SCRIPT_UNUSABLE");
}
