// Text that somebody else wrote, made safe to look at.
//
// THREAT[WEB-2]: every character that would change how the rest is read becomes a visible sign. No
// text ever becomes markup: the library makes text nodes, and the page's policy forbids the rest.

/** Longer lines are cut, because browsers lay them out slowly. */
const LINE_CHARS = 4_000;

// Controls except tab and newline; C1 controls; soft hyphen; marks of direction and width;
// line and paragraph separators; the byte order mark; tags; lone surrogates.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\p{Surrogate}|[\u{e0000}-\u{e007f}]/gu;

const CONTROL_NAMES =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

/** Returns the text with visible signs, such as ⟨ESC⟩ for an escape and ⟨U+202E⟩ for an override. */
export function showInvisible(text) {
  return text.replace(/\r\n/g, "\n").replace(INVISIBLE, (char) => {
    const code = char.codePointAt(0);
    if (code < 0x20) return `⟨${CONTROL_NAMES[code]}⟩`;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Returns one line of text for a table or a title. */
export function oneLine(text, chars = 200) {
  const line = String(text ?? "").trim().replace(/\s*\n\s*/g, " ⏎ ");
  return showInvisible(line.length > chars ? `${line.slice(0, chars)}…` : line);
}

/** Returns the text with long lines cut. */
export function cutLines(text) {
  if (text.length <= LINE_CHARS) return text;
  const cut = (line) => {
    const more = line.length - LINE_CHARS;
    if (more <= 0) return line;
    return `${line.slice(0, LINE_CHARS)}… (${more.toLocaleString("en")} more characters in this line)`;
  };
  return text.split("\n").map(cut).join("\n");
}
