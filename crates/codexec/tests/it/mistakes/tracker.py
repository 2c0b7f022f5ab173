"""An MCP server with an issue tracker's tools."""

import json
import sys

NUMBER = {"number": {"type": "integer"}}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": NUMBER, "required": ["number"]}
TOOLS = [
    {"name": "get_issue", "inputSchema": {**SCHEMA, "additionalProperties": False}},
    {"name": "screenshot", "inputSchema": {"type": "object"}},
    {"name": "recording", "inputSchema": {"type": "object"}},
]
CONTENT = {
    "get_issue": {"type": "text", "text": '{"title": "Broken"}'},
    "screenshot": {"type": "image", "data": PNG, "mimeType": "image/png"},
    "recording": {"type": "audio", "data": "UklGRjEyMzRXQVZFZm10IA==", "mimeType": "audio/wav"},
}

for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request:
        continue
    if method == "initialize":
        result = {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tracker", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = {"content": [CONTENT[request["params"]["name"]]]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
