use super::fold_spelling;

#[test]
fn spellings_of_a_word_are_folded_into_one() {
    let folds_to_same = |words: &[&str]| {
        let folded: Vec<_> = words.iter().map(|word| fold_spelling(word)).collect();
        assert!(folded.windows(2).all(|two| two[0] == two[1]), "{folded:?}");
    };
    folds_to_same(&["フォルダ", "フォルダー", "ﾌｫﾙﾀﾞ", "フオルダー"]);
    folds_to_same(&["サーバ", "サーバー", "ｻｰﾊﾞｰ"]);
    folds_to_same(&["ページ", "ﾍﾟｰｼﾞ"]);
    folds_to_same(&["ビデオ", "ヴィデオ"]);
    folds_to_same(&["PDF", "ＰＤＦ"]);
}

#[test]
fn other_text_is_left_as_it_is() {
    for text in ["plain text", "一覧を見る", "목록", "ひらがな", "ー"] {
        assert_eq!(fold_spelling(text), text);
    }
}
