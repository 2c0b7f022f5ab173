// Servers: the user's MCP servers, their state, and what can be done about it.

import { post, segment } from "../api.js";
import { useResource } from "../events.js";
import { formatCount, formatDuration, plural } from "../format.js";
import { ActionButton, Empty, Facts, Foreign, Loaded, Origin, Page, Status } from "../parts.js";
import { html } from "../view.js";

const TONES = {
  idle: "plain", starting: "busy", ready: "fine", "needs login": "warn", failed: "bad", hung: "bad",
  disabled: "plain", "waiting for approval": "warn",
};

export function Servers() {
  const servers = useResource("/servers", ["server.", "approval.", "execution.finished"]);
  return html`
    <${Page} title="Servers" note="The MCP servers whose tools code can call.">
      <${Loaded} resource=${servers}>${({ items }) => items.length === 0
        ? html`<${Empty} title="No servers">codexec reads the servers from the configuration files of your MCP clients; <code>codexec servers add</code> adds one.<//>`
        : html`<div class="cards">${items.map((server) => html`<${Server} key=${server.name} server=${server} />`)}</div>`}
      <//>
    <//>
  `;
}

function Server({ server }) {
  const { name, state, origin } = server;
  const restart = () => post(`/servers/${segment(name)}/restart`);
  const canRestart = !["disabled", "waiting for approval"].includes(state);
  const restartWord = state === "idle" ? "Start" : "Restart";
  const waits = state === "waiting for approval" || server.tools_held > 0;
  return html`
    <article class="card" data-server=${name}>
      <div class="card-head">
        <div>
          <h2><${Foreign} text=${name} /></h2>
          <${Status} word=${state} tone=${TONES[state]} />
          ${server.breaker && server.breaker !== "closed" && html`<${Status} word=${`breaker ${server.breaker}`} tone="bad" />`}
          ${waits && html`<a href="#/approvals">${server.tools_held > 0 ? `${plural(server.tools_held, "tool waits", "tools wait")} for approval` : "Review it"}</a>`}
        </div>
        ${canRestart && html`<${ActionButton} action=${restart} done=${`${name} is starting.`} label=${`${restartWord} ${name}`}>${restartWord}<//>`}
      </div>
      <${Facts} rows=${[
        ["Tools", server.tools],
        ["Tool tokens", server.tool_tokens !== undefined && formatCount(server.tool_tokens)],
        ["Calls", server.calls !== undefined && callCount(server)],
        ["Latency", server.latency_p50_ms !== undefined && `median ${formatDuration(server.latency_p50_ms)}, p95 ${formatDuration(server.latency_p95_ms)}`],
        ["Restarts", server.restarts > 0 && server.restarts],
        ["Process", server.pid],
        ["Transport", server.transport],
      ].filter(([, value]) => value !== false)} />
      ${server.login === "needed" && html`<p class="muted">Log in with <code>codexec servers login ${name}</code>.</p>`}
      ${server.error && html`<p class="problem"><${Foreign} text=${server.error} /></p>`}
      ${server.last_error && !server.error && html`<p class="last-error">Last error: <${Foreign} text=${server.last_error} /></p>`}
      ${origin && html`<${Origin} origin=${origin} />`}
    </article>
  `;
}

function callCount({ calls, failures = 0, timeouts = 0, in_flight: running = 0 }) {
  const parts = [formatCount(calls)];
  if (failures > 0) parts.push(`${failures} failed`);
  if (timeouts > 0) parts.push(`${timeouts} timed out`);
  if (running > 0) parts.push(`${running} running`);
  return parts.join(", ");
}
