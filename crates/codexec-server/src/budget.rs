/// How many characters of a text an agent gets. One budget holds on every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub chars: usize,
    pub head: usize,
    pub tail: usize,
}

impl Budget {
    pub const DEFAULT: Budget = Budget { chars: 10_000, head: 4_000, tail: 4_000 };

    /// The text if it fits; else its two ends, with the cut declared first. `whole` says where
    /// the whole is kept.
    pub fn cut(self, text: &str, whole: &str) -> String {
        let total = text.chars().count();
        if total <= self.chars {
            return text.to_owned();
        }
        let at = |count: usize| text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
        let head = text.get(..at(self.head)).unwrap_or_default();
        let tail = text.get(at(total - self.tail)..).unwrap_or_default();
        let (shown, tailed, left_out) = (self.head, self.tail, total - self.head - self.tail);
        format!(
            "[cut: {total} characters, the first {shown} and the last {tailed} are shown; {whole}]\n\
             {head}\n[... {left_out} characters left out ...]\n{tail}"
        )
    }
}

#[cfg(test)]
mod tests;
