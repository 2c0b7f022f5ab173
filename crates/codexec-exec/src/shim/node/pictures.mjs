// Pictures that a guest shows.
import {
  base64Slice, bufferFrom, codeAt, getLength, indexOf, isAnyArrayBuffer, isArray, RangeError, readFileSync, slice, startsWith,
  TypeError,
} from "./taken.mjs";

const IMAGE_BYTES = 8 << 20;
const magic = (bytes) => {
  const is = (at, text) => {
    for (let i = 0; i < text.length; i++) if (bytes[at + i] !== codeAt(text, i)) return false;
    return true;
  };
  if (is(0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (is(0, "\xff\xd8\xff")) return "image/jpeg";
  if (is(0, "GIF8")) return "image/gif";
  if (is(0, "RIFF") && is(8, "WEBP")) return "image/webp";
  return undefined;
};

const isView = ArrayBuffer.isView;

// Returns `emit`, which sends with `send` and prints with `print`.
export const emitBy = (own, send, print) => {
  // Returns the base64 data of a tool's content block, or `undefined`.
  const blockData = (block) => {
    if (typeof block !== "object" || block === null) return undefined;
    if (block.type === "resource") return blockData(block.resource);
    const data = block.type === undefined ? block.blob : block.data;
    return typeof data === "string" ? data : undefined;
  };
  const imageBytes = (image) => {
    if (isView(image)) return bufferFrom(image.buffer, image.byteOffset, image.byteLength);
    if (isAnyArrayBuffer(image)) return bufferFrom(image);
    const data = blockData(image);
    if (data !== undefined) return bufferFrom(data, "base64");
    if (typeof image !== "string") {
      throw new TypeError("emit takes bytes, a path, a tool's content block or a data: URL, not " + own.kindOf(image));
    }
    if (!startsWith(image, "data:")) return readFileSync(image);
    const comma = indexOf(image, ",");
    const isBase64 = indexOf(slice(image, 0, comma), ";base64") !== -1;
    if (comma === -1 || !isBase64) throw new TypeError("emit reads data: URLs in base64 only");
    return bufferFrom(slice(image, comma + 1), "base64");
  };
  const emitOne = (image) => {
    if (image?.type === "text" && typeof image.text === "string") return print(image.text);
    const bytes = imageBytes(image);
    const mime = magic(bytes);
    if (mime === undefined) throw new TypeError("emit shows png, jpeg, gif and webp pictures; this is none");
    const length = getLength(bytes);
    if (length > IMAGE_BYTES) {
      throw new RangeError(`the picture is ${length} bytes; at most ${IMAGE_BYTES} are allowed`);
    }
    send(`{"image":{"mime":"${mime}","base64":"${base64Slice(bytes, 0, length)}"}}`);
  };
  return (image) => {
    const blocks = isArray(image?.content) ? image.content : image;
    if (!isArray(blocks)) return emitOne(blocks);
    for (let i = 0; i < blocks.length; i++) emitOne(blocks[i]);
  };
};
