// Formats values for people: for console.log, and to describe thrown values.
(native, own) => {
  const { ArrayBuffer, Date, Error, Map, Math, Number, RegExp, Set } = globalThis;
  const { stringify, arrayPush, arrayJoin, slice, split } = own;
  const MAX_DEPTH = 4;
  const MAX_ITEMS = 100;
  const LINE_CHARS = 76;
  const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
  const testRegExp = RegExp.prototype.test;
  const TypedArray = own.getPrototypeOf(Uint8Array);

  // A guest's getter or proxy may throw; such a property counts as missing.
  const read = (object, key) => {
    try {
      return object[key];
    } catch {
      return undefined;
    }
  };
  const readText = (object, key) => {
    const value = read(object, key);
    return typeof value === "string" ? value : undefined;
  };
  const isObject = (value) =>
    (typeof value === "object" && value !== null) || typeof value === "function";

  const quote = (text) => {
    const body = slice(stringify(text), 1, -1);
    return "'" + own.replace(own.replace(body, /\\"/g, '"'), /'/g, "\\'") + "'";
  };

  const indented = (text) => own.replace(text, /\n/g, "\n  ");

  const enclosed = (prefix, open, items, close) => {
    const head = prefix === "" ? "" : prefix + " ";
    if (items.length === 0) return head + open + close;
    const line = arrayJoin(items, ", ");
    if (line.length <= LINE_CHARS && split(line, "\n").length === 1) {
      return head + open + " " + line + " " + close;
    }
    return head + open + "\n  " + indented(arrayJoin(items, ",\n")) + "\n" + close;
  };

  const constructorName = (value) => {
    const prototype = own.getPrototypeOf(value);
    if (prototype === null) return "[Object: null prototype]";
    const name = readText(read(prototype, "constructor") ?? {}, "name");
    return name === undefined || name === "Object" ? "" : name;
  };

  const errorText = (error) => {
    const head = own.describe(error, true);
    const stack = native.mapStack(own.wellFormed(readText(error, "stack") ?? ""));
    return stack === undefined ? head : head + "\n  " + indented(stack);
  };

  const keyText = (key) => {
    if (typeof key === "symbol") return "[" + own.symbolText(key) + "]";
    return own.apply(testRegExp, IDENTIFIER, [key]) ? key : quote(key);
  };

  const functionText = (value) => {
    const name = readText(value, "name") || "(anonymous)";
    const isClass = slice(own.functionText(value), 0, 6) === "class ";
    return (isClass ? "[class " : "[Function: ") + name + "]";
  };

  const more = (items, count) => {
    if (count > MAX_ITEMS) arrayPush(items, "... " + (count - MAX_ITEMS) + " more");
  };

  const propertiesInto = (items, value, context, skipsIndices) => {
    const keys = own.ownKeys(value);
    let shown = 0;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (skipsIndices && typeof key === "string" && (key === "length" || +key >= 0)) continue;
      const descriptor = own.descriptorOf(value, key);
      if (descriptor === undefined || !descriptor.enumerable) continue;
      if (++shown > MAX_ITEMS) continue;
      const isGetter = descriptor.get !== undefined || descriptor.set !== undefined;
      const text = isGetter ? "[Getter]" : inspectIn(descriptor.value, context);
      arrayPush(items, keyText(key) + ": " + text);
    }
    more(items, shown);
  };

  const arrayText = (value, prefix, context) => {
    const items = [];
    for (let i = 0; i < value.length && i < MAX_ITEMS; i++) {
      arrayPush(items, inspectIn(value[i], context));
    }
    more(items, value.length);
    if (own.isArray(value)) propertiesInto(items, value, context, true);
    return enclosed(prefix, "[", items, "]");
  };

  const collectionText = (value, context) => {
    const items = [];
    let count = 0;
    if (value instanceof Map) {
      own.mapForEach(value, (item, key) => {
        if (++count > MAX_ITEMS) return;
        arrayPush(items, inspectIn(key, context) + " => " + inspectIn(item, context));
      });
    } else {
      own.setForEach(value, (item) => {
        if (++count <= MAX_ITEMS) arrayPush(items, inspectIn(item, context));
      });
    }
    more(items, count);
    return enclosed((value instanceof Map ? "Map(" : "Set(") + count + ")", "{", items, "}");
  };

  const objectText = (value, context) => {
    if (typeof value === "function") return functionText(value);
    if (value instanceof Error) return errorText(value);
    if (value instanceof RegExp) return own.regexpText(value);
    if (value instanceof Date) {
      return own.getTime(value) !== own.getTime(value) ? "Invalid Date" : own.toIso(value);
    }
    const name = constructorName(value);
    for (let at = context.above; at !== undefined; at = at.above) {
      if (at.value === value) return "[Circular]";
    }
    if (context.depth > MAX_DEPTH) return "[" + (own.isArray(value) ? "Array" : name || "Object") + "]";
    const inner = { depth: context.depth + 1, above: { value, above: context.above } };
    if (own.isArray(value)) return arrayText(value, name === "Array" ? "" : name, inner);
    if (value instanceof TypedArray) return arrayText(value, name + "(" + value.length + ")", inner);
    if (value instanceof Map || value instanceof Set) return collectionText(value, inner);
    if (value instanceof ArrayBuffer) return "ArrayBuffer { byteLength: " + value.byteLength + " }";
    const items = [];
    propertiesInto(items, value, inner, false);
    return enclosed(name, "{", items, "}");
  };

  const inspectIn = (value, context) => {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "bigint":
        return value + "n";
      case "symbol":
        return own.symbolText(value);
      case "number":
        return value === 0 && 1 / value < 0 ? "-0" : value + "";
      case "boolean":
      case "undefined":
        return value + "";
      default:
        if (value === null) return "null";
        try {
          return objectText(value, context);
        } catch {
          return "[Unreadable]";
        }
    }
  };

  own.inspect = (value) => inspectIn(value, { depth: 1, above: undefined });

  // Describes a thrown value in one line: a plain Error by its message, others with their name.
  own.describe = (error, isNamed) => {
    if (!isObject(error)) {
      return own.wellFormed(typeof error === "string" ? error : own.inspect(error));
    }
    const message = readText(error, "message");
    const name = readText(error, "name") ?? "Error";
    if (message === undefined) return own.wellFormed(own.inspect(error));
    if (message === "") return own.wellFormed(name);
    const isPlain = name === "Error" && isNamed !== true;
    return own.wellFormed(isPlain ? message : name + ": " + message);
  };

  const substituted = (args) => {
    const format = args[0];
    let next = 1;
    const text = own.replace(format, /%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (next >= args.length) return mark;
      const value = args[next++];
      switch (mark) {
        case "%s":
          return typeof value === "string" ? value : own.inspect(value);
        case "%d":
        case "%f":
          return typeof value === "symbol" || typeof value === "object" ? "NaN" : Number(value) + "";
        case "%i":
          return typeof value === "symbol" || typeof value === "object"
            ? "NaN"
            : Math.trunc(Number(value)) + "";
        case "%j":
          return stringify(value) ?? "undefined";
        case "%c":
          return "";
        default:
          return own.inspect(value);
      }
    });
    return { text, next };
  };

  own.format = (args) => {
    if (args.length === 0) return "";
    const parts = [];
    let next = 0;
    if (typeof args[0] === "string" && args.length > 1) {
      const start = substituted(args);
      arrayPush(parts, start.text);
      next = start.next;
    }
    for (; next < args.length; next++) {
      const value = args[next];
      arrayPush(parts, typeof value === "string" ? value : own.inspect(value));
    }
    return arrayJoin(parts, " ");
  };
}
