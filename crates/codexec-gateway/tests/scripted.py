"""An MCP server over stdio that misbehaves as it is told: by a JSON object as its only argument
(how it starts), and by the name of the tool that is called (how it answers)."""

import json
import os
import signal
import subprocess
import sys
import time

plan = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
out = sys.stdout.buffer
cancelled = []
calls = 0
lists = []

TOOLS = [
    {"name": name, "description": f"Answers by {name}.", "inputSchema": {"type": "object"}}
    for name in plan.get("tools", ["echo", "die", "hang", "cancelled", "count"])
]
TOOLS += plan.get("raw_tools", [])
if "description_mb" in plan:
    TOOLS.append({"name": "long", "description": "y" * (plan["description_mb"] << 20)})


def raw(data):
    out.write(data)
    out.flush()


def send(message):
    raw(json.dumps(message).encode() + b"\n")


def reply(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(request, value):
    reply(request, {"content": [{"type": "text", "text": value}]})


def flood(stream, head, megabytes, tail):
    stream.write(head)
    for _ in range(megabytes):
        stream.write(b"x" * (1 << 20))
    stream.write(tail)
    stream.flush()


def call(request):
    global calls
    calls += 1
    name = request["params"]["name"]
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"]
    if name == "hang":
        return
    if name == "die":
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "long_line":
        return flood(out, head, 200, b"")
    if name == "big_result":
        return flood(out, head, 100, b'"}]}}\n')
    if name == "nameless_line":
        return flood(out, b'{"result":{"content":[{"type":"text","id":1,"text":"', 20, b'"}]},"id":1}\n')
    if name == "string_id":
        return send({"jsonrpc": "2.0", "id": str(request["id"]), "result": {"content": []}})
    if name == "lone_surrogate":
        return raw(head + b'cut \\ud83d here"}]}}\n')
    if name == "bad_utf8":
        return raw(head + b'caf\xe9"}]}}\n')
    if name == "deep":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (request["id"], b"[" * 500 + b"]" * 500))
    if name == "unknown_content":
        return reply(request, {"content": [{"type": "hologram", "beam": 1}]})
    if name == "drip":
        for byte in head + b'slow"}]}}\n':
            raw(bytes([byte]))
        return
    if name == "fails":
        return reply(request, {"isError": True, "content": [{"type": "text", "text": "no such row"}]})
    if name == "refuses":
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "bad id"}})
    if name == "junk_then_echo":
        raw(b"debug: hello\n{not json\n\xff\xfe\x00\n")
    if name == "become":
        TOOLS[:] = request["params"]["arguments"]["tools"]
        for _ in range(request["params"]["arguments"].get("times", 1)):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if name == "change":
        TOOLS.append({"name": "added", "inputSchema": {"type": "object"}})
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if name == "cancelled":
        return reply(request, {"content": [], "structuredContent": cancelled})
    if name == "lists":
        return reply(request, {"content": [], "structuredContent": len(lists)})
    if name == "count":
        return reply(request, {"content": [], "structuredContent": calls})
    if name == "environment":
        return reply(request, {"content": [], "structuredContent": sorted(os.environ)})
    text(request, json.dumps(request["params"].get("arguments")))


def tools_page(request):
    cursor = (request.get("params") or {}).get("cursor")
    if plan.get("pages") == "endless":
        page = int(cursor or 0)
        tool = {"name": f"tool_{page}", "inputSchema": {"type": "object"}}
        return reply(request, {"tools": [tool], "nextCursor": str(page + 1)})
    if plan.get("pages") == "repeated":
        return reply(request, {"tools": TOOLS, "nextCursor": "again"})
    lists.append(1)
    if plan.get("lists") and len(lists) > plan["lists"]:
        return
    life = {"ttlMs": plan["ttl_ms"]} if "ttl_ms" in plan else {}
    reply(request, {"tools": TOOLS, **life})


def handle(message):
    method = message.get("method")
    if method == "initialize":
        if plan.get("start") == "hang":
            return
        if plan.get("start") == "die":
            sys.stderr.write("no config file\n")
            sys.exit(4)
        capabilities = plan.get("capabilities", {"tools": {"listChanged": True}})
        reply(message, {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": "scripted", "version": plan.get("version", "1")},
        })
    elif method == "tools/list":
        tools_page(message)
    elif method == "tools/call":
        call(message)
    elif method == "notifications/cancelled":
        cancelled.append(message["params"]["requestId"])


if plan.get("grandchild"):
    child = subprocess.Popen(["sleep", "300"])
    with open(plan["grandchild"], "w") as file:
        file.write(str(child.pid))
if plan.get("ignore_eof"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if plan.get("garbage"):
    raw(b"Starting \x1b[32mOK\x1b[0m\n{not json\n\xff\xfe\x00\n\n[]\n")
if plan.get("babble"):
    for _ in range(plan["babble"]):
        out.write(b"I am not a protocol\n")
    out.flush()
if plan.get("stderr_mb"):
    flood(sys.stderr.buffer, b"", plan["stderr_mb"], b"\nthe last words\n")

while line := sys.stdin.buffer.readline():
    handle(json.loads(line))
while plan.get("ignore_eof"):
    time.sleep(60)
