// The guest's main function: how it starts, and its result.
(native, own) => {
  const { Map, Set, TypeError } = globalThis;
  const MAX_RESULT_CHARS = 8 * 1024 * 1024;
  const PENDING = 0;
  const RETURNED = 1;
  const THREW = 2;
  let state = PENDING;
  let value;

  own.begin = (servers, isSession) => {
    own.isSession = isSession;
    own.startClock();
    own.addServers(servers);
  };

  // Awaits natively, so a replaced Promise.prototype.then has no effect. An interrupted cell that
  // still runs does not affect the next one.
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

  // Converts a Map or Set, which JSON would write as an empty object.
  const toJsonValue = (collection) => {
    if (collection instanceof Set) return own.arrayFrom(collection);
    if (!(collection instanceof Map)) return collection;
    const object = { __proto__: null };
    own.mapForEach(collection, (item, key) => {
      object[key] = item;
    });
    return object;
  };

  own.placeOf = (site) => own.split(native.mapStack(site.stack) ?? "", "\n")[0];

  // Returns the result as JSON, or undefined if it is too long.
  own.result = () => {
    if (value === undefined) return "null";
    const text = own.stringifyResult(toJsonValue(value));
    if (text === undefined) throw new TypeError("it is " + own.kindOf(value));
    return text.length > MAX_RESULT_CHARS ? undefined : text;
  };
}
