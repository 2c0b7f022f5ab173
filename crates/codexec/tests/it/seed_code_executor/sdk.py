"""The toolset through the official SDK's client; prints what it saw as one JSON object.

Its only argument: {"command": .., "args": [..], "env": {..}}.
"""

import json
import sys

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

plan = json.loads(sys.argv[1])


async def main():
    server = StdioServerParameters(command=plan["command"], args=plan["args"], env=plan["env"])
    async with Client(server, read_timeout_seconds=60) as client:
        # From here on it knows the schemas, and raises where a result is not as they say.
        tools = [tool.name for tool in (await client.list_tools()).tools]
        typescript = await client.call_tool("executeTypescript", {"code": "return 1 + 1"})
        python = await client.call_tool("executePython", {"code": "1 + 1"})
        threw = await client.call_tool("executePython", {"code": "1 / 0"})
        refused = await client.call_tool("executePython", {"code": "1", "timeoutMs": 1})
        health = await client.call_tool("health", {})
        return {
            "tools": tools,
            "typescript": [typescript.structured_content[key] for key in ("success", "output")],
            "python": [python.structured_content[key] for key in ("success", "output")],
            "threw": [threw.structured_content["success"], threw.is_error],
            "refused": [
                refused.structured_content,
                refused.is_error,
                json.loads(refused.content[0].text)["errorType"],
            ],
            "healthy": health.structured_content["healthy"],
        }


print(json.dumps(anyio.run(main)))
