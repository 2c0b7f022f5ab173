// Drives Chromium for the scenarios beside this file. A scenario is a module whose default export
// gets a `Visit`; it fails by throwing.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const plan = JSON.parse(process.argv[2]);
const require = createRequire(`${plan.modules}/`);
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-dev-shm-usage",
];

/** A browser with one tab, and everything that went wrong in it. */
class Visit {
  plan = plan;
  problems = [];
  requests = [];

  constructor(browser) {
    this.browser = browser;
  }

  /** Opens the dashboard in a new profile. */
  async open({ width = 1280, height = 800, colorScheme = "light" } = {}) {
    await this.context?.close();
    this.context = await this.browser.newContext({ viewport: { width, height }, colorScheme, acceptDownloads: true });
    this.context.setDefaultTimeout(plan.patience_ms);
    this.page = await this.context.newPage();
    this.page.on("console", (message) => message.type() === "error" && this.problems.push(message.text()));
    this.page.on("pageerror", (error) => this.problems.push(String(error)));
    this.page.on("request", (request) => this.requests.push(request.url()));
    await this.page.goto(plan.url);
  }

  async enter(token) {
    await this.page.getByLabel("Token").fill(token);
    await this.page.getByRole("button", { name: "Sign in" }).click();
  }

  async signIn(options) {
    await this.open(options);
    await this.enter(plan.token);
    await this.heading("Now");
  }

  /** Goes to the page at this address after the `#`, which has this heading. */
  async go(address, heading) {
    await this.page.evaluate((address) => (location.hash = address), `#/${address}`);
    await this.heading(heading);
  }

  heading(name) {
    return this.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  }

  see(text, within = this.page.locator("main")) {
    return within.getByText(text).first().waitFor();
  }

  /** Waits until a value that changes by itself is as expected. */
  async until(read, isFine, what) {
    const deadline = Date.now() + plan.patience_ms;
    for (;;) {
      const value = await read();
      if (isFine(value)) return value;
      assert.ok(Date.now() < deadline, `${what}: ${JSON.stringify(value)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Calls the API as another client does. */
  async api(method, path, body) {
    const headers = { authorization: `Bearer ${plan.token}`, "content-type": "application/json" };
    const response = await fetch(`${plan.url}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    const answer = await response.json();
    assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  /** Checks the page as it is now: its width, and what axe finds. */
  async inspect(name) {
    const sideways = await this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(sideways <= 0, `${name} scrolls sideways by ${sideways} px`);
    await this.page.evaluate(AXE);
    const { violations } = await this.page.evaluate(() => globalThis.axe.run());
    const found = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const nodes = found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("; ")}`);
    assert.deepEqual(nodes, [], name);
  }

  /** Forgets what went wrong, which must be exactly this. */
  expectProblems(expected) {
    assert.deepEqual(this.problems.splice(0), expected);
  }
}

const { default: scenario } = await import(plan.scenario);
const browser = await chromium.launch({ executablePath: plan.chromium, args: FLAGS });
try {
  const visit = new Visit(browser);
  await scenario(visit);
  visit.expectProblems([]);
} finally {
  await browser.close();
}
