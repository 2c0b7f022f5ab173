"""A small MCP server over stdio. Its one tool, `who`, tells how it was started."""

import json
import os
import sys

name, *args = sys.argv[1:]


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def reply(request, result):
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


def garbage():
    if name == "garbage":
        say("npm WARN deprecated \x1b[31mleft-pad\x1b[0m")
        say('{"level":"info","msg":"listening"}')
        say("{not json")
        sys.stdout.buffer.write(b"\xff\xfe\n\n")
        sys.stdout.flush()


garbage()
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        if name == "slow":
            # Longer than discovery waits.
            import time

            time.sleep(float(args[0]))
        reply(request, {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
        })
    elif method == "tools/list":
        garbage()
        tool = {"name": "who", "description": f"Tells who {name} is.", "inputSchema": {"type": "object"}}
        reply(request, {"tools": [tool]})
    elif method == "tools/call":
        garbage()
        kept = {key: value for key, value in os.environ.items() if key.startswith("TEST_")}
        who = {"name": name, "args": args, "env": kept, "cwd": os.getcwd()}
        reply(request, {"content": [], "structuredContent": who})
