"""An MCP server over stdio that does what its caller says: gives back any result, tells how far
it is, asks questions in both ways there are, and has resources and prompts."""

import json
import sys

tools = {
    name: {"name": name, "inputSchema": {"type": "object"}}
    for name in ["give", "steps", "ask", "rounds", "hang", "cancelled", "change", "dot.ted"]
}
tools["strict"] = {
    "name": "strict",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
cancelled = []
asked = {}
RESOURCES = [{"uri": f"test://{n}", "name": f"n{n}"} for n in range(3)]


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply(request, result):
    send(id=request["id"], result=result)


def structured(request, value):
    reply(request, {"content": [], "structuredContent": value})


def call(request):
    params = request["params"]
    name, given = params["name"], params.get("arguments", {})
    if name == "give":
        reply(request, given["result"])
    elif name == "steps":
        token = params["_meta"]["progressToken"]
        for n in range(given["n"]):
            step = {"progressToken": token, "progress": n, "total": given["n"], "message": f"step {n}"}
            send(method="notifications/progress", params=step)
        structured(request, "done")
    elif name == "ask":
        asked[f"q{request['id']}"] = request
        send(id=f"q{request['id']}", method="elicitation/create", params=given["params"])
    elif name == "rounds":
        answers = params.get("inputResponses")
        if answers is None:
            wanted = {"who": {"method": "elicitation/create", "params": given["params"]}}
            reply(request, {"resultType": "input_required", "inputRequests": wanted, "requestState": "s1"})
        else:
            structured(request, {"answers": answers, "state": params.get("requestState")})
    elif name == "hang":
        pass
    elif name == "cancelled":
        structured(request, len(cancelled))
    elif name == "change":
        tools["added"] = {"name": "added", "inputSchema": {"type": "object"}}
        send(method="notifications/tools/list_changed")
        structured(request, "changed")
    else:
        structured(request, name)


def handle(message):
    method = message.get("method")
    params = message.get("params") or {}
    if method is None and message.get("id") in asked:
        structured(asked.pop(message["id"]), message.get("result") or message.get("error"))
    elif method == "initialize":
        reply(message, {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        })
    elif method == "tools/list":
        reply(message, {"tools": list(tools.values())})
    elif method == "tools/call":
        call(message)
    elif method == "notifications/cancelled":
        cancelled.append(params)
    elif method == "resources/list":
        at = int(params.get("cursor", 0))
        page = {"resources": RESOURCES[at : at + 2]}
        reply(message, {**page, "nextCursor": "2"} if at == 0 else page)
    elif method == "resources/templates/list":
        reply(message, {"resourceTemplates": [{"uriTemplate": "test://{n}", "name": "any"}]})
    elif method == "resources/read":
        contents = {
            "test://0": [{"uri": "test://0", "mimeType": "text/plain", "text": "zero"}],
            "test://1": [{"uri": "test://1", "mimeType": "application/json", "text": '{"one": 1}'}],
            "test://2": [{"uri": "test://2", "mimeType": "image/png", "blob": "AAEC"}],
            "test://both": [{"uri": "test://0", "text": "zero"}, {"uri": "test://1", "text": "one"}],
        }.get(params["uri"])
        if contents is None:
            send(id=message["id"], error={"code": -32002, "message": "no such resource"})
        else:
            reply(message, {"contents": contents})
    elif method == "prompts/list":
        reply(message, {"prompts": [{"name": "greet", "description": "Greets.", "arguments": [{"name": "who"}]}]})
    elif method == "prompts/get":
        text = f"Hello {params.get('arguments', {}).get('who', 'you')}"
        reply(message, {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
    elif "id" in message and method is not None:
        send(id=message["id"], error={"code": -32601, "message": "no such method"})


for line in sys.stdin:
    handle(json.loads(line))
