//! Which words stand for which, read from `thesaurus.txt`.

use std::{collections::HashMap, sync::LazyLock};

use super::stem::stem;

/// A stem that may be met instead of another one.
pub(super) struct Kin {
    pub(super) stem: String,
    pub(super) kind: Kind,
}

/// The nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Same,
    SaidFor,
    Near,
}

const TEXT: &str = include_str!("thesaurus.txt");
const SAME: f32 = 0.75;
const SAID_FOR: f32 = 0.9;
const NEAR: f32 = 0.45;

impl Kind {
    /// What meeting it is worth, beside 1 for the word itself.
    pub(super) fn share(self) -> f32 {
        match self {
            Kind::Same => SAME,
            Kind::SaidFor => SAID_FOR,
            Kind::Near => NEAR,
        }
    }
}

/// What may stand where this stem was asked for, without itself. The stems of a phrase are joined
/// by `_`.
pub(super) fn kin(of: &str) -> &'static [Kin] {
    static TABLE: LazyLock<HashMap<String, Vec<Kin>>> = LazyLock::new(read);
    TABLE.get(of).map_or(&[], Vec::as_slice)
}

fn read() -> HashMap<String, Vec<Kin>> {
    let mut table: HashMap<String, Vec<Kin>> = HashMap::new();
    for group in TEXT.lines().filter_map(Group::read) {
        for asked in &group.asked {
            for met in group.met.iter().filter(|met| *met != asked) {
                let kin = table.entry(asked.clone()).or_default();
                match kin.iter_mut().find(|kin| kin.stem == *met) {
                    Some(known) => known.kind = known.kind.min(group.kind),
                    None => kin.push(Kin { stem: met.clone(), kind: group.kind }),
                }
            }
        }
    }
    table
}

/// The stem of each of its words.
fn phrase_stem(words: &str) -> String {
    words.split('_').map(stem).collect::<Vec<String>>().join("_")
}

struct Group {
    asked: Vec<String>,
    met: Vec<String>,
    kind: Kind,
}

impl Group {
    /// `None` for comments, empty lines, and what is no group.
    fn read(line: &str) -> Option<Group> {
        let stems =
            |words: &str| words.split_whitespace().map(phrase_stem).collect::<Vec<String>>();
        let (mark, words) = line.split_once(' ')?;
        let (asked, met, kind) = match mark {
            "=" => (stems(words), stems(words), Kind::Same),
            "~" => (stems(words), stems(words), Kind::Near),
            ">" => {
                let (asked, met) = words.split_once(" : ")?;
                (stems(asked), stems(met), Kind::SaidFor)
            }
            _ => return None,
        };
        Some(Group { asked, met, kind })
    }
}

#[cfg(test)]
mod tests;
