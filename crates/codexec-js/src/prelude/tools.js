// The guest's access to tools. Names and arguments become text here; only the host checks them.
(native, own) => {
  const { Error, Promise, Proxy, RangeError, Reflect, String, TypeError, WeakMap } = globalThis;
  const { stringify, wellFormed } = own;
  const MAX_ARGS_BYTES = 8 * 1024 * 1024;
  const MAX_BATCH = 100;
  // Names that languages and libraries probe on any object, and that are never tools.
  const NEVER_A_NAME = {
    __proto__: null,
    then: 1,
    toJSON: 1,
    constructor: 1,
    prototype: 1,
    valueOf: 1,
    toString: 1,
    inspect: 1,
    $$typeof: 1,
    nodeType: 1,
    asymmetricMatch: 1,
  };

  const genuine = new WeakMap();
  class ToolError extends Error {
    constructor(message, details = {}) {
      super(message);
      this.code = details.code;
      this.server = details.server ?? undefined;
      this.tool = details.tool ?? undefined;
    }
  }
  own.define(ToolError.prototype, "name", "ToolError");
  own.define(globalThis, "ToolError", ToolError);

  // `site` was made where the guest called: a stack from the arrival of the answer is useless.
  const toolError = (details, site) => {
    const error = new ToolError(details.message, details);
    if (site !== undefined) own.define(error, "stack", site.stack);
    own.weakSet(genuine, error, details.code);
    return error;
  };
  own.toolCode = (error) =>
    typeof error === "object" && error !== null ? own.weakGet(genuine, error) : undefined;

  own.kindOf = (value) => {
    if (own.isArray(value)) return "an array";
    if (typeof value === "object" && value !== null) return "an object";
    return value === null ? "null" : "a " + typeof value;
  };
  const { kindOf } = own;
  const needText = (value, what) => {
    if (typeof value === "string") return stringify(wellFormed(value));
    throw new TypeError(what + " must be a string, not " + kindOf(value));
  };
  const invalidArgs = (before, { server, tool, name }, after) => {
    const message = before + (tool === undefined ? name : server + "." + tool) + after;
    return toolError({ code: "INVALID_ARGS", message, server, tool }, new Error());
  };

  const argsText = (args, target) => {
    if (args === undefined) return "{}";
    if (typeof args !== "object" || args === null || own.isArray(args)) {
      const hint = " takes one object of named arguments, like {id: 1}; it was given ";
      throw invalidArgs("", target, hint + kindOf(args));
    }
    let text;
    try {
      text = stringify(args);
    } catch (error) {
      const why = " cannot be written as JSON: " + own.describe(error);
      throw invalidArgs("the arguments of ", target, why);
    }
    if (text === undefined || text[0] !== "{") {
      throw invalidArgs("the arguments of ", target, " are not an object in JSON");
    }
    // Only a long text is measured: a character is at most three bytes.
    const bytes = text.length * 3 > MAX_ARGS_BYTES ? native.byteLength(text) : 0;
    if (bytes > MAX_ARGS_BYTES) {
      const size = " are " + bytes + " bytes; at most " + MAX_ARGS_BYTES + " are allowed";
      throw invalidArgs("the arguments of ", target, size);
    }
    return text;
  };

  const toolHead = (server, tool) => {
    const first = '{"tool":{"server":' + needText(server, "the server's name");
    return first + ',"tool":' + needText(tool, "the tool's name") + ',"args":';
  };
  const toolAsk = (server, tool, args) =>
    toolHead(server, tool) + argsText(args, { server, tool }) + "}}";
  const namedAsk = (name, args) => {
    const first = '{"named":{"name":' + needText(name, "the tool's name");
    return first + ',"args":' + argsText(args, { name }) + "}}";
  };

  own.invalidArgs = invalidArgs;
  own.argsText = argsText;

  // Calls without an answer, by id.
  const pending = { __proto__: null };
  let pendingCount = 0;
  const settle = (id) => {
    const call = pending[id];
    if (call === undefined) return undefined;
    delete pending[id];
    pendingCount--;
    return call;
  };
  // Calls after the mark belong to the current cell; if it is interrupted they are forgotten.
  let mark = 0;
  let lastCall = 0;
  own.markCalls = () => {
    mark = lastCall;
  };
  own.forgetCalls = () => {
    const ids = own.ownKeys(pending);
    for (let i = 0; i < ids.length; i++) if (+ids[i] > mark) settle(ids[i]);
  };
  own.hasPendingCalls = () => pendingCount > 0;
  own.hasCalled = () => lastCall > 0;
  own.answer = (id, result) => settle(id)?.resolve(result);
  own.refuse = (id, details) => {
    const call = settle(id);
    if (call !== undefined) call.reject(toolError(details, call.site));
  };
  own.fail = (id, error) => settle(id)?.reject(error);

  // Calls whose promise was never awaited or used otherwise, by id. Awaiting a promise reads its
  // `constructor`; everything else calls its `then`.
  let unawaited = { __proto__: null };
  const callOf = new WeakMap();
  const { then } = Promise.prototype;
  const observe = (promise) => {
    const id = own.weakGet(callOf, promise);
    if (id !== undefined) delete unawaited[id];
  };
  const callPrototype = own.createObject(Promise.prototype, {
    constructor: {
      get() {
        observe(this);
        return Promise;
      },
      configurable: true,
    },
    then: {
      value: function (onFulfilled, onRejected) {
        observe(this);
        return own.apply(then, this, [onFulfilled, onRejected]);
      },
      configurable: true,
      writable: true,
    },
    toJSON: {
      value: function () {
        throw new TypeError((unawaited[own.weakGet(callOf, this)]?.label ?? "a call") + " was not awaited");
      },
      configurable: true,
      writable: true,
    },
  });
  const { setPrototypeOf } = Reflect;

  const send = (makeAsk, label) => {
    const site = new Error();
    let id;
    const promise = new Promise((resolve, reject) => {
      id = native.ask(makeAsk());
      pending[id] = { resolve, reject, site };
      lastCall = id;
      pendingCount++;
    });
    if (id !== undefined) {
      own.weakSet(callOf, promise, id);
      setPrototypeOf(promise, callPrototype);
      unawaited[id] = { label, site };
    }
    return promise;
  };
  own.send = send;

  own.firstUnawaited = () => {
    const ids = own.ownKeys(unawaited);
    return ids.length === 0 ? undefined : unawaited[ids[0]];
  };
  // Returns the error for the first call that was not awaited, and forgets all. In a session, a
  // later cell may still await the call, so there it is only a line on stderr.
  own.unawaited = () => {
    const first = own.firstUnawaited();
    if (first === undefined) return undefined;
    unawaited = { __proto__: null };
    const { label, site } = first;
    const message = label + " was not awaited: the call was made, but the code went on without its result; write await " + label + "(..)";
    if (own.isSession) {
      own.warn("[codexec] " + own.placeOf(site) + ": " + message);
      return undefined;
    }
    const error = new Error(message);
    own.define(error, "stack", site.stack);
    return error;
  };

  // Writes a result as JSON, which would otherwise write a promise as an empty object.
  own.stringifyResult = (value) => {
    const isOurs = own.descriptorOf(Promise.prototype, "toJSON") === undefined;
    if (isOurs) {
      own.define(Promise.prototype, "toJSON", () => {
        throw new TypeError("it contains a Promise; await it, or a list of them with await Promise.all(list)");
      });
    }
    try {
      return stringify(value);
    } finally {
      if (isOurs) delete Promise.prototype.toJSON;
    }
  };

  const callTool = (server, tool, args) =>
    typeof tool === "string" || args !== undefined
      ? send(() => toolAsk(server, tool, args), "callTool")
      : send(() => namedAsk(server, tool), "callTool");
  const callMCPTool = (name, args) => send(() => namedAsk(name, args), "callMCPTool");
  const discoverMCPTools = (options) =>
    send(() => {
      const isBare = typeof options === "string" || own.isArray(options);
      const search = isBare ? options : options?.search;
      const words = own.isArray(search) ? search : [search];
      let list = "";
      for (let i = 0; search !== undefined && i < words.length; i++) {
        list += (i === 0 ? "" : ",") + needText(words[i], "a search word");
      }
      return '{"discover":{"words":[' + list + "]}}";
    }, "discoverMCPTools");
  // `options` is a limit, or {limit, server, readOnly, destructive, detail}.
  const searchTools = (query = "", options = {}) =>
    send(() => {
      const asked = typeof options === "number" ? { limit: options } : (options ?? {});
      const { limit = 10, server, readOnly, destructive, detail } = asked;
      if (typeof limit !== "number" || !(limit >= 1 && limit <= 1000)) {
        throw new TypeError("the limit must be a number from 1 to 1000, not " + own.inspect(limit));
      }
      let ask = '{"search":{"query":' + needText(query, "the query") + ',"limit":' + (limit | 0);
      if (server !== undefined) ask += ',"server":' + needText(server, "the server");
      if (detail !== undefined) {
        if (detail !== "names" && detail !== "summary" && detail !== "full") {
          throw new TypeError("detail must be names, summary or full, not " + own.inspect(detail));
        }
        ask += ',"detail":"' + detail + '"';
      }
      if (readOnly) ask += ',"kind":"read_only"';
      else if (destructive === false) ask += ',"kind":"safe"';
      else if (destructive) ask += ',"kind":"destructive"';
      return ask + "}}";
    }, "searchTools");
  const getToolSchema = (name) =>
    send(() => '{"schema":{"name":' + needText(name, "the tool's name") + "}}", "getToolSchema");
  const help = (name) =>
    send(() => {
      const about = name === undefined ? "null" : needText(name, "the name");
      return '{"help":{"name":' + about + "}}";
    }, "help");

  // What servers offer besides tools. Without a name, all servers are meant.
  const maybeServer = (server) =>
    server === undefined || server === null ? "null" : needText(server, "the server's name");
  const listAsk = (kind, label) => (server) =>
    send(() => '{"' + kind + '":{"server":' + maybeServer(server) + "}}", label);
  const resources = {
    list: listAsk("resources", "resources.list"),
    templates: listAsk("resource_templates", "resources.templates"),
    read: (server, uri) =>
      send(() => {
        const first = '{"read_resource":{"server":' + needText(server, "the server's name");
        return first + ',"uri":' + needText(uri, "the resource's uri") + "}}";
      }, "resources.read"),
  };
  const prompts = {
    list: listAsk("prompts", "prompts.list"),
    get: (server, name, args) =>
      send(() => {
        const first = '{"prompt":{"server":' + needText(server, "the server's name");
        const second = ',"name":' + needText(name, "the prompt's name");
        return first + second + ',"args":' + argsText(args ?? {}, { name }) + "}}";
      }, "prompts.get"),
  };

  // Returns a failure as an outcome, also for a call that could not be sent.
  const failure = (error, server, tool) => {
    const code = own.toolCode(error);
    const message = code === undefined ? own.describe(error) : error.message;
    return {
      ok: false,
      error: { code: code ?? "INVALID_ARGS", message, server: server ?? null, tool: tool ?? null },
    };
  };
  const entryAsk = (entry) =>
    entry.server === undefined && entry.name !== undefined
      ? namedAsk(entry.name, entry.args)
      : toolAsk(entry.server, entry.tool, entry.args);

  const call_tool = (server, tool, args) => {
    const isJoined = typeof tool !== "string" && args === undefined;
    let text;
    try {
      text = isJoined ? namedAsk(server, tool) : toolAsk(server, tool, args);
    } catch (error) {
      return isJoined ? failure(error) : failure(error, server, tool);
    }
    return native.wait(native.ask(text));
  };

  const call_tools = (entries, options) => {
    const parallel = options?.max_parallel ?? 8;
    if (!own.isArray(entries)) {
      throw new TypeError("call_tools takes an array, not " + kindOf(entries));
    }
    if (entries.length > MAX_BATCH) {
      throw new RangeError("call_tools takes at most " + MAX_BATCH + " calls, not " + entries.length);
    }
    if (typeof parallel !== "number" || !(parallel >= 1 && parallel <= 32)) {
      throw new RangeError("max_parallel must be 1 to 32, not " + own.inspect(parallel));
    }
    const results = [];
    const ids = [];
    let waited = 0;
    for (let i = 0; i < entries.length; i++) {
      while (i - waited >= parallel) finish(waited++);
      try {
        ids[i] = native.ask(entryAsk(entries[i]));
      } catch (error) {
        results[i] = failure(error, entries[i]?.server, entries[i]?.tool);
      }
    }
    while (waited < entries.length) finish(waited++);
    return results;

    function finish(index) {
      if (ids[index] !== undefined) results[index] = native.wait(ids[index]);
    }
  };

  const progress = (report) => {
    const message = typeof report === "object" && report !== null ? report.message : report;
    native.progress(wellFormed(typeof message === "string" ? message : own.inspect(message)));
  };

  // Throws, because `false` is an error only in strict code.
  const refuseChange = (_, name) => {
    throw new TypeError("'" + own.wellFormed(String(name)) + "' is read-only");
  };
  const serverProxy = (server) => {
    const known = own.createObject(null);
    const made = own.createObject(null);
    let isLoaded = false;
    const callable = (tool) => {
      // Built once: code that calls a tool often calls it by the same name.
      const head = toolHead(server, tool);
      const target = { server, tool };
      const label = "tools." + server + "." + tool;
      return { [tool]: (args) => send(() => head + argsText(args ?? {}, target) + "}}", label) }[tool];
    };
    const toolNamed = (tool) => (made[tool] ??= callable(tool));
    const load = () => {
      if (isLoaded) return;
      const answer = native.wait(native.ask('{"tool_names":{"server":' + stringify(server) + "}}"));
      if (!answer.ok) throw toolError(answer.error, new Error());
      for (let i = 0; i < answer.result.length; i++) {
        known[answer.result[i]] = toolNamed(answer.result[i]);
      }
      isLoaded = true;
    };
    return new Proxy(known, {
      __proto__: null,
      get: (_, name) => {
        if (typeof name === "symbol" || NEVER_A_NAME[name]) return undefined;
        return made[name] ?? toolNamed(wellFormed(name));
      },
      has: (target, name) => (load(), name in target),
      ownKeys: (target) => (load(), own.ownKeys(target)),
      getOwnPropertyDescriptor: (target, name) => (load(), own.descriptorOf(target, name)),
      set: refuseChange,
      defineProperty: refuseChange,
    });
  };

  const servers = own.createObject(null);
  const aliases = own.createObject(null);
  const unknown = own.createObject(null);
  const tools = new Proxy(servers, {
    __proto__: null,
    get: (target, name) => {
      if (typeof name === "symbol") return undefined;
      // Unknown names get a proxy, too: the host resolves other spellings.
      const server = target[name] ?? aliases[name];
      if (server !== undefined || NEVER_A_NAME[name]) return server;
      return (unknown[name] ??= serverProxy(wellFormed(name)));
    },
    has: (target, name) => name in target || name in aliases,
    set: refuseChange,
    defineProperty: refuseChange,
  });

  const globals = {
    tools,
    callMCPTool,
    call_mcp_tool: callMCPTool,
    callTool,
    call_tool,
    call_tools,
    discoverMCPTools,
    discover_mcp_tools: discoverMCPTools,
    searchTools,
    search_tools: searchTools,
    getToolSchema,
    get_tool_schema: getToolSchema,
    help,
    progress,
    resources,
    prompts,
  };
  const names = own.ownKeys(globals);
  for (let i = 0; i < names.length; i++) own.define(globalThis, names[i], globals[names[i]]);

  own.addServers = (list) => {
    for (let i = 0; i < list.length; i++) {
      const proxy = serverProxy(list[i][0]);
      servers[list[i][0]] = proxy;
      aliases[list[i][1]] ??= proxy;
    }
  };
}
