// console: log, info, debug, dir and table write to stdout, the rest to stderr.
(native, own) => {
  const { Error } = globalThis;
  const counts = { __proto__: null };
  const starts = { __proto__: null };
  let indent = "";

  const write = (isError, text) => {
    const lines = indent === "" ? text : indent + own.replace(text, /\n/g, "\n" + indent);
    native.print(isError, own.wellFormed(lines) + "\n");
  };
  own.warn = (text) => write(true, text);

  // A table for a narrow screen: one line for each row, with aligned columns.
  const tableText = (data) => {
    if (typeof data !== "object" || data === null) return own.inspect(data);
    const cell = (value) => (typeof value === "string" ? value : own.inspect(value));
    const columns = [];
    const rows = [];
    const keys = own.ownKeys(data);
    for (let i = 0; i < keys.length; i++) {
      if (!own.descriptorOf(data, keys[i]).enumerable) continue;
      const item = data[keys[i]];
      const row = { __proto__: null, "(index)": cell(keys[i]) };
      if (typeof item !== "object" || item === null) {
        row.Values = own.inspect(item);
      } else {
        const names = own.ownKeys(item);
        for (let n = 0; n < names.length; n++) {
          const descriptor = own.descriptorOf(item, names[n]);
          if (descriptor?.enumerable && typeof names[n] === "string") {
            row[names[n]] = own.inspect(item[names[n]]);
          }
        }
      }
      own.arrayPush(rows, row);
    }
    const widths = { __proto__: null, "(index)": 7 };
    own.arrayPush(columns, "(index)");
    for (let i = 0; i < rows.length; i++) {
      const names = own.ownKeys(rows[i]);
      for (let n = 0; n < names.length; n++) {
        const name = names[n];
        if (widths[name] === undefined) {
          own.arrayPush(columns, name);
          widths[name] = name.length;
        }
        if (rows[i][name].length > widths[name]) widths[name] = rows[i][name].length;
      }
    }
    const line = (row) => {
      const cells = [];
      for (let i = 0; i < columns.length; i++) {
        own.arrayPush(cells, own.padEnd(row[columns[i]] ?? "", widths[columns[i]]));
      }
      return own.replace(own.arrayJoin(cells, " | "), / +$/, "");
    };
    const header = { __proto__: null };
    for (let i = 0; i < columns.length; i++) header[columns[i]] = columns[i];
    const lines = [line(header)];
    for (let i = 0; i < rows.length; i++) own.arrayPush(lines, line(rows[i]));
    return own.arrayJoin(lines, "\n");
  };

  const out = (...args) => write(false, own.format(args));
  const err = (...args) => write(true, own.format(args));
  const label = (name) => (name === undefined ? "default" : own.format([name]));
  const elapsed = (name) => name + ": " + (native.now() - starts[name]).toFixed(3) + "ms";

  const console = {
    log: out,
    info: out,
    debug: out,
    warn: err,
    error: err,
    trace: (...args) => {
      const stack = native.mapStack(new Error().stack);
      const head = args.length === 0 ? "Trace" : "Trace: " + own.format(args);
      write(true, stack === undefined ? head : head + "\n" + stack);
    },
    dir: (value) => write(false, own.inspect(value)),
    table: (data) => write(false, tableText(data)),
    assert: (condition, ...args) => {
      if (condition) return;
      const head = "Assertion failed";
      write(true, args.length === 0 ? head : head + ": " + own.format(args));
    },
    group: (...args) => {
      if (args.length > 0) out(...args);
      indent += "  ";
    },
    groupCollapsed: (...args) => console.group(...args),
    groupEnd: () => {
      indent = own.slice(indent, 2);
    },
    count: (name) => {
      const key = label(name);
      counts[key] = (counts[key] ?? 0) + 1;
      write(false, key + ": " + counts[key]);
    },
    countReset: (name) => {
      counts[label(name)] = 0;
    },
    time: (name) => {
      starts[label(name)] = native.now();
    },
    timeLog: (name, ...args) => {
      const key = label(name);
      if (starts[key] !== undefined) out(elapsed(key), ...args);
    },
    timeEnd: (name) => {
      const key = label(name);
      if (starts[key] === undefined) return;
      write(false, elapsed(key));
      delete starts[key];
    },
  };
  own.define(globalThis, "console", console);
  // As in MCPProxy's examples.
  own.define(globalThis, "log", out);
}
