// Starts the dashboard: the theme, the sign-in, and the page that the address names.

import { hasToken, signedOut } from "./api.js";
import { Shell, applyTheme } from "./shell.js";
import { SignIn } from "./sign_in.js";
import { html, render, useEffect, useState } from "./view.js";

/** Reads the part of the address after `#`: `/history?text=x` has the path ["history"]. */
function readAddress() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const decode = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function App() {
  const [address, setAddress] = useState(readAddress);
  const [isSignedIn, setSignedIn] = useState(hasToken);
  const [reason, setReason] = useState(null);
  useEffect(() => {
    const move = () => setAddress(readAddress());
    const leave = ({ detail }) => {
      setReason(detail ?? null);
      setSignedIn(false);
    };
    window.addEventListener("hashchange", move);
    signedOut.addEventListener("signed-out", leave);
    return () => {
      window.removeEventListener("hashchange", move);
      signedOut.removeEventListener("signed-out", leave);
    };
  }, []);
  if (!isSignedIn) return html`<${SignIn} reason=${reason} onSignedIn=${() => setSignedIn(true)} />`;
  return html`<${Shell} address=${address} />`;
}

applyTheme();
render(html`<${App} />`, document.getElementById("app"));
