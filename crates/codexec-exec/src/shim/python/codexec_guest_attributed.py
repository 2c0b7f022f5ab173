"""Separates the output of the current cell from that of code which earlier cells left running.

THREAT[SES-10]: every cell has its own pipes, so other processes that write to the pipes of earlier
cells are separated by that. Threads and tasks share the process; they are told apart when they
print.
"""

import os
import threading
from _thread import get_ident
from contextvars import ContextVar

_dup, _dup2, _close, _write = os.dup, os.dup2, os.close, os.write
_threads = threading._active


class Attribution:
    def __init__(self, streams):
        self._number = 0
        # Tasks and callbacks carry the number of the cell that started them, threads carry none.
        self._cell = ContextVar("codexec_cell", default=None)
        self._older_threads = frozenset()
        self._main = get_ident()
        for stream, fd in zip(streams, (1, 2)):
            self._guard(stream, _dup(fd))

    def begin(self, number, fds):
        """Starts a cell with these descriptors as its stdout and stderr."""
        self._number = number
        self._cell.set(number)
        if len(_threads) > 1:
            main = _threads.get(self._main)
            self._older_threads = frozenset(t for t in list(_threads.values()) if t is not main)
        else:
            self._older_threads = frozenset()
        for fd, standard in zip(fds, (1, 2)):
            _dup2(fd, standard)
            _close(fd)

    def _is_late(self):
        cell = self._cell.get()
        if cell is None:
            return _threads.get(get_ident()) in self._older_threads
        return cell != self._number

    def _guard(self, stream, late_fd):
        write = stream.write

        def attributed(text):
            if not self._is_late():
                return write(text)
            if not isinstance(text, str):
                return write(text)  # Raises the usual TypeError.
            _write_all(late_fd, text.encode("utf-8", "backslashreplace"))
            return len(text)

        stream.write = attributed


def _write_all(fd, data):
    while data:
        data = data[_write(fd, data) :]
