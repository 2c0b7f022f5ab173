// Search paths for packages besides the `node_modules` above the importing file: those of the
// session, then the shared ones. Applies to `import` and `require` alike.
import module, { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const FOLDERS = ["/box/packages", "/opt/packages"];

export const findPackages = () => {
  // Node reads NODE_PATH once; the guest's child processes must not inherit it.
  const given = process.env.NODE_PATH;
  process.env.NODE_PATH = FOLDERS.map((folder) => `${folder}/node_modules`).join(":");
  module._initPaths?.();
  if (given === undefined) delete process.env.NODE_PATH;
  else process.env.NODE_PATH = given;
  const loader = loaderOfModules();
  if (loader === undefined) return;
  for (const name of ["resolve", "resolveSync"]) {
    if (typeof loader[name] === "function") loader[name] = withPackages(loader[name]);
  }
};

const loaderOfModules = () => {
  try {
    return createRequire(import.meta.url)("internal/modules/esm/loader").getOrInitializeCascadedLoader();
  } catch {
    // A Node with other internals: `require` finds the packages, `import` does not.
    return undefined;
  }
};

const BASES = FOLDERS.map((folder) => pathToFileURL(`${folder}/main.mjs`).href);
const BARE = /^[^./#][^:]*$/;
const { test } = RegExp.prototype;
const { apply } = Reflect;

const withPackages = (resolve) =>
  function (specifier, parent, ...rest) {
    const elsewhere = (error) => {
      const isMissing = error?.code === "ERR_MODULE_NOT_FOUND" && apply(test, BARE, [specifier]);
      if (!isMissing) throw error;
      for (let i = 0; i < BASES.length; i++) {
        try {
          return apply(resolve, this, [specifier, BASES[i], ...rest]);
        } catch {
          // The first error is thrown, because it names the importing file.
        }
      }
      throw error;
    };
    let found;
    try {
      found = apply(resolve, this, [specifier, parent, ...rest]);
    } catch (error) {
      return elsewhere(error);
    }
    return typeof found?.then === "function" ? found.then(undefined, elsewhere) : found;
  };
