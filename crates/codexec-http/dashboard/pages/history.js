// History: executions that ran, newest first, with search and filters.

import { path } from "../api.js";
import { useResource } from "../events.js";
import { formatDuration, plural } from "../format.js";
import { Ago, Empty, Foreign, Loaded, Page, Status } from "../parts.js";
import { oneLine } from "../text.js";
import { html, useEffect, useRef, useState } from "../view.js";

const PAGE_SIZE = 50;
const TYPING_MS = 250;
const LANGUAGES = ["typescript", "javascript", "python", "bash", "node"];
const STATUSES = ["success", "failed", "timeout", "cancelled", "interrupted", "running"];
const PERIODS = [["", "Any time"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last week"]];

export function History({ address }) {
  const { text, language, status, period, cursor, session, agent } = address.query;
  const since = useRef({});
  if (since.current.period !== period) {
    const start = period && new Date(Date.now() - Number(period) * 1_000);
    since.current = { period, time: start ? start.toISOString() : undefined };
  }
  const query = { text, language, status, session, agent, since: since.current.time, cursor, limit: PAGE_SIZE };
  const page = useResource(path("/executions", query), cursor ? [] : ["execution."]);
  const change = (change) => {
    location.hash = path("#/history", { ...address.query, cursor: undefined, ...change });
  };
  const isFiltered = Boolean(text || language || status || period || session || agent);
  return html`
    <${Page} title="History" note=${session && html`Of the session <code>${session}</code>. <a href="#/history">Show all</a>`}>
      <search><form class="filters" onSubmit=${(event) => event.preventDefault()}>
        <${SearchField} value=${text ?? ""} onChange=${(text) => change({ text })} />
        <${Choice} name="Language" value=${language} options=${[["", "All"], ...LANGUAGES.map(same)]} onChange=${(language) => change({ language })} />
        <${Choice} name="Status" value=${status} options=${[["", "All"], ...STATUSES.map(same)]} onChange=${(status) => change({ status })} />
        <${Choice} name="Time" value=${period} options=${PERIODS} onChange=${(period) => change({ period })} />
      </form></search>
      <${Loaded} resource=${page}>${({ items, next, total }) => {
        if (items.length === 0 && isFiltered) return html`<${Empty} title="Nothing matches">Try other words, or <a href="#/history">remove the filters</a>.<//>`;
        if (items.length === 0) return html`<${Empty} title="Nothing has run yet"><a href="#/run">Run some code</a> to see it here.<//>`;
        return html`
          <${ExecutionTable} executions=${items} />
          <div class="pager">
            <span class="muted">${total !== undefined && plural(total, "execution")}</span>
            <span class="actions">
              ${cursor && html`<a href=${path("#/history", { ...address.query, cursor: undefined })}>Newest</a>`}
              ${next && html`<a href=${path("#/history", { ...address.query, cursor: next })}>Older</a>`}
            </span>
          </div>
        `;
      }}<//>
    <//>
  `;
}

const same = (word) => [word, word];

/** A table of executions; each opens its page. */
export function ExecutionTable({ executions }) {
  return html`
    <table class="table">
      <thead><tr><th>Status</th><th>Language</th><th class="wide">Code</th><th>By</th><th class="number">Calls</th><th class="number">Took</th><th>When</th></tr></thead>
      <tbody>
        ${executions.map((execution) => html`
          <tr key=${execution.id}>
            <td class="first"><${Status} word=${execution.status} /></td>
            <td class="first"><span class="tag">${execution.language}</span></td>
            <td class="wide"><a class="preview" href=${`#/executions/${execution.id}`}>${oneLine(execution.code_preview) || "(empty)"}</a></td>
            <td class="by"><${Foreign} text=${execution.agent ?? execution.principal ?? "–"} /></td>
            <td class="number" data-label="Calls">${execution.tool_calls ?? 0}</td>
            <td class="number">${formatDuration(execution.duration_ms)}</td>
            <td class="when"><${Ago} time=${execution.started} /></td>
          </tr>
        `)}
      </tbody>
    </table>
  `;
}

export function SearchField({ value, onChange, placeholder = "Words in code and output" }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => onChange(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`
    <label class="field">Search
      <input type="search" value=${typed} placeholder=${placeholder} onInput=${({ target }) => setTyped(target.value)} />
    </label>
  `;
}

export function Choice({ name, value, options, onChange }) {
  return html`
    <label class="field">${name}
      <select value=${value ?? ""} onChange=${({ target }) => onChange(target.value)}>
        ${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
      </select>
    </label>
  `;
}
