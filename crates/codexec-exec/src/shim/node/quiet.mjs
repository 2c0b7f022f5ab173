// Ends what an interrupted cell has left: timers, immediates and child processes. They are found by
// the mark that AsyncLocalStorage leaves on everything that is created while a cell runs.
import { createRequire } from "node:module";
import { apply, clearTimeout, define, process, safely } from "./taken.mjs";

const require = createRequire(import.meta.url);
const timers = safely(() => require("internal/timers"));
const { internalBinding } = safely(() => require("internal/test/binding")) ?? {};
const hooks = safely(() => internalBinding("async_wrap"));
const clock = safely(() => internalBinding("timers"));
// The number of timers that keep the process alive.
const alive = clock?.timerInfo ?? clock?.timeoutInfo;
const clearNow = globalThis.clearImmediate;
const activeHandles = process._getActiveHandles;

const eachTimer = (look) => {
  for (const key in timers.timerListMap) {
    const list = timers.timerListMap[key];
    for (let timer = list._idleNext; timer !== list && timer; timer = timer._idleNext) look(timer);
  }
};

export const quiet = (cells, cell) => {
  const mark = cells.kResourceStore;
  if (mark === undefined) return;
  const isOurs = (made) => safely(() => made[mark]) === cell;
  safely(() => {
    const ours = [];
    eachTimer((timer) => {
      if (isOurs(timer)) define(ours, ours.length, timer);
    });
    for (let i = 0; i < ours.length; i++) clearTimeout(ours[i]);
  });
  safely(() => {
    for (let made = timers.immediateQueue.head; made; made = made._idleNext) if (isOurs(made)) clearNow(made);
  });
  safely(() => {
    const handles = apply(activeHandles, process, []);
    for (let i = 0; i < handles.length; i++) {
      const { _handle, kill } = handles[i];
      if (typeof kill === "function" && isOurs(_handle)) apply(kill, handles[i], ["SIGKILL"]);
    }
  });
};

// Code that is terminated from outside leaves Node's callback stack unbalanced. Node checks the
// stack and aborts while any async hook is counted. AsyncLocalStorage works without being counted.
export const allowUnbalanced = () => {
  if (hooks === undefined) return;
  hooks.async_hook_fields[hooks.constants.kTotals] = 0;
  hooks.async_hook_fields[hooks.constants.kCheck] = 0;
};
// A timer that was terminated in its callback is still counted among those that keep the process
// alive, and the next timer would not be waited for.
export const balance = () => {
  if (hooks !== undefined) hooks.clearAsyncIdStack();
  if (alive === undefined || timers === undefined) return;
  let count = 0;
  eachTimer((timer) => {
    if (timer[timers.kRefed]) count++;
  });
  alive[0] = count;
  clock.toggleTimerRef(count > 0);
};
