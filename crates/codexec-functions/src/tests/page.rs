//! Writes docs/reference/own-functions.md.

use codexec_types::Language;

use crate::{
    Argument, ArgumentNeed, ArgumentType, CallSyntax, FunctionSpec, OwnFunction, ToolEffect,
};

pub(super) fn page() -> String {
    let (binding, other): (Vec<Language>, Vec<Language>) =
        Language::ALL.into_iter().partition(|language| CallSyntax::of(*language).is_some());
    let mut page = format!(
        "# Own functions\n\n\
         Made from the table in `crates/codexec-functions`.\n\n\
         Clients call these functions as tools of the toolset `codexec`, people as commands, and \
         code by their names in {}.\n\
         Code in {} cannot call them.\n\
         In tool filters they are tools of a server called `codexec`, for example \
         `codexec.run_script`.\n\
         Arguments marked \"not listed\" are missing in the tool's schema, to save tokens; the \
         function takes them all the same.\n",
        names(&binding),
        names(&other),
    );
    for function in OwnFunction::ALL {
        page.push_str(&section(function.spec()));
    }
    page
}

fn names(languages: &[Language]) -> String {
    let names: Vec<&str> = languages.iter().map(|language| language.name()).collect();
    names.join(", ")
}

fn section(spec: &FunctionSpec) -> String {
    let mut text = format!("\n## {}\n\n{}\n\n", spec.name, spec.description);
    match spec.tool {
        Some(tool) => text.push_str(&format!(
            "- tool \"{}\": {}\n",
            tool.title,
            match tool.effect {
                ToolEffect::Reads => "only reads",
                ToolEffect::Adds => "adds, and changes nothing else",
                ToolEffect::Removes => "removes",
                ToolEffect::Runs => "runs code",
            }
        )),
        None => text.push_str("- not a tool\n"),
    }
    if let Some(guest) = spec.guest {
        let positional = guest.positional.join(", ");
        let mut names =
            vec![guest.name_in(CallSyntax::Python), guest.name_in(CallSyntax::JavaScript)];
        names.dedup();
        let names: Vec<String> =
            names.iter().map(|name| format!("`{}.{name}({positional})`", guest.group)).collect();
        text.push_str(&format!("- in code: {}\n", names.join(" or ")));
    }
    if let Some(command) = spec.command {
        text.push_str(&format!("- command: `{command}`\n"));
    }
    if spec.arguments().next().is_some() {
        text.push_str("\n| argument | type | | description |\n|---|---|---|---|\n");
    }
    for argument in spec.arguments() {
        text.push_str(&row(argument));
    }
    text
}

fn row(argument: &Argument) -> String {
    let kind = match argument.kind {
        ArgumentType::Text => "string".to_owned(),
        ArgumentType::Texts => "array of strings".to_owned(),
        ArgumentType::Integer => "integer".to_owned(),
        ArgumentType::Boolean => "boolean".to_owned(),
        ArgumentType::Object => "object".to_owned(),
        ArgumentType::Json => "any JSON".to_owned(),
        ArgumentType::Language => names(&Language::ALL),
        ArgumentType::Choice(words) => words.join(", "),
    };
    let need = match argument.need {
        ArgumentNeed::Required => "required",
        ArgumentNeed::Expected => "required in a tool call",
        ArgumentNeed::Optional if argument.listing == crate::ArgumentListing::Hidden => {
            "not listed"
        }
        ArgumentNeed::Optional => "",
    };
    format!("| `{}` | {kind} | {need} | {} |\n", argument.name, argument.description)
}
