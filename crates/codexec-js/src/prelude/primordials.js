// Built-in functions that the prelude needs, captured before a guest can replace them. A guest that
// overwrites Array.prototype or Promise breaks only itself.
(native, own) => {
  const { apply, defineProperty, ownKeys, getPrototypeOf, getOwnPropertyDescriptor } = Reflect;
  const unbound = (method) => (self, ...args) => apply(method, self, args);

  own.apply = apply;
  own.ownKeys = ownKeys;
  own.getPrototypeOf = getPrototypeOf;
  own.descriptorOf = getOwnPropertyDescriptor;
  own.freeze = Object.freeze;
  own.createObject = Object.create;
  own.isArray = Array.isArray;
  own.arrayPush = unbound(Array.prototype.push);
  own.arrayJoin = unbound(Array.prototype.join);
  own.arraySort = unbound(Array.prototype.sort);
  own.arraySplice = unbound(Array.prototype.splice);
  own.arrayFrom = Array.from;
  own.parse = JSON.parse;
  own.stringify = JSON.stringify;
  own.mapForEach = unbound(Map.prototype.forEach);
  own.mapGet = unbound(Map.prototype.get);
  own.mapSet = unbound(Map.prototype.set);
  own.mapHas = unbound(Map.prototype.has);
  own.setForEach = unbound(Set.prototype.forEach);
  own.setAdd = unbound(Set.prototype.add);
  own.weakGet = unbound(WeakMap.prototype.get);
  own.weakSet = unbound(WeakMap.prototype.set);
  own.repeat = unbound(String.prototype.repeat);
  own.slice = unbound(String.prototype.slice);
  own.split = unbound(String.prototype.split);
  own.replace = unbound(String.prototype.replace);
  own.padEnd = unbound(String.prototype.padEnd);
  own.charCodeAt = unbound(String.prototype.charCodeAt);
  own.fromCharCode = String.fromCharCode;
  own.toIso = unbound(Date.prototype.toISOString);
  own.getTime = unbound(Date.prototype.getTime);
  own.regexpText = unbound(RegExp.prototype.toString);
  own.functionText = unbound(Function.prototype.toString);
  own.symbolText = unbound(Symbol.prototype.toString);
  own.numberText = unbound(Number.prototype.toString);
  own.wellFormed = unbound(String.prototype.toWellFormed);
  own.setBytes = unbound(Uint8Array.prototype.set);
  own.sliceBuffer = unbound(ArrayBuffer.prototype.slice);
  own.isView = ArrayBuffer.isView;

  // Like built-in globals: not enumerable, and replaceable by the guest.
  own.define = (target, name, value) =>
    defineProperty(target, name, {
      __proto__: null,
      value,
      writable: true,
      configurable: true,
      enumerable: false,
    });

  // Deep enough that frames of the guest remain after ours are removed.
  Error.stackTraceLimit = 40;
  // The engine's own generator is seeded before the fork and would give every guest the same
  // numbers.
  own.define(Math, "random", { random: () => native.random() }.random);
  // Blocking on shared memory makes no sense with one thread.
  delete globalThis.SharedArrayBuffer;
  delete globalThis.Atomics;
  // Makes the C library load the time zone now, while there still are files.
  new Date(0).getTimezoneOffset();
}
