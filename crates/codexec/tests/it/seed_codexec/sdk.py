"""A session and a script through the official SDK's client; prints what it saw as one JSON object.

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

        async def call(tool, **args):
            result = await client.call_tool(tool, args)
            return json.loads(result.content[0].text), result.is_error

        tools = [tool.name for tool in (await client.list_tools()).tools]
        started, _ = await call("start_session", language="python", name="sdk")
        session = started["session_id"]
        await call("send_to_session", session_id=session, code="x = 20")
        sent, _ = await call("send_to_session", session_id=session, code="x + 1")
        threw, is_error = await call("send_to_session", session_id=session, code="1 / 0")
        closed, _ = await call("close_session", session_id=session)
        code = "import sys\nprint(sys.argv[1])"
        await call("save_script", name="say", description="Says", language="python", code=code)
        ran, _ = await call("run_script", name="say", args=["hello"])
        logs, _ = await call("search_execution_logs", session_id=session)
        return {
            "tools": tools,
            "sent": sent["stdout"],
            "threw": [threw["success"], is_error],
            "closed": closed["executions_count"],
            "ran": ran["stdout"],
            "logs": logs["total_count"],
        }


print(json.dumps(anyio.run(main)))
