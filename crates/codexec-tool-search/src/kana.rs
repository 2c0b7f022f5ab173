//! Folds spellings of the same text into one: full-width and half-width forms, and the ways to
//! write a loan word in Katakana.

use std::borrow::Cow;

/// Half-width Katakana from U+FF66 on, as full-width ones.
const HALF_WIDTH: &str = "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン";

/// Returns the text with each spelling variant replaced: `Ｐ` by `P`, `ﾌｧｲﾙ` by `フアイル`, and
/// `フォルダー` by `フオルダ`, because people write long vowels and small vowels in several ways.
pub(super) fn fold_spelling(text: &str) -> Cow<'_, str> {
    if !text.chars().any(has_variants) {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        let c = full_width_letter(c);
        match c {
            // Voice marks of their own, which half-width letters have.
            '\u{ff9e}' | '\u{3099}' => replace_last(&mut folded, voiced),
            '\u{ff9f}' | '\u{309a}' => replace_last(&mut folded, half_voiced),
            'ー' if folded.ends_with(is_katakana) => (),
            // `ヴァ` is also written `バ`.
            'ァ' | 'ィ' | 'ェ' | 'ォ' if folded.ends_with('ヴ') => {
                folded.pop();
                folded.push(after_vu(c));
            }
            'ァ' => folded.push('ア'),
            'ィ' => folded.push('イ'),
            'ゥ' => folded.push('ウ'),
            'ェ' => folded.push('エ'),
            'ォ' => folded.push('オ'),
            c => folded.push(c),
        }
    }
    Cow::Owned(folded.replace('ヴ', "ブ"))
}

/// Returns true for characters that `fold_spelling` may change.
fn has_variants(c: char) -> bool {
    is_katakana(c) || matches!(c, 'ー' | '\u{3099}' | '\u{309a}' | '\u{ff01}'..='\u{ff9f}')
}

pub(super) fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a1}'..='\u{30fa}')
}

fn full_width_letter(c: char) -> char {
    let code = u32::from(c);
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xfee0).unwrap_or(c),
        '\u{ff66}'..='\u{ff9d}' => {
            let at = usize::try_from(code - 0xff66).unwrap_or(usize::MAX);
            HALF_WIDTH.chars().nth(at).unwrap_or(c)
        }
        c => c,
    }
}

fn replace_last(text: &mut String, change: fn(char) -> char) {
    if let Some(last) = text.pop() {
        text.push(change(last));
    }
}

/// Returns the voiced form of a Katakana letter: `ガ` for `カ`.
fn voiced(c: char) -> char {
    match c {
        'ウ' => 'ヴ',
        'カ' | 'キ' | 'ク' | 'ケ' | 'コ' | 'サ' | 'シ' | 'ス' | 'セ' | 'ソ' | 'タ' | 'チ'
        | 'ツ' | 'テ' | 'ト' | 'ハ' | 'ヒ' | 'フ' | 'ヘ' | 'ホ' => following(c, 1),
        c => c,
    }
}

/// Returns the half-voiced form of a Katakana letter: `パ` for `ハ`.
fn half_voiced(c: char) -> char {
    match c {
        'ハ' | 'ヒ' | 'フ' | 'ヘ' | 'ホ' => following(c, 2),
        c => c,
    }
}

fn following(c: char, places: u32) -> char {
    char::from_u32(u32::from(c) + places).unwrap_or(c)
}

fn after_vu(small_vowel: char) -> char {
    match small_vowel {
        'ァ' => 'バ',
        'ィ' => 'ビ',
        'ェ' => 'ベ',
        _ => 'ボ',
    }
}

#[cfg(test)]
mod tests;
