//! Checks whether an installed version satisfies a request. Only good enough to tell that a package
//! is missing; the installers know all the rules.

use std::cmp::Ordering;

use codexec_types::{Language, PackageName};

pub(super) fn satisfies(package: &PackageName, version: &str) -> bool {
    let Some(wanted) = package.version() else { return true };
    match package.language() {
        Language::Python => wanted.split(',').all(|each| satisfies_pip(each, version)),
        _ => satisfies_npm(wanted, version),
    }
}

fn satisfies_pip(wanted: &str, version: &str) -> bool {
    let operators = ["==", "!=", "~=", ">=", "<=", ">", "<"];
    let split = operators.iter().find_map(|op| Some((*op, wanted.strip_prefix(op)?)));
    let Some((operator, wanted)) = split else { return true };
    let order = compare(version, wanted);
    match operator {
        "==" | "!=" => {
            let is_same = match wanted.strip_suffix(".*") {
                Some(start) => starts_with_numbers(version, start),
                None => order == Ordering::Equal && suffix(version) == suffix(wanted),
            };
            is_same == (operator == "==")
        }
        "~=" => {
            let start = wanted.rsplit_once('.').map_or(wanted, |(start, _)| start);
            order != Ordering::Less && starts_with_numbers(version, start)
        }
        ">=" => order != Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order == Ordering::Less,
    }
}

fn satisfies_npm(wanted: &str, version: &str) -> bool {
    let operators = [">=", "<=", ">", "<", "^", "~", "="];
    let split = operators.iter().find_map(|op| Some((*op, wanted.strip_prefix(op)?)));
    let (operator, wanted) = split.unwrap_or(("", wanted));
    if !wanted.starts_with(|c: char| c.is_ascii_digit()) {
        // A tag such as `latest`: only the registry knows its version.
        return true;
    }
    let order = compare(version, wanted);
    let parts: Vec<&str> = wanted.split('.').collect();
    match operator {
        ">=" => order != Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        "<" => order == Ordering::Less,
        "~" => {
            let start = parts.get(..2).unwrap_or(&parts).join(".");
            order != Ordering::Less && starts_with_numbers(version, &start)
        }
        "^" => {
            // Compatible up to the first number that is not zero.
            let zeros = parts.iter().take_while(|part| **part == "0").count();
            let start = parts.get(..=zeros).unwrap_or(&parts).join(".");
            order != Ordering::Less && starts_with_numbers(version, &start)
        }
        _ if parts.len() < 3 => starts_with_numbers(version, wanted),
        _ => version == wanted,
    }
}

/// Returns the leading numbers of a version.
fn parse_numbers(version: &str) -> Vec<u64> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let start = version.get(..end).unwrap_or_default();
    start.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Returns what follows the numbers: `rc1`, `-beta.2`.
fn suffix(version: &str) -> &str {
    version.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parse_numbers(a), parse_numbers(b));
    let at = |numbers: &[u64], n: usize| numbers.get(n).copied().unwrap_or(0);
    let pairs = (0..a.len().max(b.len())).map(|n| at(&a, n).cmp(&at(&b, n)));
    pairs.fold(Ordering::Equal, Ordering::then)
}

fn starts_with_numbers(version: &str, start: &str) -> bool {
    let (version, start) = (parse_numbers(version), parse_numbers(start));
    start.iter().enumerate().all(|(n, number)| version.get(n).copied().unwrap_or(0) == *number)
}

#[cfg(test)]
mod tests;
