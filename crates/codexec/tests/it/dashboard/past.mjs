// A past execution with a figure, a tool call and a file, found by search and shown in full.

import assert from "node:assert/strict";

const CODE = `import matplotlib.pyplot as plt
now = await tools.time.get_current_time(timezone="UTC")
print("drawn at", now)
plt.plot([1, 4, 9])
plt.show()
"the result"`;

export default async function (visit) {
  const { id } = await visit.api("POST", "/executions", { language: "python", code: CODE, timeout_ms: 120_000 });
  await visit.api("POST", "/executions", { language: "bash", code: "echo something else" });
  await visit.signIn();
  const { page } = visit;
  await visit.go("history", "History");
  await visit.see("something else");
  await page.getByRole("searchbox").fill("matplotlib");
  await page.getByText("something else").waitFor({ state: "detached" });
  await page.locator(`a[href="#/executions/${id}"]`).click();
  await visit.heading("Execution");

  await visit.see("import", page.locator("pre.code .hl-keyword"));
  await visit.see("drawn at", page.locator("pre.output"));
  const picture = page.getByRole("img", { name: /^Image image-/ });
  const width = () => picture.evaluate((image) => image.complete && image.naturalWidth);
  await visit.until(width, (width) => width > 100, "the width of the figure");
  await visit.see("time.get_current_time", page.locator(".timeline"));
  await visit.see("seccomp");
  await visit.inspect("Execution with an image");

  await page.getByRole("link", { name: "Run again" }).click();
  await visit.heading("Run");
  const code = page.getByLabel("Code", { exact: true });
  await visit.until(() => code.inputValue(), (value) => value === CODE, "the code");
  assert.equal(await page.getByLabel("Language").inputValue(), "python");
}
