// Calls of `/api/v1`.
//
// THREAT[WEB-3]: the token stays in this tab. sessionStorage ends with it, and no other origin can
// read it. The token is sent as a header, never in an address.

const ROOT = "/api/v1";
const TOKEN = "codexec-token";
/** A server that sends more than this without the end of an event is not ours. */
const MAX_EVENT_CHARS = 64 << 20;

/** Tells the page that the token is missing or no longer valid. */
export const signedOut = new EventTarget();

export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function signOut(reason) {
  sessionStorage.removeItem(TOKEN);
  signedOut.dispatchEvent(new CustomEvent("signed-out", { detail: reason }));
}

/** An answer that is not a success, with the sentence that the server wrote. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Makes a path below `/api/v1`; values of the query that are empty are left out. */
export function path(template, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]));
  return pairs.length === 0 ? template : `${template}?${search}`;
}

/** Encodes one segment of a path. */
export const segment = encodeURIComponent;

export async function get(path, signal) {
  return (await send("GET", path, { signal })).json();
}

export async function post(path, body = {}, signal) {
  return readJson(await send("POST", path, { body, signal }));
}

export async function remove(path) {
  return readJson(await send("DELETE", path, {}));
}

/** Returns a file as a blob, for an image or a download. */
export async function getBlob(path, signal) {
  return (await send("GET", path, { signal })).blob();
}

async function readJson(response) {
  const text = await response.text();
  return text === "" ? null : JSON.parse(text);
}

async function send(method, path, { body, signal, accept = "application/json" }) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}`, Accept: accept };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init = { method, headers, signal, cache: "no-store", redirect: "error" };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(ROOT + path, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "UNREACHABLE", "codexec does not answer; is it still running?");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const message = answer.message ?? `The server answered with status ${response.status}.`;
  if (response.status === 401) signOut("The token is not valid (any more).");
  throw new ApiError(response.status, answer.code ?? "ERROR", message);
}

/** Reads server-sent events until the stream ends or the signal is given. */
export async function readEvents(path, signal, onEvent) {
  const response = await send("GET", path, { signal, accept: "text/event-stream" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    // Only the end of what was there before can be the start of a separator.
    let searched = Math.max(0, buffer.length - 1);
    buffer += value;
    for (;;) {
      const end = buffer.indexOf("\n\n", searched);
      if (end === -1) break;
      const event = parseEvent(buffer.slice(0, end));
      buffer = buffer.slice(end + 2);
      searched = 0;
      if (event) onEvent(event);
    }
    if (buffer.length > MAX_EVENT_CHARS) throw new ApiError(0, "TOO_LONG", "an event is too long");
  }
}

/** Returns an event with a type and data, or nothing for a comment. */
function parseEvent(text) {
  let type = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (data.length === 0) return null;
  return { type, data: JSON.parse(data.join("\n")) };
}
