"""Drives codexec over HTTP with the official SDK's client, and prints what it saw as JSON.

Its only argument: {"url": .., "token": .., "mode": "legacy" | "auto"}.
"""

import json
import sys

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

plan = json.loads(sys.argv[1])
PATIENCE_S = 60


async def main():
    headers = {"Authorization": f"Bearer {plan['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(plan["url"], http_client=http)
        async with Client(transport, mode=plan["mode"], read_timeout_seconds=PATIENCE_S) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            seen = []

            async def on_progress(progress, total, message):
                seen.append(message)

            code = "progress('half'); return 6 * 7"
            arguments = {"code": code, "language": "typescript"}
            result = await client.call_tool(
                "execute_code", arguments, progress_callback=on_progress
            )
            health = json.loads((await client.call_tool("health", {})).content[0].text)
            saw = {
                "version": client.protocol_version,
                "tools": tools,
                "text": result.content[0].text,
                "progress": seen,
                "running": health["running"],
            }
    print(json.dumps(saw))


anyio.run(main)
