// Now: what runs, with its output as it is printed, and what has just ended.

import { path, post, segment } from "../api.js";
import { useClock, useResource } from "../events.js";
import { formatCount, formatDuration } from "../format.js";
import { Output, useLiveOutput } from "../output.js";
import { ActionButton, Empty, Foreign, Loaded, Page, Problem, Section, Status } from "../parts.js";
import { oneLine } from "../text.js";
import { html, useState } from "../view.js";
import { ExecutionTable } from "./history.js";

const MAX_SHOWN = 50;
const RECENT = 8;

export function Now() {
  const running = useResource(path("/executions", { status: "running", limit: MAX_SHOWN }), ["execution."]);
  const recent = useResource(path("/executions", { limit: RECENT + MAX_SHOWN }), ["execution.finished"]);
  const [chosen, setChosen] = useState(null);
  return html`
    <${Page} title="Now" actions=${html`<a href="#/run">Run code</a>`}>
      <${Numbers} />
      <${Loaded} resource=${running}>${({ items }) => html`
        <${Section} title="Running" count=${items.length}>
          ${items.length === 0 && html`<${Empty} title="Nothing runs">Code that agents and people run appears here at once.<//>`}
          <div class="cards">
            ${items.map((execution) => html`<${Running} key=${execution.id} execution=${execution}
              isOpen=${execution.id === (items.some(({ id }) => id === chosen) ? chosen : items[0].id)}
              open=${() => setChosen(execution.id)} />`)}
          </div>
        <//>`}
      <//>
      <${Section} title="Ended last" actions=${html`<a href="#/history">All of the history</a>`}>
        <${Loaded} resource=${recent}>${({ items }) => {
          const ended = items.filter(({ status }) => status !== "running").slice(0, RECENT);
          if (ended.length === 0) return html`<${Empty} title="Nothing has run yet"><a href="#/run">Run some code</a> to see it here.<//>`;
          return html`<${ExecutionTable} executions=${ended} />`;
        }}<//>
      <//>
    <//>
  `;
}

function Numbers() {
  const stats = useResource("/stats", ["execution.", "server."]).data;
  const { tokens } = stats ?? {};
  const rows = [
    ["Executions", stats && formatCount(stats.executions.total)],
    ["Tool calls", stats && formatCount(stats.tool_calls)],
    ["Tokens saved by results", tokens && formatCount(tokens.saved_by_results)],
    ["Tokens saved by tool lists", tokens && formatCount(Math.max(0, tokens.all_tools - tokens.listed_tools))],
  ];
  return html`<dl class="tiles">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value ?? "–"}</dd></div>`)}</dl>`;
}

/** One stream at a time: browsers open only six connections to one server. */
function Running({ execution, isOpen, open }) {
  const now = useClock();
  const elapsed = Math.max(0, now - new Date(execution.started).getTime());
  const cancel = () => post(`/executions/${segment(execution.id)}/cancel`);
  return html`
    <article class="card">
      <div class="card-head">
        <div>
          <${Status} word="running" />
          <span class="tag">${execution.language}</span>
          <a href=${`#/executions/${execution.id}`}>Details<span class="sr-only"> of ${execution.id}</span></a>
          <span class="muted">${formatDuration(elapsed)}</span>
          <span class="muted"><${Foreign} text=${execution.agent ?? execution.principal} /></span>
        </div>
        <div class="actions">
          ${!isOpen && html`<button type="button" onClick=${open}>Show output</button>`}
          <${ActionButton} kind="danger" action=${cancel} done="Cancelled." label=${`Cancel ${execution.id}`}>Cancel<//>
        </div>
      </div>
      <span class="preview">${oneLine(execution.code_preview)}</span>
      ${isOpen && html`<${LiveOutput} id=${execution.id} />`}
    </article>
  `;
}

function LiveOutput({ id }) {
  const { buffer, error } = useLiveOutput(id);
  if (error) return html`<${Problem} error=${error} />`;
  return html`<${Output} buffer=${buffer} isLive=${true} />`;
}
