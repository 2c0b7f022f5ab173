// Sign in, run code in each language, see output arrive, cancel.

import assert from "node:assert/strict";

const LOOP = "console.log('the loop begins'); for (;;) {}";
const REFUSED = "Failed to load resource: the server responded with a status of 401 (Unauthorized)";

export default async function (visit) {
  await visit.open();
  await visit.enter("cxt_wrong");
  await visit.page.getByRole("alert").getByText("This token is not valid.").waitFor();
  visit.expectProblems([REFUSED]);
  await visit.enter(visit.plan.token);
  await visit.heading("Now");
  await visit.see("Nothing runs");

  await visit.go("run", "Run");
  const programs = {
    typescript: "const n: number = 6; console.log('typed', n * 7)",
    javascript: "console.log('plain', 6 * 7)",
    python: "print('snake', 6 * 7)",
    bash: "echo shell $((6 * 7))",
    node: "console.log('node', 6 * 7)",
  };
  for (const [language, code] of Object.entries(programs)) {
    await start(visit, language, code);
    await ended(visit, "success");
    const [word] = code.match(/typed|plain|snake|shell|node/);
    await visit.see(`${word} 42`, output(visit));
  }

  await cancelAtTheEditor(visit);
  await cancelOnNow(visit);
}

const output = (visit) => visit.page.locator("pre.output");

async function start(visit, language, code) {
  await visit.page.getByLabel("Language").selectOption(language);
  await visit.page.getByLabel("Time limit").selectOption("300000");
  await visit.page.getByLabel("Code", { exact: true }).fill(code);
  await visit.page.getByRole("button", { name: "Run", exact: true }).click();
}

const ended = (visit, word) => visit.page.locator(".status", { hasText: word }).first().waitFor();

/** The output is there while the loop still runs. */
async function cancelAtTheEditor(visit) {
  await start(visit, "typescript", LOOP);
  await visit.see("the loop begins", output(visit));
  await ended(visit, "running");
  await visit.page.getByRole("button", { name: "Cancel" }).click();
  await ended(visit, "cancelled");
}

/** Somebody else starts a loop: it appears by itself, with its output. */
async function cancelOnNow(visit) {
  await visit.go("", "Now");
  await visit.see("Nothing runs");
  const body = { language: "typescript", code: LOOP, timeout_ms: 300_000, wait: false };
  const { id } = await visit.api("POST", "/executions", body);
  await visit.see("the loop begins", output(visit));
  assert.equal((await visit.api("GET", `/executions/${id}`)).status, "running");
  await visit.page.getByRole("button", { name: `Cancel ${id}` }).click();
  await visit.see("Nothing runs");
  const row = visit.page.locator("tr", { has: visit.page.locator(`a[href="#/executions/${id}"]`) });
  await row.getByText("cancelled").waitFor();
}
