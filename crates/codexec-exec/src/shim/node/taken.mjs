// Built-in functions, captured before a guest can replace them: after a guest's code has run, our
// own code looks up no method on a prototype and no name in a module.
import fs from "node:fs";
import util from "node:util";

export const { apply, defineProperty, ownKeys, getOwnPropertyDescriptor } = Reflect;
export const { parse, stringify } = JSON;
export const { isArray } = Array;
export const { max } = Math;
export const { create, hasOwn } = Object;
export const { readSync, writeSync, readFileSync } = fs;
export const { inspect } = util;
export const { isAnyArrayBuffer, isMap, isSet } = util.types;
const globals = globalThis;
export const { setTimeout, clearTimeout, setImmediate, queueMicrotask, Error, TypeError, RangeError, Map, Set, process } = globals;
export const { exit, reallyExit } = process;
export const unbound = (method) => (self, ...args) => apply(method, self, args);
export const subarray = unbound(Uint8Array.prototype.subarray);
export const setBytes = unbound(Uint8Array.prototype.set);
export const copyWithin = unbound(Uint8Array.prototype.copyWithin);
export const decode = unbound(TextDecoder.prototype.decode);
export const encode = unbound(TextEncoder.prototype.encode);
export const encodeInto = unbound(TextEncoder.prototype.encodeInto);
export const getLength = unbound(getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), "byteLength").get);
export const base64Slice = unbound(Buffer.prototype.base64Slice);
export const bufferFrom = Buffer.from;
export const bufferByteLength = Buffer.byteLength;
export const slice = unbound(String.prototype.slice);
export const indexOf = unbound(String.prototype.indexOf);
export const lastIndexOf = unbound(String.prototype.lastIndexOf);
export const startsWith = unbound(String.prototype.startsWith);
export const replace = unbound(String.prototype.replace);
export const codeAt = unbound(String.prototype.charCodeAt);
export const listenerCount = unbound(process.listenerCount);
export const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
export const encoder = new TextEncoder();
export const define = (target, name, value) =>
  defineProperty(target, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });

// Returns the result, or `undefined` if the function throws.
export const safely = (read) => {
  try {
    return read();
  } catch {
    return undefined;
  }
};
