"""Frames on the worker's socket: a length (u32, little endian) and that many bytes of JSON.

Any thread and any event loop may send asks and wait. One lock guards everything. The first thread
that has to wait becomes the leader: it alone polls the socket (without the lock) and distributes
what arrives; the others sleep until their answer has arrived or there is no leader. Event loops
watch the socket themselves, and do not touch it while there is a leader. Writing always includes
reading: while the host does not read, its answers are still received, so neither side can block the
other.

Everything that is needed to communicate is bound when this file is loaded: code that patches
`json`, `socket` or `select` changes nothing here.
"""

from _thread import get_ident
from array import array
from itertools import count
from json import JSONDecoder, JSONEncoder
from select import POLLIN, POLLOUT, poll
from socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    SOCK_STREAM,
    socket,
)
from struct import Struct
from threading import Condition, RLock
from time import monotonic
from weakref import WeakSet

MAX_FRAME_BYTES = 16 << 20
READ_BYTES = 64 << 10
HOST_GONE = "the host has closed its end"
NOT_THE_FIRST = "only the program's first process can talk to the host"

_header = Struct("<I")
_scan_json = JSONDecoder(strict=False).scan_once

MOMENT_MS = 10
# A cell's stdout and stderr are sent as descriptors with it.
FDS_BYTES = CMSG_SPACE(2 * array("i").itemsize)

class Encoder(JSONEncoder):
    """Encodes compact JSON, and never NaN."""

    # Bound here because guests patch the class they can reach.
    encode = JSONEncoder.encode
    iterencode = JSONEncoder.iterencode

    def __init__(self, default=None):
        super().__init__(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
        )


encode_json = Encoder().encode


def utf8(text):
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Halves of a surrogate pair: whole pairs are joined, lone halves are replaced.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class Wire:
    def __init__(self, fd):
        self.closed_because = None
        self.start = None
        self.cell = None
        self.streams = array("i")
        # Called, from any thread, when a cell has arrived or the host is gone.
        self.on_cell = None
        self.unseen_failures = []
        # Set where an exception would break a frame; raised at the next safe place.
        self.is_interrupted = False
        # The cell that has arrived is to stop, but does not run yet.
        self.was_signalled = False
        self._main_thread = get_ident()
        self._main_calls = set()
        self._fd = fd
        self._socket = socket(AF_UNIX, SOCK_STREAM, 0, fd)
        self._socket.set_inheritable(False)
        self._changed = Condition(RLock())
        self._inbox = bytearray()
        self._outbox = bytearray()
        self._leader = None
        self._ids = count(1)
        self._pending = {}
        self._loops = WeakSet()
        self._last_loop = None

    def is_quiet(self):
        """True if the host sends nothing for a moment: under load it sends at once."""
        poller = poll()
        poller.register(self._fd, POLLIN)
        return not poller.poll(MOMENT_MS)

    def read_start(self):
        self._take_turns(lambda: self.start is not None or self.closed_because)
        return self.start

    def read_cell(self):
        """Returns the next cell of a session, or None when the host is gone."""
        self._take_turns(lambda: self.cell is not None or self.closed_because)
        return self.take_cell()

    def take_in(self):
        """Receives what has arrived, without waiting."""
        with self._changed:
            if self._leader is None:
                self._receive()

    def take_cell(self):
        cell, self.cell = self.cell, None
        return cell

    def take_streams(self):
        """Returns the descriptors that came with a cell."""
        streams, self.streams = self.streams, array("i")
        return streams

    def ask(self, ask_json, call):
        """Sends an ask; `call.settle(result)` is called, under the lock, with the answer."""
        with self._changed:
            if self.closed_because:
                raise RuntimeError(self.closed_because)
            ask_id = next(self._ids)
            self._pending[ask_id] = call
            if get_ident() == self._main_thread:
                self._main_calls.add(ask_id)
        self.say('{"ask":{"id":%d,"ask":%s}}' % (ask_id, ask_json))

    def say(self, frame_json):
        body = utf8(frame_json)
        if len(body) > MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {len(body)} bytes is longer than {MAX_FRAME_BYTES}")
        with self._changed:
            if self.closed_because:
                return
            self._outbox += _header.pack(len(body))
            self._outbox += body
            self._flush()
        # Without the lock: if it were held twice, waiting could not release it.
        if self._outbox:
            self._take_turns(lambda: not self._outbox, is_writer=True)
        self._stop_if_interrupted()

    def wait(self, is_done, timeout=None):
        """Blocks until `is_done()`, or until `timeout` seconds have passed."""
        self._take_turns(is_done, None if timeout is None else monotonic() + timeout)

    def drain(self, timeout):
        """Waits for the answers of all pending calls."""
        self.wait(lambda: not self._pending, timeout)

    def drain_main(self, timeout):
        """Waits for the calls of the main thread: other threads continue after the end of a cell.
        """
        self.wait(lambda: not self._main_calls, timeout)

    def forget_main(self):
        """Forgets the pending calls of the main thread."""
        with self._changed:
            for ask_id in self._main_calls:
                self._pending.pop(ask_id, None)
            self._main_calls.clear()
            self.unseen_failures = []

    def attach(self, loop):
        """Lets this event loop distribute answers. It stays attached: watching costs nothing."""
        if loop is self._last_loop or self.closed_because:
            return
        with self._changed:
            if loop not in self._loops:
                loop.add_reader(self._fd, self._on_readable)
                self._loops.add(loop)
            self._last_loop = loop

    def abandon(self):
        """Closes the wire in a forked child: two processes cannot share one stream of frames."""
        self._changed = Condition(RLock())
        self._leader = None
        self._close(NOT_THE_FIRST)
        self._socket.close()

    def _take_turns(self, is_done, deadline=None, is_writer=False):
        me = get_ident()
        with self._changed:
            while not is_done():
                self._stop_if_interrupted()
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    return
                # A signal handler may wait inside its own thread's turn as the leader.
                if self._leader is None or self._leader == me:
                    self._lead(me, left)
                elif is_writer:
                    self._poll(POLLOUT, left)
                    self._flush()
                else:
                    self._changed.wait(left)

    def _stop_if_interrupted(self):
        if self.is_interrupted and get_ident() == self._main_thread:
            self.is_interrupted = False
            raise KeyboardInterrupt

    def _lead(self, me, timeout):
        before, self._leader = self._leader, me
        try:
            self._poll(POLLIN | POLLOUT if self._outbox else POLLIN, timeout)
            self._flush()
            self._receive()
        finally:
            self._leader = before
            self._changed.notify_all()

    def _poll(self, events, timeout):
        poller = poll()
        poller.register(self._fd, events)
        try:
            self._changed.release()
            poller.poll(None if timeout is None else max(1, timeout * 1000))
        finally:
            # A signal may have come before the release.
            if not self._changed._is_owned():
                self._changed.acquire()

    def _on_readable(self):
        with self._changed:
            if self._leader is None:
                self._flush()
                self._receive()
                self._changed.notify_all()

    def _flush(self):
        while self._outbox:
            try:
                sent = self._socket.send(self._outbox, MSG_DONTWAIT | MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:
                self._close(HOST_GONE)
                return
            del self._outbox[:sent]

    def _receive(self):
        try:
            flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC
            chunk, beside, _, _ = self._socket.recvmsg(READ_BYTES, FDS_BYTES, flags)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close(HOST_GONE)
            return
        for _, _, fds in beside:
            self.streams.frombytes(fds)
        inbox = self._inbox
        inbox += chunk
        while len(inbox) >= _header.size:
            end = _header.size + _header.unpack_from(inbox)[0]
            if len(inbox) < end:
                return
            text = inbox[_header.size : end].decode()
            del inbox[:end]
            self._deliver(_scan_json(text, 0)[0])

    def _deliver(self, frame):
        # A signal follows the interrupt. Both may arrive before the cell that they belong to.
        if frame == "interrupt":
            self.was_signalled = True
            return
        answer = frame.get("answer")
        if answer is None:
            self._deliver_work(frame)
            return
        self._main_calls.discard(answer["id"])
        call = self._pending.pop(answer["id"], None)
        if call is not None:
            call.settle(answer["result"])

    def _deliver_work(self, frame):
        if "start" in frame:
            self.start = frame["start"]
            return
        self.cell = frame["cell"]
        self.was_signalled = False
        if self.on_cell is not None:
            self.on_cell()

    def _close(self, reason):
        self.closed_because = reason
        if self.on_cell is not None:
            self.on_cell()
        self._main_calls.clear()
        self._outbox.clear()
        pending, self._pending = self._pending, {}
        failure = {"code": "UPSTREAM_ERROR", "message": reason, "server": None, "tool": None}
        for call in pending.values():
            call.settle({"Err": failure})
        for loop in list(self._loops):
            # A socket at end of file is always readable, and would keep the loop busy.
            try:
                loop.call_soon_threadsafe(loop.remove_reader, self._fd)
            except RuntimeError:
                pass
