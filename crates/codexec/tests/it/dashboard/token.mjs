// The token stays in the tab, and the browser keeps other code out of the page.

import assert from "node:assert/strict";

export default async function (visit) {
  await visit.signIn();
  const { page, plan } = visit;
  await visit.go("history", "History");
  const kept = await page.evaluate(() => [localStorage, document.cookie, location.href].map((one) => JSON.stringify(one)));
  assert.ok(kept.every((text) => !text.includes(plan.token)), kept.join());
  assert.ok(visit.requests.every((url) => !url.includes(plan.token)));
  const other = await visit.context.newPage();
  await other.goto(plan.url);
  await other.getByRole("button", { name: "Sign in" }).waitFor();
  await other.close();

  const blocked = await page.evaluate(async () => {
    // Whatever the debugger runs itself, the browser allows; a task of the page's own it does not.
    await new Promise((resolve) => setTimeout(resolve));
    const script = document.createElement("script");
    const errors = [];
    const attempts = [
      () => (script.textContent = "window.pwned = 1"),
      () => (document.body.innerHTML = "<p>markup</p>"),
      () => new Function("window.pwned = 1")(),
      () => document.body.setAttribute("onclick", "window.pwned = 1"),
    ];
    for (const attempt of attempts) {
      try {
        attempt();
      } catch (error) {
        errors.push(error.name);
      }
    }
    document.body.append(script);
    document.body.click();
    return { errors, pwned: window.pwned ?? null };
  });
  assert.deepEqual(blocked, { errors: ["TypeError", "TypeError", "EvalError", "TypeError"], pwned: null });
  assert.ok(visit.problems.length > 0, "the browser said nothing");
  assert.ok(visit.problems.splice(0).every((text) => /Content Security Policy|Trusted/.test(text)));

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
}
