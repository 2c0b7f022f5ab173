//! The arguments of `codexec token`.

use std::time::Duration;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; it is shown only once
    Create(CreateArgs),
    /// List tokens, their scopes and when they expire
    List(ListArgs),
    /// Make a token invalid at once, also in running servers
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The owner's name: 1 to 64 of A-Z a-z 0-9 _ . -
    pub(crate) name: String,
    /// What the token may do: read, write, everyone (see what others ran), toolset:NAME,
    /// server:NAME, language:NAME, files:none, files:read, limit:timeout-ms=N, limit:tool-calls=N,
    /// limit:requests-per-minute=N; default: everything, but only its own records
    #[arg(short, long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// When the token becomes invalid, for example 12h or 30d; default: never
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) expires_in: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let help = || "write it like 30m, 12h or 30d".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(help)?;
    let (number, unit) = text.split_at(split);
    let number: u32 = number.parse().map_err(|_| help())?;
    let unit_s = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(help()),
    };
    Ok(Duration::from_secs(u64::from(number) * unit_s))
}
