// Text, bytes and randomness: TextEncoder, TextDecoder, atob, btoa, crypto, performance.
(native, own) => {
  const {
    ArrayBuffer,
    Boolean,
    DOMException,
    DataView,
    Date,
    Float32Array,
    Float64Array,
    RangeError,
    TypeError,
    Uint8Array,
  } = globalThis;
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const CHUNK = 8192;
  const UTF8 = ["utf-8", "utf8", "unicode-1-1-utf-8"];
  const LATIN1 = ["latin1", "iso-8859-1", "windows-1252", "ascii", "us-ascii"];

  const bytesOf = (source) => {
    if (source === undefined) return new Uint8Array(0);
    if (source instanceof ArrayBuffer) return new Uint8Array(source);
    if (own.isView(source)) {
      return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    }
    throw new TypeError("expected an ArrayBuffer or a view of one, not " + own.inspect(source));
  };

  // Characters are gathered in chunks, because the number of arguments of a call is limited.
  const textFrom = (next) => {
    let text = "";
    let units = [];
    for (let unit = next(); unit !== undefined; unit = next()) {
      units[units.length] = unit;
      if (units.length === CHUNK) {
        text += own.apply(own.fromCharCode, undefined, units);
        units = [];
      }
    }
    return text + own.apply(own.fromCharCode, undefined, units);
  };

  const latin1Units = (bytes) => {
    let at = 0;
    return () => bytes[at++];
  };

  // Returns the number of continuation bytes and the range of the first one, as the standard
  // defines.
  const sequenceOf = (first) => {
    if (first >= 0xc2 && first <= 0xdf) return [1, 0x80, 0xbf];
    if (first >= 0xe0 && first <= 0xef) {
      return [2, first === 0xe0 ? 0xa0 : 0x80, first === 0xed ? 0x9f : 0xbf];
    }
    if (first >= 0xf0 && first <= 0xf4) {
      return [3, first === 0xf0 ? 0x90 : 0x80, first === 0xf4 ? 0x8f : 0xbf];
    }
    return undefined;
  };

  const utf8Units = (bytes, start, isFatal) => {
    let at = start;
    let low;
    const broken = () => {
      if (isFatal) throw new TypeError("The encoded data was not valid utf-8");
      return 0xfffd;
    };
    return () => {
      if (low !== undefined) {
        const unit = low;
        low = undefined;
        return unit;
      }
      if (at >= bytes.length) return undefined;
      const first = bytes[at++];
      if (first < 0x80) return first;
      const sequence = sequenceOf(first);
      if (sequence === undefined) return broken();
      let point = first & (0x3f >> sequence[0]);
      for (let i = 0; i < sequence[0]; i++) {
        const byte = bytes[at];
        const isFine = i === 0 ? byte >= sequence[1] && byte <= sequence[2] : (byte & 0xc0) === 0x80;
        if (byte === undefined || !isFine) return broken();
        point = (point << 6) | (byte & 0x3f);
        at++;
      }
      if (point < 0x10000) return point;
      low = 0xdc00 | (point & 0x3ff);
      return 0xd800 | ((point - 0x10000) >> 10);
    };
  };

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return native.encode(own.wellFormed(text + ""));
    }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      const whole = own.wellFormed(text + "");
      while (read < whole.length) {
        const unit = own.charCodeAt(whole, read);
        const units = unit >= 0xd800 && unit <= 0xdbff ? 2 : 1;
        const bytes = native.encode(own.slice(whole, read, read + units));
        if (written + bytes.length > target.length) break;
        own.setBytes(target, bytes, written);
        read += units;
        written += bytes.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #isLatin1;
    #isFatal;
    #keepsBom;
    constructor(label = "utf-8", options = {}) {
      const name = (label + "").trim().toLowerCase();
      this.#isLatin1 = LATIN1.includes(name);
      if (!this.#isLatin1 && !UTF8.includes(name)) {
        throw new RangeError("The encoding " + own.inspect(label) + " is not supported; use utf-8 or latin1");
      }
      this.#isFatal = Boolean(options?.fatal);
      this.#keepsBom = Boolean(options?.ignoreBOM);
    }
    get encoding() {
      return this.#isLatin1 ? "windows-1252" : "utf-8";
    }
    get fatal() {
      return this.#isFatal;
    }
    get ignoreBOM() {
      return this.#keepsBom;
    }
    decode(source) {
      const bytes = bytesOf(source);
      if (this.#isLatin1) return textFrom(latin1Units(bytes));
      const hasBom = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
      return textFrom(utf8Units(bytes, hasBom && !this.#keepsBom ? 3 : 0, this.#isFatal));
    }
  }

  const badCharacter = (message) => {
    throw new DOMException(message, "InvalidCharacterError");
  };

  const btoa = (data) => {
    const text = data + "";
    let encoded = "";
    for (let at = 0; at < text.length; at += 3) {
      let bits = 0;
      for (let i = 0; i < 3; i++) {
        const unit = at + i < text.length ? own.charCodeAt(text, at + i) : 0;
        if (unit > 0xff) badCharacter("btoa takes characters up to U+00FF; encode the text first");
        bits = (bits << 8) | unit;
      }
      const left = text.length - at;
      encoded += LETTERS[bits >> 18] + LETTERS[(bits >> 12) & 63];
      encoded += (left > 1 ? LETTERS[(bits >> 6) & 63] : "=") + (left > 2 ? LETTERS[bits & 63] : "=");
    }
    return encoded;
  };

  const values = { __proto__: null };
  for (let i = 0; i < LETTERS.length; i++) values[LETTERS[i]] = i;

  const atob = (data) => {
    let text = own.replace(data + "", /[\t\n\f\r ]/g, "");
    if (text.length % 4 === 0) text = own.replace(text, /={1,2}$/, "");
    if (text.length % 4 === 1) badCharacter("atob was not given base64: its length is wrong");
    let decoded = "";
    let bits = 0;
    let count = 0;
    for (let i = 0; i < text.length; i++) {
      const value = values[text[i]];
      if (value === undefined) badCharacter("atob was not given base64: " + own.inspect(text[i]));
      bits = ((bits << 6) | value) & 0xffffff;
      count += 6;
      if (count >= 8) {
        count -= 8;
        decoded += own.fromCharCode((bits >> count) & 0xff);
      }
    }
    return decoded;
  };

  const crypto = {
    getRandomValues(target) {
      const isWhole = own.isView(target) && !(target instanceof DataView);
      if (!isWhole || target instanceof Float32Array || target instanceof Float64Array) {
        throw new TypeError("getRandomValues takes an array of integers, like a Uint8Array");
      }
      if (target.byteLength > 65536) {
        throw new DOMException("getRandomValues gives at most 65536 bytes", "QuotaExceededError");
      }
      own.setBytes(bytesOf(target), native.randomBytes(target.byteLength), 0);
      return target;
    },
    randomUUID() {
      const bytes = native.randomBytes(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let text = "";
      for (let i = 0; i < 16; i++) {
        if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
        text += own.numberText(bytes[i] + 0x100, 16)[1] + own.numberText(bytes[i] + 0x100, 16)[2];
      }
      return text;
    },
  };

  const performance = { now: () => native.now(), timeOrigin: 0 };
  own.startClock = () => {
    performance.timeOrigin = Date.now();
  };

  own.define(globalThis, "TextEncoder", TextEncoder);
  own.define(globalThis, "TextDecoder", TextDecoder);
  own.btoa = btoa;
  own.define(globalThis, "atob", atob);
  own.define(globalThis, "btoa", btoa);
  own.define(globalThis, "crypto", crypto);
  own.define(globalThis, "performance", performance);
}
