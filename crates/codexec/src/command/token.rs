use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context as _;
use codexec_http::{TokenFile, TokenRecord};
use codexec_types::format_rfc3339;
use serde_json::{Value, json};

use super::terminal_text::table;
use crate::cli::token::{CreateArgs, TokenCommand};

pub(super) fn run(args: TokenCommand, home: &Path) -> anyhow::Result<ExitCode> {
    let file = TokenFile::at(home);
    let mut out = std::io::stdout();
    match args {
        TokenCommand::Create(args) => create(&file, &args)?,
        TokenCommand::List(args) => {
            let tokens = file.list()?;
            if args.json {
                let tokens: Vec<Value> = tokens.iter().map(describe).collect();
                writeln!(out, "{}", json!({"tokens": tokens}))?;
            } else {
                let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
                write!(out, "{}", table(&["NAME", "SCOPES", "CREATED", "EXPIRES"], &rows))?;
            }
        }
        TokenCommand::Revoke(args) => {
            file.revoke(&args.name)?;
            if args.json {
                writeln!(out, "{}", json!({"revoked": args.name}))?;
            } else {
                writeln!(std::io::stderr(), "the token {} is revoked", args.name)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(file: &TokenFile, args: &CreateArgs) -> anyhow::Result<()> {
    let expires = match args.expires_in {
        Some(after) => Some(SystemTime::now().checked_add(after).context("--expires-in")?),
        None => None,
    };
    let token = file.create(&args.name, &args.scopes, expires)?;
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", json!({"name": args.name, "token": token}))?;
    } else {
        writeln!(std::io::stderr(), "codexec keeps only a hash of this token; copy it now:")?;
        writeln!(out, "{token}")?;
    }
    Ok(())
}

fn describe(token: &TokenRecord) -> Value {
    json!({
        "name": token.name.as_str(),
        "scopes": token.scopes,
        "created": format_rfc3339(token.created),
        "expires": token.expires.map(format_rfc3339),
        "expired": token.is_expired(SystemTime::now()),
    })
}

fn row(token: &TokenRecord) -> Vec<String> {
    let scopes = match token.scopes.is_empty() {
        true => "write".to_owned(),
        false => token.scopes.join(" "),
    };
    let expires = match token.expires {
        Some(_) if token.is_expired(SystemTime::now()) => "expired".to_owned(),
        Some(at) => format_rfc3339(at),
        None => "never".to_owned(),
    };
    vec![token.name.as_str().to_owned(), scopes, format_rfc3339(token.created), expires]
}
