// Highlights code as a list of pieces. It knows comments, strings, numbers and keywords; a wrong
// guess only gives a wrong colour.

/** Longer code is shown plain. */
const MAX_CHARS = 100_000;

const JAVASCRIPT =
  "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield";
const PYTHON =
  "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield";
const BASH =
  "case do done elif else esac exit export fi for function if in local read return select set shift source then trap unset until while";

const C_LIKE = {
  comment: String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,
  string: String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|` + "`(?:\\\\.|[^`\\\\])*`?",
  words: JAVASCRIPT,
};
const LANGUAGES = {
  typescript: C_LIKE,
  javascript: C_LIKE,
  node: C_LIKE,
  python: {
    comment: String.raw`#[^\n]*`,
    string: String.raw`[rbfRBF]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)`,
    words: PYTHON,
  },
  bash: {
    comment: String.raw`(?<![^\s;])#[^\n]*`,
    string: String.raw`"(?:\\.|[^"\\])*"?|'[^']*'?`,
    words: BASH,
  },
};

const cache = new Map();

function scanner(language) {
  const rules = LANGUAGES[language];
  if (rules && !cache.has(language)) {
    const words = rules.words.split(" ").join("|");
    const parts = [
      `(?<comment>${rules.comment})`,
      `(?<string>${rules.string})`,
      String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?n?\b)`,
      String.raw`(?<tool>\b(?:tools|mcp)\b(?:\.[\w$]+)*)`,
      `(?<![\\w$.])(?<keyword>${words})(?![\\w$])`,
    ];
    cache.set(language, new RegExp(parts.join("|"), "g"));
  }
  return cache.get(language);
}

/** Returns pieces `{kind, text}`; the kind of plain text is null. */
export function highlight(code, language) {
  const pattern = code.length > MAX_CHARS ? undefined : scanner(language);
  if (!pattern) return [{ kind: null, text: code }];
  const pieces = [];
  let at = 0;
  for (const match of code.matchAll(pattern)) {
    if (match[0] === "") continue;
    if (match.index > at) pieces.push({ kind: null, text: code.slice(at, match.index) });
    const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    pieces.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < code.length) pieces.push({ kind: null, text: code.slice(at) });
  return pieces;
}
