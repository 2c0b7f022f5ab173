// What changes on the server while a page is open, and lists that follow it.

import { get, hasToken, readEvents } from "./api.js";
import { useEffect, useState } from "./view.js";

/** Events of one moment cause one reload. */
const DEBOUNCE_MS = 150;
const MAX_WAIT_MS = 15_000;
/** After these events everything is loaded again: nobody told what happened before. */
const GAPS = ["ready", "missed"];

const bus = new EventTarget();
let isOnline = true;

function setOnline(online) {
  if (isOnline === online) return;
  isOnline = online;
  bus.dispatchEvent(new CustomEvent("online"));
}

/**
 * Follows the server's events until the signal is given. A tab in the background closes its
 * stream, because browsers open only six connections to one server, and reloads when it is back.
 */
export async function followEvents(signal) {
  let wait = 500;
  while (!signal.aborted && hasToken()) {
    await untilVisible(signal);
    const stream = new AbortController();
    const stop = () => document.hidden && stream.abort();
    const end = () => stream.abort();
    document.addEventListener("visibilitychange", stop);
    signal.addEventListener("abort", end);
    const begun = Date.now();
    const tell = ({ type }) => {
      setOnline(true);
      bus.dispatchEvent(new CustomEvent("change", { detail: type }));
    };
    try {
      await readEvents("/events", stream.signal, tell);
      setOnline(false);
    } catch {
      if (!stream.signal.aborted) setOnline(false);
    }
    document.removeEventListener("visibilitychange", stop);
    signal.removeEventListener("abort", end);
    wait = Date.now() - begun > MAX_WAIT_MS ? 500 : Math.min(wait * 2, MAX_WAIT_MS);
    if (!document.hidden) await pause(wait, signal);
  }
}

function untilVisible(signal) {
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    signal.addEventListener("abort", check, { once: true });
    check();
  });
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** True while events arrive. */
export function useOnline() {
  const [online, setState] = useState(isOnline);
  useEffect(() => {
    const change = () => setState(isOnline);
    bus.addEventListener("online", change);
    return () => bus.removeEventListener("online", change);
  }, []);
  return online;
}

/**
 * Loads a path, and again after events whose type starts with one of `topics`.
 * Returns `{data, error, reload}`; the old data stays until the new data is there.
 */
export function useResource(path, topics = []) {
  const [state, setState] = useState({ path, data: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const controller = new AbortController();
    const keep = (next) => controller.signal.aborted || setState({ path, ...next });
    get(path, controller.signal).then(
      (data) => keep({ data, error: null }),
      (error) => error.name !== "AbortError" && keep({ data: null, error }),
    );
    return () => controller.abort();
  }, [path, turn]);
  useChange(topics, () => setTurn((turn) => turn + 1));
  const isCurrent = state.path === path;
  return {
    data: isCurrent ? state.data : null,
    error: isCurrent ? state.error : null,
    reload: () => setTurn((turn) => turn + 1),
  };
}

/** Calls back after events whose type starts with one of `topics`. */
function useChange(topics, callback) {
  useEffect(() => {
    if (topics.length === 0) return undefined;
    let timer = null;
    const listen = ({ detail: type }) => {
      const isMeant = GAPS.includes(type) || topics.some((topic) => type.startsWith(topic));
      if (!isMeant || timer !== null) return;
      timer = setTimeout(() => {
        timer = null;
        callback();
      }, DEBOUNCE_MS);
    };
    bus.addEventListener("change", listen);
    return () => {
      bus.removeEventListener("change", listen);
      clearTimeout(timer);
    };
  }, [topics.join()]);
}

setInterval(() => bus.dispatchEvent(new CustomEvent("tick")), 1_000);

/** Returns the time, again every second while `isTicking`. */
export function useClock(isTicking = true) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isTicking) return undefined;
    const tick = () => setNow(Date.now());
    bus.addEventListener("tick", tick);
    return () => bus.removeEventListener("tick", tick);
  }, [isTicking]);
  return now;
}
