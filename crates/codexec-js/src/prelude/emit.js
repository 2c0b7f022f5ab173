// emit(..): shows images in the reply. Takes the content blocks of tools, bytes and data: URLs.
(native, own) => {
  const { ArrayBuffer, String, TypeError, Uint8Array } = globalThis;
  const CHUNK = 6144;

  const isObject = (value) => typeof value === "object" && value !== null;
  const startsWith = (text, start) => own.slice(text, 0, start.length) === start;

  // As text with one character for each byte.
  const binaryText = (bytes) => {
    let text = "";
    for (let at = 0; at < bytes.length; at += CHUNK) {
      const units = [];
      for (let i = at; i < bytes.length && i < at + CHUNK; i++) own.arrayPush(units, bytes[i]);
      text += own.apply(own.fromCharCode, String, units);
    }
    return text;
  };
  const typeOf = (text) => {
    if (startsWith(text, "\x89PNG\r\n\x1a\n")) return "image/png";
    if (startsWith(text, "\xff\xd8\xff")) return "image/jpeg";
    if (startsWith(text, "GIF8")) return "image/gif";
    if (startsWith(text, "RIFF") && own.slice(text, 8, 12) === "WEBP") return "image/webp";
    throw new TypeError("emit shows png, jpeg, gif and webp images; these bytes are none");
  };
  const emitBytes = (bytes) => {
    const text = binaryText(bytes);
    native.image(typeOf(text), own.btoa(text));
  };
  const emitUrl = (url) => {
    const [head, data] = own.split(url, ",");
    const [type, encoding] = own.split(own.slice(head, 5), ";");
    if (!startsWith(url, "data:") || encoding !== "base64" || data === undefined) {
      throw new TypeError("emit takes bytes, a tool's content block or a data: URL in base64, not " + own.inspect(own.slice(url, 0, 40)));
    }
    native.image(type, data);
  };
  const emitBlock = (block) => {
    if (typeof block.data === "string") return native.image(block.mimeType + "", block.data);
    if (typeof block.blob === "string") return native.image(block.mimeType + "", block.blob);
    if (block.type === "resource" && isObject(block.resource)) return emitBlock(block.resource);
    if (typeof block.text === "string") return native.print(false, own.wellFormed(block.text) + "\n");
    throw new TypeError("emit takes bytes, a tool's content block or a data: URL, not " + own.inspect(block));
  };

  const emit = (value) => {
    if (typeof value === "string") return emitUrl(value);
    if (!isObject(value)) throw new TypeError("emit takes bytes, a tool's content block or a data: URL, not " + own.kindOf(value));
    if (value instanceof ArrayBuffer) return emitBytes(new Uint8Array(value));
    if (own.isView(value)) return emitBytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    const blocks = own.isArray(value.content) ? value.content : value;
    if (!own.isArray(blocks)) return emitBlock(blocks);
    for (let i = 0; i < blocks.length; i++) emitBlock(blocks[i]);
  };
  own.define(globalThis, "emit", emit);
}
