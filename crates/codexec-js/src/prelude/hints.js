// What to write instead, for code that expects another environment.
(native, own) => {
  const { JSON, RegExp } = globalThis;
  const { apply } = own;
  const exec = RegExp.prototype.exec;
  const match = (pattern, text) => apply(exec, pattern, [text]);

  const NETWORK = "there is no network here; call a tool: await tools.<server>.<tool>({..}), found with searchTools('..')";
  const PYTHON = "the code looks like Python; set language to python";
  const MODULES = "there are no modules here; use the globals (URL, crypto, TextEncoder, ..), or set language to node for Node's modules";
  const FILES = "there are no files here; set language to node for files, or call a tool";
  const BROWSER = "this is not a browser; return the value, or print it with console.log";
  // Names that exist elsewhere. The first list also applies to Node.
  const EVERYWHERE = {
    __proto__: null,
    Deno: "this is not Deno; use the globals, or set language to node for Node's modules and files",
    Bun: "this is not Bun; use the globals, or set language to node for Node's modules and files",
    document: BROWSER,
    window: BROWSER,
    axios: NETWORK,
    print: "use console.log(..), or set language to python",
    None: PYTHON,
    True: PYTHON,
    False: PYTHON,
    len: PYTHON,
    range: PYTHON,
    str: PYTHON,
  };
  const HERE = {
    __proto__: null,
    fetch: NETWORK,
    XMLHttpRequest: NETWORK,
    WebSocket: NETWORK,
    require: MODULES,
    module: MODULES,
    exports: MODULES,
    fs: FILES,
    path: MODULES,
    os: MODULES,
    __dirname: FILES,
    __filename: FILES,
    Buffer: "use Uint8Array with TextEncoder and TextDecoder, atob and btoa; or set language to node",
    process: "use input and args for data, and return for the result; the environment is not visible",
  };
  const list = (names) => {
    const listed = { __proto__: null };
    const all = own.split(names, " ");
    for (let i = 0; i < all.length; i++) listed[all[i]] = 1;
    return listed;
  };
  const OF_STRINGS = list(
    "split trim replace replaceAll match matchAll startsWith endsWith substring substr toLowerCase toUpperCase charAt padStart padEnd localeCompare",
  );
  const OF_ARRAYS = list("map filter forEach reduce find some every sort slice join flatMap push at");

  const missing = (name) => {
    if (own.slice(name, 0, 5) === "mcp__") {
      return "call a tool as a property of its server, await tools.<server>.<tool>({..}), or by name with callMCPTool";
    }
    return EVERYWHERE[name] ?? (own.isNode ? undefined : HERE[name]);
  };
  const notFunction = (object, method) => {
    if (!own.hasCalled()) return undefined;
    if (OF_STRINGS[method]) return object + " is not a string: results of tools are already parsed";
    if (OF_ARRAYS[method]) return object + " is not an array: look at it with console.log(" + object + ")";
    return undefined;
  };

  own.networkHint = NETWORK;
  own.hint = (message) => {
    const unknown = match(/^ReferenceError: ([\w$]+) is not defined$/, message);
    if (unknown !== null) return missing(unknown[1]);
    const lost = own.firstUnawaited();
    if (lost !== undefined) return "write await " + lost.label + "(..): without await, its value is a Promise";
    const called = match(/^TypeError: ([\w$.[\]]{1,40})\.([\w$]+) is not a function$/, message);
    return called === null ? undefined : notFunction(called[1], called[2]);
  };

  // A tool's result is no text, but models often parse it.
  const { parse } = JSON;
  own.define(
    JSON,
    "parse",
    {
      parse(text, reviver) {
        try {
          return apply(parse, JSON, arguments);
        } catch (error) {
          if (typeof text === "object" && text !== null && typeof error?.message === "string") {
            own.define(error, "message", "JSON.parse was given " + own.kindOf(text) + ", not text: results of tools are already parsed, use them as they are");
          }
          throw error;
        }
      },
    }.parse,
  );
}
