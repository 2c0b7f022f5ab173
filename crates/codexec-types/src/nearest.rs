//! "Did you mean": the known names that are most similar to an unknown one.

/// Longer names are not compared.
const MAX_NAME_BYTES: usize = 256;
/// Maximum number of letter pairs that one search compares (some milliseconds). The remaining names
/// are skipped.
const MAX_LETTER_PAIRS: usize = 4_000_000;

/// Returns the names most similar to `wanted`, best first: spelled differently (`getIssue` for
/// `get_issue`), with the words in another order, mistyped, or a part of it.
pub fn find_nearest_names<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    if wanted.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let mut left = MAX_LETTER_PAIRS;
    let length = wanted.len();
    let wanted = NameWords::new(wanted);
    let mut near: Vec<(Likeness, &str)> = names
        .filter(|name| name.len() <= MAX_NAME_BYTES)
        // Each name is compared twice: as it is, and with its words sorted.
        .take_while(|name| {
            let cost = 2 * length * name.len();
            let has_room = cost <= left;
            left = left.saturating_sub(cost);
            has_room
        })
        .filter_map(|name| Some((wanted.likeness(&NameWords::new(name))?, name)))
        .collect();
    near.sort();
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

/// A name split into words.
struct NameWords {
    /// In lower case, joined with `_`.
    whole: String,
    sorted: Vec<String>,
}

/// Orders matches, best first: by kind, then by edit distance.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Likeness(MatchKind, usize);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum MatchKind {
    SameWords,
    OneTypo,
    Part,
    Alike,
}

impl NameWords {
    fn new(name: &str) -> NameWords {
        let mut whole = String::new();
        let mut before = None;
        for c in name.chars() {
            let is_hump = c.is_uppercase() && before.is_some_and(char::is_lowercase);
            if (is_hump || !c.is_alphanumeric()) && !whole.is_empty() && !whole.ends_with('_') {
                whole.push('_');
            }
            if c.is_alphanumeric() {
                whole.extend(c.to_lowercase());
            }
            before = Some(c);
        }
        let whole = whole.trim_end_matches('_').to_owned();
        let mut sorted: Vec<String> = whole.split('_').map(str::to_owned).collect();
        sorted.sort();
        NameWords { whole, sorted }
    }

    fn likeness(&self, other: &NameWords) -> Option<Likeness> {
        let (a, b) = (self.whole.as_str(), other.whole.as_str());
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let edits = edit_distance(a.as_bytes(), b.as_bytes());
        // With the words of both sorted, only typos remain.
        let (x, y) = (self.sorted.join("_"), other.sorted.join("_"));
        let sorted_edits = edit_distance(x.as_bytes(), y.as_bytes());
        let shared = self.sorted.iter().filter(|word| other.sorted.contains(word)).count();
        let words = self.sorted.len().max(other.sorted.len());
        let is_alike = edits <= a.len().max(b.len()) / 3 || (words > 1 && shared * 2 > words);
        if edits >= a.len().max(b.len()) {
            // No letter is the same.
            return None;
        }
        let kind = if self.sorted == other.sorted {
            MatchKind::SameWords
        } else if edits.min(sorted_edits) <= 1 {
            MatchKind::OneTypo
        } else if a.contains(b) || b.contains(a) {
            MatchKind::Part
        } else if is_alike {
            MatchKind::Alike
        } else {
            return None;
        };
        Some(Likeness(kind, edits))
    }
}

/// Returns the edit distance: insertions, deletions, substitutions and swaps of neighbours.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let changed = at(&row, j) + usize::from(x != y);
            let one_more = at(&row, j + 1).min(at(&next, j)) + 1;
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            let swapped = if is_swap { at(&before, j - 1) + 1 } else { usize::MAX };
            next.push(changed.min(one_more).min(swapped));
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests;
