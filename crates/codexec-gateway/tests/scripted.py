"""An MCP server over stdio that misbehaves on command: a JSON object as its only argument says how
it starts, and the name of the called tool says how it answers."""

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
TOOLS += [
    {"name": f"tool_{n}", "description": "One of many.", "inputSchema": {"type": "object"}}
    for n in range(plan.get("many", 0))
]
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


def notify(method, params=None):
    out.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")


def progress(request, step, message=None):
    token = request["params"].get("_meta", {}).get("progressToken")
    notify("notifications/progress", {"progressToken": token, "progress": step, "message": message})


def ask(request_id, method):
    send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {}})
    while True:
        answer = json.loads(sys.stdin.buffer.readline())
        if answer.get("id") == request_id and "method" not in answer:
            return answer


def call(request):
    global calls
    calls += 1
    name = request["params"]["name"]
    args = request["params"].get("arguments") or {}
    if "log" in plan:
        with open(plan["log"], "a") as file:
            file.write(name + "\n")
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"]
    if name == "hang" or (name == "flaky" and calls <= plan["flaky"]):
        return
    if name == "steps":
        for step in range(args["steps"]):
            progress(request, step, f"step {step}")
            out.flush()
            time.sleep(args.get("pause_s", 0))
        return text(request, "done")
    if name == "steps_for_ever":
        while True:
            progress(request, 1)
            out.flush()
            time.sleep(0.02)
    if name == "progress_flood":
        for step in range(50_000):
            progress(request, step, "x" * 100)
    if name == "notification_flood":
        for _ in range(20_000):
            notify("notifications/tools/list_changed")
            notify("notifications/message", {"level": "info", "data": "x" * 100})
            notify("notifications/cancelled", {"requestId": 1})
    if name == "request_flood":
        for n in range(50_000):
            out.write(b'{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}\n' % n)
    if name == "ping_flood":
        for n in range(50_000):
            out.write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % n)
    if name == "ask_us":
        methods = ["ping", "sampling/createMessage", "roots/list", "elicitation/create", "no/such"]
        answers = {method: ask(f"own-{method}", method) for method in methods}
        kinds = {method: "result" if "result" in a else a["error"]["code"] for method, a in answers.items()}
        return reply(request, {"content": [], "structuredContent": kinds})
    if name == "deaf":
        text(request, "I hear nothing from now on")
        time.sleep(600)
    if name == "twice":
        text(request, "first")
        return text(request, "second")
    if name == "for_another":
        text({"id": request["id"] + 1000}, "not yours")
        text({"id": None}, "nobody's")
    if name == "half_line":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"conte\n' % request["id"])
    if name == "half_line_and_die":
        raw(head)
        os._exit(6)
    if name == "close_output":
        os.close(1)
        return
    if name == "leave_child" or name == "leave_session":
        child = subprocess.Popen(["sleep", "300"], start_new_session=name == "leave_session")
        with open(plan["child"], "w") as file:
            file.write(str(child.pid))
        os._exit(7)
    if name == "new_schema":
        TOOLS[0]["inputSchema"] = {"type": "object", "required": ["n"], "properties": {"n": {}}}
        notify("notifications/tools/list_changed")
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
