// The guest's side for Node.js: waits for one Start frame on descriptor 3, runs its code, and
// reports how it ended; or does so with one cell after the other, see session.mjs. A frame is a
// length (u32, little endian) and that many bytes of JSON. Started as
//   node --no-warnings --no-force-async-hooks-checks --expose-internals
//     --experimental-vm-modules --experimental-import-meta-resolve guest.mjs
// Changes that a guest makes to built-in objects must not affect the frames: everything is captured
// before its code runs, and nothing here looks a method up on a prototype.
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import vm from "node:vm";
import { errorsOf } from "./errors.mjs";
import { installFiles, startDirectory, startInDirectory } from "./files.mjs";
import { findPackages } from "./packages.mjs";
import { emitBy } from "./pictures.mjs";
import { CODE, compile, excerpt, Flaw, load } from "./program.mjs";
import { startSession } from "./session.mjs";
import {
  apply, bufferByteLength, clearTimeout, copyWithin, create, decode, decoder, define, encode, encodeInto, encoder,
  Error, exit, getLength, getOwnPropertyDescriptor, hasOwn, indexOf, inspect, isArray, isMap, isSet, listenerCount,
  Map, max, ownKeys, parse, process, queueMicrotask, RangeError, readFileSync, readSync, reallyExit, replace, safely,
  Set, setBytes, setTimeout, slice, startsWith, stringify, subarray, TypeError, unbound, writeSync,
} from "./taken.mjs";

installFiles();

const HOST = 3;
const HEADER = 4;
const MAX_FRAME_BYTES = 16 << 20;
const READ_BYTES = 64 << 10;
const ASK_BYTES = 9 << 20;
const RESULT_BYTES = 8 << 20;
const PROGRESS_BYTES = 4 << 10;
// Time for calls that are not awaited, after the result is known.
const DRAIN_MS = 1_000;
const STUCK =
  "the code awaits something that nothing will ever settle: no tool call and no timer is left " +
  "that could do it";

// ---- The wire. The event loop reads, or this code while a call blocks.
const pauseCell = new Int32Array(new SharedArrayBuffer(4));
const { wait: atomicsWait } = Atomics;
const pause = () => atomicsWait(pauseCell, 0, 0, 1);

let unread = new Uint8Array(READ_BYTES);
let start = 0;
let end = 0;
const incoming = new Uint8Array(READ_BYTES);
// Answers by id, and the ids in the order of arrival.
const answers = { __proto__: null };
let order = [];
let nextId = 1;
let onStart;
let isWarm = false;
// For a session: runs its cells.
let session;

const exitHostGone = () => apply(exit, process, [1]);

const append = (bytes, count) => {
  const room = getLength(unread);
  if (end + count > room) {
    const waiting = end - start;
    if (waiting + count > room) {
      // Makes room for the whole frame at once, using the length in its header.
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

// Decodes every complete frame. Answers that arrive while a call blocks are stored; they are
// delivered when the guest's code pauses.
const sort = () => {
  while (end - start >= HEADER) {
    const length = lengthAt(start);
    if (length > MAX_FRAME_BYTES) return exitHostGone();
    if (end - start < HEADER + length) return;
    const body = decode(decoder, subarray(unread, start + HEADER, start + HEADER + length));
    start += HEADER + length;
    let frame;
    try {
      frame = parse(body);
    } catch {
      return exitHostGone();
    }
    if (hasOwn(frame, "answer")) {
      const { id, result } = frame.answer;
      answers[id] = result;
      define(order, order.length, id);
    } else if (session !== undefined && session.take(frame)) {
      // Handled by the session.
    } else if (hasOwn(frame, "start") && onStart !== undefined) {
      onStart(frame.start);
    } else {
      return exitHostGone();
    }
  }
  if (getLength(unread) > 1 << 20 && end === start) {
    unread = new Uint8Array(READ_BYTES);
    start = end = 0;
  }
};

// Resolves the promises of all remaining answers. Never runs in the middle of the guest's code.
const deliver = () => {
  isDue = false;
  sort();
  const ids = order;
  order = [];
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i];
    if (!(id in answers)) continue;
    const result = answers[id];
    delete answers[id];
    if (session?.answered(id) === false) continue;
    if (hasOwn(result, "Err")) own.refuse(id, result.Err);
    else own.answer(id, result.Ok);
  }
  session?.settled();
  rest();
  session?.proceed();
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
      append(incoming, count);
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
socket.on("end", () => exitHostGone());
socket.on("error", () => exitHostGone());

const hasPendingCalls = () => (session === undefined ? own.hasPendingCalls() : session.hasPendingCalls());

// The socket keeps the process alive only while an answer is awaited.
let isHeld = true;
const rest = () => {
  if (isHeld && onStart === undefined && session?.isIdle() !== true && !hasPendingCalls()) {
    isHeld = false;
    unref(socket);
  }
};
const hold = () => {
  if (!isHeld) {
    isHeld = true;
    ref(socket);
  }
  if (session === undefined && isSettled()) drain();
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

// Reads what is available; returns `false` if nothing is. Blocks only in blocking mode.
const readNow = () => {
  let count;
  try {
    count = readSync(HOST, blocked, 0, READ_BYTES, null);
  } catch (error) {
    if (error.code === "EAGAIN" || error.code === "EINTR") return false;
    return exitHostGone();
  }
  if (count === 0) return exitHostGone();
  append(blocked, count);
  return true;
};
const blocked = new Uint8Array(READ_BYTES);

// Restores non-blocking mode after a cell was interrupted in a blocking call.
const unblock = () => {
  if (canBlock) setBlocking(handle, false);
};

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

// Small frames are built in one shared buffer.
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
      if (error.code !== "EAGAIN") return exitHostGone();
      // Reads while waiting to write: two full buffers must not wait for each other.
      if (readNow()) deliverSoon();
      else pause();
    }
  }
};

// ---- The functions that the prelude of tools needs.
const own = {
  __proto__: null,
  isNode: true,
  apply,
  slice,
  split: unbound(String.prototype.split),
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
  // V8's stacks start with the error's own text; our own frames are removed.
  define: (target, name, value) =>
    define(target, name, name === "stack" ? `${target.name}: ${target.message}\n${ownFrames(value)}` : value),
  describe: (error) => describe(error),
  placeOf: (site) => placeOf(site.stack),
};
const { begin, blame, describe, ownFrames, placeOf, threwText, thrownText, workIn } = errorsOf(own);

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
    // Calls of a cell that was interrupted are never answered.
    if (session?.isStopped() === true) return id;
    send(`{"ask":{"id":${id},"ask":${text}}}`);
    session?.asked(id);
    hold();
    return id;
  },
  // Blocks until this answer arrives; others are delivered later.
  wait: (id) => {
    sort();
    while (!(id in answers)) {
      session?.check();
      waitRead();
      sort();
    }
    const result = answers[id];
    delete answers[id];
    session?.answered(id);
    deliverSoon();
    return hasOwn(result, "Err")
      ? { ok: false, error: result.Err }
      : { ok: true, result: result.Ok };
  },
};

// ---- The guest's code: how it starts, and its result.
const PENDING = 0;
const RETURNED = 1;
const OVER = 2;
let state = PENDING;
let value;
let isDrained = false;
const isSettled = () => state !== PENDING;

// Sends the last frame, once.
const conclude = (text) => {
  if (state === OVER) return;
  state = OVER;
  send(text);
};

const fail = (error) => {
  conclude(thrownText(error));
  apply(exit, process, [1]);
};

// Converts a Map or Set, which JSON would write as an empty object.
const mapForEach = unbound(Map.prototype.forEach);
const setForEach = unbound(Set.prototype.forEach);
const toJsonValue = (collection) => {
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

const resultText = (value) => {
  if (value === undefined) return '{"returned":null}';
  const serialisation = (message) => threwText("SERIALIZATION_ERROR", message);
  let text;
  try {
    text = own.stringifyResult(toJsonValue(value));
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
  if (session !== undefined) return;
  if (state === RETURNED) {
    const lost = own.unawaited();
    const text = lost === undefined ? resultText(value) : thrownText(lost);
    conclude(text);
    if (startsWith(text, '{"threw"')) process.exitCode = 1;
  } else if (state === PENDING && isDrained) {
    conclude(threwText("RUNTIME_ERROR", STUCK));
    process.exitCode = 1;
  } else if (state === PENDING && code === 0) {
    conclude('{"returned":null}');
  }
  // Without other listeners, skips the slow teardown of the engine.
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
      blame(error, { line, column });
      throw error;
    }
  }
  return namespaces;
};

// Returns the object behind `import.meta`.
const metaOf = (file) => {
  const url = pathToFileURL(file).href;
  return {
    __proto__: null,
    dirname: path.dirname(file),
    filename: file,
    resolve: (specifier) => import.meta.resolve(specifier, url),
    url,
  };
};

const setUp = (job) => {
  const folder = startDirectory();
  workIn(folder === "/" ? folder : folder + "/");
  const file = path.join(folder, CODE);
  process.execArgv = [];
  define(globalThis, "require", createRequire(file));
  const servers = [];
  for (let i = 0; i < job.servers.length; i++) {
    const name = job.servers[i];
    servers[i] = [name, replace(name, /[^A-Za-z0-9_]/g, "_")];
  }
  own.addServers(servers);
  return file;
};
const give = (file, { input, args }) => {
  process.argv = [process.argv[0], file];
  for (let i = 0; i < (args?.length ?? 0); i++) define(process.argv, i + 2, args[i]);
  define(globalThis, "input", input);
};

const flawText = (flaw, code) => {
  const isFlaw = flaw instanceof Flaw;
  const at = isFlaw && flaw.line !== undefined ? flaw : undefined;
  return threwText("SYNTAX_ERROR", isFlaw ? flaw.message : describe(flaw), at, at && excerpt(code, at));
};

const run = async (job) => {
  const file = setUp(job);
  give(file, job);
  let program;
  try {
    program = compile(job.code);
  } catch (flaw) {
    conclude(flawText(flaw, job.code));
    return apply(exit, process, [1]);
  }
  begin(CODE, program.shifts);
  send('"compiled"');
  try {
    const namespaces = program.imports.length === 0 ? undefined : await importAll(program.imports);
    const main = program.main;
    value = await main(metaOf(file), namespaces);
    state = RETURNED;
  } catch (error) {
    return fail(error);
  }
  if (own.hasPendingCalls()) drain();
};

// ---- Warm-up: everything is loaded, and has run once, before there is a job.
const shim = path.dirname(fileURLToPath(import.meta.url));
own.hostFunctions = JSON.parse(readFileSync(path.join(shim, "host_functions.json"), "utf8"));
for (const name of ["tools.js", "host_functions.js", "hints.js"]) {
  const filename = path.join(shim, name);
  // Strict, so that the guest's functions do not see ours as their callers.
  const text = '"use strict";' + readFileSync(filename, "utf8");
  new vm.Script(text, { filename }).runInThisContext()(native, own);
}
define(globalThis, "emit", emitBy(own, send, unbound(console.log).bind(undefined, console)));
process.on("beforeExit", () => {
  if (session !== undefined) return session.drained();
  isDrained = true;
});
process.on("exit", finish);
process.on("uncaughtException", (error) => {
  // A guest with its own listener has handled the error.
  if (listenerCount(process, "uncaughtException") !== 1) return;
  if (session !== undefined) session.uncaught(error);
  else fail(error);
});
void process.stdout;
void process.stderr;
Error.stackTraceLimit = 40;
findPackages();
compile("import fs from 'node:fs'; import.meta.url; 1");
await load("node:fs");

onStart = (job) => {
  onStart = undefined;
  startInDirectory();
  if (job.is_session) openSession(job);
  else run(job);
  rest();
};

// Starts a session. Cells that arrive before it is ready wait in its own queue.
const openSession = (job) => {
  own.isSession = true;
  setUp(job);
  session = startSession({
    send, rest, hold, give, metaOf, importAll, flawText, resultText, unblock, own,
    errors: { begin, thrownText, threwText },
    STUCK, DRAIN_MS,
  });
};
isWarm = true;
// Reports readiness. The host measures memory from here on, and then sends the job.
writeSync(HOST, "1");
deliver();
