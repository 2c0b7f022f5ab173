"""`input`: the request's data, which can also be called like Python's own `input()`.

The data may be None or a number, which cannot be made callable. So calls of the name are compiled
as calls of a function of ours, unless the program itself gives the name another meaning.
"""

import ast
import builtins
import os
import re
import stat
import sys

READ_LINE = "__codexec_read_line__"
DISABLED = (
    "stdin is disabled: code cannot ask while it runs; "
    "pass the data as `input` with the request, and read it from input_data"
)

_NULL_DEVICE = os.makedev(1, 3)
_call_of_input = re.compile(r"\binput\s*\(")
_read_line = builtins.input
_modules = sys.modules


def install():
    """Replaces Python's own `input`, also for modules that the program imports."""
    builtins.input = read_line
    setattr(builtins, READ_LINE, call_input)


def read_line(prompt="", /):
    """Reads a line from stdin, where stdin is given."""
    found = os.fstat(0)
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == _NULL_DEVICE:
        raise EOFError(DISABLED)
    return _read_line(prompt)


def call_input(*args, **named):
    """What `input(..)` means in the program: its own function of this name, or `read_line`."""
    own = getattr(_modules.get("__main__"), "input", None)
    return own(*args, **named) if callable(own) else read_line(*args, **named)


def redirect_input_calls(tree, source):
    """Makes `input(..)` work in a program where `input` is the request's data."""
    if not isinstance(source, str) or not _call_of_input.search(source):
        return
    calls = []
    for node in ast.walk(tree):
        if _binds_input(node):
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.append(node.func)
    for name in calls:
        if name.id == "input":
            name.id = READ_LINE


def _binds_input(node):
    if isinstance(node, ast.Name):
        return node.id == "input" and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.arg):
        return node.arg == "input"
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == "input"
    # Functions, classes, and names of exceptions and patterns.
    return getattr(node, "name", None) == "input"
