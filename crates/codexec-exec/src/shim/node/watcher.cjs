// A thread that interrupts the main one: code that computes reads no socket and runs no handler, so
// another thread has to receive the signal and terminate the code. See session.mjs for `shared`.
const { parentPort, workerData } = require("node:worker_threads");
const inspector = require("node:inspector");
const { internalBinding } = require("internal/test/binding");
const { Signal } = internalBinding("signal_wrap");

const { shared, HANDLED, SIGNALS, STATE, RUNNING, ENDED_BY_WATCHER } = workerData;
const SIGINT = 2;
// A main thread that is idle handles the interrupt within this time.
const PATIENCE_MS = 30;

const signal = new Signal();
signal.onsignal = () => {
  const count = Atomics.add(shared, SIGNALS, 1) + 1;
  const until = Date.now() + PATIENCE_MS;
  let handled = Atomics.load(shared, HANDLED);
  while (handled < count && Date.now() < until) {
    Atomics.wait(shared, HANDLED, handled, 5);
    handled = Atomics.load(shared, HANDLED);
  }
  if (handled >= count || Atomics.compareExchange(shared, STATE, RUNNING, ENDED_BY_WATCHER) !== RUNNING) return;
  const session = new inspector.Session();
  session.connectToMainThread();
  session.post("Runtime.terminateExecution", () => {
    session.disconnect();
    parentPort.postMessage("ended");
  });
};
signal.start(SIGINT);
parentPort.postMessage("ready");
