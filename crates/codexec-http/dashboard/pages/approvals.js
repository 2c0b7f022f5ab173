// Approvals: servers and tool definitions that wait until somebody has looked at them.

import { post, segment } from "../api.js";
import { useResource } from "../events.js";
import { ActionButton, Difference, Empty, Foreign, Loaded, Origin, Page, Status } from "../parts.js";
import { html } from "../view.js";

export function Approvals() {
  const approvals = useResource("/approvals", ["approval.", "server."]);
  return html`
    <${Page} title="Approvals" note="Code cannot use these until you approve them. What you do not approve stays unusable.">
      <${Loaded} resource=${approvals}>${({ items }) => items.length === 0
        ? html`<${Empty} title="Nothing waits">New and changed tools, and servers that a project brings, appear here before code can use them.<//>`
        : html`<div class="cards">${items.map((approval) => html`<${Approval} key=${approval.id} approval=${approval} reload=${approvals.reload} />`)}</div>`}
      <//>
    <//>
  `;
}

function Approval({ approval, reload }) {
  const { server, tool, difference, origin } = approval;
  const what = tool ? `${server}.${tool}` : server;
  const approve = async () => {
    await post(`/approvals/${segment(approval.id)}`, { decision: "approve" });
    reload();
  };
  const hasHidden = difference.some((line) => line.has_hidden);
  return html`
    <article class="card">
      <div class="card-head">
        <div>
          <h2><${Foreign} text=${what} /></h2>
          <${Status} word=${approval.is_change ? "changed" : "new"} tone="warn" />
          <span class="muted">${tool ? "tool definition" : "server of a project"}</span>
        </div>
        <${ActionButton} kind="primary" action=${approve} done=${`${what} is approved.`} label=${`Approve ${what}`}>Approve<//>
      </div>
      ${hasHidden && html`<p class="alarm">It contains invisible characters, which are shown as \\u{..}.</p>`}
      <${Difference} rows=${difference} label=${`Difference of ${what}`} />
      ${origin && html`<${Origin} origin=${origin} />`}
    </article>
  `;
}
