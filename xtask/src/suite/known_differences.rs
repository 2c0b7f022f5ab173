use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

const FENCE: &str = "```text cpython";

/// The intended differences: the fenced list in docs/limitations.md. A line that starts with `#`
/// is the reason for the names below it; a name may end with `*`.
pub(super) struct KnownDifferences(Vec<(String, String)>);

impl KnownDifferences {
    pub(super) fn read(path: &Path) -> Result<KnownDifferences> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        KnownDifferences::parse(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn parse(text: &str) -> Result<KnownDifferences> {
        let lines = text.lines().skip_while(|line| *line != FENCE).skip(1);
        let mut known = Vec::new();
        let mut reason = None;
        for line in lines.take_while(|line| *line != "```").map(str::trim) {
            match (line.strip_prefix('#'), reason) {
                (Some(why), _) => reason = Some(why.trim()),
                (None, Some(why)) => known.push((line.to_owned(), why.to_owned())),
                (None, None) => bail!("{line:?} in the list after {FENCE} has no reason"),
            }
        }
        Ok(KnownDifferences(known))
    }

    pub(super) fn reason(&self, test: &str) -> Option<&str> {
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => test.starts_with(start),
            None => test == pattern,
        };
        self.0.iter().find(|(pattern, _)| fits(pattern)).map(|(_, why)| why.as_str())
    }
}

#[cfg(test)]
mod tests;
