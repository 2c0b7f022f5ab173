// State that is kept from one cell of a session to the next.
(native, own) => {
  const { Proxy, TypeError } = globalThis;
  const { defineProperty } = Reflect;
  const given = { __proto__: null };

  // A variable that the guest has assigned itself is replaced only by an explicit value.
  const give = (name, value, isAsked) => {
    const now = own.descriptorOf(globalThis, name);
    const isOurs = now === undefined || (name in given && now.value === given[name]);
    if (!isOurs && !isAsked) return;
    given[name] = value;
    own.define(globalThis, name, value);
  };
  own.give = (input, args) => {
    give("input", input, input !== null);
    give("args", args, args.length > 0);
  };

  // Targets of the assignments that replace a cell's declarations. Each assignment declares, so
  // that any name may be declared again.
  const declaring = (propertyOf) =>
    new Proxy(own.createObject(null), {
      __proto__: null,
      set: (_, name, value) => {
        if (defineProperty(globalThis, name, propertyOf(name, value))) return true;
        throw new TypeError(name + " cannot be declared in a session: the language has fixed it");
      },
    });
  own.variables = declaring((name, value) => ({
    __proto__: null,
    value,
    writable: true,
    configurable: true,
    enumerable: true,
  }));
  // A setter, because code that is not strict may assign to a property that is only not writable.
  own.constants = declaring((name, value) => ({
    __proto__: null,
    get: () => value,
    set: () => {
      throw new TypeError("'" + name + "' is read-only");
    },
    configurable: true,
    enumerable: true,
  }));

  own.declare = (variables, anew) => {
    for (let i = 0; i < variables.length; i++) {
      if (!(variables[i] in globalThis)) own.variables[variables[i]] = undefined;
    }
    for (let i = 0; i < anew.length; i++) own.variables[anew[i]] = undefined;
    own.markTimers();
    own.markCalls();
  };

  own.forgetCell = () => {
    own.forgetTimers();
    own.forgetCalls();
  };
}
