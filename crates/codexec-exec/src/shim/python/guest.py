"""Runs one Python program, or one session, inside the sandbox.

The zygote calls `prepare` once, forks, and calls `main` in the child. This file is registered as
the module `codexec_guest`, after the files `codexec_guest_*` under their own names.
"""

import atexit
import builtins
import gc
import importlib
import os
import sys
import threading
import types
import warnings
from _signal import SIG_DFL, SIGCHLD, SIGHUP, SIGINT, SIGTERM, default_int_handler, signal
from codexec_guest_errors import FILE, describe_compile_error, describe_error, remember_source
from codexec_guest_files import install as install_files
from codexec_guest_files import start as start_in_directory
from codexec_guest_imports import install
from codexec_guest_input import install as install_input
from codexec_guest_mcp import connect
from codexec_guest_mcp import install as install_mcp
from codexec_guest_pictures import Pictures, fill_backend
from codexec_guest_running import (
    attempt,
    compile_code,
    complain,
    exit_status,
    flush_current,
    note,
    value_of,
)
from codexec_guest_session import Session
from codexec_guest_tools import api
from codexec_guest_values import returned_json
from codexec_guest_wire import Wire, encode_json

# Modules that most programs import: loaded once in the zygote, shared by every child.
COMMON_MODULES = """
    argparse array base64 bisect calendar collections contextlib copy csv datetime decimal
    dataclasses enum fractions functools glob hashlib heapq html io itertools json logging math
    operator os pathlib pprint queue random re shutil statistics string subprocess tempfile
    textwrap time traceback typing urllib.parse uuid zoneinfo concurrent.futures.thread
""".split()
SECONDS_TO_DRAIN = 1

_exit = os._exit
_eval = eval
_join_threads = threading._shutdown
_run_exit_functions = atexit._run_exitfuncs

_pictures = None
# Freed when memory has run out, so that the error can be reported. Costs nothing while untouched.
_ballast = bytes(1 << 20)


def prepare(preload):
    """Imports the modules that programs use, so that a forked child has them at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [*COMMON_MODULES, *preload]:
            try:
                importlib.import_module(name)
            except BaseException:
                pass  # A broken package is reported to programs that import it.
    install(lambda module: fill_backend(module, lambda: _pictures))
    install_mcp()
    install_files()
    install_input()
    _warm_up()
    try:
        _eval(compile_code("1/0"), {})
    except ZeroDivisionError as error:
        describe_error(error, "1/0")
    gc.collect()
    gc.freeze()


def _warm_up():
    """Runs everything once: the first run is slow, also in a forked child, because of page faults.
    """
    value_of(compile_code("import asyncio\nawait asyncio.sleep(0)\n1"), {})
    returned_json([value_of(compile_code("1+1"), api(None, ["a"]))], lambda value: None)


def main(fd):
    """Runs the program that the host sends over this socket, and exits the process."""
    status = 1
    try:
        status = _run(Wire(fd))
    except BaseException as error:
        note(f"the runner failed: {type(error).__name__}: {error}")
    finally:
        _exit(status & 0xFF)


def _run(wire):
    global _pictures
    os.register_at_fork(after_in_child=wire.abandon)
    # The first cell of a session may be interrupted before it is read.
    signal(SIGINT, lambda *_: setattr(wire, "was_signalled", True))
    streams = _set_up_process()
    _pictures = pictures = Pictures(wire, note)
    # A child that waits in a pool has time to warm up; under load the job is already there.
    if wire.is_quiet():
        _warm_up()
    job = wire.read_start()
    if job is None:
        return 1
    if not job.get("has_stdin"):
        _empty_stdin()
    start_in_directory()
    if job.get("is_session"):
        namespace = _main_module(job, wire, pictures)
        return Session(wire, pictures, namespace, streams).run()
    status, last_frame = _run_program(job, wire, pictures)
    steps = [_join_threads, pictures.finish, _run_exit_functions]
    steps += [lambda: wire.drain(SECONDS_TO_DRAIN), lambda: complain(wire)]
    steps += [flush_current, *(stream.flush for stream in streams)]
    for step in steps:
        attempt(step)
    if last_frame is not None:
        wire.say(last_frame)
    return status


def _run_program(job, wire, pictures):
    """Returns the exit status and the last frame."""
    global _ballast
    source = job["code"]
    try:
        code = compile_code(source)
    except Exception as error:
        return 1, _threw(describe_compile_error(error, source))
    remember_source(source)
    namespace = _main_module(job, wire, pictures)
    sys.argv[1:] = job.get("args", ())
    signal(SIGINT, default_int_handler)
    wire.say('"compiled"')
    try:
        value = value_of(code, namespace)
        return 0, '{"returned":%s}' % returned_json(value, pictures.show_if_picture)
    except SystemExit as error:
        status = exit_status(error.code)
        return status, '{"returned":null}' if status & 0xFF == 0 else None
    except BaseException as error:
        _ballast = None
        return 1, _threw(describe_error(error, source))


def _main_module(job, wire, pictures):
    module = types.ModuleType("__main__")
    module.__file__ = FILE
    module.__builtins__ = builtins
    namespace = module.__dict__
    namespace["input"] = namespace["input_data"] = job["input"]
    namespace["emit"] = pictures.emit
    namespace["display"] = pictures.display
    namespace.update(api(wire, job["servers"]))
    namespace["mcp"] = connect(wire, namespace["tools"])
    sys.modules["__main__"] = module
    return namespace


def _set_up_process():
    sys.argv[:] = [FILE]
    if sys.path[:1] != [""]:
        sys.path.insert(0, "")
    for number in (SIGTERM, SIGCHLD, SIGHUP):
        signal(number, SIG_DFL)
    _reseed_numpy()
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="replace", closefd=False)
    sys.stdout = sys.__stdout__ = _line_buffered(1)
    sys.stderr = sys.__stderr__ = _line_buffered(2)
    return sys.stdout, sys.stderr


def _empty_stdin():
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _line_buffered(fd):
    return open(fd, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _reseed_numpy():
    # Python's own `random` reseeds itself; numpy would repeat the zygote's numbers.
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def _threw(details):
    return '{"threw":%s}' % encode_json(details)
