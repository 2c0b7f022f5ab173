use super::*;

const SMALL: TextBudget = TextBudget { chars: 10, head: 3, tail: 2 };

#[test]
fn a_short_text_is_unchanged() {
    assert_eq!(SMALL.cut("äöüäöüäöüä", "kept"), "äöüäöüäöüä");
}

#[test]
fn a_long_text_is_cut_between_characters_and_begins_with_a_note() {
    assert_eq!(
        SMALL.cut("äöü🎉🎉🎉🎉🎉🎉xy", "the whole is kept"),
        "[cut: 11 characters, the first 3 and the last 2 are shown; the whole is kept]\n\
         äöü\n[... 6 characters left out ...]\nxy"
    );
}

#[test]
fn a_budget_shrinks_to_what_is_left() {
    let budget = TextBudget { chars: 100, head: 40, tail: 40 };
    assert_eq!(budget.without(0), budget);
    assert_eq!(budget.without(11), TextBudget { chars: 89, head: 34, tail: 34 });
    assert_eq!(budget.without(60), TextBudget { chars: 40, head: 10, tail: 10 });
    assert_eq!(budget.without(1_000), TextBudget { chars: 0, head: 0, tail: 0 });
    assert!(budget.without(1_000).cut("something", "it is kept").starts_with("[cut: 9 characters"));
}

/// The settings may give all of the budget to one end, or nothing to the other.
#[test]
fn head_and_tail_of_any_length_fit_in_the_budget() {
    let text = "x".repeat(99) + "y";
    for (head, tail) in [(90, 0), (0, 90), (0, 0), (45, 45)] {
        let budget = TextBudget { chars: 90, head, tail };
        let (first, last, between) = budget.split_ends(&text).expect("it is too long");
        assert_eq!((first.len(), last.len(), between), (head, tail, 100 - head - tail));
        for taken in [0, 1, 20, 89, 90, 500] {
            let left = budget.without(taken);
            assert!(left.head + left.tail <= left.chars, "{budget:?} without {taken}: {left:?}");
            left.split_ends(&text);
        }
    }
}
