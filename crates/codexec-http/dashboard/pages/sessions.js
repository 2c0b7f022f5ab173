// Sessions: workers that keep variables and files between executions.

import { remove, segment } from "../api.js";
import { useResource } from "../events.js";
import { formatBytes } from "../format.js";
import { ActionButton, Ago, Empty, Foreign, Loaded, Page } from "../parts.js";
import { html } from "../view.js";

export function Sessions() {
  const sessions = useResource("/sessions", ["session.", "execution."]);
  return html`
    <${Page} title="Sessions" note="A session keeps variables, imports and files between executions.">
      <${Loaded} resource=${sessions}>${({ items }) => items.length === 0
        ? html`<${Empty} title="No open sessions">Agents open sessions with <code>start_session</code>, and people with <code>codexec sessions open</code>.<//>`
        : html`<${SessionTable} sessions=${items} reload=${sessions.reload} />`}
      <//>
    <//>
  `;
}

function SessionTable({ sessions, reload }) {
  const end = async (id) => {
    await remove(`/sessions/${segment(id)}`);
    reload();
  };
  return html`
    <table class="table">
      <thead><tr><th>Session</th><th>Language</th><th class="number">Executions</th><th class="number">Memory</th><th>Opened</th><th>Last used</th><th><span class="sr-only">Actions</span></th></tr></thead>
      <tbody>
        ${sessions.map((session) => html`
          <tr key=${session.id}>
            <td class="first wide">
              <a href=${`#/history?session=${segment(session.id)}`}><${Foreign} text=${session.name ?? session.id} /></a>
              ${session.name && html`<span class="preview muted">${session.id}</span>`}
            </td>
            <td class="first"><span class="tag">${session.language}</span></td>
            <td class="number" data-label="Executions">${session.executions}</td>
            <td class="number" data-label="Memory">${formatBytes(session.memory_bytes)}</td>
            <td class="when"><${Ago} time=${session.started} /></td>
            <td class="when"><${Ago} time=${session.last_used} /></td>
            <td><${ActionButton} kind="danger" action=${() => end(session.id)} done="The session has ended." label=${`End ${session.name ?? session.id}`}>End<//></td>
          </tr>
        `)}
      </tbody>
    </table>
  `;
}
