"""A session: runs cells in one namespace and one event loop, until the host is gone.

A cell is interrupted by SIGINT, which raises KeyboardInterrupt in the running code. Where that
would break something of ours (a frame half sent, the event loop between two steps), it is deferred
to the next safe place. A signal that arrives before the next cell does is ignored.
"""

import asyncio
import codexec_guest_files as files
import importlib
import os
import selectors
import sys
from _signal import SIGINT, signal
from codexec_guest_attributed import Attribution
from codexec_guest_errors import (
    FILE,
    cell_file,
    describe_compile_error,
    describe_error,
    remember_source,
)
from codexec_guest_imports import add_packages
from codexec_guest_running import (
    attempt,
    compile_code,
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
# An exception raised here is raised in the code that waits.
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
        self._directory = files.start_directory
        # Freed when memory has run out, so that the error can be reported.
        self._ballast = bytes(1 << 20)

    def run(self):
        """Runs cells until the host is gone."""
        add_packages()
        self._open_loop()
        while True:
            cell = self._next_cell()
            if cell is None:
                return 0
            # THREAT[SES-8]: code that an earlier cell left running knows the next cell's number,
            # but not its key.
            key = cell.pop("key")
            ending = self._run_cell(cell)
            self._directory = files.current_directory()
            self._wire.say('{"cell_ended":{"key":"%s","ending":%s}}' % (key, ending))

    def _next_cell(self):
        wire = self._wire
        while wire.cell is None and not wire.closed_because:
            loop = self._loop
            if loop.is_closed() or not _all_tasks(loop):
                return wire.read_cell()
            # Tasks of earlier cells go on between two cells.
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
        """Returns the ending of the cell as JSON."""
        source, file = cell["code"], cell_file(cell["number"])
        self._set_up(cell)
        # The directory may have been mounted anew since the last cell.
        if not files.enter(self._directory):
            # THREAT[FIL-13]: the code was not written for another directory.
            files.enter(files.start_directory)
            gone = self._directory.encode(errors="backslashreplace").decode()
            return '{"directory_gone":%s}' % encode_json(gone)
        try:
            code = compile_code(source, file)
        except Exception as error:
            return _threw(describe_compile_error(error, source, file))
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
        # Text that is still buffered was written by an earlier cell.
        attempt(flush_current)
        self._attribution.begin(cell["number"], self._wire.take_streams())
        # A variable that the program has assigned itself is replaced only by an explicit input.
        for name in ("input", "input_data"):
            if cell["input"] is not None or self._namespace.get(name) is self._given:
                self._namespace[name] = cell["input"]
        self._given = cell["input"]
        sys.argv[:] = [FILE, *cell["args"]]
        if sys.stdin is not None and sys.stdin.closed:
            # `exit()` closes it.
            sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)
        # Packages may have been installed since the last cell.
        _invalidate_caches()
        self._open_loop()
        self._is_stopped = self._wire.is_interrupted = False
        self._older_tasks = _all_tasks(self._loop)
        signal(SIGINT, self._on_interrupt)
        # The cell may have been interrupted already.
        self._wire.take_in()

    def _ending(self, step, source, file):
        """Runs a step with code of the program, which may be interrupted."""
        try:
            try:
                self._is_running = True
                if self._wire.was_signalled:
                    # Interrupted after the cell arrived and before it ran.
                    self._is_stopped, self._wire.was_signalled = True, False
                    raise KeyboardInterrupt
                return step()
            finally:
                self._is_running = False
                # The interrupt came in the wire just before the step ended, and must not be raised
                # later.
                self._wire.is_interrupted = False
        except SystemExit as error:
            self._is_running = False
            status = exit_status(error.code) & 0xFF
            note(EXIT_STAYS)
            return '{"exited":%d}' % status if status else '{"returned":null}'
        except BaseException as error:
            self._is_running = False
            self._ballast = None
            details = describe_error(error, source, file)
            self._ballast = bytes(1 << 20)
            return _threw(details)

    def _returned(self, code):
        value = value_of(code, self._namespace, self._run_async)
        return '{"returned":%s}' % returned_json(value, self._pictures.show_if_picture)

    def _finish(self):
        self._pictures.finish_cell()
        # A cell that was interrupted has no time left to wait.
        self._wire.drain_main(0 if self._is_stopped else SECONDS_TO_DRAIN)
        complain(self._wire)

    def _forget_cell(self):
        """Ends everything that an interrupted cell has started."""
        self._wire.forget_main()
        if self._loop.is_closed():
            return
        tasks = _all_tasks(self._loop) - self._older_tasks
        for task in tasks:
            task.cancel()
        while not all(task.done() for task in tasks):
            _quietly(lambda: self._loop.run_until_complete(_all_done(tasks)))

    def _open_loop(self):
        # A program may close the loop, and `asyncio.run` leaves none behind.
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        _set_event_loop(self._loop)

    def _run_async(self, coroutine):
        loop = self._loop
        task = self._task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        finally:
            # The loop may have ended without the task: by an interrupt, or by `sys.exit()` in
            # another task, which also ends everything that awaits that task.
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
        # In an event loop of the program's own, the program has to clean up.
        is_in_own_loop = self._task is not None and _running_loop() is self._loop
        if is_in_own_loop and _is_between_steps(frame):
            self._cancel_tasks()
        elif _is_in_wire(frame):
            self._wire.is_interrupted = True
            if is_in_own_loop:
                self._cancel_tasks()
            if _running_loop() is not None:
                _running_loop().call_soon_threadsafe(self._stop_now)
        else:
            raise KeyboardInterrupt

    def _cancel_tasks(self):
        """Cancels the tasks of the cell at once: a task whose turn is next may never give it back.
        """
        for task in _all_tasks(self._loop) - self._older_tasks:
            task.cancel()
        # Wakes the loop if it waits.
        self._loop.call_soon_threadsafe(_nothing)

    def _stop_now(self):
        if not self._wire.is_interrupted:
            return
        self._wire.is_interrupted = False
        if self._task is None or _running_loop() is not self._loop:
            raise KeyboardInterrupt


def _nothing():
    pass


async def _all_done(tasks):
    await asyncio.gather(*tasks, return_exceptions=True)


def _quietly(step):
    try:
        step()
    except BaseException:
        pass


def _is_between_steps(frame):
    """True if the event loop itself runs or waits, and nothing that it has called."""
    while frame is not None and frame.f_code.co_filename.startswith(_loop_files):
        if frame.f_code is _step_of_loop:
            return True
        frame = frame.f_back
    return False


def _is_in_wire(frame):
    """True if a frame is being read or written, so that an exception would lose half of it."""
    while frame is not None and frame.f_code.co_filename != _wire_file:
        if frame.f_code.co_filename.startswith(("<cell ", FILE)):
            return False
        frame = frame.f_back
    return frame is not None and frame.f_code not in _may_raise


def _threw(details):
    return '{"threw":%s}' % encode_json(details)
