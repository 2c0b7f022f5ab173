// Compiles the guest's text to a function. The text is parsed alone, by the parser that Node ships
// for its own REPL (hence --expose-internals), so no text can close the function that is wrapped
// around it. All edits leave every other character on its line and, except for the `return` before
// the last expression, in its column.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import { rewrite } from "./declarations.mjs";

// The file name of the guest's code in stacks.
export const CODE = "main.mjs";

// A syntax error; `line` and `column` count from one.
export class Flaw {
  constructor(message, line, column) {
    this.message = message;
    this.line = line;
    this.column = column;
  }
}

// Returns the line of a position, and a mark below it. No guest's code has run before this.
const EXCERPT_CHARS = 100;
export const excerpt = (code, { line, column }) => {
  const text = (code.split("\n")[line - 1] ?? "").trimEnd();
  const from = Math.max(0, column - 1 - EXCERPT_CHARS / 2);
  const shown = text.slice(from, from + EXCERPT_CHARS);
  const padding = shown.slice(0, column - 1 - from).replace(/[^\t]/g, " ");
  return shown.trim() === "" ? undefined : `  ${shown}\n  ${padding}^`;
};

const AsyncFunction = (async () => {}).constructor;
const PARSING = {
  ecmaVersion: "latest",
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  allowHashBang: true,
  locations: true,
  preserveParens: true,
};

const loadParser = () => {
  try {
    return createRequire(import.meta.url)("internal/deps/acorn/acorn/dist/acorn").parse;
  } catch {
    // A Node with other internals: the code runs, but without static imports and a last value.
    return undefined;
  }
};
const parse = loadParser();

// Modules are resolved from the guest's directory, not from ours.
const defaultLoader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const resolveFrom = import.meta.resolve;
const loadFrom = async (specifier, _script, attributes) => {
  const base = pathToFileURL(join(process.cwd(), CODE)).href;
  const keys = attributes === undefined ? [] : Object.keys(attributes);
  const url = await resolveFrom(specifier, base);
  return keys.length === 0 ? import(url) : import(url, { with: attributes, assert: attributes });
};
const importModuleDynamically = defaultLoader ?? loadFrom;
const script = (text, lineOffset, filename = CODE) =>
  new vm.Script(text, { filename, lineOffset, importModuleDynamically }).runInThisContext();

// The guest's own `import(..)`, used for its static imports.
export const load = script("(specifier, options) => import(specifier, options)", -1);

/**
 * Compiles a program. `main` is an async function of `import.meta` and a list of module namespaces,
 * in the order of `imports`: `{ specifier, options, names, line, column }`. `shifts` says where,
 * and by how much, the rest of a line was moved to the right.
 */
export const compile = (code) => {
  const { body, head, imports, shifts, isStrict } = prepare(code, CODE, false);
  const main = wrapped(body, head, CODE, isStrict);
  return { main: main(), imports, shifts };
};

/**
 * Compiles one cell of a session under this file name. Its top-level declarations are shared by all
 * cells; `names` lists them. `makeMain` returns `main`; the properties of `shadow`, if given, hide
 * globals from it.
 */
export const compileCell = (code, file) => {
  const { body, head, imports, shifts, names, isStrict } = prepare(code, file, true);
  const makeMain = (shadow) => wrapped(body, head, file, isStrict, shadow !== undefined)(shadow);
  return { makeMain, imports, shifts, names };
};

const prepare = (code, file, isCell) => {
  const { tree, isStrict } = treeOf(code);
  const text = code.startsWith("#!") ? "//" + code.slice(2) : code;
  if (tree !== undefined) return { ...edit(text, tree, isCell), isStrict };
  if (!isBody(text)) throw engineFlaw(text, file);
  return { body: text, head: "", imports: [], shifts: [], names: [], isStrict };
};

// A text that is not a script may be a module, as in Node itself; then it is strict. A script may
// await here, too.
const treeOf = (code) => {
  try {
    const tree = parse?.(code, { ...PARSING, sourceType: "script" });
    return { tree, isStrict: tree?.body.some((node) => node.directive === "use strict") };
  } catch (scriptError) {
    try {
      return { tree: parse(code, { ...PARSING, sourceType: "module" }), isStrict: true };
    } catch (moduleError) {
      // Syntax that only the engine knows still runs.
      if (isBody(code)) return { tree: undefined, isStrict: false };
      // The parser gets further with the code's own kind.
      throw flawOf((moduleError.pos ?? 0) > (scriptError.pos ?? 0) ? moduleError : scriptError);
    }
  }
};

// Returns a function that makes the main function. Inside a `with` statement, it sees the names of
// that object before the globals.
const wrapped = (body, head, file, isStrict, isShadowed = false) => {
  const [before, after] = isShadowed ? ["with($shadow){return", "}"] : ["return", ""];
  const first = `(function ($shadow){${before}({"<main>": async function (import_meta, $imports, $named) {${isStrict ? '"use strict";' : ""}${head}\n`;
  try {
    return script(`${first}${body}\n}})["<main>"]${after}})`, -1, file);
  } catch (error) {
    throw engineFlawOf(error, file);
  }
};

const isBody = (code) => {
  try {
    new AsyncFunction(code);
    return true;
  } catch {
    return false;
  }
};

const flawOf = (error) => {
  if (error.loc === undefined) return new Flaw(String(error.message));
  const message = error.message.replace(/ \(\d+:\d+\)$/, "");
  return new Flaw(message, error.loc.line, error.loc.column + 1);
};

const engineFlaw = (code, file) => {
  try {
    script(`(async function () {\n${code}\n})`, -1, file);
  } catch (error) {
    return engineFlawOf(error, file);
  }
  return new Flaw("this is not the body of a function");
};

// The engine reports the position in the lines before the stack.
const engineFlawOf = (error, file) => {
  const lines = String(error?.stack).split("\n");
  const line = Number(lines[0].slice(file.length + 1));
  const isPlaced = lines[0].startsWith(`${file}:`) && line >= 1 && lines[2]?.includes("^");
  const message = `${error?.name}: ${error?.message}`;
  return isPlaced ? new Flaw(message, line, lines[2].indexOf("^") + 1) : new Flaw(message);
};

const edit = (code, tree, isCell) => {
  const edits = [];
  const imports = [];
  const names = [];
  let head = "";
  const blank = (from, to, text = "") =>
    edits.push({ from, to, text: text + code.slice(from + text.length, to).replace(/[^\n\r]/g, " ") });
  const importFrom = (node) => {
    const options = optionsOf(node.attributes);
    const { line, column } = node.loc.start;
    const names = [];
    imports.push({ specifier: node.source.value, options, names, line, column: column + 1 });
    return names;
  };
  for (const node of tree.body) {
    switch (node.type) {
      case "ImportDeclaration": {
        head += bindings(node.specifiers, importFrom(node), imports.length - 1, isCell ? "" : "const ");
        if (isCell) for (const { local } of node.specifiers) names.push(local.name);
        blank(node.start, node.end);
        break;
      }
      case "ExportAllDeclaration":
        importFrom(node);
        blank(node.start, node.end);
        break;
      case "ExportNamedDeclaration":
        if (node.source) importFrom(node);
        blank(node.start, node.declaration?.start ?? node.end);
        break;
      case "ExportDefaultDeclaration": {
        const { start, end, type, id } = node.declaration;
        const isDeclared = /^(Function|Class)Declaration$/.test(type) && id !== null;
        const isLast = node === tree.body.at(-1);
        blank(node.start, start, isDeclared ? "" : isLast ? "return(" : "void(");
        if (!isDeclared) edits.push({ from: end, to: end, text: ")" });
        break;
      }
    }
  }
  if (/import\s*\.\s*meta/.test(code)) renameMeta(tree, (node) => blank(node.start, node.end, "import_meta"));
  if (isCell) head += rewrite(tree.body, edits, names);
  returnLast(tree.body, edits);
  return { body: applied(code, edits), head, imports, shifts: shiftsOf(edits), names };
};

const optionsOf = (attributes) => {
  if (!attributes?.length) return undefined;
  const given = {};
  for (const { key, value } of attributes) given[key.name ?? key.value] = value.value;
  return { with: given };
};

// Returns part of the wrapper's first line: the names of one import declaration.
const bindings = (specifiers, names, index, word) => {
  let text = "";
  for (const { type, local, imported } of specifiers) {
    if (type === "ImportNamespaceSpecifier") {
      text += `${word}${local.name} = $imports[${index}];`;
      continue;
    }
    const name = type === "ImportDefaultSpecifier" ? "default" : (imported.name ?? imported.value);
    names.push(name);
    text += `${word}${local.name} = $imports[${index}][${JSON.stringify(name)}];`;
  }
  return text;
};

// `import.meta` exists in modules only; the new name has the same length.
const renameMeta = (tree, rename) => {
  const waiting = [tree];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (node.type === "MetaProperty" && node.meta.name === "import") rename(node);
    for (const key in node) {
      const child = node[key];
      if (child !== null && typeof child === "object") waiting.push(child);
    }
  }
};

const UNSEEN = { EmptyStatement: 1, ImportDeclaration: 1 };

// Without a `return`, the value of the last expression is the result. The keyword is put directly
// before the expression, because the engine reports unknown names at the start of their statement.
const RETURN = "return ";
const returnLast = (body, edits) => {
  let last = body.length - 1;
  while (last >= 0 && UNSEEN[body[last].type]) last--;
  const node = body[last];
  if (node?.type !== "ExpressionStatement") return;
  edits.push({ from: node.start, to: node.start, text: RETURN, moved: node.loc.start });
};

// Returns where edits moved text and by how much; columns count from one.
const shiftsOf = (edits) => {
  const shifts = [];
  for (const { from, to, text, moved } of edits) {
    if (moved !== undefined) shifts.push({ line: moved.line, column: moved.column + 1, by: text.length - (to - from) });
  }
  return shifts;
};

const applied = (code, edits) => {
  edits.sort((a, b) => a.from - b.from || a.to - b.to);
  let text = "";
  let at = 0;
  for (const edit of edits) {
    text += code.slice(at, edit.from) + edit.text;
    at = edit.to;
  }
  return text + code.slice(at);
};
