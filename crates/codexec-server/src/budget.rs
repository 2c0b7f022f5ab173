/// How many characters of a text an agent gets. One budget holds on every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub chars: usize,
    pub head: usize,
    pub tail: usize,
}

impl Budget {
    pub const DEFAULT: Budget = Budget { chars: 10_000, head: 4_000, tail: 4_000 };

    /// Half of it, where two texts share one.
    #[must_use]
    pub fn halved(self) -> Budget {
        Budget { chars: self.chars / 2, head: self.head / 2, tail: self.tail / 2 }
    }

    /// What is left of it beside a text of this length.
    #[must_use]
    pub fn without(self, chars: usize) -> Budget {
        let half = chars.div_ceil(2);
        let chars = self.chars.saturating_sub(chars);
        // Settings may have made one end much longer than the other.
        let head = self.head.saturating_sub(half).min(chars);
        let tail = self.tail.saturating_sub(half).min(chars - head);
        Budget { chars, head, tail }
    }

    /// The two ends of a text that does not fit, and how many characters are between them.
    pub(crate) fn ends(self, text: &str) -> Option<(&str, &str, usize)> {
        // A text has at most as many characters as bytes: only a long one is worth counting.
        let total = if text.len() > self.chars { text.chars().count() } else { 0 };
        if total <= self.chars {
            return None;
        }
        let mut places = text.char_indices().map(|(at, _)| at);
        let head_end = places.nth(self.head).unwrap_or(text.len());
        let tail_start = places.nth_back(self.tail.saturating_sub(1)).unwrap_or(head_end);
        let head = text.get(..head_end).unwrap_or_default();
        let tail = text.get(tail_start..).filter(|_| self.tail > 0).unwrap_or_default();
        Some((head, tail, total - self.head - self.tail))
    }

    /// The text if it fits; else its two ends, with the cut declared first. `whole` says where
    /// the whole is kept.
    pub fn cut(self, text: &str, whole: &str) -> String {
        let Some((head, tail, left_out)) = self.ends(text) else { return text.to_owned() };
        let (shown, tailed) = (self.head, self.tail);
        let total = left_out + shown + tailed;
        format!(
            "[cut: {total} characters, the first {shown} and the last {tailed} are shown; {whole}]\n\
             {head}\n[... {left_out} characters left out ...]\n{tail}"
        )
    }
}

#[cfg(test)]
mod tests;
