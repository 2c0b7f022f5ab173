use super::*;

#[test]
fn the_longest_words_are_found() {
    let words = |run| -> Vec<String> {
        let text = |part: &RunPart<'_>| match part {
            RunPart::Known(word, english) => format!("{word}={}", english.join("/")),
            RunPart::Unknown(rest) => (*rest).to_owned(),
        };
        split_run(&fold_spelling(run)).iter().map(text).collect()
    };
    assert_eq!(words("删除文件夹"), ["删除=delete/remove", "文件夹=folder/directory"]);
    assert_eq!(words("フォルダを削除"), ["フオルダ=folder/directory", "を", "削除=delete/remove"]);
    assert_eq!(words("파일을"), ["파일=file", "을"]);
    // A word of one syllable counts only at the beginning.
    assert_eq!(words("검색창"), ["검색=search/find", "창"]);
    assert_eq!(words("창"), ["창=window"]);
    // Two letters count only at the beginning of a loan word.
    assert_eq!(words("サンプル"), ["サンプル"]);
    assert_eq!(words("ﾌｫﾙﾀﾞｰログ"), ["フオルダ=folder/directory", "ログ=log/logs"]);
    assert_eq!(words(""), Vec::<String>::new());
}

#[test]
fn every_line_is_an_entry() {
    let is_entry = |line: &str| line.is_empty() || line.starts_with('#') || line.contains(" : ");
    assert_eq!(TEXT.lines().find(|line| !is_entry(line)), None);
    let is_english = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let dictionary = read_dictionary();
    assert!(dictionary.meanings.values().flatten().all(is_english));
}
