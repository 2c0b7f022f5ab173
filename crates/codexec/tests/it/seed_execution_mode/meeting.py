"""An MCP server whose tool `meet` answers nobody before `count` calls have come."""

import json
import sys

NAMES = {"count": {"type": "integer"}, "name": {"type": "string"}}
TOOL = {"name": "meet", "inputSchema": {"type": "object", "properties": NAMES}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
HELLO["serverInfo"] = {"name": "meeting", "version": "1"}


def answer(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


waiting = []
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        answer(request, HELLO)
    elif method == "tools/list":
        answer(request, {"tools": [TOOL]})
    elif method == "tools/call":
        waiting.append(request)
        if len(waiting) >= request["params"]["arguments"]["count"]:
            for come in waiting:
                name = come["params"]["arguments"]["name"]
                answer(come, {"content": [{"type": "text", "text": name}]})
            waiting.clear()
    elif "id" in request:
        answer(request, {})
