// A server goes down and comes up again while somebody watches.

import assert from "node:assert/strict";

export default async function (visit) {
  const call = { language: "typescript", code: "return await tools.everything.echo({ message: 'hi' })", timeout_ms: 60_000 };
  assert.equal((await visit.api("POST", "/executions", call)).status, "success");
  await visit.signIn();
  await visit.go("servers", "Servers");
  const card = visit.page.locator('[data-server="everything"]');
  const status = () => card.locator(".status").first().innerText();
  await visit.until(status, (word) => word === "ready", "the state before");
  const { pid } = await visit.api("GET", "/servers/everything");
  await card.getByText(String(pid), { exact: true }).waitFor();
  process.kill(pid, "SIGKILL");
  // Looking at a server does not start it.
  await visit.until(status, (word) => word === "idle", "the state after the kill");
  await card.getByRole("button", { name: "Start everything" }).click();
  await visit.until(status, (word) => word === "ready", "the state after the restart");
  const after = await visit.api("GET", "/servers/everything");
  assert.notEqual(after.pid, pid);
  await visit.inspect("Servers");
}
