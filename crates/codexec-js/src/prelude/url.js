// URL and URLSearchParams. Rust parses; this file only defines the classes.
(native, own) => {
  const { Object, Symbol, TextDecoder, TypeError, Uint8Array } = globalThis;
  // In the order in which Rust returns them.
  const PARTS = [
    "href",
    "origin",
    "protocol",
    "username",
    "password",
    "host",
    "hostname",
    "port",
    "pathname",
    "search",
    "hash",
  ];
  const READ_ONLY = ["href", "origin"];
  const text = (value) => own.wellFormed(value + "");

  const decode = (part) => {
    const bytes = native.encode(part);
    const decoded = [];
    for (let i = 0; i < bytes.length; i++) {
      let byte = bytes[i];
      if (byte === 0x2b) byte = 0x20;
      if (byte === 0x25) {
        const hex = own.fromCharCode(bytes[i + 1], bytes[i + 2]);
        if (/^[0-9a-fA-F]{2}$/.test(hex)) {
          byte = parseInt(hex, 16);
          i += 2;
        }
      }
      decoded[decoded.length] = byte;
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(decoded));
  };

  const encode = (part) => {
    const bytes = native.encode(part);
    let encoded = "";
    for (let i = 0; i < bytes.length; i++) {
      const letter = own.fromCharCode(bytes[i]);
      if (bytes[i] === 0x20) encoded += "+";
      else if (/[A-Za-z0-9*\-._]/.test(letter)) encoded += letter;
      else encoded += "%" + own.slice("0" + own.numberText(bytes[i], 16), -2).toUpperCase();
    }
    return encoded;
  };

  const parseQuery = (query) => {
    const pairs = [];
    for (const piece of own.split(query[0] === "?" ? own.slice(query, 1) : query, "&")) {
      if (piece === "") continue;
      const at = piece.indexOf("=");
      const name = at < 0 ? piece : own.slice(piece, 0, at);
      own.arrayPush(pairs, [decode(name), at < 0 ? "" : decode(own.slice(piece, at + 1))]);
    }
    return pairs;
  };

  const pairsOf = (init) => {
    if (init === undefined || init === null) return [];
    if (typeof init !== "object") return parseQuery(text(init));
    if (typeof init[Symbol.iterator] === "function") {
      return own.arrayFrom(init, (pair) => {
        const [name, value, ...rest] = pair;
        if (value === undefined || rest.length > 0) {
          throw new TypeError("each pair must be a name and a value");
        }
        return [text(name), text(value)];
      });
    }
    return Object.entries(init).map(([name, value]) => [text(name), text(value)]);
  };

  class URLSearchParams {
    #pairs;
    #changed = () => {};
    constructor(init, changed) {
      this.#pairs = pairsOf(init);
      // Only our own URL has the key, so only it gets notified.
      if (changed?.[URL_KEY] !== undefined) this.#changed = changed[URL_KEY];
    }
    static reload(params, query) {
      params.#pairs = parseQuery(query);
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      own.arrayPush(this.#pairs, [text(name), text(value)]);
      this.#changed(this);
    }
    delete(name, value) {
      const isKept = (pair) => pair[0] !== text(name) || (value !== undefined && pair[1] !== text(value));
      this.#pairs = this.#pairs.filter(isKept);
      this.#changed(this);
    }
    get(name) {
      return this.#pairs.find((pair) => pair[0] === text(name))?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter((pair) => pair[0] === text(name)).map((pair) => pair[1]);
    }
    has(name, value) {
      const isIt = (pair) => pair[0] === text(name) && (value === undefined || pair[1] === text(value));
      return this.#pairs.some(isIt);
    }
    set(name, value) {
      const first = this.#pairs.find((pair) => pair[0] === text(name));
      if (first === undefined) return this.append(name, value);
      first[1] = text(value);
      this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== first[0]);
      this.#changed(this);
    }
    sort() {
      this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#changed(this);
    }
    forEach(callback, self) {
      for (const [name, value] of this.#pairs) own.apply(callback, self, [value, name, this]);
    }
    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value];
    }
    *keys() {
      for (const pair of this.#pairs) yield pair[0];
    }
    *values() {
      for (const pair of this.#pairs) yield pair[1];
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return this.#pairs.map(([name, value]) => encode(name) + "=" + encode(value)).join("&");
    }
  }
  const { reload } = URLSearchParams;
  delete URLSearchParams.reload;
  const URL_KEY = Symbol("url");

  class URL {
    #parts;
    #params;
    constructor(url, base) {
      this.#parts = native.parseUrl(text(url), base === undefined ? undefined : text(base));
      if (this.#parts === undefined) throw new TypeError("Invalid URL: " + own.inspect(text(url)));
    }
    static canParse(url, base) {
      return native.parseUrl(text(url), base === undefined ? undefined : text(base)) !== undefined;
    }
    static parse(url, base) {
      return URL.canParse(url, base) ? new URL(url, base) : null;
    }
    static read(url, index) {
      return url.#parts[index];
    }
    static write(url, part, value) {
      url.#parts = native.setUrlPart(url.#parts[0], part, text(value)) ?? url.#parts;
      if (part === "search" && url.#params) reload(url.#params, url.#parts[9]);
    }
    get href() {
      return this.#parts[0];
    }
    set href(value) {
      const parts = native.parseUrl(text(value), undefined);
      if (parts === undefined) throw new TypeError("Invalid URL: " + own.inspect(text(value)));
      this.#parts = parts;
      if (this.#params) reload(this.#params, parts[9]);
    }
    get searchParams() {
      this.#params ??= new URLSearchParams(this.#parts[9], {
        [URL_KEY]: (params) => {
          this.#parts = native.setUrlPart(this.#parts[0], "search", params.toString()) ?? this.#parts;
        },
      });
      return this.#params;
    }
    toString() {
      return this.#parts[0];
    }
    toJSON() {
      return this.#parts[0];
    }
  }
  const { read, write } = URL;
  delete URL.read;
  delete URL.write;
  for (const [index, part] of PARTS.entries()) {
    if (part === "href") continue;
    const accessor = { __proto__: null, configurable: true, enumerable: true };
    accessor.get = function () {
      return read(this, index);
    };
    if (!READ_ONLY.includes(part)) {
      accessor.set = function (value) {
        write(this, part, value);
      };
    }
    Reflect.defineProperty(URL.prototype, part, accessor);
  }
  own.define(globalThis, "URL", URL);
  own.define(globalThis, "URLSearchParams", URLSearchParams);
}
