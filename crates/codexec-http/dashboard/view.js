// The library behind every page: preact, its hooks, and templates that need no build step.

import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";

/** Makes elements from a template. Values are always text or properties, never markup. */
export const html = htm.bind(h);
