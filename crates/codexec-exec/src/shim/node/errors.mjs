// Errors in the form that the host gets: with the guest's own frames, in positions of the original
// text.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { CODE } from "./program.mjs";
import { define, indexOf, lastIndexOf, max, safely, slice, startsWith, stringify } from "./taken.mjs";

const MESSAGE_CHARS = 16 << 10;
const MAX_FRAMES = 20;
// Shifts are remembered for this many cells.
const MAX_FILES = 1_000;
const SHIM_DIR = path.dirname(fileURLToPath(import.meta.url)) + "/";

// How Node says that there is no network.
const NO_NETWORK = { __proto__: null, EAI_AGAIN: 1, ENETUNREACH: 1, ENOTFOUND: 1 };

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
const readText = (object, key) => {
  const value = safely(() => object[key]);
  return typeof value === "string" ? value : undefined;
};

export const errorsOf = (own) => {
  let workspace = "/";
  let main = CODE;
  // By file: where text was inserted, and how much, in the order of the text.
  const shifts = { __proto__: null };
  const files = [];
  const importing = { error: undefined, at: undefined };

  // Describes a thrown value in one line: a plain Error by its message, others with their name.
  const describe = (error) => {
    if (!isObject(error)) return own.wellFormed(typeof error === "string" ? error : own.inspect(error));
    const message = readText(error, "message");
    const name = readText(error, "name") ?? "Error";
    if (message === undefined) return own.wellFormed(own.inspect(error));
    if (message === "") return own.wellFormed(name);
    return own.wellFormed(name === "Error" ? message : `${name}: ${message}`);
  };

  const workIn = (folder) => {
    workspace = folder;
  };
  // Sets the file of the main program and its shifts.
  const begin = (file, moved) => {
    main = file;
    shifts[file] = moved;
    define(files, files.length, file);
    if (files.length > MAX_FILES) {
      delete shifts[files[0]];
      for (let i = 1; i < files.length; i++) files[i - 1] = files[i];
      files.length -= 1;
    }
  };
  // Records the position of an import that failed.
  const blame = (error, at) => {
    importing.error = error;
    importing.at = at;
  };

  // `    at name (main.mjs:3:7)`, `    at async main.mjs:3:7`, `    at file:///w/lib.mjs:1:2`
  const frameOf = (line) => {
    const at = indexOf(line, "    at ") === 0 ? slice(line, 7) : undefined;
    if (at === undefined) return undefined;
    const open = lastIndexOf(at, " (");
    let name = open === -1 ? "" : slice(at, 0, open);
    let place = open === -1 ? at : slice(at, open + 2, -1);
    if (startsWith(place, "async ")) place = slice(place, 6);
    if (startsWith(name, "async ")) name = slice(name, 6);
    const beforeColumn = lastIndexOf(place, ":");
    const beforeLine = lastIndexOf(place, ":", beforeColumn - 1);
    const lineNumber = +slice(place, beforeLine + 1, beforeColumn);
    let column = +slice(place, beforeColumn + 1);
    let file = slice(place, 0, beforeLine);
    if (!(lineNumber >= 1 && column >= 1) || beforeLine < 1) return undefined;
    if (startsWith(file, "file://")) file = slice(file, 7);
    const isMain = file === main;
    const moved = shifts[file];
    if (moved !== undefined) {
      for (let i = 0; i < moved.length; i++) {
        const { line: at, column: from, by } = moved[i];
        if (at === lineNumber && column > from) column = max(column - by, from);
      }
    } else if (!isMain) {
      if (file[0] !== "/" || startsWith(file, SHIM_DIR) || !startsWith(file, workspace)) return undefined;
      file = slice(file, workspace.length);
    }
    const shown = name === "" ? "<anonymous>" : name;
    return { isMain, line: lineNumber, column, raw: line, text: `at ${shown} (${file}:${lineNumber}:${column})` };
  };

  const framesOf = (stack) => {
    const frames = [];
    let from = 0;
    while (from < stack.length && frames.length < 100) {
      const newline = indexOf(stack, "\n", from);
      const to = newline === -1 ? stack.length : newline;
      const frame = frameOf(slice(stack, from, to));
      if (frame !== undefined) define(frames, frames.length, frame);
      from = to + 1;
    }
    return frames;
  };

  const ownFrames = (stack) => {
    if (typeof stack !== "string") return "";
    const frames = framesOf(stack);
    let text = "";
    for (let i = 0; i < frames.length; i++) text += (i === 0 ? "" : "\n") + frames[i].raw;
    return text;
  };

  const placeOf = (stack) => framesOf(stack)[0]?.text ?? "";

  const cut = (text) => own.wellFormed(slice(text, 0, MESSAGE_CHARS));
  const quoted = (text) => stringify(cut(text));
  const threwText = (code, message, at, stack) => {
    const position =
      at === undefined ? "null" : `{"line":${at.line},"column":${at.column}}`;
    const frames = stack === undefined || stack === "" ? "null" : quoted(stack);
    return `{"threw":{"code":"${code}","message":${quoted(message)},"at":${position},"stack":${frames}}}`;
  };

  const isUnreachable = (error) => isObject(error) && NO_NETWORK[readText(error, "code")] === 1;
  const networkHint = (error) =>
    isUnreachable(error) || (isObject(error) && isUnreachable(safely(() => error.cause))) ? own.networkHint : undefined;

  // Returns the `threw` frame for an uncaught error.
  const thrownText = (error) => {
    const stack = isObject(error) ? readText(error, "stack") : undefined;
    const frames = stack === undefined ? [] : framesOf(stack);
    let at;
    let text = "";
    for (let i = 0; i < frames.length && i < MAX_FRAMES; i++) {
      if (at === undefined && frames[i].isMain) at = frames[i];
      text += (i === 0 ? "" : "\n") + frames[i].text;
    }
    const code = own.toolCode(error);
    if (at === undefined && error === importing.error) {
      at = importing.at;
      text = `at <main> (${main}:${at.line}:${at.column})`;
    }
    // The code already names the kind of a tool's error, so the message does not repeat it.
    const message = (code === undefined ? undefined : readText(error, "message")) ?? describe(error);
    const hint = code === undefined ? (own.hint(message) ?? networkHint(error)) : undefined;
    const said = hint === undefined ? message : `${message}; ${hint}`;
    return threwText(code ?? "RUNTIME_ERROR", said, at, text);
  };

  return { begin, blame, describe, ownFrames, placeOf, threwText, thrownText, workIn };
};
