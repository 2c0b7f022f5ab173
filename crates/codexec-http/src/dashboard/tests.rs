use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn list_files(folder: &Path, start: &str, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map_while(Result::ok) {
        let name = format!("{start}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => list_files(&entry.path(), &format!("{name}/"), names),
            false => drop(names.insert(name)),
        }
    }
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let mut files = BTreeSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard");
    list_files(&folder, "", &mut files);
    let embedded: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
    assert_eq!(files, embedded);
}

fn head(path: &str, tag: Option<&str>) -> Parts {
    let request = http::Request::get(path);
    let request = match tag {
        Some(tag) => request.header(IF_NONE_MATCH, tag),
        None => request,
    };
    request.body(()).expect("a request").into_parts().0
}

#[test]
fn a_known_version_is_not_sent_again() {
    let page = find(&Method::GET, "/").expect("the page");
    let first = page.answer(&head("/", None));
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(first.headers()["content-type"], "text/html; charset=utf-8");
    let tag = first.headers()[ETAG].to_str().expect("text").to_owned();
    for (known, status) in [
        (tag.clone(), StatusCode::NOT_MODIFIED),
        (format!("W/{tag}"), StatusCode::NOT_MODIFIED),
        (format!("\"other\", {tag}"), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        assert_eq!(page.answer(&head("/", Some(&known))).status(), status, "{known}");
    }
}

#[test]
fn only_embedded_files_are_found() {
    for (method, path, is_there) in [
        (Method::GET, "/assets/main.js", true),
        (Method::HEAD, "/assets/pages/run.js", true),
        (Method::POST, "/", false),
        (Method::GET, "/assets/", false),
        (Method::GET, "/assets/../Cargo.toml", false),
        (Method::GET, "/main.js", false),
    ] {
        assert_eq!(find(&method, path).is_some(), is_there, "{method} {path}");
    }
}

/// WEB-2 as far as the source shows it: nothing in our scripts turns text into HTML or code.
#[test]
fn web_2_no_script_makes_html_from_text() {
    let own = ASSETS.iter().filter(|asset| !asset.name.starts_with("vendor/"));
    for asset in own {
        let text = std::str::from_utf8(asset.content).expect("UTF-8");
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!text.contains(word), "{} contains {word}", asset.name);
        }
        assert!(!text.contains("localStorage.setItem(\"codexec-token"), "{}", asset.name);
    }
}
