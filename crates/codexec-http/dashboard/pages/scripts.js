// Scripts: saved code, its versions, and what changed between them.

import { path, segment } from "../api.js";
import { diffLines } from "../diff.js";
import { useResource } from "../events.js";
import { Ago, Code, Difference, Empty, Facts, Foreign, Loaded, Page, Section, Status } from "../parts.js";
import { oneLine } from "../text.js";
import { html, useState } from "../view.js";
import { Choice, SearchField } from "./history.js";

export function Scripts({ address }) {
  const [, name] = address.path;
  return name === undefined ? html`<${List} query=${address.query.query ?? ""} />` : html`<${Script} name=${name} />`;
}

function List({ query }) {
  const scripts = useResource(path("/scripts", { query }), ["script."]);
  const search = (query) => {
    location.hash = path("#/scripts", { query });
  };
  return html`
    <${Page} title="Scripts" note="Code that agents and people saved to run again.">
      <search><${SearchField} value=${query} placeholder="What the script does" onChange=${search} /></search>
      <${Loaded} resource=${scripts}>${({ items }) => {
        if (items.length === 0 && query) return html`<${Empty} title="Nothing matches">Try other words, or <a href="#/scripts">show all scripts</a>.<//>`;
        if (items.length === 0) return html`<${Empty} title="No scripts yet">Agents save scripts with <code>save_script</code>, and people with <code>codexec scripts save</code>.<//>`;
        return html`<${ScriptTable} scripts=${items} />`;
      }}<//>
    <//>
  `;
}

function ScriptTable({ scripts }) {
  return html`
    <table class="table">
      <thead><tr><th>Name</th><th>Language</th><th class="wide">Description</th><th class="number">Runs</th><th>Last run</th></tr></thead>
      <tbody>
        ${scripts.map((script) => html`
          <tr key=${script.name}>
            <td class="first"><a href=${`#/scripts/${segment(script.name)}`}>${script.name}</a></td>
            <td class="first"><span class="tag">${script.language}</span></td>
            <td class="wide"><span class="preview">${oneLine(script.description)}</span></td>
            <td class="number" data-label="Runs">${script.run_count ?? 0}</td>
            <td class="when">${script.last_run_at ? html`<${Ago} time=${script.last_run_at} />` : "never"}</td>
          </tr>
        `)}
      </tbody>
    </table>
  `;
}

function Script({ name }) {
  const base = `/scripts/${segment(name)}`;
  const [chosen, setChosen] = useState(null);
  const versions = useResource(`${base}/versions`, ["script."]);
  const newest = useResource(base, ["script."]);
  const all = versions.data?.items ?? [];
  const version = chosen ?? newest.data?.version;
  const script = useResource(chosen === null ? null : path(base, { version: chosen }));
  const earlier = all.map(({ version }) => version).filter((other) => other < version);
  const before = earlier.length > 0 ? Math.max(...earlier) : null;
  const older = useResource(before === null ? null : path(base, { version: before }));
  const label = ({ version, is_current: isCurrent }) => `Version ${version}${isCurrent ? " (newest)" : ""}`;
  return html`
    <${Loaded} resource=${newest}>${(current) => {
      const shown = chosen === null ? current : script.data;
      return html`
        <${Page} title=${name} note=${html`<${Foreign} text=${current.description} />`} actions=${html`<a href="#/scripts">All scripts</a>`}>
          <div class="card"><${Facts} rows=${facts(current)} /></div>
          <${Section} title="Code" actions=${html`<${Choice} name="Version" value=${String(version)}
              options=${all.map((one) => [String(one.version), label(one)])} onChange=${(value) => setChosen(Number(value))} />`}>
            ${shown && html`<${Code} code=${shown.code} language=${shown.language} />`}
          <//>
          ${before !== null && older.data && shown && html`
            <${Section} title=${`What version ${version} changed`}>
              <${Difference} rows=${diffLines(older.data.code, shown.code)} />
            <//>`}
          <${Section} title="Versions" count=${all.length}>
            <div class="card"><ul class="files">
              ${all.map((one) => html`<li>
                <button type="button" class="link" aria-pressed=${one.version === version} onClick=${() => setChosen(one.version)}>Version ${one.version}</button>
                <span class="muted"><${Ago} time=${one.saved_at} />${one.saved_by && html` by <${Foreign} text=${one.saved_by} />`}</span>
                ${one.is_current && html`<${Status} word="newest" tone="fine" />`}
              </li>`)}
            </ul></div>
          <//>
        <//>
      `;
    }}<//>
  `;
}

function facts(script) {
  return [
    ["Language", script.language],
    ["Runs", script.run_count],
    ["Last run", script.last_run_at && html`<${Ago} time=${script.last_run_at} />`],
    ["Last result", script.last_run_at && (script.last_run_success ? "success" : "failed")],
    ["Packages", script.packages?.join(", ")],
    ["Tags", script.tags?.join(", ")],
    ["Saved from", script.source_execution_id && html`<a href=${`#/executions/${script.source_execution_id}`}>an execution</a>`],
  ];
}
