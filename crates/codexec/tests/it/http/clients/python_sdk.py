"""Drives codexec over HTTP with the official SDK's client, and prints what it saw as JSON.

Its only argument: {"url": .., "server_url": .., "token": .., "mode": "legacy" | "auto"}.
"""

import json
import sys

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

plan = json.loads(sys.argv[1])
PATIENCE_S = 60


def connect(http, url, **options):
    transport = streamable_http_client(url, http_client=http)
    return Client(transport, mode=plan["mode"], read_timeout_seconds=PATIENCE_S, **options)


async def run(client, code, language="typescript", **more):
    return await client.call_tool("execute_code", {"code": code, "language": language} | more)


async def cancel(client):
    """Leaves a call as soon as it is known to run, and waits until it runs no more."""
    with anyio.CancelScope() as scope:

        async def on_progress(progress, total, message):
            scope.cancel()

        code = "progress('it runs'); await new Promise(() => setTimeout(() => {}, 250_000));"
        arguments = {"code": code, "language": "typescript", "timeout_ms": 300_000}
        await client.call_tool("execute_code", arguments, progress_callback=on_progress)
    while json.loads((await client.call_tool("health", {})).content[0].text)["running"] > 0:
        await anyio.sleep(0.05)
    return scope.cancelled_caught


async def see(client):
    seen = []

    async def on_progress(progress, total, message):
        seen.append(message)

    arguments = {"code": "progress('half'); return 6 * 7", "language": "typescript"}
    result = await client.call_tool("execute_code", arguments, progress_callback=on_progress)
    await run(client, "globalThis.n = 41; return n", session="kept")
    kept = await run(client, "return n + 1", session="kept")
    made = await run(client, "echo hello > out.txt", "bash")
    link = next(block for block in made.content if block.type == "resource_link")
    return {
        "version": client.protocol_version,
        "tools": [tool.name for tool in (await client.list_tools()).tools],
        "text": result.content[0].text,
        "progress": seen,
        "session": kept.content[0].text,
        "artifact": (await client.read_resource(str(link.uri))).contents[0].text,
        "is_cancelled": await cancel(client),
    }


async def answer(context, params):
    return types.ElicitResult(action="accept", content={"username": "ann", "email": "a@b.example"})


async def main():
    headers = {"Authorization": f"Bearer {plan['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        async with connect(http, plan["url"]) as client:
            saw = await see(client)
        async with connect(http, plan["server_url"], elicitation_callback=answer) as client:
            result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
            saw["elicitation"] = result.content[0].text
    print(json.dumps(saw))


anyio.run(main)
