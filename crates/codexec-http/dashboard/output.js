// The output of an execution: bounded, in the order in which it was printed, live or finished.

import { readEvents, segment } from "./api.js";
import { cutLines, showInvisible } from "./text.js";
import { plural } from "./format.js";
import { html, useEffect, useRef, useState } from "./view.js";

/** Of longer output, the page shows the start and the end. */
const HEAD_CHARS = 50_000;
const TAIL_CHARS = 150_000;

/** Collects pieces `{stream, text}`, and forgets the middle of much output. */
export class OutputBuffer {
  head = [];
  tail = [];
  headChars = 0;
  tailChars = 0;
  leftOut = 0;

  push(stream, text) {
    const room = HEAD_CHARS - this.headChars;
    if (room > 0) {
      append(this.head, stream, text.slice(0, room));
      this.headChars += Math.min(room, text.length);
      text = text.slice(room);
    }
    if (text === "") return;
    append(this.tail, stream, text);
    this.tailChars += text.length;
    while (this.tailChars > TAIL_CHARS) {
      const [first] = this.tail;
      const surplus = Math.min(this.tailChars - TAIL_CHARS, first.text.length);
      first.text = first.text.slice(surplus);
      if (first.text === "") this.tail.shift();
      this.tailChars -= surplus;
      this.leftOut += surplus;
    }
  }

  get isEmpty() {
    return this.headChars === 0;
  }
}

function append(pieces, stream, text) {
  const last = pieces.at(-1);
  if (last?.stream === stream) last.text += text;
  else pieces.push({ stream, text });
}

/** Shows a buffer. `whole` saves the complete output. */
export function Output({ buffer, isLive = false, whole, empty = "No output." }) {
  const box = useRef(null);
  const follows = useRef(true);
  useEffect(() => {
    if (isLive && follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const scroll = ({ target }) => {
    follows.current = target.scrollHeight - target.scrollTop - target.clientHeight < 40;
  };
  if (buffer.isEmpty) return html`<p class="output-empty muted">${isLive ? "Nothing printed yet." : empty}</p>`;
  const show = ({ stream, text }) => {
    const shown = cutLines(showInvisible(text));
    return stream === "stderr" ? html`<span class="stderr">${shown}</span>` : shown;
  };
  const isShortened = buffer.leftOut > 0 || [...buffer.head, ...buffer.tail].some(({ text }) => cutLines(text) !== text);
  return html`
    <div class="output-box">
      <pre class="output" ref=${box} onScroll=${scroll} tabindex="0" role="region" aria-label="Output" dir="ltr">${buffer.head.map(show)}${
        buffer.leftOut > 0 && html`<span class="left-out">${"\n"}… ${plural(buffer.leftOut, "character")} not shown …${"\n"}</span>`
      }${buffer.tail.map(show)}</pre>
      ${isShortened && html`<p class="shortened muted">Shortened for this page. ${whole}</p>`}
    </div>
  `;
}

/**
 * Follows an execution, or reads an ended one. Returns `{buffer, ended, error}`.
 * A page that was too slow misses events, and gets the whole output at the end.
 */
export function useLiveOutput(id) {
  const [state, setState] = useState({ id, buffer: new OutputBuffer(), ended: null, error: null });
  useEffect(() => {
    if (!id) return undefined;
    const controller = new AbortController();
    let buffer = new OutputBuffer();
    let frame = null;
    let ended = null;
    let isComplete = true;
    const show = () => {
      frame = null;
      setState({ id, buffer, ended, error: null });
    };
    // Many events of one moment are drawn once.
    const draw = () => (frame ??= requestAnimationFrame(show));
    setState({ id, buffer, ended: null, error: null });
    const take = ({ type, data }) => {
      if (type === "output") buffer.push(data.stream, data.text);
      if (type === "missed") isComplete = false;
      if (type === "finished") {
        ended = data;
        if (!isComplete) (buffer = new OutputBuffer()).push("stdout", data.output ?? "");
      }
      draw();
    };
    readEvents(`/executions/${segment(id)}/events`, controller.signal, take).then(
      () => {
        ended ??= {};
        draw();
      },
      (error) => error.name !== "AbortError" && setState({ id, buffer, ended, error }),
    );
    return () => {
      controller.abort();
      if (frame !== null) cancelAnimationFrame(frame);
    };
  }, [id]);
  return state.id === id ? state : { id, buffer: new OutputBuffer(), ended: null, error: null };
}
