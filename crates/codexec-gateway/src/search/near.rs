//! Words that differ by a typing error.

/// How much one word may be the other, mistyped: 0 for not at all. `asked` is not `known`.
pub(super) fn likeness(asked: &str, known: &str) -> f32 {
    let (a, b) = (asked.as_bytes(), known.as_bytes());
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    let allowed = match short {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    if long - short > allowed || a.iter().zip(b).take(2).all(|(x, y)| x != y) {
        return 0.0;
    }
    match edits(a, b, allowed) {
        Some(1) => 0.7,
        Some(_) => 0.5,
        None => 0.0,
    }
}

/// Letters more, fewer, changed, or swapped with their neighbour, if they are at most `most`.
fn edits(a: &[u8], b: &[u8], most: usize) -> Option<usize> {
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
        if next.iter().min().is_some_and(|least| *least > most) {
            return None;
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests;
