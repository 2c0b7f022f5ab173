// Completes the names of tools in code, in the syntax of each language.

import { oneLine } from "./text.js";
import { html, useEffect, useRef } from "./view.js";

const MAX_SHOWN = 50;
/** What stands before the caret when a tool is about to be named. */
const BASH = /(?:^|[\s;|&(`])mcp +((?:[\w-]*)(?: [\w-]*)?)$/;
const OTHERS = /\btools\.((?:[\w$]*)(?:\.[\w$]*)?)$/;

/** Returns `{start, tools}`: where the name begins, and the tools that it may become. */
export function findCompletions(before, language, tools) {
  const match = before.slice(-200).match(language === "bash" ? BASH : OTHERS);
  if (!match) return null;
  const typed = match[1].replace(" ", ".").toLowerCase();
  const startsWith = (tool) => name(tool).startsWith(typed);
  const contains = (tool) => !startsWith(tool) && name(tool).includes(typed);
  const found = [...tools.filter(startsWith), ...tools.filter(contains)];
  return { start: before.length - match[1].length, tools: found.slice(0, MAX_SHOWN) };
}

const name = (tool) => `${tool.server}.${tool.tool}`.toLowerCase();

/** Returns the code with the name of the tool in it, and the place of the caret behind it. */
export function complete(code, caret, start, language, tool) {
  const isWord = (part) => /^[A-Za-z_$][\w$]*$/.test(part);
  const member = (part) => (isWord(part) ? `.${part}` : `[${JSON.stringify(part)}]`);
  // Removes the dot before the name, which `member` writes again if one is needed.
  const [from, written] = language === "bash"
    ? [start, `${tool.server} ${tool.tool} `]
    : [start - 1, `${member(tool.server)}${member(tool.tool)}(`];
  return { text: code.slice(0, from) + written + code.slice(caret), at: from + written.length };
}

export function Completions({ options, chosen, accept }) {
  const list = useRef(null);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen, options.length]);
  if (options.length === 0) return null;
  // The field keeps the focus.
  const press = (event, tool) => {
    event.preventDefault();
    accept(tool);
  };
  return html`
    <ul class="completions" id="completions" role="listbox" aria-label="Tools" ref=${list}>
      ${options.map((tool, at) => html`
        <li id=${`completion-${at}`} role="option" aria-selected=${at === chosen} onMouseDown=${(event) => press(event, tool)}>
          <span class="name">${oneLine(`${tool.server}.${tool.tool}`)}</span>
          <span class="about">${oneLine(tool.description, 120)}</span>
        </li>
      `)}
    </ul>
  `;
}
