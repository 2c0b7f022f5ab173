// Times, sizes and numbers as people read them.

export function formatDuration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

export function formatBytes(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (bytes >= 1_024 && at < units.length - 1) {
    bytes /= 1_024;
    at += 1;
  }
  return `${at === 0 ? bytes : bytes.toFixed(1)} ${units[at]}`;
}

/** Returns a short number, such as 12.3k. */
export function formatCount(count) {
  if (count === null || count === undefined) return "–";
  if (count < 10_000) return count.toLocaleString("en");
  return Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

/** Returns how long ago a time was, or its date. */
export function formatAgo(time, now = Date.now()) {
  const seconds = Math.round((now - new Date(time).getTime()) / 1_000);
  if (Number.isNaN(seconds)) return "–";
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return formatTime(time);
}

export function formatTime(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  return date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
