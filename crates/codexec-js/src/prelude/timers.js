// Timers, microtasks, and unhandled promise rejections.
(native, own) => {
  const { TypeError } = globalThis;
  // Sorted by due time, then by creation.
  const timers = [];
  let lastId = 0;
  let rejections = [];

  const insert = (timer) => {
    let at = timers.length;
    while (at > 0 && timers[at - 1].due > timer.due) at--;
    own.arraySplice(timers, at, 0, timer);
  };

  const set = (callback, delay, args, isInterval) => {
    if (typeof callback !== "function") {
      throw new TypeError("the callback must be a function, not " + own.inspect(callback));
    }
    const wait = +delay > 0 ? +delay : 0;
    const id = ++lastId;
    insert({ id, due: native.now() + wait, wait, callback, args, isInterval });
    return id;
  };

  const clear = (id) => {
    for (let i = 0; i < timers.length; i++) {
      if (timers[i].id === id) {
        own.arraySplice(timers, i, 1);
        return;
      }
    }
  };

  const globals = {
    setTimeout: (callback, delay, ...args) => set(callback, delay, args, false),
    setInterval: (callback, delay, ...args) => set(callback, delay, args, true),
    setImmediate: (callback, ...args) => set(callback, 0, args, false),
    clearTimeout: (id) => clear(id),
    clearInterval: (id) => clear(id),
    clearImmediate: (id) => clear(id),
    queueMicrotask: (callback) => {
      if (typeof callback !== "function") {
        throw new TypeError("the callback must be a function, not " + own.inspect(callback));
      }
      (async () => {
        await undefined;
        callback();
      })();
    },
  };
  const names = own.ownKeys(globals);
  for (let i = 0; i < names.length; i++) own.define(globalThis, names[i], globals[names[i]]);

  // An interrupted cell leaves no timers and no rejections to report.
  let mark = 0;
  own.markTimers = () => {
    mark = lastId;
  };
  own.forgetTimers = () => {
    for (let i = timers.length - 1; i >= 0; i--) {
      if (timers[i].id > mark) own.arraySplice(timers, i, 1);
    }
    rejections = [];
  };

  own.nextTimeout = () => {
    for (let i = 0; i < timers.length; i++) if (!timers[i].isInterval) return timers[i].due;
    return undefined;
  };

  // Fires one timer at a time, so that its microtasks run before the next one.
  own.fireTimers = () => {
    const timer = timers[0];
    if (timer === undefined) return undefined;
    const now = native.now();
    if (timer.due > now) return timer.due;
    own.arraySplice(timers, 0, 1);
    if (timer.isInterval) {
      // At least a millisecond; an interval of zero would let nothing else run.
      timer.due = now + (timer.wait > 1 ? timer.wait : 1);
      insert(timer);
    }
    try {
      own.apply(timer.callback, undefined, timer.args);
    } catch (error) {
      own.warn("Uncaught in a timer: " + own.describe(error, true));
    }
    return 0;
  };

  own.noteRejection = (promise, reason, isHandled) => {
    if (!isHandled) {
      rejections[rejections.length] = { promise, reason };
      return;
    }
    for (let i = 0; i < rejections.length; i++) {
      if (rejections[i].promise === promise) {
        own.arraySplice(rejections, i, 1);
        return;
      }
    }
  };
  own.reportRejections = () => {
    if (rejections.length === 0) return;
    const reported = rejections;
    rejections = [];
    for (let i = 0; i < reported.length; i++) {
      own.warn("Unhandled rejection: " + own.describe(reported[i].reason, true));
    }
  };

  own.isQuiet = () => timers.length === 0 && rejections.length === 0;
}
