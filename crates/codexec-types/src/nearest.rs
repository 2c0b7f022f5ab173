//! "Did you mean": the names most like one that is not there.

/// A name is short; what is longer is like none, and costs nothing to say so.
const NAME_BYTES: usize = 256;
/// Pairs of letters that one search compares: some milliseconds. Names after that are not looked at.
const LETTERS: usize = 4_000_000;

/// The names most like `wanted`, best first: written in another way (`getIssue` for `get_issue`),
/// with its words in another order, mistyped, or a part of it.
pub fn nearest<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    if wanted.len() > NAME_BYTES {
        return Vec::new();
    }
    let mut left = LETTERS;
    let length = wanted.len();
    let wanted = Spelled::new(wanted);
    let mut near: Vec<(Likeness, &str)> = names
        .filter(|name| name.len() <= NAME_BYTES)
        // As they are, and with their words sorted.
        .take_while(|name| {
            let cost = 2 * length * name.len();
            let has_room = cost <= left;
            left = left.saturating_sub(cost);
            has_room
        })
        .filter_map(|name| Some((wanted.likeness(&Spelled::new(name))?, name)))
        .collect();
    near.sort();
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

/// A name as its words.
struct Spelled {
    /// In lower case, joined by `_`.
    whole: String,
    sorted: Vec<String>,
}

/// The best first: how they are alike, and by how many letters they are not.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Likeness(Kind, usize);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    SameWords,
    OneSlip,
    Part,
    Alike,
}

impl Spelled {
    fn new(name: &str) -> Spelled {
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
        Spelled { whole, sorted }
    }

    fn likeness(&self, other: &Spelled) -> Option<Likeness> {
        let (a, b) = (self.whole.as_str(), other.whole.as_str());
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let edits = edits(a.as_bytes(), b.as_bytes());
        // The words of both in the same order: what is left are the slips in them.
        let (x, y) = (self.sorted.join("_"), other.sorted.join("_"));
        let sorted_edits = self::edits(x.as_bytes(), y.as_bytes());
        let shared = self.sorted.iter().filter(|word| other.sorted.contains(word)).count();
        let words = self.sorted.len().max(other.sorted.len());
        let is_alike = edits <= a.len().max(b.len()) / 3 || (words > 1 && shared * 2 > words);
        if edits >= a.len().max(b.len()) {
            // Not a letter is the same.
            return None;
        }
        let kind = if self.sorted == other.sorted {
            Kind::SameWords
        } else if edits.min(sorted_edits) <= 1 {
            Kind::OneSlip
        } else if a.contains(b) || b.contains(a) {
            Kind::Part
        } else if is_alike {
            Kind::Alike
        } else {
            return None;
        };
        Some(Likeness(kind, edits))
    }
}

/// Letters more, fewer, changed, or swapped with their neighbour.
fn edits(a: &[u8], b: &[u8]) -> usize {
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
