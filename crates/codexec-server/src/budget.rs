/// How many characters of a text an agent gets. All toolsets share one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextBudget {
    pub chars: usize,
    pub head: usize,
    pub tail: usize,
}

impl TextBudget {
    /// No limit, where no agent's context has to be saved.
    pub const UNLIMITED: TextBudget = TextBudget { chars: usize::MAX, head: 0, tail: 0 };
    pub const DEFAULT: TextBudget = TextBudget { chars: 10_000, head: 4_000, tail: 4_000 };

    /// Returns half of the budget, for two texts that share it.
    #[must_use]
    pub fn halved(self) -> TextBudget {
        TextBudget { chars: self.chars / 2, head: self.head / 2, tail: self.tail / 2 }
    }

    /// Returns the budget that is left after a text of this length.
    #[must_use]
    pub fn without(self, chars: usize) -> TextBudget {
        let half = chars.div_ceil(2);
        let chars = self.chars.saturating_sub(chars);
        // The settings may have made one end much longer than the other.
        let head = self.head.saturating_sub(half).min(chars);
        let tail = self.tail.saturating_sub(half).min(chars - head);
        TextBudget { chars, head, tail }
    }

    /// Returns the two ends of a text that does not fit, and the number of characters between them.
    pub(crate) fn split_ends(self, text: &str) -> Option<(&str, &str, usize)> {
        // A text has at most as many characters as bytes, so only a long one is counted.
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

    /// Returns the text if it fits; else a note about the cut, and the text's two ends. `whole`
    /// tells where the whole text is.
    pub fn cut(self, text: &str, whole: &str) -> String {
        let Some((head, tail, left_out)) = self.split_ends(text) else { return text.to_owned() };
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
