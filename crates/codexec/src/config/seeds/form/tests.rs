use serde_json::json;

use super::*;

fn place() -> Place {
    Place {
        cores: 2,
        user_home: Some("/home/ann".into()),
        state: "/home/ann/.codexec".into(),
        here: Some("/srv/project".into()),
        variable: |_| None,
    }
}

#[track_caller]
fn check(form: Form, written: &Json, expected: &str) {
    let actual = match form.read(written, &place()) {
        Ok(Some(value)) => value.to_string(),
        Ok(None) => "nothing".to_owned(),
        Err(bad) => format!("it {bad}"),
    };
    assert_eq!(actual, expected, "{form:?} {written}");
}

#[test]
fn numbers_have_both_ends() {
    let form = Form::Number(1, 100);
    let range = "it is out of range; it must be 1 to 100";
    for (written, expected) in [
        (json!(1), "1"),
        (json!("100"), "100"),
        (json!(" 7 "), "7"),
        (json!(0), range),
        (json!("101"), range),
        (json!(-1), range),
        (json!(1.5), range),
        (json!("99999999999999999999999"), range),
        (json!("many"), range),
        (json!(true), range),
        (json!([1]), range),
        (json!({}), range),
    ] {
        check(form, &written, expected);
    }
    check(Form::Limit(10), &json!(0), "nothing");
    check(Form::Limit(10), &json!(10), "10");
    check(Form::Limit(10), &json!(11), "it is out of range; it must be 0 to 10");
}

#[test]
fn units_become_ours() {
    check(Form::Seconds(1, 120), &json!("30"), "30000");
    check(Form::Seconds(1, 120), &json!("121"), "it is out of range; it must be 1 to 120");
    check(Form::WholeSeconds(1, 86_400_000), &json!("900001"), "901");
    check(Form::WholeSeconds(1, 86_400_000), &json!("1"), "1");
    let time = "it is not a time; write it like 30s or 1m30s";
    for (written, expected) in [
        (json!("2m0s"), "120000"),
        (json!("1h"), "3600000"),
        (json!("500ms"), "500"),
        (json!("1m30s"), "90000"),
        (json!("2h"), "it is out of range; it must be 1 to 3600000"),
        (json!("99999999999999999999h"), time),
        (json!("18446744073709551615h"), "it is out of range; it must be 1 to 3600000"),
        (json!("0s"), "it is out of range; it must be 1 to 3600000"),
        (json!("30"), time),
        (json!("s"), time),
        (json!("-1s"), time),
        (json!(""), time),
        (json!(30), time),
    ] {
        check(Form::Written(1, 3_600_000), &written, expected);
    }
    let size = "it is not a size; write it like 512m or 1g";
    let range = "it is out of range; it must be 32 to 65536 MiB";
    for (written, expected) in [
        (json!("512m"), "512"),
        (json!("1G"), "1024"),
        (json!("64MiB"), "64"),
        (json!("65536k"), "64"),
        (json!("67108865"), "65"),
        (json!("1m"), range),
        (json!("65g"), range),
        (json!("18446744073709551615g"), range),
        (json!("1.5g"), size),
        (json!("m"), size),
        (json!("lots"), size),
        (json!(true), size),
    ] {
        check(Form::Memory(32, 65_536), &written, expected);
    }
    check(Form::Bytes(1, 16_384), &json!("52428800"), "50");
    check(Form::Bytes(1, 16_384), &json!("0"), "it is out of range; it must be 1 to 16384 MiB");
}

#[test]
fn words_and_flags() {
    let unknown = "it is not known; write true or false";
    for (written, expected) in [
        (json!("TRUE"), "true"),
        (json!("1"), "true"),
        (json!(false), "false"),
        (json!("0"), "false"),
        (json!("maybe"), unknown),
        (json!(1), unknown),
        (json!(["/a"]), unknown),
    ] {
        check(Form::Flag, &written, expected);
    }
    check(Form::FlagOrList, &json!(["/a"]), "true");
    check(Form::FlagOrList, &json!(false), "false");
    let word = Form::Word(&[("compact", "compact"), ("toon", "toon")]);
    check(word, &json!("TOON"), "\"toon\"");
    check(word, &json!("xml"), "it is not known; write compact or toon");
    let without = Form::Without(&["python"]);
    check(without, &json!(true), "nothing");
    check(without, &json!(false), "[\"typescript\", \"javascript\", \"bash\", \"node\"]");
}

#[test]
fn paths_are_from_here_or_from_home() {
    check(Form::Path, &json!("./audit.log"), "\"/srv/project/audit.log\"");
    check(Form::Path, &json!("~/audit.log"), "\"~/audit.log\"");
    check(Form::Path, &json!("a\0b"), "it is not a path");
    check(Form::Path, &json!(7), "it is not a text");
    check(Form::WholePath, &json!("python3"), "nothing");
    check(Form::WholePath, &json!("/usr/bin/python3"), "\"/usr/bin/python3\"");
    check(Form::Paths, &json!("/a::/b"), "[\"/a\", \"/b\"]");
    check(Form::Paths, &json!(["/a", "b"]), "[\"/a\", \"/srv/project/b\"]");
    let list = "it is not a list of texts, 1000 at most";
    check(Form::Paths, &json!([7]), list);
    check(Form::Paths, &json!(vec!["/a"; 1_001]), list);
    check(Form::Texts, &json!(["a"]), "[\"a\"]");
    check(Form::Texts, &json!("a"), "it is not a list of texts");
}
