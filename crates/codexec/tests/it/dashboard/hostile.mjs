// Output that attacks whoever looks at it is shown as text.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const HOSTILE = String.raw`import sys
print("<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>")
print("\x1b[31mred\x1b[0m \x1b]0;title\x07")
print("user\u202egnp.exe \u200bzero \x00 \x08 \r back")
sys.stderr.write("<b>bold</b>\n")`;
const MEGABYTES = 10;

export default async function (visit) {
  const { page } = (await visit.signIn(), visit);
  const run = (code) => visit.api("POST", "/executions", { language: "python", code, timeout_ms: 60_000 });
  const { id } = await run(HOSTILE);
  await visit.go(`executions/${id}`, "Execution");
  const output = page.locator("pre.output");
  await visit.see("bold", output);
  const text = await output.innerText();
  for (const part of [
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>",
    "⟨ESC⟩[31mred⟨ESC⟩[0m ⟨ESC⟩]0;title⟨BEL⟩",
    "user⟨U+202E⟩gnp.exe ⟨U+200B⟩zero ⟨NUL⟩ ⟨BS⟩ ⟨CR⟩ back",
    "<b>bold</b>",
  ]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.equal(await output.locator("script, img, b").count(), 0);
  await visit.go("history", "History");
  await visit.see("import sys");
  assert.equal(await page.evaluate(() => window.pwned), undefined);

  const { id: long } = await run(`print("x" * (${MEGABYTES} << 20) + "the end")`);
  await visit.go(`executions/${long}`, "Execution");
  await visit.see("Shortened for this page.");
  const shown = await output.evaluate((output) => output.textContent.length);
  assert.ok(shown < 50_000, `${shown} characters are shown`);
  // A page that is busy would not move on.
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save the whole output" }).click();
  const saved = readFileSync(await (await downloading).path(), "utf8");
  assert.equal(saved.length, (MEGABYTES << 20) + "the end\n".length);
}
