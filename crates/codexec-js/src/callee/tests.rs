use super::*;

/// `^` marks the position.
#[track_caller]
fn check(marked: &str, expected: Option<&str>) {
    let offset = marked.find('^').expect("a mark");
    let code = marked.replacen('^', "", 1);
    let at = position_of(&code, u32::try_from(offset).expect("a short text"));
    assert_eq!(explain_callee(&code, SourceType::ts(), at).as_deref(), expected, "{marked}");
}

#[test]
fn calls_are_named() {
    check("o.^missing()", Some("o.missing is not a function"));
    check("let é: any = 'ö'; é.^f(1)", Some("é.f is not a function"));
    check("^f()", Some("f is not a function"));
    check("new (class { x = this.^y() })", Some("this.y is not a function"));
    check("throw new ^TypeError('not a function')", None);
    check("new ^o.X()", Some("o.X is not a constructor"));
    check("o['x' + ^1](2)", Some("o['x' + 1] is not a function"));
    check("o.g(^x)", Some("o.g is not a function"));
    check("o\n  .a\n  .^b()", Some("o.a.b is not a function"));
    check("o.^f`x`", Some("o.f is not a function"));
    check("x.map(y => y.^f())", Some("y.f is not a function"));
    check("q.^a().b().c", Some("q.a is not a function"));
    check("f('a', () => 1, ^b, 'c')", Some("f is not a function"));
}

#[test]
fn two_calls_that_may_be_meant_are_both_named() {
    check("g(^h(x))", Some("g or h is not a function"));
    check("^f()(2)", Some("f() or f is not a function"));
    check("console.log(r.^split(','))", Some("r.split is not a function"));
    check("g(^h(x), y)", Some("h is not a function"));
    check("a(b(c(^d)))", None);
    check("^1 + 1", None);
}

#[test]
fn excerpts_mark_the_position() {
    let check = |code: &str, offset: u32, expected: &str| {
        assert_eq!(excerpt(code, offset).as_deref(), Some(expected), "{code}");
    };
    check("let x = ;", 8, "  let x = ;\n          ^");
    check("1;\n\tlet x = ;\r\n2", 12, "  \tlet x = ;\n  \t        ^");
    check("'öü' +* 1", 8, "  'öü' +* 1\n        ^");
    let long = format!("{}+*1", "a".repeat(1_000));
    let expected = format!("  {}+*1\n  {}^", "a".repeat(49), " ".repeat(50));
    check(&long, 1_001, &expected);
    assert_eq!(excerpt("\n", 0), None);
}
