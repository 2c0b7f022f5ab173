//! `codexec tools stats`: the tokens that codexec saves.

use std::io::Write as _;

use codexec_gateway::ServerCost;
use serde_json::json;

use crate::parts::Parts;

/// A rough average over tokenizers, enough to show the order of magnitude.
const CHARACTERS_PER_TOKEN: usize = 4;
const BAR: usize = 30;

pub(super) async fn print(parts: &Parts, as_json: bool) -> anyhow::Result<()> {
    let costs = parts.gateway.measure_costs(&parts.config.policy.tools).await;
    let tools: usize = costs.iter().map(|cost| cost.tools).sum();
    let all = count_tokens(costs.iter().map(|cost| cost.characters).sum());
    let (own_tools, own_characters) = codexec_server::mcp::measure_tool_list();
    let own = count_tokens(own_characters);
    let mut out = std::io::stdout();
    if as_json {
        let servers: Vec<_> = costs
            .iter()
            .map(|cost| {
                let tokens = count_tokens(cost.characters);
                json!({"server": cost.server, "tools": cost.tools, "tokens": tokens})
            })
            .collect();
        let stats = json!({
            "servers": servers,
            "tools": tools,
            "tokens": all,
            "listed_tools": own_tools,
            "listed_tokens": own,
            "saved": saved_share(all, own),
        });
        writeln!(out, "{stats}")?;
        return Ok(());
    }
    for line in table(costs) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{tools} tools cost about {} tokens if each is listed.", group_digits(all))?;
    let (saved, own) = (saved_share(all, own), group_digits(own));
    if saved > 0.0 {
        let percent = saved * 100.0;
        writeln!(
            out,
            "codexec lists {own_tools} instead: about {own} tokens, {percent:.1} % less."
        )?;
    } else {
        writeln!(
            out,
            "codexec lists {own_tools} of its own: about {own} tokens. With so few tools it saves none."
        )?;
    }
    writeln!(out, "(One token is counted as {CHARACTERS_PER_TOKEN} characters of JSON.)")?;
    Ok(())
}

/// Formats a table with a bar for each server, most tokens first.
fn table(mut costs: Vec<ServerCost>) -> Vec<String> {
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.characters));
    let most = costs.first().map_or(1, |cost| cost.characters.max(1));
    let width = costs.iter().map(|cost| cost.server.chars().count()).max().unwrap_or(0).max(6);
    let head = format!("{:<width$}  {:>5}  {:>8}", "server", "tools", "tokens");
    let lines = costs.iter().map(|cost| {
        let bar = "█".repeat((cost.characters * BAR).div_ceil(most));
        let count = group_digits(count_tokens(cost.characters));
        format!("{:<width$}  {:>5}  {count:>8}  {bar}", cost.server, cost.tools)
            .trim_end()
            .to_owned()
    });
    std::iter::once(head).chain(lines).collect()
}

fn count_tokens(characters: usize) -> usize {
    characters / CHARACTERS_PER_TOKEN
}

/// Returns the share of tokens that codexec saves; 0 if its own tools cost as much.
fn saved_share(all: usize, own: usize) -> f64 {
    if all <= own { 0.0 } else { 1.0 - own as f64 / all as f64 }
}

/// Formats `12345` as `12,345`.
fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let actual = [0, 999, 1_000, 1_234_567].map(group_digits);
        assert_eq!(actual, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_saving_is_never_negative() {
        let actual =
            [(0, 400), (399, 400), (400, 400), (1_600, 400)].map(|(a, b)| saved_share(a, b));
        assert_eq!(actual, [0.0, 0.0, 0.0, 0.75]);
    }

    #[test]
    fn the_most_expensive_server_comes_first() {
        let cost = |server: &str, tools, characters| ServerCost {
            server: server.to_owned(),
            tools,
            characters,
        };
        let actual = table(vec![cost("idle", 0, 0), cost("a-long-name", 54, 40_000)]);
        let bar = "█".repeat(BAR);
        let expected = [
            "server       tools    tokens".to_owned(),
            format!("a-long-name     54    10,000  {bar}"),
            "idle             0         0".to_owned(),
        ];
        assert_eq!(actual, expected);
    }
}
