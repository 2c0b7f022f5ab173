use serde_json::json;

use super::*;

fn host() -> UserEnvironment {
    UserEnvironment {
        home: Some("/home/ann".into()),
        current_dir: Some("/srv/project".into()),
        variable: |_| None,
    }
}

#[track_caller]
fn check(format: ValueFormat, written: &Json, expected: &str) {
    let actual = match format.read(written, &host()) {
        Ok(Some(value)) => value.to_string(),
        Ok(None) => "nothing".to_owned(),
        Err(bad) => format!("it {bad}"),
    };
    assert_eq!(actual, expected, "{format:?} {written}");
}

#[test]
fn numbers_are_checked_against_both_ends() {
    let format = ValueFormat::Number(1, 100);
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
        check(format, &written, expected);
    }
    check(ValueFormat::Limit(10), &json!(0), "nothing");
    check(ValueFormat::Limit(10), &json!(10), "10");
    check(ValueFormat::Limit(10), &json!(11), "it is out of range; it must be 0 to 10");
}

#[test]
fn units_are_converted() {
    check(ValueFormat::Seconds(1, 120), &json!("30"), "30000");
    check(ValueFormat::Seconds(1, 120), &json!("121"), "it is out of range; it must be 1 to 120");
    check(ValueFormat::WholeSeconds(1, 86_400_000), &json!("900001"), "901");
    check(ValueFormat::WholeSeconds(1, 86_400_000), &json!("1"), "1");
    let time = "it is not a duration; write it like 30s or 1m30s";
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
        check(ValueFormat::Duration(1, 3_600_000), &written, expected);
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
        check(ValueFormat::Memory(32, 65_536), &written, expected);
    }
    check(ValueFormat::Bytes(1, 16_384), &json!("52428800"), "50");
    check(
        ValueFormat::Bytes(1, 16_384),
        &json!("0"),
        "it is out of range; it must be 1 to 16384 MiB",
    );
}

#[test]
fn words_and_flags() {
    let unknown = "it is invalid; write true or false";
    for (written, expected) in [
        (json!("TRUE"), "true"),
        (json!("1"), "true"),
        (json!(false), "false"),
        (json!("0"), "false"),
        (json!("maybe"), unknown),
        (json!(1), unknown),
        (json!(["/a"]), unknown),
    ] {
        check(ValueFormat::Flag, &written, expected);
    }
    check(ValueFormat::FlagOrList, &json!(["/a"]), "true");
    check(ValueFormat::FlagOrList, &json!(false), "false");
    let word = ValueFormat::Word(&[("compact", "compact"), ("toon", "toon")]);
    check(word, &json!("TOON"), "\"toon\"");
    check(word, &json!("xml"), "it is invalid; write compact or toon");
    let without = ValueFormat::RemoveLanguages(&["python"]);
    check(without, &json!(true), "nothing");
    check(without, &json!(false), "[\"typescript\", \"javascript\", \"bash\", \"node\"]");
}

#[test]
fn paths_are_relative_to_the_current_directory() {
    check(ValueFormat::Path, &json!("./audit.log"), "\"/srv/project/audit.log\"");
    check(ValueFormat::Path, &json!("~/audit.log"), "\"~/audit.log\"");
    check(ValueFormat::Path, &json!("a\0b"), "it is not a path");
    check(ValueFormat::Path, &json!(7), "it is not a string");
    check(ValueFormat::AbsolutePath, &json!("python3"), "nothing");
    check(ValueFormat::AbsolutePath, &json!("/usr/bin/python3"), "\"/usr/bin/python3\"");
    check(ValueFormat::Paths, &json!("/a::/b"), "[\"/a\", \"/b\"]");
    check(ValueFormat::Paths, &json!(["/a", "b"]), "[\"/a\", \"/srv/project/b\"]");
    let list = "it is not a list of at most 1000 strings";
    check(ValueFormat::Paths, &json!([7]), list);
    check(ValueFormat::Paths, &json!(vec!["/a"; 1_001]), list);
    check(ValueFormat::Strings, &json!(["a"]), "[\"a\"]");
    check(ValueFormat::Strings, &json!("a"), "it is not a list of strings");
}
