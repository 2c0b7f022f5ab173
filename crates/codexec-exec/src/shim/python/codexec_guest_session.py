"""A session: cells in one namespace and one event loop, until the host is gone.

A cell is stopped by SIGINT, which raises KeyboardInterrupt in the code that runs. Where that would
tear something of ours (a frame half sent, the event loop between two steps) it is put off to the
next place where it does not. A signal that comes when no cell runs means none.
"""

import asyncio
import importlib
import os
import selectors
import sys
from _signal import SIGINT, signal
from codexec_guest_attributed import Attribution
from codexec_guest_errors import FILE, cell_file, not_compiled, remember_source, thrown
from codexec_guest_files import current_directory, enter
from codexec_guest_imports import add_packages
from codexec_guest_running import (
    attempt,
    compiled,
    complain,
    exit_status,
    flush_current,
    note,
    value_of,
)
from codexec_guest_values import returned_json
from codexec_guest_wire import Wire, encode_json

SECONDS_TO_DRAIN = 1
EXIT_STAYS = "sys.exit() ended this code; the session and its variables are still there"

_invalidate_caches = importlib.invalidate_caches
_all_tasks = asyncio.all_tasks
_set_event_loop = asyncio.set_event_loop
_running_loop = asyncio._get_running_loop
_loop_files = (os.path.dirname(asyncio.__file__) + os.sep, selectors.__file__)
_step_of_loop = asyncio.BaseEventLoop._run_once.__code__
# An exception here is one in the code that waits.
_may_raise = (Wire._poll.__code__, Wire._take_turns.__code__)
_wire_file = Wire._poll.__code__.co_filename


class Session:
    def __init__(self, wire, pictures, namespace, streams):
        self._wire = wire
        self._pictures = pictures
        self._namespace = namespace
        self._streams = streams
        self._attribution = Attribution(streams)
        self._given = namespace["input"]
        self._loop = None
        self._older_tasks = set()
        self._task = None
        self._is_running = False
        self._is_stopped = False
        self._start = self._directory = current_directory()
        # Given back when memory has run out, so that the error can be told.
        self._ballast = bytes(1 << 20)

    def run(self):
        """Runs cells until there are no more."""
        add_packages()
        self._open_loop()
        while True:
            cell = self._next_cell()
            if cell is None:
                return 0
            # THREAT[SES-8]: what a cell has left running knows the number of the next one, and not
            # its key.
            key = cell.pop("key")
            ending = self._run_cell(cell)
            self._directory = current_directory()
            self._wire.say('{"cell_ended":{"key":"%s","ending":%s}}' % (key, ending))

    def _next_cell(self):
        wire = self._wire
        while wire.cell is None and not wire.closed_because:
            loop = self._loop
            if loop.is_closed() or not _all_tasks(loop):
                return wire.read_cell()
            # Tasks that were begun go on while nobody sends anything.
            try:
                self._run_async(self._await_cell(loop))
            except BaseException as error:
                note(f"{type(error).__name__} in a task: {error}")
        return wire.take_cell()

    async def _await_cell(self, loop):
        wire, arrived = self._wire, asyncio.Event()
        wire.on_cell = lambda: loop.call_soon_threadsafe(arrived.set)
        try:
            wire.attach(loop)
            while wire.cell is None and not wire.closed_because:
                await arrived.wait()
                arrived.clear()
        finally:
            wire.on_cell = None

    def _run_cell(self, cell):
        """Gives how it ended, as JSON."""
        source, file = cell["code"], cell_file(cell["number"])
        self._set_up(cell)
        # The directory may have been mounted anew since the last cell.
        if not enter(self._directory):
            # THREAT[FIL-11]: the code was not written for another directory.
            enter(self._start)
            gone = self._directory.encode(errors="backslashreplace").decode()
            return '{"directory_gone":%s}' % encode_json(gone)
        try:
            code = compiled(source, file)
        except Exception as error:
            return _threw(not_compiled(error, source, file))
        remember_source(source, file)
        ending = self._ending(lambda: self._returned(code), source, file)
        ending = self._ending(self._finish, source, file) or ending
        if self._is_stopped:
            self._forget_cell()
        attempt(flush_current)
        for stream in self._streams:
            attempt(stream.flush)
        return '"interrupted"' if self._is_stopped else ending

    def _set_up(self, cell):
        # What is half written was written by somebody else.
        attempt(flush_current)
        self._attribution.begin(cell["number"], self._wire.take_streams())
        # A variable that the program has made its own is not taken from it, unless it is given.
        if cell["input"] is not None or self._namespace.get("input") is self._given:
            self._namespace["input"] = self._given = cell["input"]
        sys.argv[:] = [FILE, *cell["args"]]
        if sys.stdin is not None and sys.stdin.closed:
            # As `exit()` leaves it.
            sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)
        # Packages may have come since the last cell.
        _invalidate_caches()
        self._open_loop()
        self._is_stopped = self._wire.is_interrupted = False
        self._older_tasks = _all_tasks(self._loop)
        signal(SIGINT, self._on_interrupt)
        # It may be told to stop already.
        self._wire.take_in()

    def _ending(self, step, source, file):
        """Does a step that runs code of the program's, and may be interrupted."""
        try:
            try:
                self._is_running = True
                if self._wire.was_signalled:
                    # Since the cell came, and before it ran.
                    self._is_stopped, self._wire.was_signalled = True, False
                    raise KeyboardInterrupt
                return step()
            finally:
                self._is_running = False
                # It was in the wire when the step was done, and must not be raised after it.
                self._wire.is_interrupted = False
        except SystemExit as error:
            self._is_running = False
            status = exit_status(error.code) & 0xFF
            note(EXIT_STAYS)
            return '{"exited":%d}' % status if status else '{"returned":null}'
        except BaseException as error:
            self._is_running = False
            self._ballast = None
            details = thrown(error, source, file)
            self._ballast = bytes(1 << 20)
            return _threw(details)

    def _returned(self, code):
        value = value_of(code, self._namespace, self._run_async)
        return '{"returned":%s}' % returned_json(value, self._pictures.show_if_picture)

    def _finish(self):
        self._pictures.finish_cell()
        # Who was told to stop has no time left for it.
        self._wire.drain_main(0 if self._is_stopped else SECONDS_TO_DRAIN)
        complain(self._wire)

    def _forget_cell(self):
        """What a cell that was stopped has begun ends with it."""
        self._wire.forget_main()
        if self._loop.is_closed():
            return
        tasks = _all_tasks(self._loop) - self._older_tasks
        for task in tasks:
            task.cancel()
        while not all(task.done() for task in tasks):
            _quietly(lambda: self._loop.run_until_complete(_all_done(tasks)))

    def _open_loop(self):
        # A program may close it, and `asyncio.run` leaves none behind.
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        _set_event_loop(self._loop)

    def _run_async(self, coroutine):
        loop = self._loop
        task = self._task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        finally:
            # Something may have ended the loop and not the task: an interrupt, or `sys.exit()` in
            # another task, and with it all that awaits that one.
            while not task.done():
                task.cancel()
                _quietly(lambda: loop.run_until_complete(task))
            if not task.cancelled():
                task.exception()
            self._task = None

    def _on_interrupt(self, number, frame):
        if not self._is_running:
            self._wire.was_signalled = True
            return
        self._is_stopped = True
        # In a loop of the program's own, it is for the program to clean up.
        if self._task is not None and _running_loop() is self._loop and _is_between_steps(frame):
            self._loop.call_soon_threadsafe(self._task.cancel)
        elif _is_in_wire(frame):
            self._wire.is_interrupted = True
            if _running_loop() is not None:
                _running_loop().call_soon_threadsafe(self._stop_now)
        else:
            raise KeyboardInterrupt

    def _stop_now(self):
        if not self._wire.is_interrupted:
            return
        self._wire.is_interrupted = False
        if self._task is None or _running_loop() is not self._loop:
            raise KeyboardInterrupt
        self._task.cancel()


async def _all_done(tasks):
    await asyncio.gather(*tasks, return_exceptions=True)


def _quietly(step):
    try:
        step()
    except BaseException:
        pass


def _is_between_steps(frame):
    """Whether it is the event loop itself that runs or waits, and nothing that it has called."""
    while frame is not None and frame.f_code.co_filename.startswith(_loop_files):
        if frame.f_code is _step_of_loop:
            return True
        frame = frame.f_back
    return False


def _is_in_wire(frame):
    """Whether frames are being read or written, so that an exception would lose half of one."""
    while frame is not None and frame.f_code.co_filename != _wire_file:
        if frame.f_code.co_filename.startswith(("<cell ", FILE)):
            return False
        frame = frame.f_back
    return frame is not None and frame.f_code not in _may_raise


def _threw(details):
    return '{"threw":%s}' % encode_json(details)
