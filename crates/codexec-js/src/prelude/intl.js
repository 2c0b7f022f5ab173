// Intl and the locale-aware methods of Date, Number and String, for the locales that the host has
// data for. Whatever is not supported throws, so that no result is wrong. Evaluated on first use.
(native, own) => {
  const { Array, Date, Error, JSON, Map, Math, Number, Object, RangeError, RegExp, String, Symbol, TypeError } = globalThis;
  const BigInt = globalThis.BigInt;
  const DEFAULTS = { en: "en-US", de: "de-DE", fr: "fr-FR", es: "es-ES", ja: "ja-JP", zh: "zh-CN", sv: "sv-SE" };
  const KNOWN = ["en-US", "en-GB", "en-CA", "de-DE", "fr-FR", "es-ES", "ja-JP", "zh-CN", "sv-SE"];
  // Currencies that do not have two digits.
  const CURRENCY_DIGITS = { __proto__: null, "AFN":0,"ALL":0,"BHD":3,"BIF":0,"CLP":0,"COP":0,"DJF":0,"GNF":0,"HUF":0,"IDR":0,"IQD":0,"IRR":0,"ISK":0,"JOD":3,"JPY":0,"KMF":0,"KPW":0,"KRW":0,"KWD":3,"LAK":0,"LBP":0,"LYD":3,"MGA":0,"MMK":0,"OMR":3,"PKR":0,"PYG":0,"RWF":0,"SLL":0,"SOS":0,"SYP":0,"TND":3,"UGX":0,"VND":0,"VUV":0,"XAF":0,"XOF":0,"XPF":0,"YER":0};
  const loaded = Object.create(null);
  const dataOf = (locale) => (loaded[locale] ??= JSON.parse(native.localeData(locale)));

  // ---- Locales and options.
  const canonical = (tag) => {
    if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) {
      throw new TypeError("Incorrect locale information provided");
    }
    const text = String(tag);
    if (!/^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(text)) {
      throw new RangeError("Incorrect locale information provided: " + text);
    }
    const [language, ...rest] = text.split("-");
    const parts = rest.map((part) => (part.length === 2 ? part.toUpperCase() : part.length === 4 && /^[a-z]+$/i.test(part) ? part[0].toUpperCase() + part.slice(1).toLowerCase() : part));
    return [language.toLowerCase(), ...parts].join("-");
  };
  const listOf = (locales) => {
    if (locales === undefined) return [];
    return (typeof locales === "string" ? [locales] : Array.from(locales)).map(canonical);
  };
  const matched = (tag) => {
    if (KNOWN.includes(tag)) return { locale: tag, data: tag };
    if (tag in DEFAULTS) return { locale: tag, data: DEFAULTS[tag] };
    return undefined;
  };
  const resolve = (locales) => {
    const list = listOf(locales);
    if (list.length === 0) return { locale: "en-US", data: "en-US" };
    for (const tag of list) {
      const found = matched(tag);
      if (found !== undefined) return found;
    }
    throw new RangeError("the locale " + list[0] + " is not supported here; supported are " + KNOWN.join(", "));
  };
  const supportedLocalesOf = (locales) => listOf(locales).filter((tag) => matched(tag) !== undefined);
  const choose = (options, name, values, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const text = String(value);
    if (!values.includes(text)) throw new RangeError("Value " + text + " out of range for option " + name);
    return text;
  };
  const refuse = (what) => {
    throw new RangeError(what + " is not supported here");
  };
  const refuseOthers = (options, names, of) => {
    for (const name of Object.keys(options)) {
      if (!names.includes(name) && options[name] !== undefined && KNOWN_OPTIONS.includes(name)) {
        refuse("the option " + name + " of " + of);
      }
    }
  };
  const KNOWN_OPTIONS = [
    "calendar", "numberingSystem", "era", "fractionalSecondDigits", "dayPeriod", "formatMatcher", "unit",
    "unitDisplay", "roundingIncrement", "roundingMode", "roundingPriority", "trailingZeroDisplay",
    "currencySign",
  ];
  const optionsOf = (options) => {
    if (options === undefined) return {};
    if (options === null) throw new TypeError("Cannot convert undefined or null to object");
    return Object(options);
  };
  const textOf = (parts) => {
    let text = "";
    for (const part of parts) text += part.value;
    return text;
  };
  // Dates as text have plain spaces, as in V8.
  const dateTextOf = (parts) => textOf(parts).replaceAll("\u202f", " ");
  const pluralOf = (language, value, fraction) => {
    const n = Math.abs(value);
    switch (language) {
      case "ja": case "zh": return "other";
      case "fr": {
        if (n < 2) return "one";
        return fraction === 0 && n !== 0 && n % 1_000_000 === 0 ? "many" : "other";
      }
      case "es": {
        if (n === 1) return "one";
        return fraction === 0 && n !== 0 && n % 1_000_000 === 0 ? "many" : "other";
      }
      default: return n === 1 && fraction === 0 ? "one" : "other";
    }
  };
  const ordinalOf = (language, n) => {
    if (language === "en") {
      const ten = n % 10, hundred = n % 100;
      if (ten === 1 && hundred !== 11) return "one";
      if (ten === 2 && hundred !== 12) return "two";
      return ten === 3 && hundred !== 13 ? "few" : "other";
    }
    if (language === "fr") return n === 1 ? "one" : "other";
    if (language === "sv") return [1, 2].includes(n % 10) && ![11, 12].includes(n % 100) ? "one" : "other";
    return "other";
  };
  const languageOf = (data) => data.slice(0, 2);

  // ---- Numbers: exact decimal digits, as text.
  // Returns {negative, digits, point}: the value is 0.digits × 10^point.
  const decimalOf = (value) => {
    if (typeof value === "bigint") {
      const text = (value < 0n ? -value : value).toString();
      return { negative: value < 0n, digits: text.replace(/^0+/, ""), point: text.length };
    }
    const [mantissa, exponent] = Math.abs(value).toExponential().split("e");
    const digits = mantissa.replace(".", "").replace(/0+$/, "");
    return { negative: value < 0 || Object.is(value, -0), digits, point: digits === "" ? 0 : Number(exponent) + 1 };
  };
  // Rounds half away from zero, to `count` digits after the first `point`.
  const roundAt = ({ negative, digits, point }, keep) => {
    if (keep >= digits.length) return { negative, digits, point };
    if (keep < 0) return { negative, digits: "", point: 0 };
    let kept = digits.slice(0, keep).split("");
    if (digits[keep] >= "5") {
      let i = keep - 1;
      for (; i >= 0; i--) {
        if (kept[i] === "9") kept[i] = "0";
        else {
          kept[i] = String(Number(kept[i]) + 1);
          break;
        }
      }
      if (i < 0) {
        kept.unshift("1");
        point++;
      }
    }
    const rounded = kept.join("").replace(/0+$/, "");
    return { negative, digits: rounded, point: rounded === "" ? 0 : point };
  };
  const range = (options, name, low, high, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const number = Number(value);
    if (!(number >= low && number <= high)) throw new RangeError(name + " value is out of range.");
    return Math.floor(number);
  };

  const numberFormats = new WeakMap();
  class NumberFormat {
    constructor(locales, given) {
      const { locale, data } = resolve(locales);
      const options = optionsOf(given);
      refuseOthers(options, ["numberingSystem", "currencySign"], "Intl.NumberFormat");
      if (options.numberingSystem !== undefined && options.numberingSystem !== "latn") refuse("the numbering system " + options.numberingSystem);
      if (choose(options, "currencySign", ["standard", "accounting"], "standard") !== "standard") refuse("currencySign accounting");
      const style = choose(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
      if (style === "unit") refuse("the style unit of Intl.NumberFormat");
      const state = { locale, data, style };
      if (style === "currency") {
        if (options.currency === undefined) throw new TypeError("Currency code is required with currency style.");
        const currency = String(options.currency).toUpperCase();
        if (!/^[A-Z]{3}$/.test(currency)) throw new RangeError("Invalid currency code : " + options.currency);
        state.currency = currency;
        state.currencyDisplay = choose(options, "currencyDisplay", ["symbol", "narrowSymbol", "code", "name"], "symbol");
        if (state.currencyDisplay === "name") refuse("currencyDisplay name");
      }
      state.notation = choose(options, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
      if (state.notation !== "standard" && state.notation !== "compact") refuse("the notation " + state.notation);
      if (state.notation === "compact") {
        if (style !== "decimal") refuse("the compact notation with the style " + style);
        state.compactDisplay = choose(options, "compactDisplay", ["short", "long"], "short");
      }
      state.minInt = range(options, "minimumIntegerDigits", 1, 21, 1);
      const places = style === "currency" ? (CURRENCY_DIGITS[state.currency] ?? 2) : 0;
      const [low, high] = style === "currency" ? [places, places] : style === "percent" ? [0, 0] : [0, 3];
      if (options.minimumSignificantDigits !== undefined || options.maximumSignificantDigits !== undefined) {
        state.minSig = range(options, "minimumSignificantDigits", 1, 21, 1);
        state.maxSig = range(options, "maximumSignificantDigits", state.minSig, 21, 21);
      } else if (state.notation === "compact" && options.minimumFractionDigits === undefined && options.maximumFractionDigits === undefined) {
        state.isCompactRounding = true;
      } else {
        let min = range(options, "minimumFractionDigits", 0, 100, undefined);
        let max = range(options, "maximumFractionDigits", 0, 100, undefined);
        if (min === undefined) min = Math.min(low, max ?? low);
        if (max === undefined) max = Math.max(high, min);
        if (min > max) throw new RangeError("maximumFractionDigits value is out of range.");
        state.min = min;
        state.max = max;
      }
      const grouping = options.useGrouping;
      if (grouping === undefined || grouping === "true" || grouping === "false") state.useGrouping = state.notation === "compact" ? "min2" : "auto";
      else if (grouping === true) state.useGrouping = "always";
      else if (grouping === false || grouping === null) state.useGrouping = false;
      else state.useGrouping = choose(options, "useGrouping", ["min2", "auto", "always"], "auto");
      state.signDisplay = choose(options, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto");
      numberFormats.set(this, state);
      this.#bound = undefined;
    }
    #bound;
    get format() {
      const state = stateOf(numberFormats, this, "Intl.NumberFormat");
      return (this.#bound ??= (value) => textOf(numberParts(state, value)));
    }
    formatToParts(value) {
      return numberParts(stateOf(numberFormats, this, "Intl.NumberFormat"), value);
    }
    resolvedOptions() {
      const s = stateOf(numberFormats, this, "Intl.NumberFormat");
      const options = { locale: s.locale, numberingSystem: "latn", style: s.style };
      if (s.style === "currency") Object.assign(options, { currency: s.currency, currencyDisplay: s.currencyDisplay, currencySign: "standard" });
      options.minimumIntegerDigits = s.minInt;
      if (s.minSig !== undefined) Object.assign(options, { minimumSignificantDigits: s.minSig, maximumSignificantDigits: s.maxSig });
      else if (s.isCompactRounding) Object.assign(options, { minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2 });
      else Object.assign(options, { minimumFractionDigits: s.min, maximumFractionDigits: s.max });
      Object.assign(options, { useGrouping: s.useGrouping, notation: s.notation });
      if (s.notation === "compact") options.compactDisplay = s.compactDisplay;
      return Object.assign(options, {
        signDisplay: s.signDisplay, roundingIncrement: 1, roundingMode: "halfExpand",
        roundingPriority: s.isCompactRounding ? "morePrecision" : "auto", trailingZeroDisplay: "auto",
      });
    }
    static supportedLocalesOf(locales) {
      return supportedLocalesOf(locales);
    }
  }
  const stateOf = (map, self, name) => {
    const state = map.get(self);
    if (state === undefined) throw new TypeError("this is not an " + name);
    return state;
  };

  const rounded = (state, decimal) => {
    if (state.maxSig !== undefined) return roundAt(decimal, state.maxSig);
    // Two digits, or all digits before the point.
    if (state.isCompactRounding) return roundAt(decimal, Math.max(2, decimal.point));
    return roundAt(decimal, decimal.point + state.max);
  };
  const digitParts = (state, num, { digits, point }) => {
    const whole = point <= 0 ? "" : digits.slice(0, point).padEnd(point, "0");
    let fraction = point < 0 ? "0".repeat(-point) + digits : digits.slice(Math.max(0, point));
    if (digits === "") fraction = "";
    if (state.minSig !== undefined) {
      const leading = whole === "" ? fraction.length - fraction.replace(/^0+/, "").length : 0;
      const significant = digits === "" ? 1 : whole.length + fraction.length - leading;
      fraction += "0".repeat(Math.max(0, state.minSig - significant));
    } else if (!state.isCompactRounding) fraction = fraction.padEnd(state.min, "0");
    const integer = whole.padStart(state.minInt, "0");
    const parts = [];
    const least = state.useGrouping === "always" ? 1 : state.useGrouping === "min2" ? 2 : num.min;
    if (state.useGrouping !== false && integer.length >= 3 + least) {
      const first = integer.length % 3 || 3;
      parts.push({ type: "integer", value: integer.slice(0, first) });
      for (let i = first; i < integer.length; i += 3) {
        parts.push({ type: "group", value: num.group }, { type: "integer", value: integer.slice(i, i + 3) });
      }
    } else parts.push({ type: "integer", value: integer });
    if (fraction !== "") parts.push({ type: "decimal", value: num.decimal }, { type: "fraction", value: fraction });
    return parts;
  };
  const numericValue = (value) => {
    if (typeof value === "bigint") return value;
    if (typeof value === "string" && /^\s*[-+]?\d{16,}\s*$/.test(value)) return BigInt(value);
    return Number(value);
  };
  const numberParts = (state, given) => {
    const { num } = dataOf(state.data);
    let value = numericValue(given);
    let body;
    let decimal = { negative: false, digits: "1", point: 1 };
    let shape;
    if (value !== value) {
      if (state.style === "currency") refuse("NaN as an amount of money");
      body = [{ type: "nan", value: "NaN" }];
      decimal.digits = "";
    } else if (value === Infinity || value === -Infinity) {
      body = [{ type: "infinity", value: "∞" }];
      decimal.negative = value < 0;
      if (state.notation === "compact") refuse("the compact notation of infinity");
    } else {
      decimal = decimalOf(value);
      if (state.style === "percent" && decimal.digits !== "") decimal.point += 2;
      if (state.notation === "compact") ({ decimal, shape } = compacted(state, num, decimal));
      else decimal = rounded(state, decimal);
      body = digitParts(state, num, decimal);
    }
    const isZero = decimal.digits === "";
    const sign = signOf(state.signDisplay, decimal.negative, isZero);
    return withSign(state, num, body, sign, shape);
  };
  const signOf = (display, negative, isZero) => {
    switch (display) {
      case "never": return "";
      case "always": return negative ? "-" : "+";
      case "exceptZero": return isZero ? "" : negative ? "-" : "+";
      case "negative": return negative && !isZero ? "-" : "";
      default: return negative ? "-" : "";
    }
  };
  const compacted = (state, num, exact) => {
    const list = num.compact[state.compactDisplay];
    let exponent = exact.digits === "" ? 0 : Math.max(0, exact.point - 1);
    for (;;) {
      if (exponent > 14) refuse("the compact notation of numbers above 10^14");
      const [kept, one, other] = list[exponent].split("|");
      const shift = exponent - Math.max(0, Number(kept));
      const decimal = rounded(state, { ...exact, point: exact.digits === "" ? 0 : exact.point - shift });
      const after = decimal.digits === "" ? 0 : Math.max(0, decimal.point - 1 + shift);
      if (after > exponent) {
        exponent = after;
        continue;
      }
      const isOne = decimal.digits === "1" && decimal.point === 1;
      if ((state.min > 0 || state.minSig > 1) && one !== other) refuse("the long compact notation with zeros");
      if (!isOne && one !== other && languageOf(state.data) !== "en" && decimal.point <= 1 && !["2", "3", "4", "5", "6", "7", "8", "9"].includes(decimal.digits)) {
        // The plural of fractions differs between languages.
        const kind = pluralOf(languageOf(state.data), Number("0." + (decimal.digits || "0") + "e" + decimal.point), decimal.digits.length > decimal.point ? 1 : 0);
        // French has "mille" for exactly 1000, and other words for more.
        if (kind === "one" && !one.includes("#")) refuse("the long compact notation of such a number");
        return { decimal, shape: kind === "one" ? one : other };
      }
      return { decimal, shape: isOne ? one : other };
    }
  };
  const withSign = (state, num, body, sign, shape) => {
    let pattern = shape ?? "#";
    if (state.style === "percent") pattern = num.percent;
    if (state.style === "currency") {
      // A letter beside the number needs a space.
      const isCode = !/\p{S}$/u.test(currencySymbol(state, num));
      pattern = isCode ? num.code : num.currency[0];
      if (sign === "-" && (isCode ? num.codeNegative : num.currency[1]) !== num.minus + pattern) {
        refuse("negative amounts in " + state.currency + " for " + state.data);
      }
    }
    const parts = [];
    if (sign !== "") parts.push(sign === "-" ? { type: "minusSign", value: num.minus } : { type: "plusSign", value: num.plus });
    let literal = "";
    const flush = () => {
      if (literal === "") return;
      if (state.style === "percent" && literal.includes("%")) {
        const space = literal.replace("%", "");
        if (space !== "") parts.push({ type: "literal", value: space });
        parts.push({ type: "percentSign", value: "%" });
      } else if (shape !== undefined) {
        const space = /^[\s\u00a0\u202f]+/.exec(literal)?.[0] ?? "";
        if (space !== "") parts.push({ type: "literal", value: space });
        parts.push({ type: "compact", value: literal.slice(space.length) });
      } else parts.push({ type: "literal", value: literal });
      literal = "";
    };
    for (const letter of pattern) {
      if (letter === "#" || letter === "¤") {
        flush();
        if (letter === "#") parts.push(...body);
        else parts.push({ type: "currency", value: currencySymbol(state, num) });
      } else literal += letter;
    }
    flush();
    return parts;
  };
  const currencySymbol = (state, num) => {
    if (state.currencyDisplay === "code") return state.currency;
    const [symbol, narrow] = num.symbols[state.currency] ?? [state.currency];
    return state.currencyDisplay === "narrowSymbol" ? (narrow ?? symbol) : symbol;
  };

  // ---- Dates.
  const dateFormats = new WeakMap();
  const FIELDS = ["weekday", "year", "month", "day", "hour", "minute", "second"];
  const WIDTHS = {
    weekday: ["", "short", "long"], year: ["", "numeric", "2-digit"], month: ["", "numeric", "2-digit", "short", "long"],
    day: ["", "numeric", "2-digit"], hour: ["", "numeric", "2-digit"], minute: ["", "numeric", "2-digit"], second: ["", "numeric", "2-digit"],
  };
  const zoneOf = (name) => {
    if (name === undefined) return localZone();
    const text = String(name);
    const offset = /^([+-])(\d\d):?(\d\d)?$/.exec(text);
    if (offset !== null) {
      if (offset[2] > "23" || (offset[3] ?? "00") > "59") throw new RangeError("Invalid time zone specified: " + text);
      return offset[1] + offset[2] + ":" + (offset[3] ?? "00");
    }
    const found = native.zoneName(text);
    if (typeof found !== "string") throw new RangeError("Invalid time zone specified: " + text);
    return /^(Etc\/)?(UTC|GMT|UCT|Zulu|Universal|Greenwich|GMT[+-]?0)$/.test(found) ? "UTC" : found;
  };
  // The zone of the machine, which Date uses.
  const localZone = () => {
    const now = Date.now();
    const offset = -new Date(now).getTimezoneOffset() * 60;
    const name = native.localZone();
    if (typeof name === "string" && offsetAt(name, now) === offset) return zoneOf(name);
    return offset === 0 ? "UTC" : refuse("the time zone of this machine; give the option timeZone: its name");
  };
  const offsetAt = (zone, ms) => {
    const fixed = /^([+-])(\d\d):(\d\d)$/.exec(zone);
    if (fixed !== null) return (fixed[1] + "1") * (fixed[2] * 3600 + fixed[3] * 60);
    return native.zoneOffset(zone, Math.floor(ms / 1000));
  };

  class DateTimeFormat {
    constructor(locales, given) {
      dateFormats.set(this, dateState(locales, optionsOf(given), "any", "date"));
    }
    #bound;
    get format() {
      const state = stateOf(dateFormats, this, "Intl.DateTimeFormat");
      return (this.#bound ??= (date) => dateTextOf(dateParts(state, date)));
    }
    formatToParts(date) {
      return dateParts(stateOf(dateFormats, this, "Intl.DateTimeFormat"), date);
    }
    formatRange() {
      refuse("formatRange");
    }
    formatRangeToParts() {
      refuse("formatRangeToParts");
    }
    resolvedOptions() {
      const s = stateOf(dateFormats, this, "Intl.DateTimeFormat");
      const options = { locale: s.locale, calendar: "gregory", numberingSystem: "latn", timeZone: s.zone };
      const cycle = hourCycleOf(s.tokens);
      if (cycle !== undefined) Object.assign(options, { hourCycle: cycle, hour12: cycle === "h12" || cycle === "h11" });
      if (s.dateStyle !== undefined || s.timeStyle !== undefined) {
        if (s.dateStyle !== undefined) options.dateStyle = s.dateStyle;
        if (s.timeStyle !== undefined) options.timeStyle = s.timeStyle;
        return options;
      }
      for (const token of s.tokens) {
        const [field, width] = FIELD_OF[token.slice(0, 2)] ?? [];
        if (field !== undefined) options[field] = width;
      }
      const ordered = {};
      for (const name of ["locale", "calendar", "numberingSystem", "timeZone", "hourCycle", "hour12", ...FIELDS]) {
        if (options[name] !== undefined) ordered[name] = options[name];
      }
      if (s.zoneName !== undefined) ordered.timeZoneName = s.zoneName;
      return ordered;
    }
    static supportedLocalesOf(locales) {
      return supportedLocalesOf(locales);
    }
  }
  const FIELD_OF = {
    y4: ["year", "numeric"], y2: ["year", "2-digit"], M1: ["month", "numeric"], M2: ["month", "2-digit"], Ml: ["month", "long"],
    Ms: ["month", "short"], Nl: ["month", "long"], Ns: ["month", "short"], El: ["weekday", "long"], Es: ["weekday", "short"],
    Fs: ["weekday", "short"], d1: ["day", "numeric"], d2: ["day", "2-digit"], H1: ["hour", "numeric"], H2: ["hour", "2-digit"],
    h1: ["hour", "numeric"], h2: ["hour", "2-digit"], K1: ["hour", "numeric"], K2: ["hour", "2-digit"], m1: ["minute", "numeric"],
    m2: ["minute", "2-digit"], s1: ["second", "numeric"], s2: ["second", "2-digit"],
  };
  const hourCycleOf = (tokens) => {
    for (const token of tokens) {
      if (token[0] === "H") return "h23";
      if (token[0] === "h") return "h12";
      if (token[0] === "K") return "h11";
    }
    return undefined;
  };

  const dateState = (locales, options, required, defaults) => {
    const { locale, data } = resolve(locales);
    refuseOthers(options, ["calendar", "numberingSystem", "formatMatcher"], "Intl.DateTimeFormat");
    if (options.calendar !== undefined && options.calendar !== "gregory") refuse("the calendar " + options.calendar);
    if (options.numberingSystem !== undefined && options.numberingSystem !== "latn") refuse("the numbering system " + options.numberingSystem);
    const state = { locale, data, zone: zoneOf(options.timeZone) };
    state.dateStyle = choose(options, "dateStyle", ["full", "long", "medium", "short"], undefined);
    state.timeStyle = choose(options, "timeStyle", ["full", "long", "medium", "short"], undefined);
    state.zoneName = choose(options, "timeZoneName", ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"], undefined);
    const fields = {};
    let hasDate = false;
    let hasTime = false;
    for (const field of FIELDS) {
      const narrow = field === "weekday" || field === "month" ? ["narrow"] : [];
      const width = choose(options, field, [...WIDTHS[field].slice(1), ...narrow], undefined);
      if (width === "narrow") refuse("the narrow " + field);
      if (width === undefined) continue;
      fields[field] = width;
      if (FIELDS.indexOf(field) < 4) hasDate = true;
      else hasTime = true;
    }
    const cycle = choose(options, "hourCycle", ["h11", "h12", "h23", "h24"], undefined);
    const hour12 = options.hour12 === undefined ? undefined : Boolean(options.hour12);
    const L = dataOf(data);
    let is12 = hour12 ?? (cycle === undefined ? L.h === "h12" : cycle === "h12" || cycle === "h11");
    if (state.dateStyle !== undefined || state.timeStyle !== undefined) {
      if (hasDate || hasTime || state.zoneName !== undefined) throw new TypeError("Can't set option " + Object.keys(fields)[0] + " when dateStyle or timeStyle is used");
      if (required === "date" && state.timeStyle !== undefined) throw new TypeError("Invalid option : timeStyle");
      if (required === "time" && state.dateStyle !== undefined) throw new TypeError("Invalid option : dateStyle");
      const key = (state.timeStyle !== undefined && is12 ? "a" : "") + (state.dateStyle ?? "") + "-" + (state.timeStyle ?? "");
      state.tokens = patternAt(L, L.styles[key], "this combination of dateStyle and timeStyle");
    } else {
      const isMissing = (required === "date" && !hasDate) || (required === "time" && !hasTime) || (required === "any" && !hasDate && !hasTime);
      if (isMissing && (defaults === "date" || defaults === "all")) for (const field of ["year", "month", "day"]) fields[field] = "numeric";
      if (isMissing && (defaults === "time" || defaults === "all")) for (const field of ["hour", "minute", "second"]) fields[field] = "numeric";
      state.tokens = fieldTokens(L, fields, is12);
    }
    // Noon is 0 in Japan, and 12 for Japanese without a region.
    if (locale === "ja") state.tokens = state.tokens.map((token) => (token[0] === "K" ? "h" + token[1] : token));
    const found = hourCycleOf(state.tokens);
    if (found !== undefined && hour12 === undefined && cycle !== undefined && found !== cycle) refuse("hourCycle " + cycle + " for " + locale);
    if (state.zoneName !== undefined) addZoneName(state);
    return state;
  };
  const patternAt = (L, index, what) => (index === undefined ? refuse(what) : L.patterns[index].split("|"));
  const fieldTokens = (L, fields, is12) => {
    const at = (field) => Math.max(0, WIDTHS[field].indexOf(fields[field] ?? ""));
    const dateKey = "" + at("weekday") + at("year") + at("month") + at("day");
    const timeKey = "" + at("hour") + at("minute") + at("second");
    L.dateIndex ??= new Map(L.dates.split(" ").map((entry) => entry.split(":")));
    const what = "this combination of fields (" + Object.keys(fields).map((name) => name + ": " + fields[name]).join(", ") + ")";
    const date = dateKey === "0000" ? undefined : (L.dateIndex.get(dateKey) ?? refuse(what)).split(",");
    if (timeKey === "000") return patternAt(L, date[0], what);
    const time = patternAt(L, L.times[(is12 && at("hour") > 0 ? "a" : "") + timeKey], what);
    if (date === undefined) return time;
    const isOdd = at("hour") === 0 || (at("minute") === 0 && at("second") > 0) || dateKey.endsWith("000");
    if (date[1] === undefined || isOdd) return refuse(what);
    const tokens = patternAt(L, date[0], what);
    const glue = L.glues[date[1]];
    const isLiteral = tokens.at(-1)[0] === "=";
    if (isLiteral) tokens[tokens.length - 1] += glue;
    else if (glue !== "") tokens.push("=" + glue);
    return [...tokens, ...time];
  };
  const addZoneName = (state) => {
    const { zoneName } = state;
    const isFixed = zoneName === "shortOffset" || zoneName === "longOffset";
    const isUtc = state.zone === "UTC" && zoneName === "short";
    if (!isFixed && !isUtc && !(zoneName === "short" && US_ZONES[state.zone] !== undefined && state.data === "en-US")) {
      refuse("timeZoneName " + zoneName + " for " + state.zone + " and " + state.locale + " (use shortOffset)");
    }
    if (hourCycleOf(state.tokens) === undefined || state.tokens.at(-1)[0] === "=") refuse("timeZoneName without a time");
    if (state.data !== "en-US") refuse("timeZoneName for " + state.locale);
    state.tokens = [...state.tokens, "= ", "z"];
  };
  const US_ZONES = {
    __proto__: null, "America/New_York": "E", "America/Chicago": "C", "America/Denver": "M", "America/Los_Angeles": "P",
  };
  const zoneText = (state, ms, offset) => {
    if (state.zoneName === "short" && state.zone !== "UTC") {
      const standard = { E: -5, C: -6, M: -7, P: -8 }[US_ZONES[state.zone]] * 3600;
      // Before 1967 other rules applied.
      if (ms < -94694400000 || (offset !== standard && offset !== standard + 3600)) refuse("timeZoneName short before 1967");
      return US_ZONES[state.zone] + (offset === standard ? "ST" : "DT");
    }
    if (state.zoneName === "short") return "UTC";
    const gmt = "GMT";
    if (state.zone === "UTC") return gmt;
    if (offset === 0) refuse("timeZoneName " + state.zoneName + " for an offset of zero");
    const sign = offset < 0 ? "-" : "+";
    const size = Math.abs(offset);
    const two = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(size / 3600), minutes = Math.floor(size / 60) % 60, seconds = size % 60;
    if (seconds !== 0) refuse("an offset with seconds");
    if (state.zoneName === "longOffset") return gmt + sign + two(hours) + ":" + two(minutes);
    return gmt + sign + hours + (minutes === 0 ? "" : ":" + two(minutes));
  };
  const dateParts = (state, date) => {
    const ms = date === undefined ? Date.now() : Number(date);
    if (!(Math.abs(ms) <= 8.64e15)) throw new RangeError("Invalid time value");
    const offset = offsetAt(state.zone, ms);
    const local = new Date(ms + offset * 1000);
    const year = local.getUTCFullYear();
    // Gregorian dates only: older ones are Julian in other systems.
    if (year < 1583 || year > 9999 || Number.isNaN(year)) refuse("a date outside the years 1583 to 9999");
    const L = dataOf(state.data);
    const two = (n) => String(n).padStart(2, "0");
    const number = (token, n) => (token[1] === "2" ? two(n) : String(n));
    const hour = local.getUTCHours();
    return state.tokens.map((token) => {
      switch (token[0]) {
        case "=": return { type: "literal", value: token.slice(1) };
        case "y": return { type: "year", value: token === "y4" ? String(year) : two(year % 100) };
        case "M": case "N": {
          const names = L.names[token];
          return { type: "month", value: names === undefined ? number(token, local.getUTCMonth() + 1) : names[local.getUTCMonth()] };
        }
        case "E": case "F": return { type: "weekday", value: L.names[token][local.getUTCDay()] };
        case "d": return { type: "day", value: number(token, local.getUTCDate()) };
        case "H": return { type: "hour", value: number(token, hour) };
        case "h": return { type: "hour", value: number(token, hour % 12 || 12) };
        case "K": return { type: "hour", value: number(token, hour % 12) };
        case "m": return { type: "minute", value: number(token, local.getUTCMinutes()) };
        case "s": return { type: "second", value: number(token, local.getUTCSeconds()) };
        case "a": return { type: "dayPeriod", value: L.names.a[hour < 12 ? 0 : 1] };
        default: return { type: "timeZoneName", value: zoneText(state, ms, offset) };
      }
    });
  };

  // ---- Plurals, relative times, lists.
  class PluralRules {
    #state;
    constructor(locales, given) {
      const { locale, data } = resolve(locales);
      const options = optionsOf(given);
      const type = choose(options, "type", ["cardinal", "ordinal"], "cardinal");
      for (const name of ["minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits", "minimumIntegerDigits", "notation"]) {
        if (options[name] !== undefined) refuse("the option " + name + " of Intl.PluralRules");
      }
      this.#state = { locale, language: languageOf(data), type };
    }
    select(value) {
      const number = Number(value);
      if (!Number.isFinite(number)) return "other";
      const rounded = Math.round(Math.abs(number) * 1000) / 1000;
      if (rounded > 1e15) refuse("the plural of so large a number");
      const { language, type } = this.#state;
      if (type === "ordinal") return ordinalOf(language, rounded);
      return pluralOf(language, rounded, Number.isInteger(rounded) ? 0 : 1);
    }
    resolvedOptions() {
      const { language, type } = this.#state;
      const cardinal = { ja: ["other"], zh: ["other"], fr: ["one", "many", "other"], es: ["one", "many", "other"] }[language] ?? ["one", "other"];
      const ordinal = { en: ["one", "two", "few", "other"], fr: ["one", "other"], sv: ["one", "other"] }[language] ?? ["other"];
      return {
        locale: language, type, minimumIntegerDigits: 1, minimumFractionDigits: 0, maximumFractionDigits: 3,
        pluralCategories: type === "cardinal" ? cardinal : ordinal, roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "auto", trailingZeroDisplay: "auto",
      };
    }
    static supportedLocalesOf(locales) {
      return supportedLocalesOf(locales);
    }
  }

  const UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
  class RelativeTimeFormat {
    #state;
    constructor(locales, given) {
      const { locale, data } = resolve(locales);
      const options = optionsOf(given);
      refuseOthers(options, [], "Intl.RelativeTimeFormat");
      const style = choose(options, "style", ["long", "short", "narrow"], "long");
      const numeric = choose(options, "numeric", ["always", "auto"], "always");
      this.#state = { locale, data, style, numeric, numbers: new NumberFormat(data) };
    }
    #shape(value, unit) {
      const { data, style, numeric } = this.#state;
      const number = Number(value);
      if (!Number.isFinite(number)) throw new RangeError("Invalid value for Intl.RelativeTimeFormat.prototype.format()");
      const name = String(unit).replace(/s$/, "");
      if (!UNITS.includes(name)) throw new RangeError("Invalid unit argument for format() '" + unit + "'");
      const [shapes, special] = dataOf(data).rel[style + name];
      const fixed = numeric === "auto" && !Object.is(number, -0) ? special[number] : undefined;
      if (fixed !== undefined) return { fixed, name };
      if (numeric === "auto" && Object.is(number, -0) && special[0] !== undefined) return { fixed: special[0], name };
      const isPast = number < 0 || Object.is(number, -0);
      const size = Math.round(Math.abs(number) * 1000) / 1000;
      const kind = pluralOf(languageOf(data), size, Number.isInteger(size) ? 0 : 1);
      if (kind === "many") refuse("a relative time of so many " + name + "s");
      const shape = shapes.split("|")[(isPast ? 2 : 0) + (kind === "one" || (kind === "other" && languageOf(data) === "ja") ? 0 : 1)];
      return { shape, size: Math.abs(number), name };
    }
    format(value, unit) {
      const { fixed, shape, size } = this.#shape(value, unit);
      return fixed ?? shape.replace("#", () => this.#state.numbers.format(size));
    }
    formatToParts(value, unit) {
      const { fixed, shape, size, name } = this.#shape(value, unit);
      if (fixed !== undefined) return [{ type: "literal", value: fixed }];
      const [before, after] = shape.split("#");
      const parts = before === "" ? [] : [{ type: "literal", value: before }];
      for (const part of this.#state.numbers.formatToParts(size)) parts.push({ ...part, unit: name });
      if (after !== "") parts.push({ type: "literal", value: after });
      return parts;
    }
    resolvedOptions() {
      const { locale, style, numeric } = this.#state;
      return { locale, style, numeric, numberingSystem: "latn" };
    }
    static supportedLocalesOf(locales) {
      return supportedLocalesOf(locales);
    }
  }

  class ListFormat {
    #state;
    constructor(locales, given) {
      const { locale, data } = resolve(locales);
      const options = optionsOf(given);
      const type = choose(options, "type", ["conjunction", "disjunction", "unit"], "conjunction");
      const style = choose(options, "style", ["long", "short", "narrow"], "long");
      this.#state = { locale, data, type, style };
    }
    formatToParts(list) {
      const { data, type, style } = this.#state;
      const items = list === undefined ? [] : Array.from(list);
      for (const item of items) if (typeof item !== "string") throw new TypeError("Iterable yielded " + String(item) + " which is not a string");
      // Before some words, Spanish has another "and" and another "or".
      if (data === "es-ES" && type !== "unit" && items.length > 1 && /^(h?i|h?o|8|11)/i.test(items.at(-1))) {
        const last = items.at(-1);
        if (!(type === "conjunction" && /^(h?ie|h?ia|h?o|8|11)/i.test(last)) && !(type === "disjunction" && /^h?i/i.test(last))) refuse("a Spanish list that ends with '" + last + "'");
      }
      const [two, start, middle, end] = dataOf(data).list[type + style];
      const parts = [];
      items.forEach((item, i) => {
        const before = items.length === 2 ? two : i === items.length - 1 ? end : i === 1 ? start : middle;
        if (i > 0 && before !== "" && before !== undefined) parts.push({ type: "literal", value: before });
        parts.push({ type: "element", value: item });
      });
      return parts;
    }
    format(list) {
      return textOf(this.formatToParts(list));
    }
    resolvedOptions() {
      const { locale, type, style } = this.#state;
      return { locale, type, style };
    }
    static supportedLocalesOf(locales) {
      return supportedLocalesOf(locales);
    }
  }

  // ---- Comparison of texts in the Latin script.
  // Punctuation before symbols before digits before letters, as in the Unicode collation.
  const ORDER = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";
  const SPACES = "\t\n\v\f\r \u00a0";
  const keyOf = (text) => {
    const primary = [], accents = [], cases = [];
    for (const letter of text.normalize("NFD")) {
      if (/\p{Mn}/u.test(letter)) {
        if (accents.length === 0 || !"\u0300\u0301\u0302\u0303\u0308\u030a\u0327\u030c".includes(letter)) return undefined;
        accents[accents.length - 1] += "\u0301\u0300\u0302\u030c\u030a\u0308\u0303\u0327".indexOf(letter) + 1 + ".";
        continue;
      }
      const lower = letter.toLowerCase();
      let at = ORDER.indexOf(lower);
      if (at === -1 && SPACES.includes(letter) && letter !== "\u00a0") at = SPACES.indexOf(letter) - 20;
      else if (at === -1) return undefined;
      primary.push(at);
      accents.push("");
      cases.push(letter === lower ? 0 : 1);
    }
    return { primary, accents, cases };
  };
  const byNumber = (a, b) => a - b;
  class Collator {
    #state;
    #bound;
    constructor(locales, given) {
      const { locale, data } = resolve(locales);
      const options = optionsOf(given);
      const language = languageOf(data);
      choose(options, "usage", ["sort", "search"], "sort");
      if (options.usage === "search") refuse("the usage search of Intl.Collator");
      const sensitivity = choose(options, "sensitivity", ["base", "accent", "case", "variant"], "variant");
      const caseFirst = choose(options, "caseFirst", ["upper", "lower", "false"], "false");
      this.#state = { locale, language, sensitivity, caseFirst, numeric: Boolean(options.numeric), ignores: Boolean(options.ignorePunctuation) };
      if (this.#state.ignores) refuse("ignorePunctuation");
    }
    get compare() {
      return (this.#bound ??= (a, b) => compareTexts(this.#state, String(a), String(b)));
    }
    resolvedOptions() {
      const { locale, sensitivity, caseFirst, numeric } = this.#state;
      return { locale, usage: "sort", sensitivity, ignorePunctuation: false, collation: "default", numeric, caseFirst };
    }
    static supportedLocalesOf(locales) {
      return supportedLocalesOf(locales);
    }
  }
  const sign = (n) => (n < 0 ? -1 : n > 0 ? 1 : 0);
  const compareTexts = (state, a, b) => {
    if (a === b) return 0;
    // Leading zeros of numbers do not count.
    const keyed = (text) => keyOf(state.numeric ? text.replace(/(?<![0-9])0+(?=[0-9])/g, "") : text);
    const left = keyed(a), right = keyed(b);
    // Spanish and Swedish have letters of their own, and Chinese another order of accents.
    const isOther = (text) => (state.language === "zh" && /\p{Mn}/u.test(text.normalize("NFD"))) || (state.language === "es" && /ñ/i.test(text.normalize("NFC"))) || (state.language === "sv" && /[åäöÅÄÖ]/.test(text.normalize("NFC")));
    if (left === undefined || right === undefined || isOther(a) || isOther(b)) {
      const which = left === undefined || isOther(a) ? a : b;
      throw new RangeError("the order of " + JSON.stringify(which.slice(0, 30)) + " is not known here; compare with < and >, which use code units");
    }
    let order = state.numeric ? comparePrimaryNumeric(left.primary, right.primary) : compareLists(left.primary, right.primary, byNumber);
    if (order === 0 && (state.sensitivity === "accent" || state.sensitivity === "variant")) {
      order = compareLists(left.accents, right.accents, (x, y) => (x < y ? -1 : x > y ? 1 : 0));
    }
    if (order === 0 && (state.sensitivity === "case" || state.sensitivity === "variant")) {
      order = compareLists(left.cases, right.cases, byNumber) * (state.caseFirst === "upper" ? -1 : 1);
    }
    return sign(order);
  };
  const compareLists = (a, b, compare) => {
    for (let i = 0; i < a.length && i < b.length; i++) {
      const order = compare(a[i], b[i]);
      if (order !== 0) return order;
    }
    return a.length - b.length;
  };
  const ZERO = ORDER.indexOf("0"), NINE = ORDER.indexOf("9");
  const comparePrimaryNumeric = (a, b) => {
    const isDigit = (n) => n >= ZERO && n <= NINE;
    const run = (list, at) => {
      let end = at;
      while (end < list.length && isDigit(list[end])) end++;
      let start = at;
      while (start < end - 1 && list[start] === ZERO) start++;
      return { digits: list.slice(start, end), end };
    };
    let i = 0, j = 0;
    while (i < a.length && j < b.length) {
      if (isDigit(a[i]) && isDigit(b[j])) {
        const x = run(a, i), y = run(b, j);
        const order = x.digits.length - y.digits.length || compareLists(x.digits, y.digits, byNumber);
        if (order !== 0) return order;
        i = x.end;
        j = y.end;
        continue;
      }
      if (a[i] !== b[j]) return a[i] - b[j];
      i++;
      j++;
    }
    return (a.length - i) - (b.length - j);
  };

  // ---- The object, and the methods.
  const callable = (Class) =>
    new Proxy(Class, { __proto__: null, apply: (target, _, args) => new target(...args) });
  const Intl = {};
  const classes = { NumberFormat: callable(NumberFormat), DateTimeFormat: callable(DateTimeFormat), Collator: callable(Collator), PluralRules, RelativeTimeFormat, ListFormat };
  for (const name of Object.keys(classes)) {
    own.define(Intl, name, classes[name]);
    Object.defineProperty(classes[name].prototype, Symbol.toStringTag, { value: "Intl." + name, configurable: true });
  }
  for (const name of ["DisplayNames", "DurationFormat", "Locale", "Segmenter"]) {
    own.define(Intl, name, { [name]: function () { refuse("Intl." + name); } }[name]);
  }
  own.define(Intl, "getCanonicalLocales", (locales) => [...new Set(listOf(locales))]);
  own.define(Intl, "supportedValuesOf", (key) => refuse("Intl.supportedValuesOf('" + key + "')"));
  Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });

  const dateText = (required, defaults) => (date, locales, options) =>
    date !== date ? "Invalid Date" : dateTextOf(dateParts(dateState(locales, optionsOf(options), required, defaults), date));
  let lastCollator;
  return {
    Intl,
    dateToLocaleString: dateText("any", "all"),
    dateToLocaleDateString: dateText("date", "date"),
    dateToLocaleTimeString: dateText("time", "time"),
    numberToLocaleString: (value, locales, options) => new NumberFormat(locales, options).format(value),
    localeCompare: (a, b, locales, options) => {
      if (options === undefined && lastCollator !== undefined && lastCollator.locales === locales) return lastCollator.compare(a, b);
      const { compare } = new Collator(locales, options);
      if (options === undefined && (locales === undefined || typeof locales === "string")) lastCollator = { locales, compare };
      return compare(a, b);
    },
  };
}
