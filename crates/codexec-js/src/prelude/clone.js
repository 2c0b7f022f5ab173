// structuredClone.
(native, own) => {
  const {
    ArrayBuffer,
    Boolean,
    DOMException,
    DataView,
    Date,
    Error,
    Map,
    Number,
    Object,
    Promise,
    RegExp,
    Set,
    String,
    TypeError,
    WeakMap,
    WeakSet,
  } = globalThis;
  const ERRORS = {
    __proto__: null,
    Error,
    EvalError,
    RangeError,
    ReferenceError,
    SyntaxError,
    TypeError,
    URIError,
  };

  const refuse = (value) => {
    throw new DOMException(own.inspect(value) + " cannot be cloned", "DataCloneError");
  };

  const cloneError = (value, clone) => {
    const copy = new (ERRORS[value.name] ?? Error)(value.message);
    own.define(copy, "stack", value.stack);
    if ("cause" in value) own.define(copy, "cause", clone(value.cause));
    return copy;
  };

  const cloneView = (value, clone) => {
    const buffer = clone(value.buffer);
    if (value instanceof DataView) return new DataView(buffer, value.byteOffset, value.byteLength);
    const prototype = own.getPrototypeOf(value);
    return new prototype.constructor(buffer, value.byteOffset, value.length);
  };

  const cloneProperties = (value, copy, clone) => {
    const keys = own.ownKeys(value);
    for (let i = 0; i < keys.length; i++) {
      if (typeof keys[i] !== "string") continue;
      if (own.descriptorOf(value, keys[i])?.enumerable) copy[keys[i]] = clone(value[keys[i]]);
    }
    return copy;
  };

  const copyOf = (value, seen, clone) => {
    const keep = (copy) => {
      own.mapSet(seen, value, copy);
      return copy;
    };
    if (value instanceof Date) return keep(new Date(own.getTime(value)));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Boolean || value instanceof Number || value instanceof String) {
      return keep(Object(value.valueOf()));
    }
    if (value instanceof ArrayBuffer) return keep(own.sliceBuffer(value, 0));
    if (own.isView(value)) return keep(cloneView(value, clone));
    if (value instanceof Error) return keep(cloneError(value, clone));
    if (value instanceof Map) {
      const copy = keep(new Map());
      own.mapForEach(value, (item, key) => own.mapSet(copy, clone(key), clone(item)));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      own.setForEach(value, (item) => own.setAdd(copy, clone(item)));
      return copy;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) {
      refuse(value);
    }
    if (own.isArray(value)) {
      const copy = keep([]);
      copy.length = value.length;
      return cloneProperties(value, copy, clone);
    }
    return cloneProperties(value, keep({}), clone);
  };

  own.define(globalThis, "structuredClone", {
    structuredClone(value) {
      if (arguments.length === 0) throw new TypeError("structuredClone needs a value");
      const seen = new Map();
      const clone = (item) => {
        if (typeof item === "function" || typeof item === "symbol") refuse(item);
        if (typeof item !== "object" || item === null) return item;
        return own.mapHas(seen, item) ? own.mapGet(seen, item) : copyOf(item, seen, clone);
      };
      return clone(value);
    },
  }.structuredClone);
}
