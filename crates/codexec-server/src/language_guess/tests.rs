use super::*;

#[test]
fn code_of_another_language_is_recognised() {
    use Language::{Bash, JavaScript, Node, Python, TypeScript};
    let check = |given: Language, code: &str, expected: Option<Language>| {
        assert_eq!(guess_other_language(given, code), expected, "{given}: {code}");
    };
    for given in [JavaScript, TypeScript, Node] {
        check(given, "def f(x):\n    return x", Some(Python));
        check(given, "import json\nprint(json.dumps(1))", Some(Python));
        check(given, "from os import path", Some(Python));
        check(given, "for x in range(3):\n    print(x)", Some(Python));
        check(given, "print(f'{x}')", Some(Python));
        check(given, "#!/bin/bash\nls -l", Some(Bash));
        check(given, "if [ -f x ]; then\n  echo yes\nfi", Some(Bash));
        check(given, "const x = ;", None);
        check(given, "import fs from 'fs'; x +* 1", None);
        check(given, "switch (x) {\n  case 1:\n", None);
        check(given, "if (x) {\n", None);
    }
    check(Python, "const x = await tools.a.b({});", Some(TypeScript));
    check(Python, "items.map((x) => x + 1", Some(TypeScript));
    check(Python, "echo $HOME", Some(Bash));
    check(Python, "def f(x:\n  return 1", None);
    check(Python, "if x:\n  const = (", None);
    check(Bash, "import os", None);
}
