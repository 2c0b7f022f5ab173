"""An MCP server over stdio that records what it is asked, and behaves as its plan says.

upstream.py PLAN RECORD: both are files. The record gets a line of JSON for each request, before
anything is answered: what arrived here did arrive, whatever a guest says about it."""

import json
import os
import signal
import subprocess
import sys
import time

with open(sys.argv[1]) as file:
    plan = json.load(file)
record = open(sys.argv[2], "a")
out = sys.stdout.buffer

calls = 0
lists = 0
TOOLS = [
    {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}}
    for name in ["echo", "list", "secret", "slow"]
]


def raw(data):
    out.write(data)
    out.flush()


def answer(id, result):
    raw(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")


def text(id, value):
    answer(id, {"content": [{"type": "text", "text": value}]})


def flood(stream, head, megabytes, tail):
    stream.write(head)
    for _ in range(megabytes):
        stream.write(b"x" * (1 << 20))
    stream.write(tail)
    stream.flush()


def act(step, request):
    """One step of a plan. Whether the request has been dealt with."""
    do, id = step["do"], request.get("id")
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % (id or 0)
    if do == "raw":
        raw((step["text"].encode() + b"\n") * step.get("times", 1))
        return False
    if do == "raw_hex":
        raw(bytes.fromhex(step["hex"]) + (b"\n" if step.get("nl") else b""))
        return False
    if do == "big_line":
        flood(out, head, step["mb"], b"\n" if step.get("newline") else b"")
        return False
    if do == "big_text":
        flood(out, head, step["mb"], b'"}]}}\n')
    elif do == "str_id":
        text(str(id), "for a string")
    elif do == "result":
        answer(id, step["value"])
    elif do == "reply":
        text(id, "replied")
    elif do == "twice":
        text(id, "first")
        text(id, "second")
    elif do == "die":
        os._exit(3)
    elif do == "pages":
        page = int(request.get("params", {}).get("cursor") or 0)
        tool = {"name": f"tool_{page}", "inputSchema": {"type": "object"}}
        is_last = step["n"] != "inf" and page + 1 >= step["n"]
        more = {} if is_last else {"nextCursor": str(page + 1)}
        answer(id, {"tools": [tool], **more})
    elif do != "hang":
        raise ValueError(do)
    return True


def call(request):
    name, id = request["params"]["name"], request["id"]
    arguments = request["params"].get("arguments", {})
    if name == "list":
        items = [{"n": n} for n in range(min(arguments.get("n", 3), 1000))]
        answer(id, {"content": [], "structuredContent": {"items": items}})
    elif name == "die":
        os._exit(3)
    elif name == "slow":
        time.sleep(min(arguments.get("ms", 100), 5000) / 1000)
        text(id, "at last")
    else:
        text(id, json.dumps(arguments)[:1000])


def become(tools):
    """Lists other tools from now on, and says so."""
    plan["tools"] = tools
    if plan.get("notify_list_changed"):
        note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        raw((json.dumps(note).encode() + b"\n") * plan.get("notify_times", 1))


def change():
    """What a call sets off, whichever it is."""
    if calls == plan.get("v2_after_calls"):
        become(plan["tools_v2"])
    elif calls <= len(plan.get("sequence", [])):
        become(plan["sequence"][calls - 1])


def handle(line):
    global calls, lists
    request = json.loads(line)
    method = request.get("method")
    tool = request["params"]["name"] if method == "tools/call" else None
    record.write(json.dumps({"method": method, "tool": tool, "bytes": len(line)}) + "\n")
    record.flush()
    if any(act(step, request) for step in plan.get("on", {}).get(method, [])):
        return
    if method == "initialize":
        answer(request["id"], {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "recorder", "version": plan.get("version", "1")},
        })
    elif method == "tools/list":
        lists += 1
        if lists <= plan.get("lists", lists):
            answer(request["id"], {"tools": plan.get("tools", TOOLS)})
    elif method == "tools/call":
        calls += 1
        if plan.get("change_before_answer"):
            change()
        call(request)
        if not plan.get("change_before_answer"):
            change()


if plan.get("restart_flag") and os.path.exists(plan["restart_flag"]):
    plan["tools"] = plan["restart_tools"]
    plan["version"] = plan.get("restart_version", "1")
elif plan.get("restart_flag"):
    open(plan["restart_flag"], "w").close()
if plan.get("grandchild"):
    # Holds no pipe of ours and heeds no request to end.
    child = subprocess.Popen(
        ["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    with open(plan["grandchild"], "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
if plan.get("daemon"):
    # In a session of its own, without our environment, and with a parent that has ended.
    script = "(trap '' TERM HUP INT; exec sleep 600) </dev/null >/dev/null 2>&1 & printf %s $! > \"$0\""
    subprocess.run(["setsid", "env", "-i", "sh", "-c", script, plan["daemon"]], check=True)
if plan.get("ignore_eof"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for step in plan.get("pre", []):
    act(step, {})
if plan.get("stderr_flood_mb"):
    flood(sys.stderr.buffer, b"", plan["stderr_flood_mb"], b"\nthe last words\n")

while line := sys.stdin.buffer.readline():
    handle(line)
while plan.get("ignore_eof"):
    time.sleep(60)
