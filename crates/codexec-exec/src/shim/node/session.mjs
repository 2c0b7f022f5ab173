// A session: one cell after the other in the same process. Top-level declarations of a cell stay;
// whatever it started goes on after it, unless it was interrupted.
import { AsyncLocalStorage } from "node:async_hooks";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { currentDirectory, enter, startDirectory } from "./files.mjs";
import { namesOfSession } from "./names.mjs";
import { compileCell, Flaw } from "./program.mjs";
import { allowUnbalanced, balance, quiet } from "./quiet.mjs";
import {
  clearTimeout, decode, decoder, define, Error, hasOwn, inspect, process, safely, setImmediate, setTimeout, slice,
  stringify, unbound,
} from "./taken.mjs";

// Shared between the main thread and the watcher: the number of interrupts that the main thread has
// handled, the number of signals that the watcher has received, and who may end the cell.
const HANDLED = 0;
const SIGNALS = 1;
const STATE = 2;
const IDLE = 0;
const RUNNING = 1;
const ENDED_BY_WATCHER = 2;
// A signal that has not arrived by now was merged with another one.
const LATE_MS = 500;
// How long the watcher may take to end a cell after it has decided to.
const WATCHER_MS = 200;

const { load, store, compareExchange, notify, add } = Atomics;
const { now } = Date;
const INTERRUPTED = '"interrupted"';

export const startSession = (guest) => {
  const { send, rest, hold, give, metaOf, importAll, flawText, resultText, unblock, errors, own } = guest;
  const shared = new Int32Array(new SharedArrayBuffer(12));
  const cells = new AsyncLocalStorage();
  const cellNow = unbound(cells.getStore).bind(undefined, cells);
  const runIn = unbound(cells.run).bind(undefined, cells);
  const names = namesOfSession();
  // Makes Node count the storage before the first cell, not during it.
  runIn(undefined, () => {});
  // Thrown by `process.exit`, and never caught.
  const EXIT = new Error("the cell has ended by process.exit");
  let directory = startDirectory();
  let current;
  // THREAT[SES-8]: code that an earlier cell left running knows the next cell's number, but not its
  // key. The key is on no object that a guest can reach.
  let currentKey;
  let next;
  let isInterruptDue = false;
  let interruptedAt = 0;
  // The cell that made each call, by the call's id.
  const askers = { __proto__: null };

  const ended = (key, ending) => send(`{"cell_ended":{"key":"${key}","ending":${ending}}}`);

  // THREAT[SES-4]: the end is reported once, and only for the current cell.
  const end = (cell, ending) => {
    if (cell !== current) return;
    // A termination that the watcher has decided on has to hit this cell, not the next one.
    if (compareExchange(shared, STATE, RUNNING, IDLE) === ENDED_BY_WATCHER) {
      const until = now() + WATCHER_MS;
      while (now() < until);
      store(shared, STATE, IDLE);
    }
    // The cell ended because it was interrupted in a blocking call.
    if (isInterruptDue) stop(cell);
    current = undefined;
    clearTimeout(cell.drain);
    directory = currentDirectory();
    ended(currentKey, isInterruptDue ? INTERRUPTED : ending);
    hold();
  };

  // Suppresses all visible effects of what is left of the cell.
  const stop = (cell) => {
    cell.isStopped = true;
    quiet(cells, cell);
  };

  // THREAT[SES-5]: gives up the current cell and everything that it waits for.
  const interrupt = (cell) => {
    balance();
    stop(cell);
    unblock();
    hold();
    store(shared, STATE, IDLE);
    // The watcher may have terminated code of Node itself: only an event loop that still runs may
    // report the end of the cell.
    setImmediate(() => setTimeout(() => end(cell, INTERRUPTED), 0));
  };

  const conclude = (cell, value) => {
    if (cell !== current) return;
    own.unawaited();
    let ending = resultText(value);
    const code = process.exitCode;
    process.exitCode = undefined;
    if (code !== undefined && +code !== 0) ending = `{"exited":${+code & 255}}`;
    end(cell, ending);
  };

  const start = async (cell, program, main, meta) => {
    let value;
    try {
      const namespaces = program.imports.length === 0 ? undefined : await importAll(program.imports);
      value = await main(meta, namespaces, names.named);
    } catch (error) {
      // An interrupted cell is reported by `interrupt`.
      if (!cell.isStopped) end(cell, errors.thrownText(error));
      return;
    }
    if (cell.isStopped) return;
    if (cell.pending === 0) return conclude(cell, value);
    // Waits for calls that are not awaited.
    cell.finish = () => conclude(cell, value);
    cell.drain = setTimeout(cell.finish, guest.DRAIN_MS);
  };

  const begin = ({ number, key, code, input, args }) => {
    const cell = { __proto__: null, number, isStopped: false, pending: 0, finish: undefined, drain: undefined };
    current = cell;
    currentKey = key;
    if (load(shared, SIGNALS) > load(shared, HANDLED) || now() > interruptedAt + LATE_MS) {
      store(shared, HANDLED, load(shared, SIGNALS));
    }
    store(shared, STATE, RUNNING);
    // The directory may have been mounted anew since the last cell.
    if (!enter(directory)) {
      // THREAT[FIL-13]: the code was not written for another directory.
      const gone = directory;
      enter(startDirectory());
      return end(cell, `{"directory_gone":${stringify(gone)}}`);
    }
    const name = `cell-${number}.mjs`;
    const file = path.join(process.cwd(), name);
    give(file, { input, args });
    let program;
    let main;
    try {
      program = compileCell(code, name);
      names.declare(program.names);
      main = program.makeMain(names.shadowFor(code));
    } catch (flaw) {
      return end(cell, flaw instanceof Flaw ? flawText(flaw, code) : errors.thrownText(flaw));
    }
    errors.begin(name, program.shifts);
    allowUnbalanced();
    runIn(cell, start, cell, program, main, metaOf(file));
    rest();
  };

  const LATE_LENGTH = 64 << 10;
  const sendLate = (name, chunk) => {
    const text = typeof chunk === "string" ? chunk : (safely(() => decode(decoder, chunk)) ?? "");
    send(`{"output":{"stream":"${name}","text":${stringify(slice(text, 0, LATE_LENGTH))}}}`);
  };

  // ---- Restrictions on what a cell may do to the process.
  define(process, "exit", (code) => {
    const cell = cellNow() ?? current;
    const status = +(code ?? process.exitCode ?? 0) & 255;
    process.exitCode = undefined;
    if (cell !== undefined && cell === current) {
      stop(cell);
      end(cell, status === 0 ? '{"returned":null}' : `{"exited":${status}}`);
    }
    throw EXIT;
  });
  const guard = (stream, name) => {
    const write = unbound(stream.write);
    define(stream, "write", (...args) => {
      const cell = cellNow();
      // THREAT[SES-10]: code that an earlier cell left running does not write as the current one.
      const isLate = current !== undefined && cell !== undefined && cell !== current && !cell.isStopped;
      if (isLate) sendLate(name, args[0]);
      else if (cell?.isStopped !== true) return write(stream, ...args);
      const done = args[args.length - 1];
      if (typeof done === "function") setImmediate(done);
      return true;
    });
  };
  // Unguarded, because these messages name their cell themselves.
  const complain = unbound(process.stderr.write).bind(undefined, process.stderr);
  own.warn = (text) => complain(text + "\n");
  guard(process.stdout, "out");
  guard(process.stderr, "err");

  // SIGINT must not end the process, not even before the watcher is ready.
  process.on("SIGINT", () => {});
  const watcher = new Worker(fileURLToPath(new URL("watcher.cjs", import.meta.url)), {
    workerData: { shared, HANDLED, SIGNALS, STATE, RUNNING, ENDED_BY_WATCHER },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    env: {},
    stdin: false,
  });
  // Cells wait until the watcher is ready. If it fails, the host kills cells that cannot be
  // interrupted.
  let isWatched = false;
  const startWatched = () => {
    isWatched = true;
    watcher.unref();
    proceed();
  };
  watcher.on("error", startWatched);
  watcher.on("message", (message) => {
    if (message === "ready") startWatched();
    else if (current !== undefined && load(shared, STATE) === ENDED_BY_WATCHER) interrupt(current);
  });

  // Handles a pending interrupt and starts the next cell. Never runs in the middle of the guest's
  // code.
  const proceed = () => {
    if (isInterruptDue) {
      isInterruptDue = false;
      add(shared, HANDLED, 1);
      notify(shared, HANDLED);
      interruptedAt = now();
      if (current !== undefined && !current.isStopped) interrupt(current);
    }
    if (!isWatched || next === undefined || current !== undefined) return;
    const cell = next;
    next = undefined;
    if (hasOwn(cell, "isStopped")) ended(cell.key, INTERRUPTED);
    else begin(cell);
  };

  return {
    // Returns `false` for a frame that is not for a session.
    take: (frame) => {
      if (frame === "interrupt") {
        isInterruptDue = true;
        // The cell has not started yet.
        if (next !== undefined) next.isStopped = true;
        return true;
      }
      if (!hasOwn(frame, "cell") || current !== undefined || next !== undefined) return false;
      next = frame.cell;
      return true;
    },
    proceed,
    // Called while a call blocks.
    check: () => {
      if (isInterruptDue || cellNow()?.isStopped === true) throw new Error("the cell was stopped");
    },
    isIdle: () => current === undefined,
    isStopped: () => cellNow()?.isStopped === true,
    hasPendingCalls: () => current !== undefined && current.pending > 0,
    asked: (id) => {
      const cell = cellNow();
      if (cell === undefined) return;
      askers[id] = cell;
      cell.pending++;
      if (cell.finish !== undefined) {
        clearTimeout(cell.drain);
        cell.drain = setTimeout(cell.finish, guest.DRAIN_MS);
      }
    },
    // Returns `false` if the answer must not be delivered.
    answered: (id) => {
      const cell = askers[id];
      if (cell === undefined) return true;
      delete askers[id];
      cell.pending--;
      return !cell.isStopped;
    },
    settled: () => {
      const cell = current;
      // The code that awaits the answer may make another call.
      if (cell?.finish !== undefined && cell.pending === 0) {
        setImmediate(() => {
          if (cell.pending === 0) cell.finish();
        });
      }
    },
    drained: () => {
      hold();
      const cell = current;
      if (cell === undefined || cell.isStopped) return;
      if (load(shared, STATE) === ENDED_BY_WATCHER) return interrupt(cell);
      stop(cell);
      end(cell, errors.threwText("RUNTIME_ERROR", guest.STUCK));
    },
    uncaught: (error) => {
      const cell = cellNow();
      if (error === EXIT || cell?.isStopped === true) return;
      if (cell !== undefined && cell === current) {
        stop(cell);
        return end(cell, errors.thrownText(error));
      }
      const whose = cell === undefined ? "" : ` of cell ${cell.number}`;
      complain(`[codexec] nobody caught this${whose}: ${inspect(error)}\n`);
    },
  };
};
