// Every page, empty and full, in two widths and both themes: nothing scrolls sideways, axe finds
// nothing serious, and nothing is written to the console. With a folder for them, screenshots.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

const VIEWS = [
  { width: 1280, height: 800, colorScheme: "light" },
  { width: 1280, height: 800, colorScheme: "dark" },
  { width: 375, height: 800, colorScheme: "light" },
  { width: 375, height: 800, colorScheme: "dark" },
];

/** Draws the hour of three cities, which it asks a tool for. */
const HOURS = `import matplotlib.pyplot as plt

cities = ["Oslo", "Rome", "Tokyo"]
hours = []
for zone in ["Europe/Oslo", "Europe/Rome", "Asia/Tokyo"]:
    now = await tools.time.convert_time(
        source_timezone="UTC", time="12:00", target_timezone=zone)
    hours.append(int(str(now).rsplit("T", 1)[1][:2]))

print(dict(zip(cities, hours)))
plt.figure(figsize=(5, 2.5))
plt.bar(cities, hours)
plt.show()`;

export default async function (visit) {
  await walk(visit, "empty", [["run", "Run"], ["history", "History"], ["sessions", "Sessions"], ["scripts", "Scripts"], ["approvals", "Approvals"]]);
  const id = await fill(visit);
  const running = { language: "bash", code: "for n in $(seq 1000); do echo \"step $n\"; sleep 0.5; done", timeout_ms: 300_000, wait: false, agent: "claude-code" };
  const { id: loop } = await visit.api("POST", "/executions", running);
  await walk(visit, "full", [
    ["run", "Run"], ["history", "History"], [`executions/${id}`, "Execution", "execution"], ["sessions", "Sessions"],
    ["scripts", "Scripts"], ["scripts/hours", "hours", "script"], ["servers", "Servers"], ["approvals", "Approvals"],
  ]);
  await visit.api("POST", `/executions/${loop}/cancel`, {});
}

async function walk(visit, state, pages) {
  for (const view of VIEWS) {
    await visit.open(view);
    await visit.inspect(`Sign in ${view.width}`);
    if (state === "full") await shoot(visit, view, "sign-in");
    await visit.enter(visit.plan.token);
    await visit.heading("Now");
    for (const [address, heading, name = address || "now"] of [["", "Now"], ...pages]) {
      await visit.go(address, heading);
      await visit.page.locator(".loading").first().waitFor({ state: "detached" });
      if (state === "full" && address === "run") await run(visit);
      if (state === "full" && address === "approvals") await visit.see("Sends mail to everybody");
      await visit.inspect(`${heading} ${state} ${view.width} ${view.colorScheme}`);
      if (state === "full") await shoot(visit, view, name);
    }
  }
}

async function run(visit) {
  await visit.page.getByRole("button", { name: "Run", exact: true }).click();
  await visit.page.locator(".status", { hasText: "success" }).waitFor();
}

/** A wide picture of each page, and one as on a phone, are enough for the guide. */
async function shoot(visit, { width, colorScheme }, name) {
  const isWide = width === 1280 && colorScheme === "light";
  const isNarrow = width === 375 && colorScheme === "dark" && name === "now";
  if (!visit.plan.screenshots || !(isWide || isNarrow)) return;
  const suffix = isWide ? "" : "-phone";
  await visit.page.screenshot({ path: join(visit.plan.screenshots, `${name}${suffix}.png`) });
}

/** Leaves something on every page. */
async function fill(visit) {
  const run = (body) => visit.api("POST", "/executions", { timeout_ms: 120_000, ...body });
  await run({ language: "bash", code: "for file in *.csv; do wc -l \"$file\"; done", agent: "claude-code" });
  await run({ language: "typescript", code: "throw new Error('no such customer')" });
  await run({ language: "node", code: "console.log(process.version)", agent: "cursor" });
  const { id } = await run({ language: "python", code: HOURS, agent: "claude-code" });
  await visit.api("POST", "/sessions", { language: "python", name: "analysis" });
  const script = (code) => visit.api("POST", "/scripts", {
    name: "hours", description: "Prints the hour in a time zone", language: "typescript", code,
  });
  await script("const now = await tools.time.get_current_time({ timezone: 'UTC' });\nreturn now;\n");
  await script("// The zone is an argument.\nconst now = await tools.time.get_current_time({ timezone: input.zone });\nreturn now;\n");
  await run({ language: "typescript", code: "await tools.hub.send({}); return await tools.everything.echo({ message: 'hi' })" });
  const tool = { name: "send", description: "Sends mail to everybody.", inputSchema: { type: "object" } };
  writeFileSync(visit.plan.hub_plan, JSON.stringify({ tools: [tool] }));
  await visit.api("POST", "/servers/hub/restart", {});
  return id;
}
