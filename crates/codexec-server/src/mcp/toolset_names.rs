//! The names of toolsets, as users write them.

use super::CompactTools;

/// The names of the chosen toolsets: at least one, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsetNames(Vec<&'static str>);

/// The reason why a list of toolsets is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToolset {
    #[error("there is no toolset {name:?}; there are {}", .known.join(", "))]
    Unknown { name: String, known: Vec<&'static str> },
    #[error("no toolset is named; there are {}", .known.join(", "))]
    Nothing { known: Vec<&'static str> },
}

impl ToolsetNames {
    /// Parses names in any order; a name may be a comma-separated list. `known` has all names, in
    /// order of precedence.
    pub fn parse<'a>(
        names: impl IntoIterator<Item = &'a str>,
        known: Vec<&'static str>,
    ) -> Result<ToolsetNames, InvalidToolset> {
        let mut wanted = Vec::new();
        for name in names.into_iter().flat_map(|name| name.split(',')).map(str::trim) {
            match known.contains(&name) {
                true => wanted.push(name),
                false if name.is_empty() => {}
                false => {
                    let name = name.chars().take(100).collect();
                    return Err(InvalidToolset::Unknown { name, known });
                }
            }
        }
        let chosen: Vec<&str> =
            known.iter().copied().filter(|name| wanted.contains(name)).collect();
        match chosen.is_empty() {
            true => Err(InvalidToolset::Nothing { known }),
            false => Ok(ToolsetNames(chosen)),
        }
    }

    pub fn names(&self) -> &[&'static str] {
        &self.0
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

impl Default for ToolsetNames {
    fn default() -> ToolsetNames {
        ToolsetNames(vec![CompactTools::NAME])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(names: &[&str]) -> Result<ToolsetNames, InvalidToolset> {
        ToolsetNames::parse(names.iter().copied(), vec!["codexec", "compact", "direct"])
    }

    #[test]
    fn names_are_parsed_and_put_in_fixed_order() {
        let both = Ok(ToolsetNames(vec!["compact", "direct"]));
        assert_eq!(parse(&["direct", "compact"]), both);
        assert_eq!(parse(&["direct, compact,direct"]), both);
        assert_eq!(parse(&["compact"]), Ok(ToolsetNames::default()));
        let nothing = parse(&[""]).expect_err("nothing").to_string();
        assert_eq!(nothing, "no toolset is named; there are codexec, compact, direct");
        let unknown = parse(&["compact,dircet"]).expect_err("unknown");
        let sentence = "there is no toolset \"dircet\"; there are codexec, compact, direct";
        assert_eq!(unknown.to_string(), sentence);
    }
}
