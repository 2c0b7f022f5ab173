// Everything by keyboard: skip link, shortcuts, completion of tool names, running.

import assert from "node:assert/strict";

export default async function (visit) {
  await visit.signIn();
  const { page } = visit;
  await page.reload();
  await visit.heading("Now");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the page");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");

  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Go to History").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await visit.heading("History");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await visit.heading("Run");

  const code = page.getByLabel("Code", { exact: true });
  await code.fill("");
  await code.pressSequentially("return await tools.time.get_c");
  await page.getByRole("option", { name: /^time\.get_current_time/ }).waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await code.inputValue(), "return await tools.time.get_current_time(");
  await code.pressSequentially("{ timezone: 'UTC' })");
  await page.keyboard.press("Control+Enter");
  await page.locator(".status", { hasText: "success" }).waitFor();
  await visit.see("timezone", page.getByRole("region", { name: "Result" }));
}
