// The difference of two texts, line by line.

/** Beyond this many lines in either text, all lines between the common start and end differ. */
const MAX_LINES = 2_000;
/** Unchanged lines that are shown around each change. */
const CONTEXT = 3;

/** Returns rows `{sign, text}`, where the sign is "+", "-" or " ", or "…" for lines left out. */
export function diffLines(before, after) {
  const [a, b] = [before, after].map((text) => text.replace(/\n$/, "").split("\n"));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((text) => ({ sign: " ", text }));
  const middle = diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return leaveOutUnchanged([...same(a.slice(0, start)), ...middle, ...same(a.slice(a.length - end))]);
}

/** Finds the longest common subsequence. */
function diffMiddle(a, b) {
  const removed = (lines) => lines.map((text) => ({ sign: "-", text }));
  const added = (lines) => lines.map((text) => ({ sign: "+", text }));
  if (a.length > MAX_LINES || b.length > MAX_LINES) return [...removed(a), ...added(b)];
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const next = a[i] === b[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
      lengths[i * width + j] = next;
    }
  }
  const rows = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      rows.push({ sign: " ", text: a[i] });
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) {
      rows.push({ sign: "-", text: a[i] });
      i += 1;
    } else {
      rows.push({ sign: "+", text: b[j] });
      j += 1;
    }
  }
  return [...rows, ...removed(a.slice(i)), ...added(b.slice(j))];
}

function leaveOutUnchanged(rows) {
  const isNear = (at) => rows.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((row) => row.sign !== " ");
  const kept = [];
  let skipped = 0;
  const flush = () => {
    if (skipped > 0) kept.push({ sign: "…", text: `${skipped} unchanged ${skipped === 1 ? "line" : "lines"}` });
    skipped = 0;
  };
  rows.forEach((row, at) => {
    if (!isNear(at)) {
      skipped += 1;
      return;
    }
    flush();
    kept.push(row);
  });
  flush();
  return kept;
}
