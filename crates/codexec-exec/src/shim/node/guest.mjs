// The guest's side for Node.js: waits for one Start frame on descriptor 3, runs its code, and says
// how it ended. A frame is a length (u32, little endian) and that many bytes of JSON. Started as
//   node --no-warnings --expose-internals --experimental-vm-modules
//     --experimental-import-meta-resolve guest.mjs
// What a guest does to the language's or Node's own objects must not reach the frames: everything
// is taken before it begins, and nothing here looks a method up on a prototype.
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import util from "node:util";
import vm from "node:vm";
import { CODE, compile, Flaw, load } from "./program.mjs";

const HOST = 3;
const HEADER = 4;
const MAX_FRAME_BYTES = 16 << 20;
const READ_BYTES = 64 << 10;
const ASK_BYTES = 9 << 20;
const RESULT_BYTES = 8 << 20;
const IMAGE_BYTES = 8 << 20;
const PROGRESS_BYTES = 4 << 10;
const MESSAGE_CHARS = 16 << 10;
const MAX_FRAMES = 20;
// What was begun and is not awaited gets this long after the value is known.
const DRAIN_MS = 1_000;
const STUCK =
  "the code awaits something that nothing will ever settle: no tool call and no timer is left " +
  "that could do it";

// ---- What is taken before a guest can replace it.
const { apply, defineProperty, ownKeys, getOwnPropertyDescriptor } = Reflect;
const { parse, stringify } = JSON;
const { isArray } = Array;
const { max } = Math;
const { create, hasOwn } = Object;
const { readSync, writeSync, readFileSync } = fs;
const { inspect } = util;
const { isAnyArrayBuffer, isMap, isSet } = util.types;
const { setTimeout, clearTimeout, queueMicrotask, Error, TypeError, RangeError, Map, Set, process } = globalThis;
const unbound = (method) => (self, ...args) => apply(method, self, args);
const subarray = unbound(Uint8Array.prototype.subarray);
const setBytes = unbound(Uint8Array.prototype.set);
const copyWithin = unbound(Uint8Array.prototype.copyWithin);
const decode = unbound(TextDecoder.prototype.decode);
const encode = unbound(TextEncoder.prototype.encode);
const encodeInto = unbound(TextEncoder.prototype.encodeInto);
const getLength = unbound(getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), "byteLength").get);
const base64Slice = unbound(Buffer.prototype.base64Slice);
const bufferFrom = Buffer.from;
const bufferByteLength = Buffer.byteLength;
const slice = unbound(String.prototype.slice);
const indexOf = unbound(String.prototype.indexOf);
const lastIndexOf = unbound(String.prototype.lastIndexOf);
const startsWith = unbound(String.prototype.startsWith);
const replace = unbound(String.prototype.replace);
const { exit, reallyExit } = process;
const listenerCount = unbound(process.listenerCount);
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
const define = (target, name, value) =>
  defineProperty(target, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });

// ---- The wire. Reads come from the event loop, or from here when something blocks.
const pauseCell = new Int32Array(new SharedArrayBuffer(4));
const { wait: atomicsWait } = Atomics;
const pause = () => atomicsWait(pauseCell, 0, 0, 1);

let unread = new Uint8Array(READ_BYTES);
let start = 0;
let end = 0;
const incoming = new Uint8Array(READ_BYTES);
// Answers by id, and the ids in the order of their arrival.
const kept = { __proto__: null };
let order = [];
let nextId = 1;
let onStart;
let isWarm = false;

const gone = () => apply(exit, process, [1]);

const keep = (bytes, count) => {
  const room = getLength(unread);
  if (end + count > room) {
    const waiting = end - start;
    if (waiting + count > room) {
      // The length that a frame announces is made room for at once.
      const wanted = waiting >= HEADER ? lengthAt(start) + HEADER : 0;
      const size = max(wanted, (waiting + count) * 2);
      const larger = new Uint8Array(size);
      setBytes(larger, subarray(unread, start, end));
      unread = larger;
    } else {
      copyWithin(unread, 0, start, end);
    }
    start = 0;
    end = waiting;
  }
  setBytes(unread, subarray(bytes, 0, count), end);
  end += count;
};

const lengthAt = (at) =>
  unread[at] + unread[at + 1] * 0x100 + unread[at + 2] * 0x10000 + unread[at + 3] * 0x1000000;

// Takes every frame that is there. What arrives while something blocks is kept: whose it is, is
// known when the guest's code pauses.
const sort = () => {
  while (end - start >= HEADER) {
    const length = lengthAt(start);
    if (length > MAX_FRAME_BYTES) return gone();
    if (end - start < HEADER + length) return;
    const body = decode(decoder, subarray(unread, start + HEADER, start + HEADER + length));
    start += HEADER + length;
    let frame;
    try {
      frame = parse(body);
    } catch {
      return gone();
    }
    if (hasOwn(frame, "answer")) {
      const { id, result } = frame.answer;
      kept[id] = result;
      define(order, order.length, id);
    } else if (hasOwn(frame, "start") && onStart !== undefined) {
      onStart(frame.start);
    } else {
      return gone();
    }
  }
  if (getLength(unread) > 1 << 20 && end === start) {
    unread = new Uint8Array(READ_BYTES);
    start = end = 0;
  }
};

// Never in the middle of the guest's code: what nobody has taken by now, a promise awaits.
const deliver = () => {
  isDue = false;
  sort();
  const ids = order;
  order = [];
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i];
    if (!(id in kept)) continue;
    const result = kept[id];
    delete kept[id];
    if (hasOwn(result, "Err")) own.refuse(id, result.Err);
    else own.answer(id, result.Ok);
  }
  rest();
};
let isDue = false;
const deliverSoon = () => {
  if (isDue) return;
  isDue = true;
  queueMicrotask(deliver);
};

const socket = new net.Socket({
  fd: HOST,
  readable: true,
  writable: false,
  onread: {
    buffer: incoming,
    callback: (count) => {
      keep(incoming, count);
      if (isWarm) deliver();
      return true;
    },
  },
});
const { _handle: handle } = socket;
const ref = unbound(socket.ref);
const unref = unbound(socket.unref);
const canBlock = typeof handle?.setBlocking === "function";
const setBlocking = canBlock ? unbound(handle.setBlocking) : undefined;
socket.on("end", () => gone());
socket.on("error", () => gone());

// The socket keeps the process alive only while an answer is awaited.
let isHeld = true;
const rest = () => {
  if (isHeld && onStart === undefined && !own.hasPendingCalls()) {
    isHeld = false;
    unref(socket);
  }
};
const hold = () => {
  if (!isHeld) {
    isHeld = true;
    ref(socket);
  }
  if (isSettled()) drain();
};
let drainTimer;
const drain = () => {
  if (drainTimer !== undefined) clearTimeout(drainTimer);
  drainTimer = setTimeout(() => {
    isHeld = false;
    unref(socket);
  }, DRAIN_MS);
  unrefTimer(drainTimer);
};
const probeTimer = setTimeout(() => {}, 0);
const unrefTimer = unbound(probeTimer.unref);
clearTimeout(probeTimer);

// Reads what is there; `false` when there is nothing. Blocks only in blocking mode.
const readNow = () => {
  let count;
  try {
    count = readSync(HOST, blocked, 0, READ_BYTES, null);
  } catch (error) {
    if (error.code === "EAGAIN" || error.code === "EINTR") return false;
    return gone();
  }
  if (count === 0) return gone();
  keep(blocked, count);
  return true;
};
const blocked = new Uint8Array(READ_BYTES);

const waitRead = () => {
  if (!canBlock) {
    while (!readNow()) pause();
    return;
  }
  setBlocking(handle, true);
  try {
    readNow();
  } finally {
    setBlocking(handle, false);
  }
};

// Small frames are made in one buffer, kept for all of them.
const outgoing = new Uint8Array(READ_BYTES);
const progressBytes = new Uint8Array(PROGRESS_BYTES);
const outgoingBody = subarray(outgoing, HEADER);
const setLength = (bytes, length) => {
  bytes[0] = length & 255;
  bytes[1] = (length >>> 8) & 255;
  bytes[2] = (length >>> 16) & 255;
  bytes[3] = length >>> 24;
};
const send = (text) => {
  if (text.length * 3 <= READ_BYTES - HEADER) {
    const { written } = encodeInto(encoder, text, outgoingBody);
    setLength(outgoing, written);
    return writeAll(outgoing, HEADER + written);
  }
  const body = encode(encoder, text);
  const length = getLength(body);
  if (length > MAX_FRAME_BYTES) throw new RangeError("this is too long to be sent");
  const frame = new Uint8Array(HEADER + length);
  setLength(frame, length);
  setBytes(frame, body, HEADER);
  return writeAll(frame, HEADER + length);
};
const writeAll = (bytes, length) => {
  let at = 0;
  while (at < length) {
    try {
      at += writeSync(HOST, bytes, at, length - at, null);
    } catch (error) {
      if (error.code === "EINTR") continue;
      if (error.code !== "EAGAIN") return gone();
      // While it waits to write it reads: two full buffers must not wait for each other.
      if (readNow()) deliverSoon();
      else pause();
    }
  }
};

// ---- What the prelude of tools asks of us.
const own = {
  __proto__: null,
  stringify,
  isArray,
  inspect: (value) => safely(() => inspect(value)) ?? "[Unreadable]",
  createObject: create,
  ownKeys,
  descriptorOf: getOwnPropertyDescriptor,
  weakGet: unbound(WeakMap.prototype.get),
  weakSet: unbound(WeakMap.prototype.set),
  wellFormed:
    String.prototype.toWellFormed === undefined
      ? (text) => replace(text, /\p{Surrogate}/gu, "\ufffd")
      : unbound(String.prototype.toWellFormed),
  // A stack begins with the error's own text here, and need not tell of our frames.
  define: (target, name, value) =>
    define(target, name, name === "stack" ? `${target.name}: ${target.message}\n${ownFrames(value)}` : value),
  describe: (error) => describe(error),
};

const native = {
  __proto__: null,
  byteLength: (text) => bufferByteLength(text, "utf8"),
  progress: (text) => {
    const { read } = encodeInto(encoder, text, progressBytes);
    send(`{"progress":${stringify(slice(text, 0, read))}}`);
  },
  ask: (text) => {
    const bytes = text.length * 3 > ASK_BYTES ? bufferByteLength(text, "utf8") : 0;
    if (bytes > ASK_BYTES) {
      throw new RangeError(`this is ${bytes} bytes long; at most ${ASK_BYTES} are allowed`);
    }
    const id = nextId;
    nextId = (nextId + 1) >>> 0;
    send(`{"ask":{"id":${id},"ask":${text}}}`);
    hold();
    return id;
  },
  // Blocks; the others' answers wait their turn.
  wait: (id) => {
    sort();
    while (!(id in kept)) {
      waitRead();
      sort();
    }
    const result = kept[id];
    delete kept[id];
    deliverSoon();
    return hasOwn(result, "Err")
      ? { ok: false, error: result.Err }
      : { ok: true, result: result.Ok };
  },
};

// ---- Errors, as the host is told of them.
const safely = (read) => {
  try {
    return read();
  } catch {
    return undefined;
  }
};
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
const readText = (object, key) => {
  const value = safely(() => object[key]);
  return typeof value === "string" ? value : undefined;
};

// One line for a thrown value: a plain Error is its message, others carry their name.
const describe = (error) => {
  if (!isObject(error)) return own.wellFormed(typeof error === "string" ? error : own.inspect(error));
  const message = readText(error, "message");
  const name = readText(error, "name") ?? "Error";
  if (message === undefined) return own.wellFormed(own.inspect(error));
  if (message === "") return own.wellFormed(name);
  return own.wellFormed(name === "Error" ? message : `${name}: ${message}`);
};

const SHIM = import.meta.url;
const SHIM_DIR = path.dirname(fileURLToPath(SHIM)) + "/";
let workspace = "/";
let shift;

// `    at name (main.mjs:3:7)`, `    at async main.mjs:3:7`, `    at file:///w/lib.mjs:1:2`
const frameOf = (line) => {
  const at = indexOf(line, "    at ") === 0 ? slice(line, 7) : undefined;
  if (at === undefined) return undefined;
  const open = lastIndexOf(at, " (");
  let name = open === -1 ? "" : slice(at, 0, open);
  let place = open === -1 ? at : slice(at, open + 2, -1);
  if (startsWith(place, "async ")) place = slice(place, 6);
  if (startsWith(name, "async ")) name = slice(name, 6);
  const beforeColumn = lastIndexOf(place, ":");
  const beforeLine = lastIndexOf(place, ":", beforeColumn - 1);
  const lineNumber = +slice(place, beforeLine + 1, beforeColumn);
  let column = +slice(place, beforeColumn + 1);
  let file = slice(place, 0, beforeLine);
  if (!(lineNumber >= 1 && column >= 1) || beforeLine < 1) return undefined;
  if (startsWith(file, "file://")) file = slice(file, 7);
  const isMain = file === CODE;
  if (isMain && shift?.line === lineNumber && column > shift.column) {
    column = max(column - shift.by, shift.column);
  }
  if (!isMain) {
    if (file[0] !== "/" || startsWith(file, SHIM_DIR) || !startsWith(file, workspace)) return undefined;
    file = slice(file, workspace.length);
  }
  const shown = name === "" ? "<anonymous>" : name;
  return { isMain, line: lineNumber, column, raw: line, text: `at ${shown} (${file}:${lineNumber}:${column})` };
};

const framesOf = (stack) => {
  const frames = [];
  let from = 0;
  while (from < stack.length && frames.length < 100) {
    const newline = indexOf(stack, "\n", from);
    const to = newline === -1 ? stack.length : newline;
    const frame = frameOf(slice(stack, from, to));
    if (frame !== undefined) define(frames, frames.length, frame);
    from = to + 1;
  }
  return frames;
};

const ownFrames = (stack) => {
  if (typeof stack !== "string") return "";
  const frames = framesOf(stack);
  let text = "";
  for (let i = 0; i < frames.length; i++) text += (i === 0 ? "" : "\n") + frames[i].raw;
  return text;
};

const cut = (text) => own.wellFormed(slice(text, 0, MESSAGE_CHARS));
const quoted = (text) => stringify(cut(text));
const threwText = (code, message, at, stack) => {
  const position =
    at === undefined ? "null" : `{"line":${at.line},"column":${at.column}}`;
  const frames = stack === undefined || stack === "" ? "null" : quoted(stack);
  return `{"threw":{"code":"${code}","message":${quoted(message)},"at":${position},"stack":${frames}}}`;
};

const thrownText = (error) => {
  const stack = isObject(error) ? readText(error, "stack") : undefined;
  const frames = stack === undefined ? [] : framesOf(stack);
  let at;
  let text = "";
  for (let i = 0; i < frames.length && i < MAX_FRAMES; i++) {
    if (at === undefined && frames[i].isMain) at = frames[i];
    text += (i === 0 ? "" : "\n") + frames[i].text;
  }
  const code = own.toolCode(error);
  if (at === undefined && error === importing.error) {
    at = importing.at;
    text = `at <main> (${CODE}:${at.line}:${at.column})`;
  }
  // The code says what kind of error it is; a tool's error need not say it again.
  const message = (code === undefined ? undefined : readText(error, "message")) ?? describe(error);
  return threwText(code ?? "RUNTIME_ERROR", message, at, text);
};

// ---- The guest's code: how it begins, and what came of it.
const PENDING = 0;
const RETURNED = 1;
const OVER = 2;
let state = PENDING;
let value;
let isDrained = false;
const importing = { error: undefined, at: undefined };
const isSettled = () => state !== PENDING;

// Said once, whatever follows.
const conclude = (text) => {
  if (state === OVER) return;
  state = OVER;
  send(text);
};

const fail = (error) => {
  conclude(thrownText(error));
  apply(exit, process, [1]);
};

// A collection as what it stands for: as JSON it would be empty.
const mapForEach = unbound(Map.prototype.forEach);
const setForEach = unbound(Set.prototype.forEach);
const plain = (collection) => {
  if (isSet(collection)) {
    const items = [];
    setForEach(collection, (item) => define(items, items.length, item));
    return items;
  }
  if (!isMap(collection)) return collection;
  const object = create(null);
  mapForEach(collection, (item, key) => {
    object[key] = item;
  });
  return object;
};

const resultText = () => {
  if (value === undefined) return '{"returned":null}';
  const serialisation = (message) => threwText("SERIALIZATION_ERROR", message);
  let text;
  try {
    text = stringify(plain(value));
    if (text === undefined) throw new TypeError("it is " + own.kindOf(value));
  } catch (error) {
    const why = describe(error);
    const newline = indexOf(why, "\n");
    return serialisation(
      `the result cannot be written as JSON: ${newline === -1 ? why : slice(why, 0, newline)}; ` +
        "return plain objects, arrays, strings, numbers, booleans or null",
    );
  }
  const isLong = text.length > RESULT_BYTES || (text.length * 3 > RESULT_BYTES && bufferByteLength(text, "utf8") > RESULT_BYTES);
  if (isLong) {
    return serialisation(
      `the result is more than ${RESULT_BYTES} bytes as JSON; return less of it, or a summary`,
    );
  }
  return `{"returned":${text}}`;
};

const finish = (code) => {
  if (state === RETURNED) {
    const text = resultText();
    conclude(text);
    if (startsWith(text, '{"threw"')) process.exitCode = 1;
  } else if (state === PENDING && isDrained) {
    conclude(threwText("RUNTIME_ERROR", STUCK));
    process.exitCode = 1;
  } else if (state === PENDING && code === 0) {
    conclude('{"returned":null}');
  }
  // Nobody else listens: taking the engine apart would only cost time.
  if (listenerCount(process, "exit") === 1) apply(reallyExit, process, [+(process.exitCode ?? code)]);
};

const importAll = async (imports) => {
  const namespaces = [];
  for (let i = 0; i < imports.length; i++) {
    const { specifier, options, names, line, column } = imports[i];
    try {
      const namespace = await load(specifier, options);
      for (let n = 0; n < names.length; n++) {
        if (!(names[n] in namespace)) {
          throw new SyntaxError(
            `The requested module '${specifier}' does not provide an export named '${names[n]}'`,
          );
        }
      }
      define(namespaces, i, namespace);
    } catch (error) {
      importing.error = error;
      importing.at = { line, column };
      throw error;
    }
  }
  return namespaces;
};

const run = async (job) => {
  workspace = process.cwd();
  const file = path.join(workspace, CODE);
  if (workspace !== "/") workspace += "/";
  const url = pathToFileURL(file).href;
  process.argv = [process.argv[0], file];
  process.execArgv = [];
  const require = createRequire(file);
  define(globalThis, "require", require);
  define(globalThis, "input", job.input);
  const servers = [];
  for (let i = 0; i < job.servers.length; i++) {
    const name = job.servers[i];
    servers[i] = [name, replace(name, /[^A-Za-z0-9_]/g, "_")];
  }
  own.addServers(servers);
  const meta = {
    __proto__: null,
    dirname: path.dirname(file),
    filename: file,
    resolve: (specifier) => import.meta.resolve(specifier, url),
    url,
  };
  let program;
  try {
    program = compile(job.code);
  } catch (flaw) {
    const isFlaw = flaw instanceof Flaw;
    const at = isFlaw && flaw.line !== undefined ? flaw : undefined;
    conclude(threwText("SYNTAX_ERROR", isFlaw ? flaw.message : describe(flaw), at));
    return apply(exit, process, [1]);
  }
  shift = program.shift;
  send('"compiled"');
  try {
    const namespaces = program.imports.length === 0 ? undefined : await importAll(program.imports);
    const main = program.main;
    value = await main(meta, namespaces);
    state = RETURNED;
  } catch (error) {
    return fail(error);
  }
  if (own.hasPendingCalls()) drain();
};

// ---- Pictures.
const magic = (bytes) => {
  const is = (at, text) => {
    for (let i = 0; i < text.length; i++) if (bytes[at + i] !== codeAt(text, i)) return false;
    return true;
  };
  if (is(0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (is(0, "\xff\xd8\xff")) return "image/jpeg";
  if (is(0, "GIF8")) return "image/gif";
  if (is(0, "RIFF") && is(8, "WEBP")) return "image/webp";
  return undefined;
};
const codeAt = unbound(String.prototype.charCodeAt);

const isView = ArrayBuffer.isView;
const imageBytes = (image) => {
  if (isView(image)) return bufferFrom(image.buffer, image.byteOffset, image.byteLength);
  if (isAnyArrayBuffer(image)) return bufferFrom(image);
  if (typeof image !== "string") {
    throw new TypeError("emit takes bytes, a path or a data: URL, not " + own.kindOf(image));
  }
  if (!startsWith(image, "data:")) return readFileSync(image);
  const comma = indexOf(image, ",");
  const isBase64 = indexOf(slice(image, 0, comma), ";base64") !== -1;
  if (comma === -1 || !isBase64) throw new TypeError("emit reads data: URLs in base64 only");
  return bufferFrom(slice(image, comma + 1), "base64");
};
const emit = (image) => {
  const bytes = imageBytes(image);
  const mime = magic(bytes);
  if (mime === undefined) throw new TypeError("emit shows png, jpeg, gif and webp pictures; this is none");
  const length = getLength(bytes);
  if (length > IMAGE_BYTES) {
    throw new RangeError(`the picture is ${length} bytes; at most ${IMAGE_BYTES} are allowed`);
  }
  send(`{"image":{"mime":"${mime}","base64":"${base64Slice(bytes, 0, length)}"}}`);
};
define(globalThis, "emit", emit);

// ---- Warm: everything is loaded, and has run once, before there is a job.
for (const name of ["tools.js", "kept.js"]) {
  const filename = path.join(SHIM_DIR, name);
  new vm.Script(readFileSync(filename, "utf8"), { filename }).runInThisContext()(native, own);
}
process.on("beforeExit", () => {
  isDrained = true;
});
process.on("exit", finish);
process.on("uncaughtException", (error) => {
  // A guest that listens itself has dealt with it.
  if (listenerCount(process, "uncaughtException") === 1) fail(error);
});
void process.stdout;
void process.stderr;
Error.stackTraceLimit = 40;
compile("import fs from 'node:fs'; import.meta.url; 1");
await load("node:fs");

onStart = (job) => {
  onStart = undefined;
  run(job);
  rest();
};
isWarm = true;
deliver();
