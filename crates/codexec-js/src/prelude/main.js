// The guest's main function: how it begins, and what came of it.
(native, own) => {
  const { Map, Set, TypeError } = globalThis;
  const MAX_RESULT_CHARS = 8 * 1024 * 1024;
  const PENDING = 0;
  const RETURNED = 1;
  const THREW = 2;
  let state = PENDING;
  let value;

  own.begin = (servers) => {
    own.startClock();
    own.addServers(servers);
  };

  // Awaits by itself: what a guest has made of Promise.prototype.then takes no part. What is left
  // of a cell that was stopped says nothing about the next.
  let latest = 0;
  own.start = async (main) => {
    const number = ++latest;
    state = PENDING;
    value = undefined;
    const settle = (how, what) => {
      if (number !== latest) return;
      state = how;
      value = what;
    };
    try {
      settle(RETURNED, await main(own.variables, own.constants));
    } catch (error) {
      settle(THREW, error);
    }
  };
  own.state = () => state;
  own.error = () => value;
  own.awaitsOnlyCalls = () => state === PENDING && own.hasPendingCalls() && own.isQuiet();

  // A collection as what it stands for: as JSON it would be empty.
  const plain = (collection) => {
    if (collection instanceof Set) return own.arrayFrom(collection);
    if (!(collection instanceof Map)) return collection;
    const object = { __proto__: null };
    own.mapForEach(collection, (item, key) => {
      object[key] = item;
    });
    return object;
  };

  // JSON, or undefined when there is too much of it.
  own.result = () => {
    if (value === undefined) return "null";
    const text = own.stringify(plain(value));
    if (text === undefined) throw new TypeError("it is " + own.kindOf(value));
    return text.length > MAX_RESULT_CHARS ? undefined : text;
  };
}
