use super::*;

#[track_caller]
fn check_out(code: &str, expected: &str) {
    let record = javascript(code);
    assert_eq!(format!("{}{}", record.out, record.err), expected, "{code}: {:?}", record.ending);
}

#[test]
fn values_are_shown_as_people_read_them() {
    check_out(
        "console.log('a', 1, true, null, undefined, 5n, Symbol('s'), -0)",
        "a 1 true null undefined 5n Symbol(s) -0\n",
    );
    check_out(
        "console.log({a: 1, 'b-c': 'x', d: [1, 'two']})",
        "{ a: 1, 'b-c': 'x', d: [ 1, 'two' ] }\n",
    );
    check_out("console.log([], {}, [[]])", "[] {} [ [] ]\n");
    check_out("const a = {}; a.self = a; console.log(a)", "{ self: [Circular] }\n");
    check_out(
        "console.log(new Map([['a', 1]]), new Set([1]))",
        "Map(1) { 'a' => 1 } Set(1) { 1 }\n",
    );
    check_out("console.log({a: {b: {c: {d: {e: 1}}}}})", "{ a: { b: { c: { d: [Object] } } } }\n");
    check_out(
        "class P { x = 1 } console.log(new P(), P, () => 1, function f() {})",
        "P { x: 1 } [class P] [Function: (anonymous)] [Function: f]\n",
    );
    check_out(
        "console.log(new Date(0), /a/g, new Uint8Array([1, 2]), {get x() { return 1 }})",
        "1970-01-01T00:00:00.000Z /a/g Uint8Array(2) [ 1, 2 ] { x: [Getter] }\n",
    );
    check_out(
        "console.log(Object.create(null), 'it\\'s', [\"it's\"])",
        "[Object: null prototype] {} it's [ 'it\\'s' ]\n",
    );
    check_out(
        "console.log(Array.from({length: 102}, () => 0).length, '%s is %d, %j%%', 'x', 4, {a: 1}, 'rest')",
        "102 %s is %d, %j%% x 4 { a: 1 } rest\n",
    );
    check_out("console.log('%s is %d, %j%%', 'x', 4, {a: 1}, 'rest')", "x is 4, {\"a\":1}% rest\n");
    check_out("console.log()", "\n");
    check_out(
        "log('a', {b: 1}); const f = () => { const log = 2; return log; }; log(f())",
        "a { b: 1 }\n2\n",
    );
    check_out(
        "console.log(['x'.repeat(50), 'y'.repeat(50)])",
        &format!("[\n  '{}',\n  '{}'\n]\n", "x".repeat(50), "y".repeat(50)),
    );
    check_out("console.log(new Error('e'))", "Error: e\n  at <main> (1:17)\n");
}

#[test]
fn each_method_has_its_stream() {
    let record = javascript(
        "console.log(1); console.info(2); console.debug(3); console.dir(4); console.warn(5); console.error(6); console.assert(true); console.assert(false, 'why')",
    );
    assert_eq!(
        (record.out.as_str(), record.err.as_str()),
        ("1\n2\n3\n4\n", "5\n6\nAssertion failed: why\n")
    );
    check_out(
        "console.group('g'); console.log('a\\nb'); console.groupEnd(); console.log('c')",
        "g\n  a\n  b\nc\n",
    );
    check_out(
        "console.count(); console.count('x'); console.count()",
        "default: 1\nx: 1\ndefault: 2\n",
    );
    check_out(
        "console.table([{a: 1, b: 'x'}, {a: 22}])",
        "(index) | a  | b\n0       | 1  | 'x'\n1       | 22 |\n",
    );
    check_out(
        "function f() { console.trace('here') } f()",
        "Trace: here\nat f (1:24)\nat <main> (1:40)\n",
    );
}

#[test]
fn a_huge_text_goes_out_in_pieces() {
    let record = javascript("console.log('é'.repeat(3 << 20)); 1");
    assert_eq!((record.out.len(), ending(&record).as_str()), ((6 << 20) + 1, "1"));
}

#[test]
fn progress_is_sent() {
    let record = javascript("progress('half'); progress({message: 'done'})");
    assert_eq!(record.progress, ["half", "done"]);
}

#[test]
fn emit_shows_images() {
    let png = "iVBORw0KGgo=";
    let check = |code: &str, expected: &[&str]| {
        let record = javascript(code);
        assert!(record.ending.is_ok(), "{code}: {:?}", record.ending);
        let shown: Vec<_> = record.images.iter().map(|image| image.base64.as_str()).collect();
        assert_eq!(shown, expected, "{code}");
        assert!(record.images.iter().all(|image| image.mime.name() == "image/png"), "{code}");
    };
    let block = format!("const block = {{type: 'image', data: '{png}', mimeType: 'image/png'}};");
    check(&format!("{block} emit(block)"), &[png]);
    check(&format!("{block} emit([block, block])"), &[png, png]);
    check(&format!("{block} emit({{content: [block]}})"), &[png]);
    let resource = "{uri: 'a://b', mimeType: block.mimeType, blob: block.data}";
    check(&format!("{block} emit({{type: 'resource', resource: {resource}}})"), &[png]);
    check(&format!("emit('data:image/png;base64,{png}')"), &[png]);
    check("emit(new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]))", &[png]);
    check("emit(new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]).buffer)", &[png]);
    let record = javascript("emit({type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav'})");
    let sounds: Vec<_> = record.images.iter().map(|sound| sound.mime.name()).collect();
    assert_eq!(sounds, ["audio/wav"]);
    let record = javascript("emit({type: 'text', text: 'said'}); 1");
    assert_eq!((record.out.as_str(), ending(&record).as_str()), ("said\n", "1"));
    for (code, expected) in [
        (
            "emit('picture.png')",
            "emit takes bytes, a tool's content block or a data: URL in base64",
        ),
        ("emit({type: 'audio', data: 'x', mimeType: 'audio/midi'})", "not audio/midi"),
        ("emit(new Uint8Array([1, 2, 3]))", "these bytes are none"),
        ("emit(5)", "not a number"),
    ] {
        let said = ending(&javascript(code));
        assert!(said.contains(expected), "{code}: {said}");
    }
}
