//! `intl.json` has Node's own values; `prelude/locales/generate.cjs` writes it.

use serde_json::Value;

use super::*;

fn table() -> Value {
    serde_json::from_str(include_str!("intl.json")).expect("a table")
}

#[test]
fn values_are_those_of_node() {
    let table = table();
    let expressions = table["expressions"].as_array().expect("a list");
    let code: Vec<String> = expressions
        .iter()
        .map(|row| {
            let expression = row[0].as_str().expect("text");
            format!(
                "(() => {{ try {{ return {expression} }} catch (e) {{ return String(e) }} }})()"
            )
        })
        .collect();
    let said = ending(&javascript(&format!("[{}]", code.join(",\n"))));
    let values: Vec<Value> = serde_json::from_str(&said).expect(&said);
    assert_eq!(values.len(), expressions.len());
    for (row, value) in expressions.iter().zip(&values) {
        assert_eq!(value, &row[1], "{}", row[0]);
    }
}

#[test]
fn zones_have_the_offsets_of_node() {
    let table = table();
    let times = table["times"].as_array().expect("a list");
    for (zone, offsets) in table["offsets"].as_object().expect("an object") {
        for (time, minutes) in times.iter().zip(offsets.as_array().expect("a list")) {
            let at = time.as_i64().expect("a time");
            let offset = crate::zone::find_offset(zone, at).map(|offset| f64::from(offset) / 60.0);
            assert_eq!(offset, minutes.as_f64(), "{zone} at {at}");
        }
    }
}

#[test]
fn what_is_not_supported_is_an_error() {
    for (code, expected) in [
        ("(1).toLocaleString('ar')", "RangeError: the locale ar is not supported here"),
        ("(1).toLocaleString('x')", "RangeError: Incorrect locale information provided: x"),
        ("new Date(0).toLocaleString('en', {timeZone: 'Mars'})", "RangeError: Invalid time zone"),
        ("new Date(0).toLocaleString('en', {era: 'long'})", "RangeError: the option era"),
        (
            "new Intl.NumberFormat('en', {style: 'unit', unit: 'liter'})",
            "RangeError: the option unit of Intl.NumberFormat",
        ),
        ("new Intl.Segmenter('en')", "RangeError: Intl.Segmenter is not supported here"),
        ("'中'.localeCompare('文', 'zh')", "RangeError: the order of"),
        (
            "new Intl.NumberFormat('en', {style: 'currency'})",
            "TypeError: Currency code is required",
        ),
        ("new Intl.DateTimeFormat('en').format(NaN)", "RangeError: Invalid time value"),
    ] {
        let said = ending(&javascript(code));
        assert!(said.contains(expected), "{code}: {said}");
    }
}
