use super::*;

#[test]
fn random_numbers_differ_between_guests() {
    let code =
        "[Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(8))]]";
    assert_ne!(ending(&javascript(code)), ending(&javascript(code)));
    check(
        "const r = Array.from({length: 5000}, Math.random); r.every(x => x >= 0 && x < 1) && new Set(r).size",
        "5000",
    );
    check(
        "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
        "true",
    );
    check("crypto.getRandomValues(new Uint32Array(4)).length", "4");
    check(
        "try { crypto.getRandomValues(new Float64Array(1)) } catch (e) { return e.name }",
        r#""TypeError""#,
    );
}

#[test]
fn timers() {
    check(
        "const order = []; await new Promise(done => { setTimeout(() => { order.push(2); done() }, 2); setTimeout((x) => order.push(x), 0, 1); queueMicrotask(() => order.push(0)) }); order",
        "[0,1,2]",
    );
    check(
        "let n = 0; await new Promise(done => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); done() } }, 1) }); n",
        "3",
    );
    check(
        "const id = setTimeout(() => console.log('never'), 1); clearTimeout(id); clearTimeout(undefined); 1",
        "1",
    );
    check("await new Promise(done => setImmediate(done)); 1", "1");
    check(
        "setTimeout('code')",
        "RUNTIME_ERROR TypeError: the callback must be a function, not 'code' @1:1",
    );
    check(
        "const t = performance.now(); await new Promise(done => setTimeout(done, 3)); performance.now() - t >= 3 && Math.abs(Date.now() - performance.timeOrigin - performance.now()) < 1000",
        "true",
    );
}

#[test]
fn structured_clone() {
    check(
        "const m = new Map([[{a: 1}, new Set([1])]]); const [[k, v]] = structuredClone(m); [k, [...v], structuredClone(m) !== m]",
        r#"[{"a":1},[1],true]"#,
    );
    check(
        "const a = {d: new Date(5), r: /x/gi, u: new Uint16Array([1, 2]), n: null, b: new ArrayBuffer(3)}; a.self = a; const c = structuredClone(a); [c.self === c, c.d.getTime(), String(c.r), [...c.u], c.n, c.b.byteLength, c.d !== a.d]",
        r#"[true,5,"/x/gi",[1,2],null,3,true]"#,
    );
    check(
        "const e = structuredClone(new TypeError('m')); [e instanceof TypeError, e.message]",
        r#"[true,"m"]"#,
    );
    check(
        "try { structuredClone({f() {}}) } catch (e) { return [e.name, e.message] }",
        r#"["DataCloneError","[Function: f] cannot be cloned"]"#,
    );
    check("structuredClone([1, , 3]).length", "3");
}

#[test]
fn text_and_bytes() {
    check("[...new TextEncoder().encode('aé€😀')]", "[97,195,169,226,130,172,240,159,152,128]");
    check(
        "new TextDecoder().decode(new Uint8Array([97,195,169,226,130,172,240,159,152,128]))",
        r#""aé€😀""#,
    );
    check(
        "new TextDecoder().decode(new Uint8Array([0xef,0xbb,0xbf,97,0xff,0xe2,0x82,98]))",
        "\"a\u{fffd}\u{fffd}b\"",
    );
    check(
        "new TextDecoder('utf-8', {ignoreBOM: true}).decode(new Uint8Array([0xef,0xbb,0xbf,97]).buffer).length",
        "2",
    );
    check(
        "try { new TextDecoder('utf8', {fatal: true}).decode(new Uint8Array([0xc0, 0x80])) } catch (e) { return e.name }",
        r#""TypeError""#,
    );
    check("new TextDecoder('latin1').decode(new Uint8Array([233]))", r#""é""#);
    check("try { new TextDecoder('utf-16') } catch (e) { return e.name }", r#""RangeError""#);
    check(
        "const a = new Uint8Array(4); [new TextEncoder().encodeInto('a€b', a), [...a]]",
        r#"[{"read":2,"written":4},[97,226,130,172]]"#,
    );
    check(
        "[btoa('hello'), atob('aGVsbG8='), btoa(''), atob(' aGk '), btoa('\\xff')]",
        r#"["aGVsbG8=","hello","","hi","/w=="]"#,
    );
    check("try { btoa('€') } catch (e) { return e.name }", r#""InvalidCharacterError""#);
    check("try { atob('a') } catch (e) { return e.name }", r#""InvalidCharacterError""#);
    check("new TextDecoder().decode(new TextEncoder().encode('x'.repeat(20000))).length", "20000");
}

#[test]
fn urls() {
    check(
        "const u = new URL('https://me:pw@Example.com:8080/a/../b?x=1#h'); [u.href, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin]",
        r##"["https://me:pw@example.com:8080/b?x=1#h","https:","me","pw","example.com:8080","example.com","8080","/b","?x=1","#h","https://example.com:8080"]"##,
    );
    check("new URL('../c?d', 'http://x/a/b/').href", r#""http://x/a/c?d""#);
    check(
        "const u = new URL('http://x/'); u.pathname = '/p q'; u.search = 'a=1'; u.hash = 'z'; u.port = '81'; u.protocol = 'https'; u.hostname = 'y'; String(u)",
        r#""https://y:81/p%20q?a=1#z""#,
    );
    check(
        "const u = new URL('http://x/?a=1'); u.searchParams.append('b', 'c d&'); u.searchParams.set('a', '2'); u.href",
        r#""http://x/?a=2&b=c+d%26""#,
    );
    check(
        "const u = new URL('http://x/?a=1'); const p = u.searchParams; u.search = '?z=9'; [p.get('z'), p.get('a')]",
        r#"["9",null]"#,
    );
    check(
        "[URL.canParse('nope'), URL.canParse('/a', 'http://x'), JSON.stringify(new URL('http://x'))]",
        r#"[false,true,"\"http://x/\""]"#,
    );
    check(
        "try { new URL('nope') } catch (e) { return [e.name, e.message] }",
        r#"["TypeError","Invalid URL: 'nope'"]"#,
    );
    check(
        "const p = new URLSearchParams('?a=1&a=2&b=%C3%A9+x'); [p.getAll('a'), p.get('b'), p.has('c'), [...p.keys()], p.size]",
        r#"[["1","2"],"é x",false,["a","a","b"],3]"#,
    );
    check(
        "const p = new URLSearchParams({q: 'a b', n: 1}); p.delete('n'); p.append('z', 'é'); String(p)",
        r#""q=a+b&z=%C3%A9""#,
    );
    check("String(new URLSearchParams([['b', '2'], ['a', '1']]))", r#""b=2&a=1""#);
    check(
        "const p = new URLSearchParams('b=2&a=1'); p.sort(); Object.fromEntries(p)",
        r#"{"a":"1","b":"2"}"#,
    );
}

#[test]
fn missing_globals() {
    let names = "['fetch', 'require', 'process', 'SharedArrayBuffer', 'Atomics', 'module', 'std', 'os', 'native', 'own', 'arguments']";
    check(&format!("{names}.filter(name => name in globalThis)"), "[]");
    check("Object.keys(globalThis)", "[]");
    check("(function () {}).constructor('return this')() === globalThis", "true");
    check(
        "[tools.github.x, console.log, callTool, URL].every(f => f.constructor.constructor('return globalThis')() === globalThis)",
        "true",
    );
    check("new Date(2020, 0, 1).getDate()", "1");
}
