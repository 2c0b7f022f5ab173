// Ending what a cell that was stopped has left: timers, immediates and child processes. They are
// found by the mark that the storage leaves on everything that is begun while a cell runs.
import { createRequire } from "node:module";
import { apply, clearTimeout, define, process, safely } from "./taken.mjs";

const require = createRequire(import.meta.url);
const timers = safely(() => require("internal/timers"));
const hooks = safely(() => require("internal/test/binding").internalBinding("async_wrap"));
const clearNow = globalThis.clearImmediate;
const activeHandles = process._getActiveHandles;

export const quiet = (cells, cell) => {
  const mark = cells.kResourceStore;
  if (mark === undefined) return;
  const isOurs = (made) => safely(() => made[mark]) === cell;
  safely(() => {
    for (const key in timers.timerListMap) {
      const list = timers.timerListMap[key];
      const ours = [];
      for (let timer = list._idleNext; timer !== list && timer; timer = timer._idleNext) {
        if (isOurs(timer)) define(ours, ours.length, timer);
      }
      for (let i = 0; i < ours.length; i++) clearTimeout(ours[i]);
    }
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

// Code that is ended from outside leaves Node's stack of callbacks as it is in the middle of one.
// Node checks that, and gives up, as long as it counts anybody who wants to know of callbacks. It
// need not count the storage, which works all the same.
export const allowUnbalanced = () => {
  if (hooks === undefined) return;
  hooks.async_hook_fields[hooks.constants.kTotals] = 0;
  hooks.async_hook_fields[hooks.constants.kCheck] = 0;
};
export const balance = () => {
  if (hooks !== undefined) hooks.clearAsyncIdStack();
};
