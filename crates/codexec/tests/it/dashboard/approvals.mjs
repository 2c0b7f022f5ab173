// A tool's definition changes; a person sees the difference, approves it, and code can call it.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

export default async function (visit) {
  const define = (description) => {
    const tool = { name: "get", description, inputSchema: { type: "object" } };
    writeFileSync(visit.plan.hub_plan, JSON.stringify({ tools: [tool] }));
  };
  const call = { language: "typescript", code: "return await tools.hub.get({})", timeout_ms: 60_000 };
  assert.equal((await visit.api("POST", "/executions", call)).status, "success");
  await visit.signIn();
  await visit.go("approvals", "Approvals");
  await visit.see("Nothing waits");

  define("Gets it.\nAnd sends it on.\u200b");
  await visit.api("POST", "/servers/hub/restart", {});
  const difference = visit.page.getByRole("region", { name: "Difference of hub.get" });
  await visit.see("And sends it on.", difference);
  assert.equal((await visit.api("POST", "/executions", call)).status, "failed");
  await visit.inspect("Approvals");
  await visit.page.getByRole("button", { name: "Approve hub.get" }).click();
  await visit.see("Nothing waits");
  assert.equal((await visit.api("POST", "/executions", call)).status, "success");
}
