//! Compares words that may differ by a typo.

/// Returns how likely `typed` is a typo of `known`; 0 if it is not. The two must differ.
pub(super) fn typo_similarity(typed: &str, known: &str) -> f32 {
    let (a, b) = (typed.as_bytes(), known.as_bytes());
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    let allowed = match short {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    if long - short > allowed || a.iter().zip(b).take(2).all(|(x, y)| x != y) {
        return 0.0;
    }
    match edit_distance(a, b, allowed) {
        Some(1) => 0.7,
        Some(_) => 0.5,
        None => 0.0,
    }
}

/// Returns the number of inserted, deleted, changed and swapped letters, if it is at most `max`.
fn edit_distance(a: &[u8], b: &[u8], max: usize) -> Option<usize> {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let changed = cell(&row, j) + usize::from(x != y);
            let one_more = cell(&row, j + 1).min(cell(&next, j)) + 1;
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            let swapped = if is_swap { cell(&before, j - 1) + 1 } else { usize::MAX };
            next.push(changed.min(one_more).min(swapped));
        }
        if next.iter().min().is_some_and(|least| *least > max) {
            return None;
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|edits| *edits <= max)
}

#[cfg(test)]
mod tests;
