use super::*;
use crate::kana::fold_spelling;

#[test]
fn a_loan_word_sounds_like_its_english_word() {
    let table = [
        ("screenshot", "スクリーンショット", "스크린샷"),
        ("elasticsearch", "エラスティックサーチ", "엘라스틱서치"),
        ("slack", "スラック", "슬랙"),
        ("component", "コンポーネント", "컴포넌트"),
        ("template", "テンプレート", "템플릿"),
        ("calendar", "カレンダー", "캘린더"),
        ("platform", "プラットフォーム", "플랫폼"),
    ];
    for (english, japanese, korean) in table {
        let sounds = english_sounds(english).unwrap();
        assert!(loan_words(&fold_spelling(japanese)).contains(&sounds), "{japanese} {sounds}");
        let heard = loan_words(korean);
        let korean_spelling = without_f(&sounds).unwrap_or_else(|| sounds.clone());
        assert!(
            heard.iter().any(|heard| *heard == sounds || *heard == korean_spelling),
            "{korean} {heard:?} {sounds}"
        );
    }
}

#[test]
fn particles_after_a_korean_word_are_tried_without() {
    assert!(loan_words("슬랙에서").contains(&english_sounds("slack").unwrap()));
}

#[test]
fn short_words_and_other_scripts_are_no_loan_words() {
    assert_eq!(english_sounds("api"), None);
    assert_eq!(english_sounds("größe"), None);
    assert!(loan_words("ログ").is_empty());
    assert!(loan_words("を見る").is_empty());
}
