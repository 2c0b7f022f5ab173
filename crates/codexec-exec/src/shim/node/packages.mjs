// Where packages are looked for beside the `node_modules` above whoever asks: those of the session,
// then those that are there for everybody. What imports is told the same as what requires.
import module, { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const FOLDERS = ["/box/packages", "/opt/packages"];

export const findPackages = () => {
  // Node reads them from there, and only once; a guest's own programs are not to find them.
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
    // Another Node: what is required is found, what is imported only above.
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
          // The first error is the one that names who asked.
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
