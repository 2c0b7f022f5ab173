// Generates the locale data in this folder, and the table of the test, from Node's own Intl.
// Run with a Node.js that has full ICU: node generate.cjs
const LOCALES = ["en-US", "en-GB", "en-CA", "de-DE", "fr-FR", "es-ES", "ja-JP", "zh-CN", "sv-SE"];
const out = {};
const two = (d) => new Date(Date.UTC(...d));
for (const locale of LOCALES) {
  const L = (out[locale] = { dates: {}, times: {}, styles: {} });
  const fmt = (o) => new Intl.DateTimeFormat(locale, { timeZone: "UTC", ...o });
  const names = (o, part, dates) => dates.map((d) => fmt(o).formatToParts(d).find((p) => p.type === part)?.value);
  const months = Array.from({ length: 12 }, (_, m) => two([2023, m, 5]));
  const days = Array.from({ length: 7 }, (_, d) => two([2023, 0, 1 + d]));
  L.names = {
    Ml: names({ month: "long", day: "numeric" }, "month", months),
    Ms: names({ month: "short", day: "numeric" }, "month", months),
    Nl: names({ month: "long" }, "month", months),
    Ns: names({ month: "short" }, "month", months),
    El: names({ weekday: "long" }, "weekday", days),
    Es: names({ weekday: "short" }, "weekday", days),
    El2: names({ weekday: "long", day: "numeric", month: "long" }, "weekday", days),
    Fs: names({ weekday: "short", day: "numeric", month: "long" }, "weekday", days),
    a: names({ hour: "numeric", hour12: true }, "dayPeriod", [two([2023, 0, 1, 4]), two([2023, 0, 1, 16])]),
  };
  for (const k of ["El2"]) { if (JSON.stringify(L.names[k]) !== JSON.stringify(L.names[k.slice(0, 2)])) console.error(locale, k, "differs"); delete L.names[k]; }
  // Pattern of a format: literal text and tokens.
  const pattern = (f) => {
    const samples = [two([2023, 2, 5, 4, 6, 7]), two([2024, 10, 23, 16, 46, 57]), two([2021, 4, 9, 0, 5, 8]), two([2022, 8, 10, 12, 5, 8])];
    const parts = samples.map((d) => f.formatToParts(d));
    const result = [];
    for (let i = 0; i < parts[0].length; i++) {
      const at = parts.map((p) => p[i]);
      if (at.some((p, j) => p === undefined || p.type !== at[0].type || parts[j].length !== parts[0].length)) return null;
      const v = at.map((p) => p.value);
      const is = (f) => samples.every((d, j) => v[j] === f(d));
      const pad = (n) => String(n).padStart(2, "0");
      const num = (letter, get) => is((d) => String(get(d))) ? letter + "1" : is((d) => pad(get(d))) ? letter + "2" : null;
      const mo = (d) => d.getUTCMonth();
      let token;
      switch (at[0].type) {
        case "literal": token = new Set(v).size === 1 ? "=" + v[0] : null; break;
        case "year": token = is((d) => String(d.getUTCFullYear())) ? "y4" : is((d) => pad(d.getUTCFullYear() % 100)) ? "y2" : null; break;
        case "month":
          token = num("M", (d) => mo(d) + 1);
          for (const k of ["Ml", "Ms", "Nl", "Ns"]) token ??= is((d) => L.names[k][mo(d)]) ? k : null;
          break;
        case "weekday": for (const k of ["El", "Es", "Fs"]) token ??= is((d) => L.names[k][d.getUTCDay()]) ? k : null; break;
        case "day": token = num("d", (d) => d.getUTCDate()); break;
        case "hour": {
          const H = (d) => d.getUTCHours();
          token = num("H", H) ?? num("h", (d) => H(d) % 12 || 12) ?? num("K", (d) => H(d) % 12);
          break;
        }
        case "minute": token = num("m", (d) => d.getUTCMinutes()); break;
        case "second": token = num("s", (d) => d.getUTCSeconds()); break;
        case "dayPeriod": token = is((d) => L.names.a[d.getUTCHours() < 12 ? 0 : 1]) ? "a" : null; break;
        default: token = null;
      }
      if (token == null) return null;
      result.push(token);
    }
    return result;
  };
  L.h = fmt({ hour: "numeric" }).resolvedOptions().hourCycle;
  const W = [undefined, "short", "long"], Y = [undefined, "numeric", "2-digit"], M = [undefined, "numeric", "2-digit", "short", "long"], D = [undefined, "numeric", "2-digit"];
  const clean = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined));
  const time = { hour: "numeric", minute: "2-digit", hour12: false };
  const timeParts = pattern(fmt(time));
  W.forEach((weekday, w) => Y.forEach((year, y) => M.forEach((month, m) => D.forEach((day, d) => {
    const o = clean({ weekday, year, month, day });
    if (Object.keys(o).length === 0) return;
    const p = pattern(fmt(o));
    if (p === null) return console.error(locale, "no pattern", JSON.stringify(o), fmt(o).format(two([2023, 2, 5])));
    // The glue between date and time.
    const both = pattern(fmt({ ...o, ...time }));
    let glue = null;
    const flat = (tokens) => { const r = []; for (const t of tokens) { if (t[0] === "=" && r.at(-1)?.[0] === "=") r[r.length - 1] += t.slice(1); else r.push(t); } return JSON.stringify(r); };
    if (both !== null) for (const g of [", ", " ", " at ", " um ", " à ", ", à ", " kl. ", " 'at' ", ""]) {
      if (glue === null && flat([...p, "=" + g, ...timeParts]) === JSON.stringify(both)) glue = g;
    }
    L.dates["" + w + y + m + d] = [p.join("|"), glue];
  }))));
  const T = ["", "numeric", "2-digit"];
  for (const hour12 of [true, false]) T.forEach((hour, h) => T.forEach((minute, m) => T.forEach((second, s) => {
    const o = clean({ hour: hour || undefined, minute: minute || undefined, second: second || undefined });
    if (Object.keys(o).length === 0 || (h === 0 && hour12)) return;
    const p = pattern(fmt(h ? { ...o, hour12 } : o));
    if (p !== null) L.times[(hour12 ? "a" : "") + h + m + s] = p.join("|");
  })));
  for (const hour12 of [true, false]) for (const dateStyle of [undefined, "short", "medium", "long", "full"]) for (const timeStyle of [undefined, "short", "medium"]) {
    if (!dateStyle && !timeStyle) continue;
    if (!timeStyle && hour12) continue;
    const p = pattern(fmt({ ...clean({ dateStyle, timeStyle }), ...(timeStyle ? { hour12 } : {}) }));
    if (p !== null) L.styles[(timeStyle && hour12 ? "a" : "") + (dateStyle ?? "") + "-" + (timeStyle ?? "")] = p.join("|");
  }
  // Numbers.
  const nf = (o) => new Intl.NumberFormat(locale, o);
  const part = (f, n, t) => f.formatToParts(n).find((p) => p.type === t)?.value;
  L.num = {
    group: part(nf({}), 1234567, "group"), decimal: part(nf({}), 1.5, "decimal"), minus: part(nf({}), -1, "minusSign"),
    min: part(nf({}), 1234, "group") === undefined ? 2 : 1,
    plus: part(nf({ signDisplay: "always" }), 1, "plusSign"),
  };
  const fill = (f, n) => f.formatToParts(n).map((p) => ["integer", "group", "decimal", "fraction"].includes(p.type) ? "#" : p.type === "currency" ? "¤" : p.value).join("").replace(/#+/g, "#");
  L.num.percent = fill(nf({ style: "percent" }), 0.5);
  L.num.currency = [fill(nf({ style: "currency", currency: "USD" }), 5), fill(nf({ style: "currency", currency: "USD" }), -5)];
  L.num.code = fill(nf({ style: "currency", currency: "USD", currencyDisplay: "code" }), 5);
  L.num.codeNegative = fill(nf({ style: "currency", currency: "USD", currencyDisplay: "code" }), -5);
  L.num.symbols = {};
  for (const c of Intl.supportedValuesOf("currency")) {
    const s = part(nf({ style: "currency", currency: c }), 1, "currency");
    const n = part(nf({ style: "currency", currency: c, currencyDisplay: "narrowSymbol" }), 1, "currency");
    if (s !== c || n !== c) L.num.symbols[c] = s === n ? [s] : [s, n];
  }
  // Compact: for 10^3 .. 10^14: divisor digits and suffix for one/other.
  L.num.compact = {};
  for (const d of ["short", "long"]) {
    L.num.compact[d] = [];
    for (let e = 0; e <= 14; e++) {
      const f = nf({ notation: "compact", compactDisplay: d });
      const one = f.formatToParts(10 ** e), other = f.formatToParts(2 * 10 ** e);
      const shape = (ps) => ps.map((p) => p.type === "compact" || p.type === "literal" ? p.value : p.type === "integer" || p.type === "group" ? "#" : p.value).join("").replace(/#+/g, "#");
      const digits = one.filter((p) => p.type === "integer").map((p) => p.value).join("").length - 1;
      L.num.compact[d].push([digits, shape(one), shape(other)].map(String).join("|"));
    }
  }
  // Relative time and lists.
  L.rel = {};
  for (const style of ["long", "short", "narrow"]) {
    const always = new Intl.RelativeTimeFormat(locale, { style }), auto = new Intl.RelativeTimeFormat(locale, { style, numeric: "auto" });
    for (const unit of ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]) {
      const shape = (v) => always.formatToParts(v, unit).map((p) => p.type === "literal" ? p.value : "#").join("").replace(/#+/g, "#");
      const e = [shape(1), shape(2), shape(-1), shape(-2)];
      const special = {};
      for (const v of [-2, -1, 0, 1, 2]) { const s = auto.format(v, unit); if (s !== always.format(v, unit)) special[v] = s; }
      L.rel[style + unit] = [e.join("|"), special];
    }
  }
  L.list = {};
  for (const type of ["conjunction", "disjunction", "unit"]) for (const style of ["long", "short", "narrow"]) {
    const f = new Intl.ListFormat(locale, { type, style });
    const lit = (xs) => f.formatToParts(xs).filter((p) => p.type === "literal").map((p) => p.value);
    L.list[type + style] = [lit(["X", "Y"])[0] ?? "", ...lit(["W", "X", "Y", "Z"])];
  }
}

// Compact form: patterns are listed once.
const fs = require("fs");
for (const locale of LOCALES) {
  const L = out[locale];
  const list = [], index = new Map();
  const ref = (p) => { if (!index.has(p)) { index.set(p, list.length); list.push(p); } return index.get(p); };
  const glues = [];
  const dates = {};
  for (const [k, [p, g]] of Object.entries(L.dates)) { if (g !== null && !glues.includes(g)) glues.push(g); dates[k] = ref(p) + (g === null ? "" : "," + glues.indexOf(g)); }
  L.dates = Object.entries(dates).map(([k, v]) => k + ":" + v).join(" ");
  L.times = Object.fromEntries(Object.entries(L.times).map(([k, p]) => [k, ref(p)]));
  L.styles = Object.fromEntries(Object.entries(L.styles).map(([k, p]) => [k, ref(p)]));
  L.patterns = list; L.glues = glues;
  fs.writeFileSync(__dirname + "/" + locale + ".json", JSON.stringify(L) + "\n");
}

// The test's table: expressions with Node's own values, and offsets of all time zones.
const D = "new Date(Date.UTC(2024, 2, 5, 14, 6, 7))";
const TAGS = ["en-US", "en", "de", "fr", "es", "ja", "zh", "en-GB", "en-CA", "sv-SE"];
const expressions = [];
for (const tag of TAGS) {
  const l = JSON.stringify(tag);
  for (const o of ["{}", "{style: 'percent', maximumFractionDigits: 1}", "{style: 'currency', currency: 'EUR'}", "{style: 'currency', currency: 'JPY'}", "{notation: 'compact'}", "{notation: 'compact', compactDisplay: 'long'}", "{minimumFractionDigits: 2}", "{maximumSignificantDigits: 3}", "{useGrouping: false, signDisplay: 'always'}"]) {
    // French has another word for 1200 than for 1000.
    const second = tag === "fr" && o.includes("long") ? "-2345" : "-1234.5";
    expressions.push(`[1234567.891, ${second}, 0, 0.256, 999999].map(n => n.toLocaleString(${l}, ${o}))`);
  }
  expressions.push(`12345678901234567890n.toLocaleString(${l})`);
  for (const zone of ["America/New_York", "Asia/Kolkata", "UTC"]) {
    const z = `timeZone: '${zone}'`;
    expressions.push(`[${D}.toLocaleString(${l}, {${z}}), ${D}.toLocaleDateString(${l}, {${z}}), ${D}.toLocaleTimeString(${l}, {${z}})]`);
    for (const o of ["dateStyle: 'full'", "dateStyle: 'medium', timeStyle: 'short'", "weekday: 'long', year: 'numeric', month: 'long', day: 'numeric'", "month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false", "year: 'numeric', month: '2-digit', day: '2-digit'", "month: 'long', year: 'numeric'", "hour: 'numeric', minute: '2-digit', hour12: true"]) {
      expressions.push(`new Intl.DateTimeFormat(${l}, {${z}, ${o}}).formatToParts(${D})`);
    }
  }
  expressions.push(`new Intl.DateTimeFormat(${l}, {timeZone: 'Europe/Berlin'}).resolvedOptions()`);
  expressions.push(`new Intl.NumberFormat(${l}, {style: 'currency', currency: 'USD'}).resolvedOptions()`);
  expressions.push(`[0, 1, 2, 3, 11, 21, 1.5].map(n => [new Intl.PluralRules(${l}).select(n), new Intl.PluralRules(${l}, {type: 'ordinal'}).select(n)])`);
  expressions.push(`[-1, 0, 1, 2, -5].map(n => ['day', 'hours', 'year'].map(u => new Intl.RelativeTimeFormat(${l}, {numeric: 'auto'}).format(n, u) + new Intl.RelativeTimeFormat(${l}, {style: 'short'}).format(n, u)))`);
  expressions.push(`['A', 'AB', 'ABC', 'ABCD'].map(t => [new Intl.ListFormat(${l}).format([...t]), new Intl.ListFormat(${l}, {type: 'disjunction', style: 'short'}).format([...t])])`);
  const accents = tag === "zh" ? "" : ", 'é', 'cote', 'côte', 'coté'";
  expressions.push(`['b', 'A', 'a', 'e', 'f', 'B', '10', '9', ' x', '_x', 'E'${accents}].sort(new Intl.Collator(${l}).compare)`);
  expressions.push(`['x10', 'x9', 'X1', 'x01'].sort((a, b) => a.localeCompare(b, ${l}, {numeric: true, sensitivity: 'base'}))`);
}
expressions.push("new Intl.DateTimeFormat('en-US', {timeZone: 'America/Los_Angeles', hour: 'numeric', timeZoneName: 'short'}).format(0)", "['a'.localeCompare('b'), 'a'.localeCompare('B'), 'a'.localeCompare('A'), 'é'.localeCompare('f'), 'a'.localeCompare('á', 'en', {sensitivity: 'base'})]", "(1234.5).toLocaleString()", "[1234.5, 2].toLocaleString('de')", "Intl.getCanonicalLocales('EN-us')", "Intl.NumberFormat.supportedLocalesOf(['de', 'en-US'])", "new Date(NaN).toLocaleString()", "typeof Intl.NumberFormat() + Object.prototype.toString.call(Intl)");
const TIMES = [800000000, 1705312800, 1721037600, 2540000000];
const offsets = {};
for (const zone of Intl.supportedValuesOf("timeZone")) {
  const f = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
  offsets[zone] = TIMES.map((time) => {
    const p = Object.fromEntries(f.formatToParts(time * 1000).map((x) => [x.type, x.value]));
    return (Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) / 1000 - time) / 60;
  });
}
const line = (x) => "    " + JSON.stringify(x);
const table = `{\n  "expressions": [\n${expressions.map((e) => line([e, eval(e)])).join(",\n")}\n  ],\n  "times": ${JSON.stringify(TIMES)},\n  "offsets": ${JSON.stringify(offsets)}\n}\n`;
fs.writeFileSync(__dirname + "/../../guest/tests/intl.json", table);
