"""An index of packages for tests, of both kinds: /simple for pip, /npm for npm.

Says its port in one line. The packages named `tattle` try to get out while they are installed, and
keep what came of it in themselves. Ends when its standard input does.
"""

import base64
import hashlib
import http.server
import io
import json
import sys
import tarfile
import threading
import zipfile

OUTSIDE, OTHER_PORT = sys.argv[1], int(sys.argv[2])

BACKEND = '''
import json, os, socket, sys, urllib.request, zipfile

PLACES = ["%(outside)s/planted", "/opt/codexec/planted", "/usr/planted", "/opt/packages/planted"]

def attempt(work):
    try:
        return "DONE: " + str(work())
    except BaseException as error:
        return type(error).__name__ + ": " + str(error)

def connect(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(2)
        s.connect(address)
        return "connected"

def proxied(request):
    with socket.create_connection(("127.0.0.1", 3128), 2) as s:
        s.sendall(request.encode())
        return s.recv(100).split(b"\\r\\n")[0].decode()

def tattle():
    told = {"write " + place: attempt(lambda: open(place, "w").write("x")) for place in PLACES}
    told["direct"] = attempt(lambda: connect(("127.0.0.1", %(other)d)))
    told["far"] = attempt(lambda: connect(("192.0.2.1", 80)))
    told["datagram"] = attempt(lambda: connect(("127.0.0.1", 53), socket.SOCK_DGRAM))
    told["tunnel"] = attempt(lambda: proxied("CONNECT 127.0.0.1:%(other)d HTTP/1.1\\r\\n\\r\\n"))
    told["plain"] = attempt(lambda: proxied("GET http://127.0.0.1:%(other)d/ HTTP/1.1\\r\\n\\r\\n"))
    told["read"] = attempt(lambda: open("%(outside)s/secret").read())
    told["environment"] = " ".join(sorted(os.environ))
    return told

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "tattle-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("told.json", json.dumps(tattle()))
        wheel.writestr("tattle-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tattle\\nVersion: 1.0\\n")
        wheel.writestr("tattle-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tattle-1.0.dist-info/RECORD", "")
    return name
''' % {"outside": OUTSIDE, "other": OTHER_PORT}

NODE_TATTLE = '''
const fs = require("fs"), net = require("net"), path = require("path");
const told = {};
const attempt = (name, work) => { try { told[name] = "DONE: " + work(); } catch (e) { told[name] = e.code || String(e); } };
for (const place of ["%(outside)s/planted", "/opt/codexec/planted", "/usr/planted", "/opt/packages/planted"])
  attempt("write " + place, () => fs.writeFileSync(place, "x"));
attempt("read", () => fs.readFileSync("%(outside)s/secret", "utf8"));
attempt("link", () => fs.symlinkSync("/etc/passwd", "outside-link"));
attempt("inner link", () => fs.symlinkSync("package.json", "inside-link"));
attempt("set-id", () => { fs.writeFileSync("set-id", ""); fs.chmodSync("set-id", 0o4755); });
attempt("pipe", () => require("child_process").execFileSync("mkfifo", ["pipe"]));
const direct = (name, port, host, text) => new Promise((done) => {
  const socket = net.connect({ port, host }, () => text ? socket.write(text) : finish("DONE: connected"));
  const finish = (what) => { told[name] = what; socket.destroy(); done(); };
  socket.setTimeout(2000, () => finish("timeout"));
  socket.on("error", (e) => finish(e.code));
  socket.on("data", (d) => finish(String(d).split("\\r\\n")[0]));
});
(async () => {
  await direct("direct", %(other)d, "127.0.0.1");
  await direct("far", 80, "192.0.2.1");
  await direct("tunnel", 3128, "127.0.0.1", "CONNECT 127.0.0.1:%(other)d HTTP/1.1\\r\\n\\r\\n");
  fs.writeFileSync("told.json", JSON.stringify(told));
})();
''' % {"outside": OUTSIDE, "other": OTHER_PORT}


def wheel(name, version, files, requires=()):
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += "".join(f"Requires-Dist: {each}\n" for each in requires)
    files = {
        **files,
        f"{info}/METADATA": about,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{module}-{version}-py3-none-any.whl", packed.getvalue()


def tarball(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "tattle"\nversion = "1.0"\n'
PKG_INFO = "Metadata-Version: 2.1\nName: tattle\nVersion: 1.0\n"

PYTHON = {
    "good": [
        wheel("good", "1.0", {"good/__init__.py": "VERSION = '1.0'\n", "good/old.py": ""}),
        wheel("good", "1.1", {"good/__init__.py": "VERSION = '1.1'\n"}),
    ],
    "needs-good": [wheel("needs-good", "2.0", {"needs_good.py": "import good\n"}, ["good"])],
    "wants-old": [wheel("wants-old", "1.0", {"wants_old.py": ""}, ["good==1.0"])],
    "big": [wheel("big", "1.0", {"big.bin": "\0" * (12 << 20)})],
    "huge": [wheel("huge", "1.0", {"huge.bin": "\0" * (64 << 20)})],
    "elsewhere": [],
    "tattle": [
        (
            "tattle-1.0.tar.gz",
            tarball(
                {
                    "tattle-1.0/pyproject.toml": PYPROJECT,
                    "tattle-1.0/backend.py": BACKEND,
                    "tattle-1.0/PKG-INFO": PKG_INFO,
                }
            ),
        )
    ],
}


def npm(name, version, files, **about):
    about = {"name": name, "version": version, **about}
    files = {"package/package.json": json.dumps(about), **files}
    return about, tarball(files)


NPM = {
    "plain": [
        npm("plain", "1.0.0", {"package/index.js": "module.exports = 'plain 1';"}),
        npm("plain", "2.0.0", {"package/index.js": "module.exports = 'plain 2';"}),
    ],
    "@scope/module": [
        npm(
            "@scope/module",
            "0.1.0",
            {"package/index.mjs": "import plain from 'plain'; export default 'module with ' + plain;"},
            dependencies={"plain": "^1.0.0"},
            exports="./index.mjs",
            type="module",
        )
    ],
    "tattle": [
        npm(
            "tattle",
            "1.0.0",
            {"package/tattle.cjs": NODE_TATTLE, "package/index.js": "module.exports = 1;"},
            scripts={"postinstall": "node tattle.cjs"},
        )
    ],
}


class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        parts = [part for part in self.path.split("/") if part]
        try:
            kind, body = self.found(parts)
        except (LookupError, ValueError):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def found(self, parts):
        base = f"http://127.0.0.1:{self.server.server_port}"
        if parts[0] == "simple":
            links = [f'<a href="/files/{parts[1]}/{name}">{name}</a>' for name, _ in PYTHON[parts[1]]]
            if parts[1] == "elsewhere":
                links = [f'<a href="http://127.0.0.1:{OTHER_PORT}/elsewhere-1.0-py3-none-any.whl">elsewhere-1.0-py3-none-any.whl</a>']
            return "text/html", "\n".join(links).encode()
        if parts[0] == "files":
            return "application/octet-stream", dict(PYTHON[parts[1]])[parts[2]]
        name = "/".join(parts[1:]).replace("%2f", "/").replace("%2F", "/")
        if name.endswith(".tgz"):
            name, version = name[:-4].rsplit("-", 1)
            packed = next(packed for about, packed in NPM[name] if about["version"] == version)
            return "application/octet-stream", packed
        versions = {}
        for about, packed in NPM[name]:
            digest = base64.b64encode(hashlib.sha512(packed).digest()).decode()
            address = f"{base}/npm/{name}-{about['version']}.tgz"
            about = {**about, "dist": {"tarball": address, "integrity": f"sha512-{digest}"}}
            if "scripts" in about:
                about["hasInstallScript"] = True
            versions[about["version"]] = about
        newest = list(versions)[-1]
        document = {"name": name, "dist-tags": {"latest": newest}, "versions": versions}
        return "application/json", json.dumps(document).encode()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
