"""Describes uncaught errors, with the program's own lines only."""

import linecache
import sys
from traceback import TracebackException
from codexec_guest_calls import ToolError
from codexec_guest_values import SerializationError

FILE = "main.py"
MAX_FRAMES = 1000
MAX_MESSAGE_CHARS = 20_000
MAX_STACK_CHARS = 40_000
TOOL_CODES = frozenset(
    (
        "INVALID_ARGS",
        "SERVER_NOT_ALLOWED",
        "TOOL_NOT_ALLOWED",
        "TOOL_NOT_FOUND",
        "TOOL_QUARANTINED",
        "UPSTREAM_ERROR",
        "CIRCUIT_OPEN",
        "SERVICE_UNAVAILABLE",
        "RATE_LIMITED",
    )
)

_set_recursion_limit = sys.setrecursionlimit
_recursion_limit = sys.getrecursionlimit


def cell_file(number):
    """Returns the file name of a session's cell."""
    return f"<cell {number}>"


def remember_source(code, file=FILE):
    lines = code.splitlines(keepends=True)
    linecache.cache[file] = (len(code), None, lines, file)


def describe_error(error, code, file=FILE):
    """Returns the fields of a `threw` frame, for an error of the running program."""
    _set_recursion_limit(max(_recursion_limit(), 1000))
    details = {"code": _code_of(error), "message": _message_of(error), "at": None, "stack": None}
    try:
        # The program may have cleared the cache.
        remember_source(code, file)
        summary = TracebackException.from_exception(error, limit=-MAX_FRAMES)
        _keep_own_frames(summary, set())
        details["at"] = _place_of(summary, file)
        details["stack"] = _cut("".join(summary.format()).rstrip("\n"), MAX_STACK_CHARS)
    except Exception:
        pass  # The message alone is reported then.
    return details


def describe_compile_error(error, code, file=FILE):
    """Returns the fields of a `threw` frame, for code that could not be compiled."""
    remember_source(code, file)
    details = {"code": "SYNTAX_ERROR", "message": _message_of(error), "at": None, "stack": None}
    if isinstance(error, (MemoryError, RecursionError)):
        # This is how Python's parser reports that its own stack is full.
        details["message"] = "SyntaxError: the code is nested too deeply to be compiled"
    if isinstance(error, SyntaxError):
        text = error.msg
        if text == "'return' outside function":
            text += ": the value of the last expression is the result"
        details["message"] = f"{type(error).__name__}: {text}"
        if error.lineno:
            details["at"] = {"line": error.lineno, "column": max(1, error.offset or 1)}
        summary = TracebackException.from_exception(error)
        lines = "".join(summary.format_exception_only())
        details["stack"] = _cut(lines.rstrip("\n"), MAX_STACK_CHARS)
    return details


def _code_of(error):
    if isinstance(error, MemoryError):
        return "MEMORY_LIMIT"
    if isinstance(error, SerializationError):
        return "SERIALIZATION_ERROR"
    if isinstance(error, ToolError) and error.code in TOOL_CODES:
        return error.code
    return "RUNTIME_ERROR"


def _message_of(error):
    if isinstance(error, SerializationError):
        return str(error)
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        text = str(error)
    except Exception:
        text = "<str() of this exception fails>"
    return _cut(f"{name}: {text}" if text else name, MAX_MESSAGE_CHARS)


def _keep_own_frames(summary, seen):
    if summary is None or id(summary) in seen:
        return
    seen.add(id(summary))
    if summary.stack is not None:
        summary.stack[:] = [frame for frame in summary.stack if _is_own(frame.filename)]
    _keep_own_frames(summary.__cause__, seen)
    _keep_own_frames(summary.__context__, seen)
    # An error that a library has handled itself says nothing about the program.
    context = summary.__context__
    if context is not None and not (context.stack or context.__cause__ or context.__context__):
        summary.__context__ = None
    for inner in getattr(summary, "exceptions", None) or ():
        _keep_own_frames(inner, seen)


def _is_own(file):
    return file == FILE or file.startswith("<cell ")


def _place_of(summary, file):
    frames = [frame for frame in summary.stack or () if frame.filename == file]
    if not frames:
        return None
    frame = frames[-1]
    column_bytes = getattr(frame, "colno", None)
    column = 1
    if column_bytes is not None:
        # Python counts columns in bytes of UTF-8.
        line = linecache.getline(file, frame.lineno).encode()
        column = len(line[:column_bytes].decode(errors="replace")) + 1
    return {"line": frame.lineno or 1, "column": column}


def _cut(text, limit):
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
