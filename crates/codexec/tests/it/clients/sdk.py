"""Drives codexec with the official SDK's client, and prints what it saw as one JSON object.

Its only argument: {"command": .., "args": [..], "env": {..}, "mode": "legacy" | "auto"}.
"""

import json
import sys

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

plan = json.loads(sys.argv[1])
PATIENCE_S = 60


def text(result):
    return {"text": [block.text for block in result.content], "is_error": result.is_error}


async def health(client):
    result = await client.call_tool("health", {})
    return json.loads(result.content[0].text)


async def cancelled(client):
    """Leaves a call as soon as it is known to run, and waits until it runs no more."""
    code = "progress('it runs'); await new Promise((done) => setTimeout(done, 250_000));"
    seen = []

    with anyio.CancelScope() as scope:

        async def on_progress(progress, total, message):
            seen.append(message)
            scope.cancel()

        arguments = {"language": "typescript", "code": code, "timeout_ms": 300_000}
        await client.call_tool("execute_code", arguments, progress_callback=on_progress)
    while (await health(client))["running"] > 0:
        await anyio.sleep(0.05)
    return {"was_cancelled": scope.cancelled_caught, "progress": seen[:1]}


async def resource(client):
    result = await client.call_tool("execute_code", {"language": "typescript", "code": "console.log('x'.repeat(20_000))"})
    execution = result.meta["codexec/execution"]["id"]
    uri = f"codexec://executions/{execution}"
    contents = (await client.read_resource(uri)).contents
    shown = result.content[0].text
    return {
        "is_cut": len(shown) < 10_000 and shown.startswith("[cut: ") and uri in shown.split("\n")[0],
        "contents": len(contents),
        "uri_is_same": str(contents[0].uri) == uri,
        "is_whole": contents[0].text.startswith("x" * 20_000),
    }


async def main():
    server = StdioServerParameters(command=plan["command"], args=plan["args"], env=plan["env"])
    async with Client(server, mode=plan["mode"], read_timeout_seconds=PATIENCE_S) as client:
        templates = await client.list_resource_templates()
        return {
            "protocol": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions.split("\n")[-1],
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            "templates": [template.uri_template for template in templates.resource_templates],
            "returned": text(await client.call_tool("execute_code", {"language": "typescript", "code": "[1, 2].map((n): number => n * 2)"})),
            "threw": text(await client.call_tool("execute_code", {"language": "typescript", "code": "\nthrow new Error('no')"})),
            "refused": text(await client.call_tool("execute_code", {"language": "typescript", "code": "1", "timeout_ms": 0})),
            "cancelled": await cancelled(client),
            "resource": await resource(client),
        }


print(json.dumps(anyio.run(main)))
