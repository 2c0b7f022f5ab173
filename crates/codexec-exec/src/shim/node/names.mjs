// The names that cells declare. They are properties of the global object, where code that was
// compiled before sees them too. A name that Node itself has there is put aside, into an object that
// hides it from cells: modules go on to see Node's.
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
          // Node's, until the declaration is reached.
          shadow[name] = globalThis[name];
          define(shadowed, shadowed.length, name);
        } else if (!hasOwn(globalThis, name)) {
          define(globalThis, name, undefined);
        }
      }
    },
    // What hides globals from this code, if anything does: it makes all names slower.
    shadowFor: (code) => {
      for (let i = 0; i < shadowed.length; i++) if (includes(code, shadowed[i])) return shadow;
      return undefined;
    },
    // Functions are compiled under another name than they have.
    named: (made, name) => {
      defineProperty(made, "name", { __proto__: null, value: name, writable: false, enumerable: false, configurable: true });
      return made;
    },
  };
};
