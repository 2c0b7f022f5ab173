// Tests of sessions. The test plays the host; Node, guest and frames are real.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { FLAGS, frame, framesOnly, GUEST } from "./test_host.mjs";

const workspace = mkdtempSync(join(tmpdir(), "codexec-node-"));
const opened = [];
afterEach(() => {
  for (const child of opened.splice(0)) child.kill("SIGKILL");
});
after(() => rmSync(workspace, { recursive: true }));
mkdirSync(join(workspace, "node_modules/pack"), { recursive: true });
writeFileSync(join(workspace, "node_modules/pack/package.json"), '{"name":"pack","main":"r.cjs"}');
writeFileSync(join(workspace, "node_modules/pack/r.cjs"), "exports.url = () => new URL('http://a/b').host; exports.n = 0");

/** A guest that is kept. `cell` gives `{ ending, out, err, asks }` of one; `interrupt` stops it. */
const open = ({ answer = (ask) => ({ Ok: ask }) } = {}) => {
  const child = spawn(process.execPath, [...FLAGS, GUEST], { cwd: workspace, env: {}, stdio: ["ignore", "pipe", "pipe", "pipe"] });
  const host = child.stdio[3];
  host.on("error", () => {});
  let heard;
  let number = 0;
  const fresh = () => ({ out: "", err: "", late: "", asks: [], images: 0 });
  let told = fresh();
  child.stdout.on("data", (data) => (told.out += data));
  child.stderr.on("data", (data) => (told.err += data));
  const hear = (said) => {
    const [kind] = Object.keys(said);
    if (kind === "image") return told.images++;
    if (kind === "output") return (told.late += `${said.output.stream}: ${said.output.text}`);
    if (kind === "cell_ended") {
      assert.equal(said.cell_ended.key, `key ${number}`);
      return setTimeout(() => heard.resolve(said.cell_ended.ending), 20);
    }
    assert.equal(kind, "ask");
    told.asks.push(said.ask.ask);
    const result = answer(said.ask.ask);
    if (result !== undefined) host.write(frame({ answer: { id: said.ask.id, result } }));
  };
  const framed = framesOnly();
  let bytes = Buffer.alloc(0);
  host.on("data", (data) => {
    bytes = Buffer.concat([bytes, framed(data)]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32LE(0)) {
      const length = bytes.readUInt32LE(0);
      hear(JSON.parse(bytes.subarray(4, 4 + length).toString()));
      bytes = bytes.subarray(4 + length);
    }
  });
  opened.push(child);
  const closed = new Promise((resolve) => child.on("close", (status, signal) => resolve({ status, signal })));
  closed.then((how) => heard?.reject(new Error(`the guest is gone: ${JSON.stringify(how)} ${told.err}`)));
  host.write(frame({ start: { language: "node", code: "", input: null, args: [], is_session: true, servers: ["github"], memory_bytes: 1 << 26 } }));
  const cell = async (code, { input = null, args = [], stopAfter } = {}) => {
    number++;
    told = fresh();
    const ending = new Promise((resolve, reject) => (heard = { resolve, reject }));
    host.write(frame({ cell: { number, key: `key ${number}`, code, input, args } }));
    if (stopAfter !== undefined) setTimeout(interrupt, stopAfter);
    const late = setTimeout(() => heard.reject(new Error(`no end: ${code}`)), 20_000);
    const result = await ending.finally(() => clearTimeout(late));
    return { ending: result, ...told };
  };
  const interrupt = () => {
    host.write(frame("interrupt"));
    child.kill("SIGINT");
  };
  return { cell, interrupt };
};

/** The value's JSON, `exit N`, `interrupted`, or `CODE message @line:column`. */
const text = ({ ending }) => {
  if (ending === "interrupted") return ending;
  if ("exited" in ending) return `exit ${ending.exited}`;
  if ("returned" in ending) return JSON.stringify(ending.returned);
  const { code, message, at } = ending.threw;
  return `${code} ${message}` + (at === null ? "" : ` @${at.line}:${at.column}`);
};

/** One session, one cell after the other: `[code, expected, options]`. */
const check = (name, cells, options) =>
  test(name, async () => {
    const guest = open(options);
    try {
      for (const [code, expected, sent] of cells) {
        const seen = await guest.cell(code, sent);
        assert.equal(seen.err + seen.out + text(seen), expected, code);
      }
    } finally {
        }
  });

check("what a cell declares is there for all that follow", [
  ["const a = 1; let b = 2, c; var d = 4; class E { x() { return b } } function f() { return b + g() }", "null"],
  ["function g() { return 10 } [a, b, c === undefined, d, new E().x(), f(), f.name, E.name]", '[1,2,true,4,2,12,"f","E"]'],
  ["b = 3; [f(), new E().x()]", "[13,3]"],
  ["const a = 'again'; let g = () => 20; class E {}; [a, f(), new E().x === undefined]", '["again",23,true]'],
  ["function f() { return 'new' }\nf()", '"new"'],
  ["const { x, y: [z, ...w], ...rest } = { x: 1, y: [2, 3, 4], q: 5 }, [m = 7] = []\n;[x, z, w, rest, m]", '[1,2,[3,4],{"q":5},7]'],
  ["for (var i = 0, n = 3; i < n; i++) { var last = i } for (var k of [1, 2]); for (var { p } of [{ p: 8 }]);\nif (true) var q = 1; else var r = 2\n;[i, last, k, p, q, typeof r]", '[3,2,2,8,1,"undefined"]'],
  ["{ let a = 'inner'; const b = 1; function hidden() {} }\n[a, b, typeof hidden]", '["again",3,"function"]'],
  ["import fs, { readFileSync as read } from 'node:fs'; import * as path from 'path'; export const e1 = 1; export default class Named {}", "null"],
  ["[typeof fs.statSync, typeof read, path.join('a', 'b'), e1, Named.name]", '["function","function","a/b",1,"Named"]'],
  ["const asyncOne = async () => { await null; return a }\nawait asyncOne()", '"again"'],
  ["const fact = n => n < 2 ? 1 : n * fact(n - 1)\nfact(5)", "120"],
  ["let s\n(() => { s = 1 })()\ns", "1"],
  ["foo()\nlet {t} = {t: 1}\nfunction foo() {}\n[1].map(v => t)", "[1]"],
  ["let u = 1 // why\n/* and */ ; let v\n/a/.test('a')", "true"],
  ["return t + 1", "2"],
  ["var kept1 = 5", "null"],
  ["var kept1; kept1", "5"],
  ["let fresh = kept1; let fresh2 = fresh + 1; fresh2", "6"],
]);

check("names of Node's own are the cell's, and stay Node's for modules", [
  ["const URL = 'http://x'; const crypto = require('crypto'); let process2 = process; URL", '"http://x"'],
  ["const { url } = require('pack'); [URL, url(), typeof crypto.createHash, globalThis.crypto === crypto]", '["http://x","a","function",false]'],
  ["const read = () => URL; URL; read()", '"http://x"'],
  ["let URL = 'http://y'; read()", '"http://y"'],
  ["const Buffer = require('nope')", "RUNTIME_ERROR Cannot find module 'nope'\nRequire stack:\n- " + join(workspace, "main.mjs") + " @1:16"],
  ["typeof Buffer.from", '"function"'],
]);

check("what failed half way keeps what it did before", [
  ["const one = 1; const two = nothing; const three = 3", "RUNTIME_ERROR ReferenceError: nothing is not defined @1:16"],
  ["[one, typeof two, typeof three]", '[1,"undefined","undefined"]'],
  ["const x = ;", "SYNTAX_ERROR Unexpected token @1:11"],
  ["let y; let y", "SYNTAX_ERROR Identifier 'y' has already been declared @1:12"],
  ["one", "1"],
]);

check("errors stand where the cell's own text has them", [
  ["let a = 1, b = 2; throw new Error('x')", "RUNTIME_ERROR x @1:25"],
  ["function boom() { throw new Error('y') } class A {} let {c} = {c: 1}; boom()", "RUNTIME_ERROR y @1:25"],
  ["const o = {}; let p = o.q.r", "RUNTIME_ERROR TypeError: Cannot read properties of undefined (reading 'r') @1:27"],
  ["// why\n\n  undefinedThing()", "RUNTIME_ERROR ReferenceError: undefinedThing is not defined @3:3"],
  ["1;\n boom()", "RUNTIME_ERROR y @2:2"],
  ["import x from 'nope'; x", `RUNTIME_ERROR Cannot find package 'nope' imported from ${workspace}/ @1:1`],
]);

test("stacks name the cells", async () => {
  const guest = open();
  await guest.cell("function inner() { throw new Error('x') }\nfunction outer() {\n  inner() }");
  const { ending } = await guest.cell("\nouter()");
  assert.equal(ending.threw.stack, "at inner (cell-1.mjs:1:26)\nat outer (cell-1.mjs:3:3)\nat <main> (cell-2.mjs:2:1)");
});

check("each cell has its own input and arguments", [
  ["[input, process.argv.slice(2)]", '[{"n":1},["a","b c"]]', { input: { n: 1 }, args: ["a", "b c"] }],
  ["[input, process.argv.length]", "[null,2]"],
  ["process.chdir('node_modules'); 1", "1"],
  ["process.cwd().endsWith('node_modules') && require('pack').n++", "0"],
  ["import pack from 'pack'; pack.n", "1"],
]);

check("a cell ends, the session does not", [
  ["let x = 1; process.exit(3); x = 2", "exit 3"],
  ["x", "1"],
  ["process.exit()", "null"],
  ["setTimeout(() => process.exit(4), 1); await new Promise(() => {})", "exit 4"],
  ["try { process.exit(5) } catch { console.log('caught') } await null; console.log('late')", "exit 5"],
  ["process.exitCode = 6; 1", "exit 6"],
  ["x", "1"],
  ["await new Promise(() => {})", "RUNTIME_ERROR the code awaits something that nothing will ever settle: no tool call and no timer is left that could do it"],
  ["setTimeout(() => { throw new TypeError('t') }, 1); await new Promise(r => setTimeout(r, 1000))", "RUNTIME_ERROR TypeError: t @1:26"],
  ["Promise.reject(new TypeError('lost')); await new Promise(r => setTimeout(r, 1000))", "RUNTIME_ERROR TypeError: lost @1:16"],
  ["x", "1"],
]);

test("what earlier cells have begun goes on, and its errors are told", async () => {
  const guest = open();
  await guest.cell("let n = 0; const timer = setInterval(() => n++, 1); setTimeout(() => { throw new TypeError('of the first') }, 40); Promise.reject(1).catch(() => {}); 0");
  const seen = await guest.cell("await new Promise(r => setTimeout(r, 100)); n > 5");
  assert.equal(text(seen), "true");
  assert.match(seen.err, /^\[codexec\] nobody caught this of cell 1: TypeError: of the first/);
  assert.equal(text(await guest.cell("clearInterval(timer); 1")), "1");
});

test("what earlier cells print while another runs is told apart", async () => {
  const guest = open();
  await guest.cell("var go = false, done = new Promise(r => { const t = setInterval(() => { if (!go) return; clearInterval(t); console.log('late'); process.stderr.write(Buffer.from('bytes')); r(); }, 1) }); 0");
  const seen = await guest.cell("go = true; await done; console.log('own'); 0");
  assert.deepEqual([seen.out, seen.err, seen.late], ["own\n", "", "out: late\nerr: bytes"]);
});

const loops = [
  "while (true) {}",
  "await null; while (true) {}",
  "await new Promise(r => setTimeout(r, 5)); for (;;);",
  "while (true) { try { while (true) {} } catch {} finally { continue } }",
  "await new Promise(() => { setInterval(() => {}, 1000) })",
  "while (true) await new Promise(r => setTimeout(r, 5))",
  "while (true) { await new Promise(r => setImmediate(r)); console.log('on') }",
  "setTimeout(() => { while (true) {} }, 1); await new Promise(r => setTimeout(r, 9999))",
  "const spin = () => queueMicrotask(spin); spin(); await new Promise(() => {})",
  "process.nextTick(() => { for (;;) {} }); await new Promise(r => setTimeout(r, 9999))",
  "/(a+)+b/.test('a'.repeat(40))",
  "for (;;) [3, 1, 2].sort().map(x => JSON.stringify({ x }))",
  "await tools.github.never({})",
  "call_tool('github', 'never')",
  "for (;;) try { call_tool('github', 'never') } catch {}",
  "for (;;) try { await tools.github.never({}) } catch {}",
  "import { setTimeout as later } from 'timers/promises'; for (;;) { await later(3); process.stdout.write('x') }",
  "import { spawn } from 'child_process'; const c = spawn('sleep', ['100']); await new Promise(r => c.on('exit', () => { console.log('over'); r() }))",
];
test("an interrupt stops whatever runs, and the state stays", async () => {
  const guest = open({ answer: (ask) => (ask.tool.tool === "never" ? undefined : { Ok: 1 }) });
  await guest.cell("let x = 5; let ticks = 0; 0");
  for (const [at, code] of [...loops, ...loops].entries()) {
    // Once without timers of earlier cells, once with.
    if (at === loops.length) await guest.cell("setInterval(() => ticks++, 5).unref(); 0");
    const isTicking = at >= loops.length;
    const stopped = await guest.cell(code, { stopAfter: 150 });
    assert.equal(text(stopped), "interrupted", code);
    const next = await guest.cell("const before = ticks; await new Promise(r => setTimeout(r, 60)); [x, ticks > before, await tools.github.now({})]");
    assert.deepEqual([next.out + next.err, text(next)], ["", `[5,${isTicking},1]`], code);
  }
});

test("an interrupt that comes too late hits nobody", async () => {
  const guest = open();
  for (let i = 0; i < 10; i++) {
    await guest.cell("1");
    guest.interrupt();
    assert.equal(text(await guest.cell("let t = Date.now() + 120; while (Date.now() < t); 'whole'")), '"whole"');
  }
});

check("tools work in every cell", [
  ["(await tools.github.x({a: 1})).tool.args", '{"a":1}'],
  ["call_tool('github', 'x').result.tool.tool", '"x"'],
  ["tools.github.y({}).then(() => console.log('answered')); 1", "answered\n1"],
  ["const p = tools.github.z({}); 0", "[codexec] at <main> (cell-4.mjs:1:24): tools.github.z was not awaited: the call was made, but the code went on without its result; write await tools.github.z(..)\n0"],
  ["(await p).tool.tool", '"z"'],
]);

test("calls that hang are waited for as long as a one-shot code waits", async () => {
  const guest = open({ answer: () => undefined });
  assert.equal(text(await guest.cell("tools.github.x({}); 1")), "1");
  assert.equal(text(await guest.cell("2")), "2");
});

test("replaced builtins do not reach the wire", async () => {
  const guest = open();
  await guest.cell(`Object.prototype.server = 'denied'; JSON.stringify = () => '{}'; JSON.parse = () => ({}); Promise.prototype.then = function () { return this }; 
Atomics.load = null; Date.now = null; Uint8Array.prototype.subarray = null; globalThis.setTimeout = null; 1`);
  assert.equal(text(await guest.cell("const z = 5; (await tools.github.x({a: 1})).tool.args")), '{"a":1}');
  assert.equal(text(await guest.cell("z")), "5");
});

test("a guest that leaves is gone", async () => {
  const guest = open();
  await assert.rejects(guest.cell("process.reallyExit(3)"), /"status":3/);
});
