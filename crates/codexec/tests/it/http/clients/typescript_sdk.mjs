// Drives codexec over HTTP with the official TypeScript client, and prints what it saw as JSON.
//
// Its only argument: {"url": .., "server_url": .., "token": .., "mode": "legacy" | "auto"}.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const plan = JSON.parse(process.argv[2]);
const options = { timeout: 60_000 };

async function connect(url, capabilities) {
  const client = new Client(
    { name: "it", version: "0" },
    { capabilities, versionNegotiation: { mode: plan.mode } },
  );
  if (capabilities.elicitation) {
    client.setRequestHandler("elicitation/create", async () => ({
      action: "accept",
      content: { username: "ann", email: "a@b.example" },
    }));
  }
  const headers = { Authorization: `Bearer ${plan.token}` };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport, options);
  return client;
}

function run(client, code, language = "typescript", more = {}, callOptions = options) {
  const call = { name: "execute_code", arguments: { code, language, ...more } };
  return client.callTool(call, callOptions);
}

// Leaves a call as soon as it is known to run, and waits until it runs no more.
async function cancel(client) {
  const leaving = new AbortController();
  const code = "progress('it runs'); await new Promise(() => setTimeout(() => {}, 250_000));";
  const callOptions = { ...options, signal: leaving.signal, onprogress: () => leaving.abort() };
  const call = run(client, code, "typescript", { timeout_ms: 300_000 }, callOptions);
  const isCancelled = await call.then(() => false, () => true);
  for (;;) {
    const health = await client.callTool({ name: "health", arguments: {} }, options);
    if (JSON.parse(health.content[0].text).running === 0) return isCancelled;
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function see(client) {
  const progress = [];
  const onprogress = (update) => progress.push(update.message);
  const code = "progress('half'); return 6 * 7";
  const result = await run(client, code, "typescript", {}, { ...options, onprogress });
  await run(client, "globalThis.n = 41; return n", "typescript", { session: "kept" });
  const kept = await run(client, "return n + 1", "typescript", { session: "kept" });
  const made = await run(client, "echo hello > out.txt", "bash");
  const link = made.content.find((block) => block.type === "resource_link");
  const artifact = await client.readResource({ uri: link.uri }, options);
  return {
    version: client.getNegotiatedProtocolVersion(),
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    text: result.content[0].text,
    progress,
    session: kept.content[0].text,
    artifact: artifact.contents[0].text,
    is_cancelled: await cancel(client),
  };
}

const client = await connect(plan.url, {});
const saw = await see(client);
await client.close();
const relayed = await connect(plan.server_url, { elicitation: { form: {} } });
const call = { name: "test_elicitation", arguments: { message: "Who are you?" } };
saw.elicitation = (await relayed.callTool(call, options)).content[0].text;
await relayed.close();
console.log(JSON.stringify(saw));
