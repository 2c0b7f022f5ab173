// What surrounds every page: navigation, numbers, theme, shortcuts and notices.

import { signOut } from "./api.js";
import { followEvents, useOnline, useResource } from "./events.js";
import { formatCount } from "./format.js";
import { notices } from "./parts.js";
import { showInvisible } from "./text.js";
import { html, useEffect, useRef, useState } from "./view.js";
import { Approvals } from "./pages/approvals.js";
import { Execution } from "./pages/execution.js";
import { History } from "./pages/history.js";
import { Now } from "./pages/now.js";
import { Run } from "./pages/run.js";
import { Scripts } from "./pages/scripts.js";
import { Servers } from "./pages/servers.js";
import { Sessions } from "./pages/sessions.js";

/** Each page: the address, the name, the key after `g`, and the component. */
const PAGES = [
  { at: "", name: "Now", key: "n", page: Now },
  { at: "run", name: "Run", key: "r", page: Run },
  { at: "history", name: "History", key: "h", page: History },
  { at: "sessions", name: "Sessions", key: "s", page: Sessions },
  { at: "scripts", name: "Scripts", key: "c", page: Scripts },
  { at: "servers", name: "Servers", key: "v", page: Servers },
  { at: "approvals", name: "Approvals", key: "a", page: Approvals },
];
const THEME = "codexec-theme";
const NOTICE_MS = 6_000;

export function applyTheme() {
  document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "auto";
}

export function Shell({ address }) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const help = useRef(null);
  useEffect(() => {
    const controller = new AbortController();
    followEvents(controller.signal);
    return () => controller.abort();
  }, []);
  const stats = useResource("/stats", ["execution."]).data;
  useShortcuts(help);
  useEffect(() => setMenuOpen(false), [address]);
  const [at = ""] = address.path;
  const entry = PAGES.find((entry) => entry.at === at);
  const Current = at === "executions" ? Execution : (entry?.page ?? Missing);
  const skip = (event) => {
    event.preventDefault();
    document.querySelector("main h1")?.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="side">
      <div class="bar">
        <a class="brand" href="#/"><img src="/assets/icon.svg" alt="" width="24" height="24" /> codexec</a>
        <button type="button" class="menu" aria-expanded=${isMenuOpen} aria-controls="menu" onClick=${() => setMenuOpen(!isMenuOpen)}>Menu</button>
      </div>
      <div id="menu" class=${isMenuOpen ? "open" : ""}>
        <${Navigation} at=${at === "executions" ? "history" : at} stats=${stats} />
        <${Footer} help=${help} stats=${stats} />
      </div>
    </header>
    <main id="main"><${Current} address=${address} /></main>
    <${Notices} />
    <${Shortcuts} dialog=${help} />
  `;
}

function Navigation({ at, stats }) {
  const running = stats?.executions.running ?? 0;
  // Only those who may approve are told what waits, and only they are told the load.
  const mayApprove = stats?.workers !== undefined;
  const waiting = useResource(mayApprove ? "/approvals" : null, ["approval.", "server."]).data?.items.length ?? 0;
  const counts = { "": [running, "running"], approvals: [waiting, "waiting"] };
  return html`
    <nav aria-label="Pages">
      <ul>
        ${PAGES.map(({ at: target, name }) => {
          const [count, word] = counts[target] ?? [0];
          return html`<li>
            <a href=${`#/${target}`} aria-current=${target === at ? "page" : undefined}>
              ${name}${count > 0 && html`<span class="badge">${count}<span class="sr-only"> ${word}</span></span>`}
            </a>
          </li>`;
        })}
      </ul>
    </nav>
  `;
}

function Footer({ help, stats }) {
  const isOnline = useOnline();
  return html`
    <div class="foot">
      ${stats && html`<p class="saved" title="Results of tools that stayed in the sandbox, because code needed only a part of them">
        <strong>${formatCount(stats.tokens.saved_by_results)}</strong> tokens saved
      </p>`}
      <p class="live" role="status">${isOnline ? "" : "Connecting…"}</p>
      <${Theme} />
      <button type="button" class="quiet" onClick=${() => help.current.showModal()}>Shortcuts <kbd>?</kbd></button>
      <a class="quiet" href="/api">REST API</a>
      <button type="button" class="quiet" onClick=${() => signOut(null)}>Sign out</button>
    </div>
  `;
}

function Theme() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme);
  const choose = ({ target }) => {
    localStorage.setItem(THEME, target.value);
    applyTheme();
    setTheme(target.value);
  };
  return html`
    <label class="theme">Theme
      <select value=${theme} onChange=${choose}>
        <option value="auto">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  `;
}

function useShortcuts(help) {
  useEffect(() => {
    let isGoing = false;
    const press = (event) => {
      const { target, key } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, textarea, select, dialog")) return;
      const page = isGoing && PAGES.find((page) => page.key === key);
      isGoing = key === "g";
      if (page) location.hash = `#/${page.at}`;
      if (key === "?") help.current.showModal();
      if (key === "/") {
        const search = document.querySelector("input[type=search]");
        search?.focus();
        if (search) event.preventDefault();
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function Shortcuts({ dialog }) {
  const rows = [
    ...PAGES.map(({ name, key }) => [["g", key], `Go to ${name}`]),
    [["/"], "Search on this page"],
    [["Ctrl", "Enter"], "Run the code (in the editor)"],
    [["Ctrl", "Space"], "Complete the name of a tool (in the editor)"],
    [["?"], "Show this list"],
  ];
  return html`
    <dialog ref=${dialog} aria-labelledby="shortcuts">
      <h2 id="shortcuts">Shortcuts</h2>
      <dl class="keys">
        ${rows.map(([keys, meaning]) => html`<div><dt>${keys.map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${meaning}</dd></div>`)}
      </dl>
      <form method="dialog"><button onClick=${(event) => (event.preventDefault(), dialog.current.close())}>Close</button></form>
    </dialog>
  `;
}

function Notices() {
  const [notice, setNotice] = useState(null);
  useEffect(() => {
    let timer;
    const show = ({ detail }) => {
      clearTimeout(timer);
      setNotice(detail);
      timer = setTimeout(() => setNotice(null), NOTICE_MS);
    };
    notices.addEventListener("notice", show);
    return () => notices.removeEventListener("notice", show);
  }, []);
  return html`<div class="notices" role="status" aria-live="polite">
    ${notice && html`<p class=${notice.kind}>${showInvisible(notice.message)}</p>`}
  </div>`;
}

function Missing() {
  return html`<h1 tabindex="-1">Not found</h1><p class="muted">There is no page at this address. <a href="#/">Go to Now</a></p>`;
}
