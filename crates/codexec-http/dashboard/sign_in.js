// The form that asks for the token.

import { get, setToken } from "./api.js";
import { html, useEffect, useRef, useState } from "./view.js";

export function SignIn({ reason, onSignedIn }) {
  const [error, setError] = useState(reason);
  const [isBusy, setBusy] = useState(false);
  const input = useRef(null);
  useEffect(() => {
    document.title = "Sign in · codexec";
    input.current?.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    const token = input.current.value.trim();
    // A header can have nothing else; the server would not see such a token at all.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      setError("A token has only letters, digits and signs, and no spaces.");
      return;
    }
    setBusy(true);
    setToken(token);
    try {
      await get("/stats");
      onSignedIn();
    } catch (problem) {
      setError(problem.status === 401 ? "This token is not valid." : problem.message);
      setBusy(false);
    }
  };
  return html`
    <main class="sign-in" id="main">
      <form onSubmit=${submit} novalidate>
        <p class="brand"><img src="/assets/icon.svg" alt="" width="32" height="32" /> codexec</p>
        <h1>Sign in</h1>
        <label for="token">Token</label>
        <input id="token" ref=${input} type="password" autocomplete="off" spellcheck=${false}
          aria-describedby="token-help" aria-invalid=${Boolean(error)} required />
        ${error && html`<p class="problem" role="alert">${error}</p>`}
        <button class="primary" disabled=${isBusy}>${isBusy ? "Checking…" : "Sign in"}</button>
        <p id="token-help" class="muted">
          The first start of the server wrote a token to <code>~/.codexec/http-token</code>.
          Make others with <code>codexec token create NAME</code>.
          The token stays in this tab, and is forgotten when you close it.
        </p>
      </form>
    </main>
  `;
}
