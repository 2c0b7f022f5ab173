// The names that cells declare. They are properties of the global object, so code that was compiled
// before sees them, too. A name that Node itself has there goes into a separate object that hides
// Node's from cells; modules still see Node's.
import { create, define, defineProperty, hasOwn } from "./taken.mjs";

const { getOwnPropertyNames } = Object;
const includes = Function.prototype.call.bind(String.prototype.includes);

export const namesOfSession = () => {
  const builtin = create(null);
  const found = getOwnPropertyNames(globalThis);
  for (let i = 0; i < found.length; i++) builtin[found[i]] = true;
  const shadow = create(null);
  const shadowed = [];

  return {
    declare: (names) => {
      for (let i = 0; i < names.length; i++) {
        const name = names[i];
        if (name in shadow) continue;
        if (name in builtin) {
          // Node's value, until the declaration runs.
          shadow[name] = globalThis[name];
          define(shadowed, shadowed.length, name);
        } else if (!hasOwn(globalThis, name)) {
          define(globalThis, name, undefined);
        }
      }
    },
    // Returns the object that hides globals, if this code needs it: all names get slower by it.
    shadowFor: (code) => {
      for (let i = 0; i < shadowed.length; i++) if (includes(code, shadowed[i])) return shadow;
      return undefined;
    },
    // Restores the name of a function that was compiled under another one.
    named: (made, name) => {
      defineProperty(made, "name", { __proto__: null, value: name, writable: false, enumerable: false, configurable: true });
      return made;
    },
  };
};
