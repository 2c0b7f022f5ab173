use super::*;

const SMALL: Budget = Budget { chars: 10, head: 3, tail: 2 };

#[test]
fn what_fits_stays_as_it_is() {
    assert_eq!(SMALL.cut("äöüäöüäöüä", "kept"), "äöüäöüäöüä");
}

#[test]
fn what_does_not_fit_is_cut_between_characters_and_says_so_first() {
    assert_eq!(
        SMALL.cut("äöü🎉🎉🎉🎉🎉🎉xy", "the whole is kept"),
        "[cut: 11 characters, the first 3 and the last 2 are shown; the whole is kept]\n\
         äöü\n[... 6 characters left out ...]\nxy"
    );
}
