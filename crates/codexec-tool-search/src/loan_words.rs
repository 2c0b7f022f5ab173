//! English words that Japanese and Korean have borrowed, recognised by their consonants:
//! `スクリーンショット`, `스크린샷` and `screenshot` are all `sklnst`.

use crate::{kana::is_katakana, words::is_hangul};

/// Words with fewer consonants sound like too many others.
const MIN_CONSONANTS: usize = 3;
/// Longest ending (particles) of a Korean word, in syllables.
const KOREAN_ENDING: usize = 3;

/// Returns the consonants of an English word in lower case, as Japanese and Korean hear them.
/// `None` if it has too few.
pub(super) fn english_sounds(word: &str) -> Option<String> {
    let letters = word.as_bytes();
    let at = |index: usize| letters.get(index).copied().unwrap_or(b' ');
    let is_vowel = |letter: u8| b"aeiouy".contains(&letter);
    let is_front = |letter: u8| b"eiy".contains(&letter);
    let mut sounds = Sounds::default();
    let mut index = 0;
    while index < letters.len() {
        let (letter, next) = (at(index), at(index + 1));
        let before = index.checked_sub(1).map_or(b' ', at);
        let (length, sound) = match (letter, next) {
            (b's', b'c') if at(index + 2) == b'h' => (3, "sk"),
            (b't', b'i') if at(index + 2) == b'o' && at(index + 3) == b'n' => (4, "sn"),
            (b's' | b't', b'h') => (2, "s"),
            (b'p', b'h') => (2, "f"),
            (b'c', b'h') => (2, "t"),
            (b'c', b'k') | (b'q', b'u') => (2, "k"),
            (b'n', b'g') if !is_vowel(at(index + 2)) => (2, "n"),
            (b'c', _) if is_front(next) => (1, "s"),
            (b'g', b'e') if at(index + 2) == b' ' => (1, "s"),
            (b'c' | b'k' | b'q', _) => (1, "k"),
            (b'x', _) => (1, "ks"),
            (b's' | b'z' | b'j', _) => (1, "s"),
            (b'v' | b'b', _) => (1, "b"),
            (b'l', _) => (1, "l"),
            // Not heard after a vowel, as in `server`.
            (b'r', _) if is_vowel(before) && !is_vowel(next) => (1, ""),
            (b'r', _) => (1, "l"),
            (b'd', _) => (1, "d"),
            (b'f', _) => (1, "f"),
            (b'g', _) => (1, "g"),
            (b'h', _) => (1, "h"),
            (b'm', _) => (1, "m"),
            (b'n', _) => (1, "n"),
            (b'p', _) => (1, "p"),
            (b't', _) => (1, "t"),
            (b'a'..=b'z', _) => (1, ""),
            _ => return None,
        };
        sounds.push(sound);
        index += length;
    }
    sounds.finish()
}

/// Returns the spans of text that may be loan words, with their consonants; in Korean several, the
/// longest first, because particles follow without a space.
pub(super) fn loan_words(unknown: &str) -> Vec<String> {
    if unknown.starts_with(is_hangul) {
        let syllables = unknown.chars().take_while(|c| is_hangul(*c)).count();
        let shortest = syllables.saturating_sub(KOREAN_ENDING).max(2);
        let lengths = (shortest..=syllables).rev();
        return lengths.filter_map(|length| korean_sounds(unknown.chars().take(length))).collect();
    }
    let words = unknown.split(|c: char| !is_katakana(c));
    words.filter_map(katakana_sounds).collect()
}

/// Returns the consonants of a word in Katakana, in its folded spelling.
fn katakana_sounds(word: &str) -> Option<String> {
    let mut sounds = Sounds::default();
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        sounds.push(match letter {
            'カ' | 'キ' | 'ク' | 'ケ' | 'コ' => "k",
            'ガ' | 'ギ' | 'グ' | 'ゲ' | 'ゴ' => "g",
            'サ'..='ゾ' | 'ヂ' | 'ヅ' => "s",
            'タ' | 'チ' | 'ツ' | 'テ' | 'ト' => "t",
            'ダ' | 'デ' | 'ド' => "d",
            'ナ'..='ノ' => "n",
            'フ' => "f",
            'ハ' | 'ヒ' | 'ヘ' | 'ホ' => "h",
            'バ' | 'ビ' | 'ブ' | 'ベ' | 'ボ' => "b",
            'パ' | 'ピ' | 'プ' | 'ペ' | 'ポ' => "p",
            'マ'..='モ' => "m",
            'ラ'..='ロ' => "l",
            // `コンポ` is `compo`, `マッピング` is `mapping`.
            'ン' => match letters.peek() {
                Some('パ' | 'ピ' | 'プ' | 'ペ' | 'ポ' | 'バ' | 'ビ' | 'ブ' | 'ベ' | 'ボ') => {
                    "m"
                }
                Some('グ') => {
                    letters.next();
                    "n"
                }
                Some(_) | None => "n",
            },
            _ => "",
        });
    }
    sounds.finish()
}

/// Returns the consonants of Korean syllables.
fn korean_sounds(syllables: impl Iterator<Item = char>) -> Option<String> {
    /// By the number of a syllable's first and last consonant in Unicode. `f` is written `p`.
    const FIRST: [&str; 19] = [
        "g", "k", "n", "d", "t", "l", "m", "b", "p", "s", "s", "", "s", "s", "t", "k", "t", "p",
        "h",
    ];
    const LAST: [&str; 28] = [
        "", "k", "k", "k", "n", "n", "n", "t", "l", "l", "m", "l", "l", "l", "p", "l", "m", "p",
        "p", "t", "t", "n", "t", "t", "k", "t", "p", "t",
    ];
    let mut sounds = Sounds::default();
    for syllable in syllables {
        let number = usize::try_from(u32::from(syllable).checked_sub(0xac00)?).ok()?;
        sounds.push(FIRST.get(number / 588)?);
        sounds.push(LAST.get(number % 28)?);
    }
    sounds.finish()
}

/// Returns the spelling with `f` as Korean has it, if it differs.
pub(super) fn without_f(sounds: &str) -> Option<String> {
    sounds.contains('f').then(|| sounds.replace('f', "p"))
}

/// Consonants, none twice in a row.
#[derive(Default)]
struct Sounds(String);

impl Sounds {
    fn push(&mut self, sounds: &str) {
        for sound in sounds.chars() {
            if !self.0.ends_with(sound) {
                self.0.push(sound);
            }
        }
    }

    fn finish(self) -> Option<String> {
        (self.0.len() >= MIN_CONSONANTS).then_some(self.0)
    }
}

#[cfg(test)]
mod tests;
