"""A scripted host for the tests: forks a real guest and answers over a real socket."""

import json
import os
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import types
from pathlib import Path

HERE = Path(__file__).parent
# Loaded like the zygote does: plain sources, each after its imports.
MODULES = (
    "wire calls pictures values imports host_functions tools runtime mcp errors input running session"
).split()
SECONDS_TO_RUN = 30


def load_guest():
    files = [(f"codexec_guest_{name}", f"codexec_guest_{name}.py") for name in MODULES]
    for name, file in [*files, ("codexec_guest", "guest.py")]:
        module = sys.modules[name] = types.ModuleType(name)
        module.__file__ = str(HERE / file)
        exec(compile((HERE / file).read_text(), f"<{name}>", "exec"), module.__dict__)
    return sys.modules["codexec_guest"]


def frame(value):
    body = json.dumps(value).encode()
    return struct.pack("<I", len(body)) + body


def echo(ask):
    return {"Ok": next(iter(ask.values()))}


class Ran:
    """The output and frames of one program."""

    def __init__(self):
        self.frames = []
        self.asks = []
        self.out = b""
        self.err = b""
        self.status = None
        self.files = []

    def named(self, name):
        return [frame[name] for frame in self.frames if isinstance(frame, dict) and name in frame]

    @property
    def stdout(self):
        return self.out.decode()

    @property
    def stderr(self):
        return self.err.decode()

    @property
    def value(self):
        assert self.status == 0, (self.status, self.frames, self.stderr)
        assert self.frames[0] == "compiled", self.frames
        (value,) = self.named("returned")
        assert self.frames[-1] == {"returned": value}, "it must be the last frame"
        return value

    @property
    def threw(self):
        (threw,) = self.named("threw")
        assert self.status == 1, self.status
        assert self.frames[-1] == {"threw": threw}, "it must be the last frame"
        assert set(threw) == {"code", "message", "at", "stack"}
        return threw


class Host:
    """Answers each ask with `answer(ask)`: a result, or None for no answer. `window` asks are read
    before any is answered; further ones only after the older ones are answered."""

    def __init__(self, guest, answer=echo, servers=("github", "my-server"), window=None):
        self.guest = guest
        self.answer = answer
        self.servers = list(servers)
        self.window = window

    def run(self, code, input=None, socket_bytes=None):
        ours, theirs = socket.socketpair()
        if socket_bytes:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, socket_bytes)
        outputs = [os.pipe(), os.pipe()]
        # Not a TemporaryDirectory: the guest's exit would remove the inherited one.
        directory = tempfile.mkdtemp()
        pid = os.fork()
        if pid == 0:
            self._become_guest(ours, theirs, outputs, directory)
        theirs.close()
        for _, write_end in outputs:
            os.close(write_end)
        job = {"language": "python", "code": code, "input": input}
        job.update(servers=self.servers, memory_bytes=512 << 20)
        ours.sendall(frame({"start": job}))
        try:
            ran = self._serve(ours, outputs[0][0], outputs[1][0], pid)
            ran.files = sorted(os.listdir(directory))
            return ran
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _become_guest(self, ours, theirs, outputs, directory):
        try:
            ours.close()
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(outputs[0][1], 1)
            os.dup2(outputs[1][1], 2)
            for fd in (null, *outputs[0], *outputs[1]):
                os.close(fd)
            os.chdir(directory)
            os.environ["HOME"] = os.environ.get("TEST_HOME", directory)
            self.guest.main(theirs.detach())
        finally:
            os._exit(99)

    def _serve(self, connection, out, err, pid):
        ran, inbox, unanswered = Ran(), bytearray(), []
        deadline = time.monotonic() + SECONDS_TO_RUN
        selector = selectors.DefaultSelector()
        for source in (connection, out, err):
            selector.register(source, selectors.EVENT_READ)
        while selector.get_map():
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"the guest hangs: {ran.frames} {ran.err!r}")
            for key, _ in selector.select(1):
                source = key.fileobj
                try:
                    chunk = connection.recv(1 << 16) if source is connection else os.read(source, 1 << 16)
                except ConnectionResetError:
                    chunk = b""
                if not chunk:
                    selector.unregister(source)
                    source.close() if source is connection else os.close(source)
                elif source is connection:
                    inbox += chunk
                    self._read_frames(inbox, ran, connection, unanswered)
                elif source == out:
                    ran.out += chunk
                else:
                    ran.err += chunk
        ran.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return ran

    def _read_frames(self, inbox, ran, connection, unanswered):
        while len(inbox) >= 4:
            end = 4 + struct.unpack_from("<I", inbox)[0]
            assert end <= (16 << 20) + 4
            if len(inbox) < end:
                return
            said = json.loads(inbox[4:end])
            del inbox[:end]
            if isinstance(said, dict) and "ask" in said:
                ran.asks.append(said["ask"]["ask"])
                unanswered.append(said["ask"])
                if self.window is None or len(unanswered) >= self.window:
                    self._answer_all(connection, unanswered)
            else:
                ran.frames.append(said)

    def _answer_all(self, connection, unanswered):
        # The newest first: the order of answers must not matter.
        while unanswered:
            ask = unanswered.pop()
            result = self.answer(ask["ask"])
            if result is not None:
                connection.sendall(frame({"answer": {"id": ask["id"], "result": result}}))
