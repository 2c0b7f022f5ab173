"""An MCP server over HTTP that misbehaves on command: a JSON object as its only argument and the
name of the called tool say how. Prints its port. GET /log returns the requests it received."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

plan = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
era = plan.get("era", "modern")
log = []
state = {"sessions": set(), "tokens": set(plan.get("tokens", [])), "made": 0, "stream": None}
lock = threading.Lock()
closed = threading.Event()

NAMES = [
    "echo", "lone_surrogate", "bad_utf8", "big_json", "big_event", "endless", "hang", "drop", "cut",
    "html", "string_id", "busy", "unavailable", "broken", "forget", "elsewhere", "moved", "resume",
    "headers", "odd_content", "junk_first", "was_closed", "forbidden", "more_scope",
]  # fmt: skip
TOOLS = [{"name": n, "description": n, "inputSchema": {"type": "object"}} for n in NAMES]
TOOLS += plan.get("raw_tools", [])


def text(value):
    return {"content": [{"type": "text", "text": value}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def base(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, status, body=b"", kind="application/json", **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data, head=""):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        self.wfile.write(head.encode() + b"data: " + data + b"\n\n")
        self.wfile.flush()

    def record(self, body=None):
        with lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            log.append({"do": self.command, "path": self.path, "headers": headers, "body": body})

    def do_GET(self):
        path = urlsplit(self.path).path
        if path == "/log":
            return self.answer(200, log)
        self.record()
        if "oauth" in plan and (found := self.metadata(path)) is not None:
            return self.answer(200, found)
        if path == "/authorize":
            return self.authorize()
        if era == "sse" and path == "/mcp":
            return self.old_stream()
        if self.headers.get("Last-Event-ID") == "7":
            self.stream()
            request = {"jsonrpc": "2.0", "id": state["cut_id"], "result": text("resumed")}
            return self.event(request)
        self.answer(405)

    def old_stream(self):
        self.stream()
        endpoint = plan.get("endpoint", "/messages?session=1").encode()
        state["stream"] = self
        self.event(endpoint, "event: endpoint\n")
        closed.wait()

    def do_DELETE(self):
        self.record()
        self.answer(204)

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        if path in ("/register", "/token"):
            self.record(data.decode())
            return self.register() if path == "/register" else self.token(data.decode())
        request = json.loads(data)
        self.record(request)
        if "redirect" in plan:
            return self.answer(307, Location=plan["redirect"])
        if path == "/mcp" and plan.get("moved"):
            return self.answer(307, Location="/moved")
        if "oauth" in plan or "tokens" in plan:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if token not in state["tokens"]:
                where = f'{self.base()}/.well-known/oauth-protected-resource/mcp'
                challenge = f'Bearer resource_metadata="{where}"'
                return self.answer(401, b"", WWW_Authenticate=plan.get("challenge", challenge))
        if era == "sse":
            # This address has only a stream.
            return self.old_post(request) if path != "/mcp" else self.answer(405)
        self.rpc(request)

    def old_post(self, request):
        self.answer(202)
        if "id" in request:
            reply = self.result_of(request)
            state["stream"].event(reply)

    def result_of(self, request):
        method = request["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "scripted", "version": "1"}
        elif method == "server/discover" and era == "modern":
            tools = {"listChanged": True} if plan.get("changes") else {}
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": tools}}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call":
            result = text(json.dumps(request["params"].get("arguments", {})))
        else:
            error = {"code": -32601, "message": "no such method"}
            return {"jsonrpc": "2.0", "id": request["id"], "error": error}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def rpc(self, request):
        if "id" not in request:
            return self.answer(202)
        if era == "legacy" and request["method"] == "server/discover" and "discover" in plan:
            return self.answer(plan["discover"], b"<html>what?", "text/html")
        session = self.headers.get("Mcp-Session-Id")
        if era == "legacy" and request["method"] == "initialize":
            session = f"session-{len(state['sessions'])}"
            state["sessions"].add(session)
            return self.answer(200, self.result_of(request), Mcp_Session_Id=session)
        if era == "legacy" and request["method"] != "server/discover":
            if session not in state["sessions"]:
                return self.answer(404)
        if request["method"] == "tools/call":
            return self.call(request)
        if request["method"] == "subscriptions/listen" and plan.get("changes"):
            TOOLS.append({"name": "new", "inputSchema": {"type": "object"}})
            self.stream()
            meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
            for method in ("subscriptions/acknowledged", "tools/list_changed"):
                params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
                told = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
                self.event(told)
            return closed.wait()
        self.answer(200, self.result_of(request))

    def call(self, request):
        name, id = request["params"]["name"], request["id"]
        head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id
        tail = b'"}]}}'
        if name == "lone_surrogate":
            return self.answer(200, head + b"cut \\ud83d here" + tail)
        if name == "bad_utf8":
            self.stream()
            return self.event(head + b"caf\xe9" + tail)
        if name == "odd_content":
            result = {"content": [{"type": "hologram", "beam": 1}]}
            return self.answer(200, {"jsonrpc": "2.0", "id": id, "result": result})
        if name == "big_json":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            self.wfile.write(head)
            for _ in range(100):
                self.wfile.write(b"x" * (1 << 20))
            return
        if name in ("big_event", "endless"):
            self.stream()
            self.wfile.write(b"data: " + head)
            for _ in range(100 if name == "big_event" else 1 << 30):
                self.wfile.write(b"x" * (1 << 20))
            return
        if name == "hang":
            self.stream()
            try:
                while True:
                    self.wfile.write(b": still here\n\n")
                    self.wfile.flush()
                    time.sleep(0.02)
            except OSError:
                state["was_closed"] = True
            return
        if name == "was_closed":
            while not state.get("was_closed"):
                time.sleep(0.02)
            return self.answer(200, {"jsonrpc": "2.0", "id": id, "result": text("yes")})
        if name == "drop":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(head)
            self.close_connection = True
            return
        if name in ("cut", "resume"):
            self.stream()
            state["cut_id"] = id
            return self.event(b"", "id: 7\nretry: 10\n" if name == "resume" else "")
        if name == "junk_first":
            self.stream()
            self.event(b"not json")
            self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
            self.event({"jsonrpc": "2.0", "id": 9999, "result": text("somebody else's")})
            return self.event({"jsonrpc": "2.0", "id": id, "result": text("after junk")})
        if name == "html":
            return self.answer(200, b"<html>hello", "text/html")
        if name == "string_id":
            return self.answer(200, {"jsonrpc": "2.0", "id": str(id), "result": text("x")})
        if name == "busy":
            return self.answer(429, b"", Retry_After="7")
        if name == "unavailable":
            return self.answer(503)
        if name == "broken":
            return self.answer(500, b"out of cheese\x1b[2J", "text/plain")
        if name == "forbidden":
            return self.answer(403)
        if name == "more_scope":
            challenge = 'Bearer error="insufficient_scope", scope="write"'
            return self.answer(403, b"", WWW_Authenticate=challenge)
        if name == "forget":
            state["sessions"].clear()
            return self.answer(404)
        if name == "elsewhere":
            return self.answer(307, Location=plan["elsewhere"])
        if name == "headers":
            found = {name.lower(): value for name, value in self.headers.items()}
            return self.answer(200, {"jsonrpc": "2.0", "id": id, "result": text(json.dumps(found))})
        self.answer(200, self.result_of(request))

    # An authorization server, on the same port.

    def metadata(self, path):
        oauth = plan["oauth"]
        if path == "/.well-known/oauth-protected-resource/mcp":
            found = {"resource": f"{self.base()}/mcp", "authorization_servers": [self.base()]}
            return {**found, **oauth.get("resource", {})}
        if path == "/.well-known/oauth-authorization-server":
            found = {
                "issuer": self.base(),
                "authorization_endpoint": f"{self.base()}/authorize",
                "token_endpoint": f"{self.base()}/token",
                "registration_endpoint": f"{self.base()}/register",
                "code_challenge_methods_supported": ["S256"],
                "response_types_supported": ["code"],
                "authorization_response_iss_parameter_supported": True,
            }
            return {**found, **oauth.get("server", {})}
        return None

    def authorize(self):
        asked = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        back = {"code": "the-code", "state": asked["state"], "iss": self.base()}
        back.update(plan["oauth"].get("back", {}))
        self.answer(302, Location=asked["redirect_uri"] + "?" + urlencode(back))

    def register(self):
        self.answer(201, {"client_id": "made", "client_secret": "s3cret", "redirect_uris": []})

    def token(self, form):
        if plan.get("refuse_tokens"):
            return self.answer(400, {"error": "invalid_grant"})
        time.sleep(plan.get("token_delay", 0))
        with lock:
            state["made"] += 1
            token = f"token-{state['made']}"
            state["tokens"].add(token)
        found = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        found["refresh_token"] = f"refresh-{state['made']}"
        self.answer(200, found)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignores clients that disconnect early."""


server = Server(("127.0.0.1", plan.get("port", 0)), Handler)
print(server.server_port, flush=True)
# The server ends when its stdin is closed, so that no test leaves it behind.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
