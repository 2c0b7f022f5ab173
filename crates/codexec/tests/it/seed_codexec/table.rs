//! The table of own functions lists exactly what clients and code can call.

use codexec_functions::{ArgumentNeed, ArgumentType, CallSyntax, FunctionSpec, OwnFunction};
use codexec_types::Language;
use serde_json::{Map, Value, json};

use super::Seed;

/// The arguments that the function cannot do without, and one that no function has.
fn arguments_with_an_unknown_one(spec: &FunctionSpec) -> Value {
    let required = spec.arguments().filter(|one| one.need == ArgumentNeed::Required);
    let mut args: Map<String, Value> = required
        .map(|one| {
            assert_eq!(one.kind, ArgumentType::Text, "{}", one.name);
            (one.name.to_owned(), json!("x"))
        })
        .collect();
    args.insert("no_such_argument".to_owned(), json!(1));
    Value::Object(args)
}

/// The arguments that the function names in its refusal.
#[track_caller]
fn allowed_fields(message: &str) -> Vec<String> {
    assert!(message.contains("no_such_argument: unknown; "), "{message}");
    let named = message.split_once("allowed fields: ").map_or("", |(_, named)| named);
    let mut named: Vec<String> =
        named.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    named.sort();
    named
}

#[test]
fn functions_take_the_arguments_of_the_table() {
    let seed = &mut Seed::start();
    for spec in OwnFunction::ALL.iter().map(|function| function.spec()) {
        let args = arguments_with_an_unknown_one(spec);
        let message = match (spec.tool, spec.guest) {
            (Some(_), _) => seed.refused(spec.name, &args).1,
            (None, Some(guest)) => {
                let code = format!(
                    "(await {}.{}({args}).catch((error) => error.message))",
                    guest.group, guest.name
                );
                let run = json!({"language": "javascript", "code": code});
                let said = seed.done("execute_code", &run)["result"].clone();
                said.as_str().expect("a message").to_owned()
            }
            // The command line has its own check for unknown options.
            (None, None) => continue,
        };
        let mut expected: Vec<String> = spec.arguments().map(|one| one.name.to_owned()).collect();
        expected.sort();
        assert_eq!(allowed_fields(&message), expected, "{}", spec.name);
    }
}

#[test]
fn code_has_the_functions_of_the_table() {
    let seed = &mut Seed::start();
    for language in Language::ALL {
        let Some(syntax) = CallSyntax::of(language) else { continue };
        let names: Vec<String> = OwnFunction::ALL
            .iter()
            .filter_map(|function| function.spec().guest)
            .map(|guest| format!("{}.{}", guest.group, guest.name_in(syntax)))
            .collect();
        let code = match syntax {
            CallSyntax::JavaScript => {
                format!("[{}].every((one) => typeof one === 'function')", names.join(", "))
            }
            CallSyntax::Python => format!("all(callable(one) for one in [{}])", names.join(", ")),
        };
        let ran = seed.done("execute_code", &json!({"language": language.name(), "code": code}));
        assert_eq!(ran["result"], true, "{language}: {ran}");
    }
}
