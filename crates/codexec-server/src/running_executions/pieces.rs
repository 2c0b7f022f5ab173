//! Output in pieces of one stream each.

use codexec_types::{GuestOutput, OutputStream};

/// Returns the last `max_bytes` of an output in pieces of one stream each, and how many bytes were
/// cut off before them.
pub fn last_pieces(output: &GuestOutput, max_bytes: usize) -> (usize, Vec<(OutputStream, String)>) {
    let all = output.text();
    let cut = all.ceil_char_boundary(all.len().saturating_sub(max_bytes));
    let mut pieces = Vec::new();
    let mut add = |stream, from: usize, to: usize| {
        if let Some(text) = all.get(from.max(cut)..to).filter(|text| !text.is_empty()) {
            pieces.push((stream, text.to_owned()));
        }
    };
    let mut from = 0;
    for (start, end) in output.errors() {
        add(OutputStream::Out, from, *start);
        add(OutputStream::Err, *start, *end);
        from = *end;
    }
    add(OutputStream::Out, from, all.len());
    (cut, pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pieces_keep_their_streams() {
        let mut output = GuestOutput::default();
        for (stream, text) in [
            (OutputStream::Err, "a"),
            (OutputStream::Out, "1"),
            (OutputStream::Err, "bc"),
            (OutputStream::Out, "2"),
        ] {
            output.push(stream, text);
        }
        let piece = |stream, text: &str| (stream, text.to_owned());
        let last = vec![piece(OutputStream::Err, "c"), piece(OutputStream::Out, "2")];
        assert_eq!(last_pieces(&output, 2), (3, last));
        assert_eq!(last_pieces(&output, 9).1.len(), 4);
    }
}
