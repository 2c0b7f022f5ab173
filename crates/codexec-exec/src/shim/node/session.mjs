// A session: one cell after the other in the same process. What a cell declares at its top lives on;
// what it began goes on after it, unless it was stopped.
import { AsyncLocalStorage } from "node:async_hooks";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { currentDirectory, enter } from "./files.mjs";
import { namesOfSession } from "./names.mjs";
import { compileCell, Flaw } from "./program.mjs";
import { allowUnbalanced, balance, quiet } from "./quiet.mjs";
import {
  clearTimeout, decode, decoder, define, Error, hasOwn, inspect, process, safely, setImmediate, setTimeout, slice,
  stringify, unbound,
} from "./taken.mjs";

// What main thread and watcher share: how many interrupts the main thread has heard of, how many
// signals the watcher has, and who may end the cell.
const HEARD = 0;
const SIGNALS = 1;
const STATE = 2;
const IDLE = 0;
const RUNNING = 1;
const ENDED_BY_WATCHER = 2;
// A signal that has not come by now was one with another.
const LATE_MS = 500;
// How long the watcher may take to end what it has decided to end.
const WATCHER_MS = 200;

const { load, store, compareExchange, notify, add } = Atomics;
const { now } = Date;
const INTERRUPTED = '"interrupted"';

export const startSession = (guest) => {
  const { send, rest, hold, give, metaOf, importAll, flawText, resultText, unblock, errors } = guest;
  const shared = new Int32Array(new SharedArrayBuffer(12));
  const cells = new AsyncLocalStorage();
  const cellNow = unbound(cells.getStore).bind(undefined, cells);
  const runIn = unbound(cells.run).bind(undefined, cells);
  const names = namesOfSession();
  // What is counted once the storage is used is counted before the first cell.
  runIn(undefined, () => {});
  // Thrown by `process.exit`, and caught by nobody.
  const EXIT = new Error("the cell has ended by process.exit");
  const startDirectory = currentDirectory();
  let directory = startDirectory;
  let current;
  // THREAT[SES-8]: what a cell has left running knows the number of the next one, and not its key.
  // It is on no object that a guest can get hold of.
  let currentKey;
  let next;
  let isInterruptDue = false;
  let interruptedAt = 0;
  // Whose answer it will be, by the id of the call.
  const askers = { __proto__: null };

  const ended = (key, ending) => send(`{"cell_ended":{"key":"${key}","ending":${ending}}}`);

  // THREAT[SES-4]: the end of a cell is said once, and of the cell that runs.
  const end = (cell, ending) => {
    if (cell !== current) return;
    // Whatever runs now, an end that is on its way from outside has to meet this cell.
    if (compareExchange(shared, STATE, RUNNING, IDLE) === ENDED_BY_WATCHER) {
      const until = now() + WATCHER_MS;
      while (now() < until);
      store(shared, STATE, IDLE);
    }
    // It ended because it was told to, in the middle of a call that blocked.
    if (isInterruptDue) stop(cell);
    current = undefined;
    clearTimeout(cell.drain);
    directory = currentDirectory();
    ended(currentKey, isInterruptDue ? INTERRUPTED : ending);
    hold();
  };

  // What is left of it does nothing more that can be seen.
  const stop = (cell) => {
    cell.isStopped = true;
    quiet(cells, cell);
  };

  // THREAT[SES-5]: the cell that runs is given up, and with it what it waits for.
  const interrupt = (cell) => {
    balance();
    stop(cell);
    unblock();
    hold();
    store(shared, STATE, IDLE);
    // What was ended from outside may have been Node's own: only a loop that still turns says that
    // the cell has ended.
    setImmediate(() => setTimeout(() => end(cell, INTERRUPTED), 0));
  };

  const conclude = (cell, value) => {
    if (cell !== current) return;
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
      // Who stops a cell says how it ended.
      if (!cell.isStopped) end(cell, errors.thrownText(error));
      return;
    }
    if (cell.isStopped) return;
    if (cell.pending === 0) return conclude(cell, value);
    // Calls that nobody awaits.
    cell.finish = () => conclude(cell, value);
    cell.drain = setTimeout(cell.finish, guest.DRAIN_MS);
  };

  const begin = ({ number, key, code, input, args }) => {
    const cell = { __proto__: null, number, isStopped: false, pending: 0, finish: undefined, drain: undefined };
    current = cell;
    currentKey = key;
    if (load(shared, SIGNALS) > load(shared, HEARD) || now() > interruptedAt + LATE_MS) {
      store(shared, HEARD, load(shared, SIGNALS));
    }
    store(shared, STATE, RUNNING);
    // The directory may have been mounted anew since the last cell.
    if (!enter(directory)) {
      // THREAT[FIL-11]: the code was not written for another directory.
      const gone = directory;
      enter(startDirectory);
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
      return end(cell, flaw instanceof Flaw ? flawText(flaw) : errors.thrownText(flaw));
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

  // ---- What a cell may do to the process.
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
      // THREAT[SES-10]: what an earlier cell has left running does not write as the one that runs.
      const isLate = current !== undefined && cell !== undefined && cell !== current && !cell.isStopped;
      if (isLate) sendLate(name, args[0]);
      else if (cell?.isStopped !== true) return write(stream, ...args);
      const done = args[args.length - 1];
      if (typeof done === "function") setImmediate(done);
      return true;
    });
  };
  // Which says by itself whose it is.
  const complain = unbound(process.stderr.write).bind(undefined, process.stderr);
  guard(process.stdout, "out");
  guard(process.stderr, "err");

  // It must not end the process, also before the watcher is there.
  process.on("SIGINT", () => {});
  const watcher = new Worker(fileURLToPath(new URL("watcher.cjs", import.meta.url)), {
    workerData: { shared, HEARD, SIGNALS, STATE, RUNNING, ENDED_BY_WATCHER },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    env: {},
    stdin: false,
  });
  // Cells wait for it. Without one, the host ends what cannot be interrupted.
  let isWatched = false;
  const watched = () => {
    isWatched = true;
    watcher.unref();
    proceed();
  };
  watcher.on("error", watched);
  watcher.on("message", (said) => {
    if (said === "ready") watched();
    else if (current !== undefined && load(shared, STATE) === ENDED_BY_WATCHER) interrupt(current);
  });

  // Never in the middle of the guest's code.
  const proceed = () => {
    if (isInterruptDue) {
      isInterruptDue = false;
      add(shared, HEARD, 1);
      notify(shared, HEARD);
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
    // `false` for a frame that is not a session's.
    take: (frame) => {
      if (frame === "interrupt") {
        isInterruptDue = true;
        // It was too long on its way to begin.
        if (next !== undefined) next.isStopped = true;
        return true;
      }
      if (!hasOwn(frame, "cell") || current !== undefined || next !== undefined) return false;
      next = frame.cell;
      return true;
    },
    proceed,
    // While something blocks.
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
    // `false` if nobody is to hear of it.
    answered: (id) => {
      const cell = askers[id];
      if (cell === undefined) return true;
      delete askers[id];
      cell.pending--;
      return !cell.isStopped;
    },
    settled: () => {
      const cell = current;
      // What the answer is awaited by may ask again.
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
