// The parts of a host that the tests need.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

export const GUEST = fileURLToPath(new URL("guest.mjs", import.meta.url));
export const FLAGS = [
  "--no-warnings",
  "--no-force-async-hooks-checks",
  "--expose-internals",
  "--experimental-vm-modules",
  "--experimental-import-meta-resolve",
];

export const frame = (value) => {
  const body = Buffer.from(JSON.stringify(value));
  const header = Buffer.alloc(4);
  header.writeUInt32LE(body.length);
  return Buffer.concat([header, body]);
};

// A guest reports with one byte that it is ready; frames follow.
export const framesOnly = () => {
  let isReady = false;
  return (data) => {
    if (isReady) return data;
    isReady = true;
    assert.equal(data[0], "1".charCodeAt(0));
    return data.subarray(1);
  };
};
