"""Drives codexec over HTTP with fastmcp's client, and prints what it saw as JSON.

Its only argument: {"url": .., "server_url": .., "token": .., "mode": "legacy" | "auto"}.
"""

import asyncio
import json
import sys

from fastmcp import Client

plan = json.loads(sys.argv[1])
PATIENCE_S = 60


def connect(url, **options):
    options |= {"auth": plan["token"], "mode": plan["mode"], "timeout": PATIENCE_S}
    return Client(url, **options)


async def run(client, code, language="typescript", **more):
    return await client.call_tool("execute_code", {"code": code, "language": language} | more)


async def cancel(client):
    """Leaves a call as soon as it is known to run, and waits until it runs no more."""
    begun = asyncio.Event()

    async def on_progress(progress, total, message):
        begun.set()

    code = "progress('it runs'); await new Promise(() => setTimeout(() => {}, 250_000));"
    arguments = {"code": code, "language": "typescript", "timeout_ms": 300_000}
    call = asyncio.create_task(
        client.call_tool("execute_code", arguments, progress_handler=on_progress)
    )
    await begun.wait()
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        pass
    while json.loads((await client.call_tool("health", {})).content[0].text)["running"] > 0:
        await asyncio.sleep(0.05)
    return call.cancelled()


async def see(client):
    seen = []

    async def on_progress(progress, total, message):
        seen.append(message)

    arguments = {"code": "progress('half'); return 6 * 7", "language": "typescript"}
    result = await client.call_tool("execute_code", arguments, progress_handler=on_progress)
    await run(client, "globalThis.n = 41; return n", session="kept")
    kept = await run(client, "return n + 1", session="kept")
    made = await run(client, "echo hello > out.txt", "bash")
    link = next(block for block in made.content if block.type == "resource_link")
    return {
        "version": client.protocol_version,
        "tools": [tool.name for tool in await client.list_tools()],
        "text": result.content[0].text,
        "progress": seen,
        "session": kept.content[0].text,
        "artifact": (await client.read_resource(str(link.uri)))[0].text,
        "is_cancelled": await cancel(client),
    }


async def answer(message, response_type, params, context):
    return {"username": "ann", "email": "a@b.example"}


async def main():
    async with connect(plan["url"]) as client:
        saw = await see(client)
    async with connect(plan["server_url"], elicitation_handler=answer) as client:
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        saw["elicitation"] = result.content[0].text
    print(json.dumps(saw))


asyncio.run(main())
