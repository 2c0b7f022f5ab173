// One execution in full.

import { getBlob, post, segment } from "../api.js";
import { useClock, useResource } from "../events.js";
import { formatBytes, formatDuration, formatTime } from "../format.js";
import { Output, useLiveOutput } from "../output.js";
import { ActionButton, Code, Download, Facts, Foreign, Loaded, Page, Picture, Problem, Section, Status, saveBlob } from "../parts.js";
import { oneLine, showInvisible } from "../text.js";
import { html } from "../view.js";

const MAX_CALLS = 200;
const MAX_FILES = 200;
const MAX_IMAGES = 20;

export function Execution({ address }) {
  const id = address.path[1] ?? "";
  const record = useResource(`/executions/${segment(id)}`, ["execution.finished"]);
  const live = useLiveOutput(id);
  return html`
    <${Loaded} resource=${record}>${(execution) => html`
      <${Page} title="Execution" note=${html`<code>${id}</code>`} actions=${html`<${Actions} execution=${execution} />`}>
        <${Summary} execution=${execution} />
        ${execution.error && html`<p class="problem"><span><strong>${execution.error.code}</strong> <${Foreign} text=${execution.error.message} /></span></p>`}
        <${Section} title="Code" actions=${html`<span class="tag">${execution.language}</span>`}>
          <${Code} code=${execution.code} language=${execution.language} />
        <//>
        <${Section} title="Output">
          ${live.error
            ? html`<${Problem} error=${live.error} />`
            : html`<${Output} buffer=${live.buffer} isLive=${execution.status === "running"} whole=${html`<${Whole} id=${id} />`} />`}
        <//>
        <${Value} value=${execution.value} />
        <${Images} id=${id} images=${execution.images ?? []} />
        <${TimeLine} execution=${execution} />
        <${Files} id=${id} execution=${execution} />
        <${Details} execution=${execution} />
      <//>`}
    <//>
  `;
}

function Actions({ execution }) {
  const cancel = () => post(`/executions/${segment(execution.id)}/cancel`);
  if (execution.status === "running") return html`<${ActionButton} kind="danger" action=${cancel} done="Cancelled.">Cancel<//>`;
  return html`<a href=${`#/run?from=${segment(execution.id)}`}>Run again</a>`;
}

function Summary({ execution }) {
  const isRunning = execution.status === "running";
  const now = useClock(isRunning);
  const took = isRunning ? now - new Date(execution.started).getTime() : execution.duration_ms;
  return html`
    <div class="card">
      <${Facts} rows=${[
        ["Status", html`<${Status} word=${execution.status} />`],
        ["Took", formatDuration(took)],
        ["Started", formatTime(execution.started)],
        ["By", html`<${Foreign} text=${[execution.agent, execution.principal].filter(Boolean).join(" · ")} />`],
        ["Through", execution.edge],
        ["Tool calls", execution.tool_calls],
        ["Exit code", execution.exit_code],
        ["Session", execution.session && html`<a href=${`#/history?session=${segment(execution.session)}`}>${execution.session}</a>`],
        ["Script", execution.script && html`<a href=${`#/scripts/${segment(execution.script.name)}`}>${execution.script.name}</a> version ${execution.script.version}`],
      ]} />
    </div>
  `;
}

/** Saves the output as the server has it, however long it is. */
function Whole({ id }) {
  const save = async () => {
    const blob = await getBlob(`/executions/${segment(id)}`);
    const { output } = JSON.parse(await blob.text());
    saveBlob(new Blob([output], { type: "text/plain" }), `${id}.txt`);
  };
  return html`<${ActionButton} kind="link" action=${save}>Save the whole output<//>`;
}

function Value({ value }) {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<${Section} title="Result"><${Code} code=${text.slice(0, 100_000)} language="javascript" label="Result" /><//>`;
}

function Images({ id, images }) {
  const kept = images.filter(({ artifact }) => artifact);
  if (kept.length === 0) return null;
  return html`
    <${Section} title="Images" count=${kept.length}>
      <div class="pictures">
        ${kept.slice(0, MAX_IMAGES).map(({ artifact }) => html`<${Picture} key=${artifact} name=${artifact} path=${artifactPath(id, artifact)} />`)}
      </div>
    <//>
  `;
}

function artifactPath(id, name) {
  return `/executions/${segment(id)}/artifacts/${name.split("/").map(segment).join("/")}`;
}

/** Each call as a bar between the start and the end of the execution. */
function TimeLine({ execution }) {
  const calls = execution.calls ?? [];
  if (calls.length === 0) return null;
  const end = Math.max(execution.duration_ms ?? 0, ...calls.map((call) => (call.start_ms ?? 0) + (call.duration_ms ?? 0)), 1);
  const bar = (call) => ({
    left: `${(100 * (call.start_ms ?? 0)) / end}%`,
    width: `${(100 * (call.duration_ms ?? 0)) / end}%`,
  });
  return html`
    <${Section} title="Tool calls" count=${calls.length}>
      <ol class="timeline">
        ${calls.slice(0, MAX_CALLS).map((call) => html`
          <li class=${call.error ? "failed" : ""} title=${oneLine(call.arguments, 400)}>
            <span class="name"><${Foreign} text=${`${call.server}.${call.tool}`} /></span>
            <span class="track" aria-hidden="true"><span class="span" style=${bar(call)}></span></span>
            <span class="took"><span class="sr-only">after ${formatDuration(call.start_ms)}, took </span>${formatDuration(call.duration_ms)}</span>
            ${call.error && html`<span class="why">${call.error.code}: ${showInvisible(call.error.message)}</span>`}
          </li>
        `)}
      </ol>
      ${calls.length > MAX_CALLS && html`<p class="muted">The first ${MAX_CALLS} calls are shown.</p>`}
    <//>
  `;
}

function Files({ id, execution }) {
  const kept = useResource(`/executions/${segment(id)}/artifacts`, ["execution.finished"]).data?.items ?? [];
  const changes = execution.files ?? {};
  const kinds = [["created", "fine"], ["modified", "warn"], ["deleted", "bad"]];
  const changed = kinds.flatMap(([kind, tone]) => (changes[kind] ?? []).map((file) => ({ kind, tone, ...file })));
  if (kept.length === 0 && changed.length === 0) return null;
  const bytes = (file) => file.bytes !== undefined && html`<span class="muted">${formatBytes(file.bytes)}</span>`;
  return html`
    <${Section} title="Files" count=${kept.length + changed.length}>
      <div class="card">
        <ul class="files">
          ${kept.slice(0, MAX_FILES).map((file) => html`<li><${Download} path=${artifactPath(id, file.path)} name=${file.path} /> ${bytes(file)}</li>`)}
          ${changed.slice(0, MAX_FILES).map((file) => html`<li><${Status} word=${file.kind} tone=${file.tone} /> <${Foreign} text=${file.path} /> ${bytes(file)}</li>`)}
        </ul>
      </div>
    <//>
  `;
}

function Details({ execution }) {
  const { limits = {}, usage = {} } = execution;
  const list = (words) => (words?.length ? words.join(", ") : undefined);
  return html`
    <${Section} title="Limits and sandbox">
      <div class="card">
        <${Facts} rows=${[
          ["Time limit", limits.wall_ms && formatDuration(limits.wall_ms)],
          ["Limits met", list(limits.met) ?? "none"],
          ["CPU time", usage.cpu_ms !== undefined && formatDuration(usage.cpu_ms)],
          ["Peak memory", usage.peak_memory_bytes && formatBytes(usage.peak_memory_bytes)],
          ["Working directory", execution.working_dir && html`<${Foreign} text=${execution.working_dir} />`],
          ["Allowed tools", list(execution.allowed_tools)],
          ["Grants", list(execution.grants)],
          ["Packages", list(execution.packages?.map(String))],
        ].filter(([, value]) => value !== false)} />
        ${execution.posture && html`<p class="meta">${execution.posture.map((layer) => html`<span class="tag">${layer}</span>`)}</p>`}
      </div>
    <//>
  `;
}
