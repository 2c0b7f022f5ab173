// Small pieces that several pages use.

import { getBlob } from "./api.js";
import { useClock } from "./events.js";
import { formatAgo, formatTime } from "./format.js";
import { highlight } from "./highlight.js";
import { cutLines, showInvisible } from "./text.js";
import { html, useEffect, useMemo, useRef, useState } from "./view.js";

/** Sentences for the region that screen readers announce, and that is shown for a moment. */
export const notices = new EventTarget();

export function announce(message, kind = "fine") {
  notices.dispatchEvent(new CustomEvent("notice", { detail: { message, kind } }));
}

/** A freshly loaded document begins at its start, where the skip link is. */
let isFresh = true;

/** A page with its heading, which gets the focus when somebody comes from another page. */
export function Page({ title, note, actions, children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · codexec`;
    if (!isFresh) heading.current?.focus({ preventScroll: true });
    isFresh = false;
    window.scrollTo(0, 0);
  }, [title]);
  return html`
    <div class="page-head">
      <div>
        <h1 ref=${heading} tabindex="-1">${title}</h1>
        ${note && html`<p class="muted">${note}</p>`}
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${children}
  `;
}

/** A part of a page with a heading of its own. */
export function Section({ title, count, actions, children }) {
  return html`
    <section class="section">
      <div class="section-head">
        <h2>${title}${count !== undefined && html` <span class="count">${count}</span>`}</h2>
        ${actions}
      </div>
      ${children}
    </section>
  `;
}

const TONES = {
  running: "busy", starting: "busy", connecting: "busy", restarting: "busy",
  ok: "fine", success: "fine", ready: "fine", connected: "fine", open: "fine", idle: "fine", approved: "fine",
  error: "bad", failed: "bad", failure: "bad", crashed: "bad", down: "bad", broken: "bad", timeout: "bad",
  stopped: "plain", cancelled: "plain", closed: "plain", disabled: "plain", ended: "plain",
  waiting: "warn", held: "warn", "login needed": "warn", approval: "warn", changed: "warn", new: "warn",
};

/** A word with a dot; the word says everything that the colour says. */
export function Status({ word, tone }) {
  return html`<span class="status ${tone ?? TONES[word] ?? "plain"}"><span class="dot" aria-hidden="true"></span>${word}</span>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p class="muted">${children}</p>`}</div>`;
}

export function Problem({ error, retry }) {
  return html`
    <div class="problem" role="alert">
      <p>${showInvisible(error.message)}</p>
      ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
    </div>
  `;
}

export function Loading() {
  return html`<p class="loading muted" role="status">Loading…</p>`;
}

/** Shows the data of a resource, or why there is none yet. */
export function Loaded({ resource, children }) {
  if (resource.data !== null) return children(resource.data);
  if (resource.error) return html`<${Problem} error=${resource.error} retry=${resource.reload} />`;
  return html`<${Loading} />`;
}

/** Text that somebody else wrote, in the flow of a line. */
export function Foreign({ text }) {
  return html`<bdi dir="ltr">${showInvisible(String(text ?? ""))}</bdi>`;
}

export function Code({ code, language, label = "Code" }) {
  const pieces = useMemo(() => highlight(cutLines(showInvisible(code ?? "")), language), [code, language]);
  return html`
    <pre class="code" tabindex="0" role="region" aria-label=${label} dir="ltr"><code>${pieces.map(
      ({ kind, text }) => (kind ? html`<span class="hl-${kind}">${text}</span>` : text),
    )}</code></pre>
  `;
}

/** The difference of two texts, as rows of `diff.js`. */
export function Difference({ rows, label = "Difference" }) {
  const words = { "+": "added", "-": "removed" };
  const kinds = { "+": "plus", "-": "minus", "…": "gap" };
  return html`
    <pre class="diff" tabindex="0" role="region" aria-label=${label} dir="ltr">${rows.map(
      ({ sign, text }) => html`<span class="row ${kinds[sign] ?? ""}"><span class="sign">${sign}</span>${
        words[sign] && html`<span class="sr-only">${words[sign]}: </span>`
      }${showInvisible(cutLines(text))}${"\n"}</span>`,
    )}</pre>
  `;
}

/** The file that names a server. */
export function Origin({ origin: { file, line, client } }) {
  const place = line ? `${file}:${line}` : file;
  return html`<p class="meta"><span>From <${Foreign} text=${place} />${client !== "named" && ` (${client})`}</span></p>`;
}

/** How long ago something happened; the exact time is its title. */
export function Ago({ time }) {
  const now = useClock(Boolean(time));
  if (!time) return "–";
  return html`<time datetime=${time} title=${formatTime(time)}>${formatAgo(time, now)}</time>`;
}

/** Names with values; rows without a value are left out. */
export function Facts({ rows }) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A button that does something on the server, once at a time, and says what happened. */
export function ActionButton({ action, done, children, kind = "", disabled = false, label }) {
  const [isBusy, setBusy] = useState(false);
  const click = async () => {
    setBusy(true);
    try {
      await action();
      if (done) announce(done);
    } catch (error) {
      announce(error.message, "bad");
    }
    setBusy(false);
  };
  return html`
    <button type="button" class=${kind} disabled=${disabled || isBusy} aria-busy=${isBusy} aria-label=${label} onClick=${click}>
      ${children}
    </button>
  `;
}

/** Returns the address of a file that needs the token, once it has arrived. */
function useBlobAddress(path) {
  const [state, setState] = useState({ address: null, error: null });
  useEffect(() => {
    const controller = new AbortController();
    let address = null;
    getBlob(path, controller.signal).then(
      (blob) => {
        address = URL.createObjectURL(blob);
        setState({ address, error: null });
      },
      (error) => error.name !== "AbortError" && setState({ address: null, error }),
    );
    return () => {
      controller.abort();
      if (address) URL.revokeObjectURL(address);
    };
  }, [path]);
  return state;
}

export function Picture({ path, name }) {
  const { address, error } = useBlobAddress(path);
  if (error) return html`<${Problem} error=${error} />`;
  return html`
    <figure class="picture">
      ${address ? html`<img src=${address} alt=${`Image ${name}`} />` : html`<${Loading} />`}
      <figcaption><${Foreign} text=${name} /></figcaption>
    </figure>
  `;
}

/** A button that saves a file of the server. */
export function Download({ path, name, children }) {
  const save = async () => saveBlob(await getBlob(path), name);
  return html`<${ActionButton} kind="link" action=${save}>${children ?? html`<${Foreign} text=${name} />`}<//>`;
}

export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.split("/").at(-1);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
