// The test plays the host; Node, guest and frames are real. Run: node --test
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FLAGS, frame, framesOnly, GUEST } from "./test_host.mjs";

const workspace = mkdtempSync(join(tmpdir(), "codexec-node-"));
after(() => rmSync(workspace, { recursive: true }));
mkdirSync(join(workspace, "node_modules/pack"), { recursive: true });
writeFileSync(
  join(workspace, "node_modules/pack/package.json"),
  '{"name":"pack","exports":{"import":"./i.mjs","require":"./r.cjs"}}',
);
writeFileSync(join(workspace, "node_modules/pack/i.mjs"), "export default 'imported'; export const two = 2");
writeFileSync(join(workspace, "node_modules/pack/r.cjs"), "module.exports = 'required'");
writeFileSync(join(workspace, "lib.mjs"), "export const three = 3;\nexport const boom = () => {\n  throw new Error('in lib');\n};");
writeFileSync(join(workspace, "data.json"), '{"a":1}');

const echo = (ask) => ({ Ok: ask });

/** What the host heard. Answers come when `batch` asks are there, the last first. */
const play = (code, { answer = echo, batch = 1, closeAfter } = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...FLAGS, GUEST], {
      cwd: workspace,
      env: {},
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    const host = child.stdio[3];
    const heard = { isCompiled: false, out: "", err: "", asks: [], progress: [], images: [], endings: [] };
    child.stdout.on("data", (data) => (heard.out += data));
    child.stderr.on("data", (data) => (heard.err += data));
    let waiting = [];
    const hear = (said) => {
      if (said === "compiled") return (heard.isCompiled = true);
      const [kind] = Object.keys(said);
      const content = said[kind];
      if (kind === "returned" || kind === "threw") return heard.endings.push(said);
      assert.equal(heard.endings.length, 0, "something followed the ending");
      if (kind === "progress") return heard.progress.push(content);
      if (kind === "image") return heard.images.push(content);
      assert.equal(kind, "ask");
      heard.asks.push(content.ask);
      const result = answer(content.ask);
      if (result !== undefined) waiting.push({ answer: { id: content.id, result } });
      if (waiting.length === batch) {
        for (const one of waiting.reverse()) host.write(frame(one));
        waiting = [];
      }
    };
    const framed = framesOnly();
    let bytes = Buffer.alloc(0);
    host.on("error", () => {});
    host.on("data", (data) => {
      bytes = Buffer.concat([bytes, framed(data)]);
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32LE(0)) {
        const length = bytes.readUInt32LE(0);
        hear(JSON.parse(bytes.subarray(4, 4 + length).toString()));
        bytes = bytes.subarray(4 + length);
        if (closeAfter === "compiled" && heard.isCompiled) host.destroy();
      }
    });
    child.on("error", reject);
    child.on("close", (status, signal) => resolve({ ...heard, status, signal }));
    const job = { language: "node", code, input: { n: 7 }, servers: ["github", "my-server"], memory_bytes: 1 << 26 };
    host.write(frame({ start: job }));
  });

/** The value's JSON, or `CODE message @line:column`. */
const ending = ({ endings, status }) => {
  if (endings.length === 0) return `exit ${status}`;
  assert.equal(endings.length, 1);
  const { returned, threw } = endings[0];
  if (threw === undefined) return JSON.stringify(returned);
  assert.deepEqual(Object.keys(threw), ["code", "message", "at", "stack"]);
  const at = threw.at === null ? "" : ` @${threw.at.line}:${threw.at.column}`;
  return `${threw.code} ${threw.message}${at}`;
};

const check = (name, cases, options) =>
  test(name, { concurrency: 2 }, async (t) => {
    await Promise.all(
      cases.map(([code, expected, status]) =>
        t.test(code.slice(0, 60), async () => {
          const heard = await play(code, options);
          assert.equal(heard.err + ending(heard), expected, code);
          const isFailed = heard.endings[0]?.threw !== undefined;
          assert.equal(heard.status, status ?? (isFailed ? 1 : 0), code);
        }),
      ),
    );
  });

const lost = "tools.github.x was not awaited: the call was made, but the code went on without its result; write await tools.github.x(..)";
check("a call that is not awaited is an error with its place", [
  ["const r = tools.github.x({}); r.title", `RUNTIME_ERROR ${lost} @1:24`],
  ["const r = [tools.github.x({})];\nreturn r", `RUNTIME_ERROR ${lost} @1:25`],
  ["const p = tools.github.x(); (await p).tool.tool", '"x"'],
  ["await Promise.all([tools.github.x()]); tools.github.x().catch(() => {}); 1", "1"],
  ["async function f() { return tools.github.x() } (await f()).tool.tool", '"x"'],
]);

const parsed = "results of tools are already parsed";
check("errors say what to write here", [
  ["Deno.env", "RUNTIME_ERROR ReferenceError: Deno is not defined; this is not Deno; use the globals, or set language to node for Node's modules and files @1:1"],
  ["JSON.parse(await tools.github.x())", `RUNTIME_ERROR SyntaxError: JSON.parse was given an object, not text: ${parsed}, use them as they are @1:6`],
  ["const r = await tools.github.x();\nr.split(',')", `RUNTIME_ERROR TypeError: r.split is not a function; r is not a string: ${parsed} @2:3`],
  ["[JSON.parse('[1]'), JSON.parse(Buffer.from('{}'))]", "[[1],{}]"],
]);
test("a syntax error shows its line", async () => {
  const { endings } = await play("1;\n\tconst x = ;");
  assert.equal(endings[0].threw.stack, "  \tconst x = ;\n  \t          ^");
});

check("code is strict only if it asks for it or is a module", [
  ["x = 1; x + 1", "2"],
  ["x = await Promise.resolve(3); [x, typeof this, globalThis.x, delete globalThis.x]", '[3,"object",3,true]'],
  ["'use strict'; x = 1", "RUNTIME_ERROR ReferenceError: x is not defined @1:17"],
  ["function f() { 'use strict'; x = 1 }\nf()", "RUNTIME_ERROR ReferenceError: x is not defined @1:32"],
  ["import 'node:fs';\nx = 1", "RUNTIME_ERROR ReferenceError: x is not defined @2:3"],
  ["export {}; typeof this", '"undefined"'],
  ["var o = {a: 1}; with (o) { a = 010 }; await o", '{"a":8}'],
]);

check("values come from return or the last expression", [
  ["1 + 1", "2"],
  ["const x = 1; x + 1", "2"],
  ["return 5; 6", "5"],
  ["({a: 1})", '{"a":1}'],
  ["{a: 1}", "null"],
  ["'text'", '"text"'],
  ["'use strict'; 'text' // end", '"text"'],
  ["(1, 2) /* a */ ; // b", "2"],
  ["const a = 1\n// why\na\n;", "1"],
  ["if (true) 1", "null"],
  ["await Promise.resolve([1, {b: 2}])", '[1,{"b":2}]'],
  ["return await new Promise(done => setTimeout(() => done(3), 1))", "3"],
  ["input.n", "7"],
  ["undefined", "null"],
  ["new Date(0)", '"1970-01-01T00:00:00.000Z"'],
  ["new Map([['a', 1]])", '{"a":1}'],
  ["new Set([1, 2])", "[1,2]"],
  ["#!/usr/bin/env node\n7", "7"],
  ["'\\ud800'", '"\\ud800"'],
  ["", "null"],
]);

const hint = "; return plain objects, arrays, strings, numbers, booleans or null";
const not = "SERIALIZATION_ERROR the result cannot be written as JSON: ";
check("what is not JSON is said so", [
  ["10n", `${not}TypeError: Do not know how to serialize a BigInt${hint}`],
  ["const a = {}; a.a = a; a", `${not}TypeError: Converting circular structure to JSON${hint}`],
  ["() => 1", `${not}TypeError: it is a function${hint}`],
  ["({toJSON() { throw new Error('no') }})", `${not}no${hint}`],
  [
    "'x'.repeat(9 << 20)",
    "SERIALIZATION_ERROR the result is more than 8388608 bytes as JSON; return less of it, or a summary",
  ],
]);

check("modules", [
  ["import fs from 'node:fs'; import {join as j} from 'path';\ntypeof fs.readFileSync + j('a', 'b')", '"functiona/b"'],
  ["import * as p from 'path'\nimport d, {two} from 'pack'\n[typeof p.join, d, two]", '["function","imported",2]'],
  ["import {three} from './lib.mjs'; return three", "3"],
  ["(await import('./lib.mjs')).three", "3"],
  ["const {default: d} = await import('pack'); d", '"imported"'],
  ["require('pack') + require('fs').readFileSync('data.json')", '"required{\\"a\\":1}"'],
  ["import data from './data.json' with {type: 'json'}; data.a", "1"],
  ["import {createRequire} from 'module'; const require = createRequire(import.meta.url); require('pack')", '"required"'],
  ["import {nope} from 'node:fs'; 1", "RUNTIME_ERROR SyntaxError: The requested module 'node:fs' does not provide an export named 'nope' @1:1"],
  ["export const x = 1; export default x + 1", "2"],
  ["export default (1)", "1"],
  ["export default function () { return 1 }\n3", "3"],
  ["export function f() { return 4 } export class A {} export { A as B }; f()", "4"],
  ["export default () => 1; 5", "5"],
  ["import.meta.url.startsWith('file://') && import.meta.filename === process.argv[1]", "true"],
  ["() => import . meta; new Function('return 6')()", "6"],
]);

test("an import that fails says where", async () => {
  const heard = await play("1;\n  import x from 'nope'; x");
  assert.match(ending(heard), /^RUNTIME_ERROR Error: Cannot find package 'nope'.* @2:3$|^RUNTIME_ERROR Cannot find package 'nope'.* @2:3$/);
});

check("syntax errors say where", [
  ["const x = ;", "SYNTAX_ERROR Unexpected token @1:11"],
  ["let a = 1;\nlet é = 'ö' +* 2;", "SYNTAX_ERROR Unexpected token @2:14"],
  ["let x; let x;", "SYNTAX_ERROR Identifier 'x' has already been declared @1:12"],
  ["})(); globalThis.broke = 1; (async () => {", "SYNTAX_ERROR Unexpected token @1:1"],
  ["1;\nlet a = /(/;", "SYNTAX_ERROR Invalid regular expression: /(/: Unterminated group @2:10"],
]);

check("errors carry the guest's own place", [
  ["throw new Error('first')", "RUNTIME_ERROR first @1:7"],
  ["// why\n\n  undefinedThing()", "RUNTIME_ERROR ReferenceError: undefinedThing is not defined @3:3"],
  ["1; undefinedThing + 1", "RUNTIME_ERROR ReferenceError: undefinedThing is not defined @1:4"],
  ["const o = {};\no.missing();", "RUNTIME_ERROR TypeError: o.missing is not a function @2:3"],
  ["const o = {}; o.missing();", "RUNTIME_ERROR TypeError: o.missing is not a function @1:17"],
  ["async function f() {\n  await null;\n  throw new RangeError('late');\n}\nawait f();", "RUNTIME_ERROR RangeError: late @3:9"],
  ["import fs from 'fs';\nfs.readFileSync('/nope')", "RUNTIME_ERROR ENOENT: no such file or directory, open '/nope' @2:4"],
  ["setTimeout(() => {\n  throw new TypeError('t')\n}, 1); 1", "RUNTIME_ERROR TypeError: t @2:9"],
  ["Promise.reject(new TypeError('lost')); 1", "RUNTIME_ERROR TypeError: lost @1:16"],
  ["throw 'text'", "RUNTIME_ERROR text"],
  ["throw {code: 5}", "RUNTIME_ERROR { code: 5 }"],
  ["throw null", "RUNTIME_ERROR null"],
  ["function f() { f() } f()", "RUNTIME_ERROR RangeError: Maximum call stack size exceeded @1:16"],
  ["throw {get message() { throw 1 }}", "RUNTIME_ERROR { message: [Getter] }"],
  ["Error.prepareStackTrace = () => { throw 1 }; throw new Error('x')", "RUNTIME_ERROR x"],
]);

test("stacks are the guest's frames only", async () => {
  const code = "// one\nfunction inner() { throw new Error('x'); }\nfunction outer() {\n  inner();\n}\n[1].forEach(() => outer());";
  const { endings } = await play(code);
  const stack = "at inner (main.mjs:2:26)\nat outer (main.mjs:4:3)\nat <anonymous> (main.mjs:6:19)\nat <main> (main.mjs:6:5)";
  assert.equal(endings[0].threw.stack, stack);
  const lib = await play("import {boom} from './lib.mjs';\nboom()");
  assert.equal(lib.endings[0].threw.stack, "at boom (lib.mjs:3:9)\nat <main> (main.mjs:2:1)");
  assert.equal(ending(lib), "RUNTIME_ERROR in lib @2:1");
});

const stuck =
  "RUNTIME_ERROR the code awaits something that nothing will ever settle: no tool call and no timer is left that could do it";
check("how a process ends", [
  ["await new Promise(() => {})", stuck],
  ["setTimeout(() => {}, 1); await new Promise(() => {})", stuck],
  ["process.exit(3)", "exit 3", 3],
  ["setTimeout(() => process.exit(4), 1); await new Promise(() => {})", "exit 4", 4],
  ["process.exit(0)", "null"],
  ["process.exitCode = 5; 1", "1", 5],
  ["process.on('uncaughtException', () => {}); setTimeout(() => { throw 1 }, 1); 1", "1"],
  ["const out = []; setTimeout(() => out.push(1), 20); out", "[1]"],
  ["import {exec} from 'child_process'; const out = []; exec('echo hi', (_, o) => out.push(o)); out", '["hi\\n"]'],
]);

test("output goes to its streams as Node shows it", async () => {
  const heard = await play("console.log({a: 1}, 'x'); console.error('e'); process.stdout.write('raw')");
  assert.deepEqual([heard.out, heard.err, ending(heard)], ["{ a: 1 } x\nraw", "e\n", "true"]);
});

test("no output is lost at the end", async () => {
  const heard = await play("console.log('x'.repeat(8 << 20)); console.error('y'.repeat(1 << 20)); 1");
  assert.deepEqual([heard.out.length, heard.err.length, ending(heard)], [(8 << 20) + 1, (1 << 20) + 1, "1"]);
});

const checkAsks = (name, cases) =>
  test(name, { concurrency: 2 }, async (t) => {
    await Promise.all(
      cases.map(([code, ...expected]) =>
        t.test(code.slice(0, 60), async () => {
          const heard = await play(code);
          assert.equal(heard.status, 0, ending(heard));
          assert.deepEqual(heard.asks, expected, code);
        }),
      ),
    );
  });
const issue = { tool: { server: "github", tool: "get_issue", args: { id: 1 } } };
const named = { named: { name: "mcp__github__get_issue", args: { id: 1 } } };
checkAsks("every way to call asks the same", [
  ["await tools.github.get_issue({id: 1})", issue],
  ["call_tool('github', 'get_issue', {id: 1})", issue],
  ["await callTool('github', 'get_issue', {id: 1})", issue],
  ["call_tools([{server: 'github', tool: 'get_issue', args: {id: 1}}])", issue],
  ["await callMCPTool('mcp__github__get_issue', {id: 1})", named],
  ["call_tool('mcp__github__get_issue', {id: 1})", named],
  ["await tools.my_server.x()", { tool: { server: "my-server", tool: "x", args: {} } }],
  ["await discoverMCPTools({search: ['a']})", { discover: { words: ["a"] } }],
  ["await searchTools('issues', 3)", { search: { query: "issues", limit: 3 } }],
  [
    "await searchTools('issues', {server: 'a', destructive: false, detail: 'names'})",
    { search: { query: "issues", limit: 10, server: "a", detail: "names", kind: "safe" } },
  ],
  ["await getToolSchema('github.x')", { schema: { name: "github.x" } }],
  ["await help()", { help: { name: null } }],
  ["await resources.list()", { resources: { server: null } }],
  ["await resources.read('s', 'x://y')", { read_resource: { server: "s", uri: "x://y" } }],
  ["await prompts.get('s', 'p', {a: 'b'})", { prompt: { server: "s", name: "p", args: { a: "b" } } }],
  ["await scripts.run('x', {input: 1})", { own: { name: "run_script", args: { name: "x", input: 1 } } }],
  ["await sessions.send('s', '1')", { own: { name: "send_to_session", args: { session_id: "s", code: "1" } } }],
  ["await packages.install('a', 'node')", { own: { name: "install_package", args: { package: "a", language: "node" } } }],
  ["await logs.search()", { own: { name: "search_execution_logs", args: {} } }],
]);

check("answers arrive as they are", [
  ["await tools.a.b()", "5"],
  ["call_tool('a', 'b')", '{"ok":true,"result":5}'],
  ["await call_tool('a', 'b')", '{"ok":true,"result":5}'],
  ["(await call_tools([{server: 'a', tool: 'b'}]))[0].result", "5"],
], { answer: () => ({ Ok: 5 }) });

const refusal = { code: "TOOL_NOT_FOUND", message: "no such tool", server: "a", tool: "x" };
check("failures are tool errors", [
  ["\n  await tools.a.x()", "TOOL_NOT_FOUND no such tool @2:17"],
  ["try { await tools.a.x() } catch (e) { return [e instanceof ToolError, e.name, e.code, e.server, e.tool, e.message, e.stack] }",
    '[true,"ToolError","TOOL_NOT_FOUND","a","x","no such tool","ToolError: no such tool\\n    at <main> (main.mjs:1:21)"]'],
  ["call_tool('a', 'x')", JSON.stringify({ ok: false, error: refusal })],
  ["await tools.a.x('text')", "INVALID_ARGS a.x takes one object of named arguments, like {id: 1}; it was given a string @1:15"],
  ["tools.a.x(); 1", "TOOL_NOT_FOUND no such tool @1:9"],
], { answer: () => ({ Err: refusal }) });

test("a thousand calls at once, answered backwards", async () => {
  const code = "const all = await Promise.all(Array.from({length: 1000}, (_, i) => tools.a.b({i})));\nall.every((x, i) => x.tool.args.i === i)";
  assert.equal(ending(await play(code, { batch: 1000 })), "true");
});

test("a synchronous call leaves other answers alone", async () => {
  const code = "const one = tools.a.one(); const two = call_tool('a', 'two'); [(await one).tool.tool, two.result.tool.tool]";
  assert.equal(ending(await play(code, { batch: 2 })), '["one","two"]');
});

test("batches keep their order and their width", async () => {
  const code = "call_tools(Array.from({length: 8}, (_, i) => ({server: 'a', tool: 'b', args: {i}})), {max_parallel: 4}).map(r => r.result.tool.args.i)";
  assert.equal(ending(await play(code)), "[0,1,2,3,4,5,6,7]");
  const mixed = `const one = tools.a.b({i: 'one'}); const two = tools.a.b({i: 'two'}); ${code.replace("8", "2")}.concat((await one).tool.args.i, (await two).tool.args.i)`;
  assert.equal(ending(await play(mixed, { batch: 4 })), '[0,1,"one","two"]');
  const refused = await play("call_tools([{server: 'a', tool: 5}])[0].error.message");
  assert.equal(ending(refused), '"TypeError: the tool\'s name must be a string, not a number"');
});

test("answers that were read while something was written arrive", async () => {
  const code = "const text = 'x'.repeat(4 << 20); const one = tools.a.b({text}); const two = tools.a.b({text}); progress('p'); [(await one).tool.args.text.length, (await two).tool.args.text.length]";
  assert.equal(ending(await play(code)), "[4194304,4194304]");
});

test("big asks and big answers", async () => {
  const code = "const text = 'x'.repeat(1 << 20);\nconst all = await Promise.all(Array.from({length: 12}, () => tools.a.b({text})));\nall.length + call_tool('a', 'b', {text}).result.tool.args.text.length";
  assert.equal(ending(await play(code)), String(12 + (1 << 20)));
});

test("calls that nobody awaits are drained, hanging ones for a second", async () => {
  const answered = await play("tools.a.b().then(() => console.log('answered')); 1");
  assert.deepEqual([answered.out, ending(answered)], ["answered\n", "1"]);
  const began = performance.now();
  const hanging = await play("tools.a.b().catch(() => {}); 1", { answer: () => undefined });
  assert.equal(ending(hanging), "1");
  const took = performance.now() - began;
  assert.ok(took > 900 && took < 5000, `${took}`);
});

test("replaced builtins do not reach the wire", async () => {
  const code = `Object.prototype.server = 'denied'; Object.prototype.Err = 1; Array.prototype.push = () => 0; Array.prototype[Symbol.iterator] = null;
JSON.stringify = () => '{}'; JSON.parse = () => ({}); Map.prototype.get = () => 1; Buffer.prototype.toString = () => 'no'; Buffer.from = null;
Promise.prototype.then = function () { return this }; RegExp.prototype.exec = () => null; Uint8Array.prototype.subarray = null; TextDecoder.prototype.decode = null;
TextEncoder.prototype.encode = null; process.exit = () => {}; process.emitWarning = null; require('fs').writeSync = () => 0; require('fs').readSync = () => 0;
const r = await tools.github.x({a: 1}); const s = call_tool('github', 'y'); return [r.tool.args, s.result.tool.tool]`;
  const heard = await play(code);
  assert.equal(ending(heard), '[{"a":1},"y"]');
  assert.equal(heard.asks[0].tool.server, "github");
});

test("progress and pictures", async () => {
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUg==", "base64");
  writeFileSync(join(workspace, "a.png"), png);
  const code = `progress('half'); progress({message: 'done'}); progress('é'.repeat(1 << 20));
    const png = require('fs').readFileSync('a.png'); emit(png);
    emit({content: [{type: 'image', data: png.toString('base64'), mimeType: 'image/png'}]});
    emit({type: 'resource', resource: {uri: 'a://b', blob: png.toString('base64'), mimeType: 'image/png'}}); emit(new Uint8Array(png)); emit('a.png');
    emit('data:image/png;base64,' + png.toString('base64')); try { emit('data.json') } catch (e) { e.message }
    try { emit(5) } catch (e) { return e.message }`;
  const heard = await play(code);
  assert.equal(ending(heard), `"emit takes bytes, a path, a tool's content block or a data: URL, not a number"`);
  assert.deepEqual(heard.progress.slice(0, 2), ["half", "done"]);
  assert.equal(Buffer.byteLength(heard.progress[2]), 4096);
  const image = { mime: "image/png", base64: png.toString("base64") };
  assert.deepEqual(heard.images, Array(6).fill(image));
});

test("a host that leaves ends the guest", async () => {
  const heard = await play("await tools.a.b()", { closeAfter: "compiled", answer: () => undefined });
  assert.equal(heard.status, 1);
});
