// Run: a place to run code, with the names of tools completed and the output shown as it comes.

import { get, post, segment } from "../api.js";
import { useResource } from "../events.js";
import { formatDuration } from "../format.js";
import { Output, useLiveOutput } from "../output.js";
import { ActionButton, Code, Foreign, Page, Picture, Problem, Section, Status } from "../parts.js";
import { Completions, complete, findCompletions } from "../completion.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { Choice } from "./history.js";

const LANGUAGES = ["typescript", "javascript", "python", "bash", "node"];
const TIMEOUTS = [["10000", "10 s"], ["30000", "30 s"], ["60000", "1 min"], ["300000", "5 min"]];
const EXAMPLES = {
  typescript: "// Every MCP tool is a function: tools.server.tool({ .. })\nfor (const n of [1, 2, 3]) console.log(n * n);\nreturn 'done';",
  javascript: "console.log(await search_tools('time'));",
  python: "# Every MCP tool is a function: await tools.server.tool(..)\nprint(sum(range(10)))",
  bash: "# Every MCP tool is a command: mcp server tool --argument value\nuname -s && seq 3",
  node: "console.log(process.version);",
};

/** What the user typed, for as long as the tab is open. */
const drafts = { language: "typescript", timeout: "30000", ...EXAMPLES };

export function Run({ address }) {
  const [language, setLanguage] = useState(drafts.language);
  const [timeout, setTimeout] = useState(drafts.timeout);
  const [code, setCode] = useState(drafts[language]);
  const [id, setId] = useState(null);
  const [error, setError] = useState(null);
  const [isStarting, setStarting] = useState(false);
  const live = useLiveOutput(id);
  const isRunning = isStarting || (id !== null && live.ended === null && live.error === null);
  const write = (language, code) => {
    drafts.language = language;
    drafts[language] = code;
    setLanguage(language);
    setCode(code);
  };
  useEffect(() => {
    const { from } = address.query;
    if (!from) return;
    get(`/executions/${segment(from)}`).then((record) => write(record.language, record.code), setError);
  }, [address.query.from]);
  const run = async () => {
    setStarting(true);
    setError(null);
    try {
      const started = await post("/executions", { language, code, timeout_ms: Number(timeout), wait: false });
      setId(started.id);
    } catch (problem) {
      setId(null);
      setError(problem);
    }
    setStarting(false);
  };
  const cancel = () => post(`/executions/${segment(id)}/cancel`);
  return html`
    <${Page} title="Run" note="The code runs in a sandbox without a network, and can call every tool that your token may use.">
      <div class="editor">
        <${Editor} code=${code} language=${language} onChange=${(code) => write(language, code)} onRun=${() => isRunning || run()} />
        <div class="actions">
          <${Choice} name="Language" value=${language} options=${LANGUAGES.map((name) => [name, name])} onChange=${(name) => write(name, drafts[name])} />
          <${Choice} name="Time limit" value=${timeout} options=${TIMEOUTS} onChange=${(ms) => setTimeout((drafts.timeout = ms))} />
          <span class="hint muted"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs, <kbd>Ctrl</kbd> <kbd>Space</kbd> completes</span>
          ${isRunning && id && html`<${ActionButton} kind="danger" action=${cancel}>Cancel<//>`}
          <button type="button" class="primary" disabled=${isRunning || code.trim() === ""} onClick=${run}>
            ${isRunning ? "Running…" : "Run"}
          </button>
        </div>
      </div>
      ${error && html`<${Problem} error=${error} />`}
      ${id && html`<${Result} id=${id} live=${live} />`}
    <//>
  `;
}

function Result({ id, live }) {
  const { buffer, ended, error } = live;
  const value = ended?.value;
  return html`
    <${Section} title="Output" actions=${html`<a href=${`#/executions/${id}`}>Details</a>`}>
      <p class="meta" role="status">
        <${Status} word=${ended?.status ?? "running"} />
        ${ended && html`<span>${formatDuration(ended.duration_ms)}</span>`}
        ${ended?.tool_calls > 0 && html`<span>${ended.tool_calls} tool calls</span>`}
      </p>
      ${error && html`<${Problem} error=${error} />`}
      ${ended?.error && html`<p class="problem"><span><strong>${ended.error.code}</strong> <${Foreign} text=${ended.error.message} /></span></p>`}
      <${Output} buffer=${buffer} isLive=${ended === null} whole=${html`<a href=${`#/executions/${id}`}>Open the execution</a> to save all of it.`} />
    <//>
    ${value !== undefined && html`<${Section} title="Result">
      <${Code} code=${(typeof value === "string" ? value : JSON.stringify(value, null, 2)).slice(0, 100_000)} language="javascript" label="Result" />
    <//>`}
    ${ended?.images?.length > 0 && html`<${Section} title="Images"><div class="pictures">
      ${ended.images.filter(({ artifact }) => artifact).map(({ artifact }) => html`<${Picture} key=${artifact} name=${artifact} path=${`/executions/${segment(id)}/artifacts/${segment(artifact)}`} />`)}
    </div><//>`}
  `;
}

function Editor({ code, language, onChange, onRun }) {
  const field = useRef(null);
  const [caret, setCaret] = useState(null);
  const [chosen, setChosen] = useState(0);
  const tools = useResource("/tools", ["server."]).data?.items ?? [];
  const found = caret === null ? null : findCompletions(code.slice(0, caret), language, tools);
  const options = found?.tools ?? [];
  const close = () => setCaret(null);
  const accept = (tool) => {
    const { text, at } = complete(code, caret, found.start, language, tool);
    onChange(text);
    close();
    field.current.value = text;
    field.current.focus();
    field.current.setSelectionRange(at, at);
  };
  const input = ({ target }) => {
    onChange(target.value);
    setCaret(target.selectionStart);
    setChosen(0);
  };
  const press = (event) => {
    const { key } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    const does = (action) => {
      event.preventDefault();
      action();
    };
    if (isCommand && key === "Enter") return does(onRun);
    if (isCommand && key === " ") return does(() => setCaret(event.target.selectionStart));
    if (options.length === 0 || isCommand || event.altKey) return undefined;
    if (key === "ArrowDown") return does(() => setChosen((chosen + 1) % options.length));
    if (key === "ArrowUp") return does(() => setChosen((chosen + options.length - 1) % options.length));
    if (key === "Enter" || key === "Tab") return does(() => accept(options[chosen]));
    if (key === "Escape") return does(close);
    return undefined;
  };
  return html`
    <label class="field" for="code">Code</label>
    <textarea id="code" ref=${field} value=${code} spellcheck=${false} autocapitalize="off" autocomplete="off"
      aria-autocomplete="list" aria-controls=${options.length > 0 ? "completions" : undefined}
      aria-activedescendant=${options.length > 0 ? `completion-${chosen}` : undefined}
      onInput=${input} onKeyDown=${press} onBlur=${close}></textarea>
    <${Completions} options=${options} chosen=${chosen} accept=${accept} />
  `;
}
