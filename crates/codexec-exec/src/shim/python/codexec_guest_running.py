"""Compiles and runs code, once or cell by cell, and writes notes about it."""

import ast
import asyncio
import inspect
import os
import sys
from codexec_guest_calls import Call
from codexec_guest_errors import FILE
from codexec_guest_input import redirect_input_calls
from codexec_guest_tools import HelpText, Outcome

RESULT = "__codexec_result__"

_write = os.write
_compile = compile
_eval = eval
_is_awaitable = inspect.isawaitable


def compile_code(source, file=FILE):
    """Compiles the program, so that it stores its last expression's value under the name RESULT."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = _compile(source, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    redirect_input_calls(tree, source)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(RESULT, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    return _compile(tree, file, "exec", flags, dont_inherit=True)


def value_of(code, namespace, run_async=asyncio.run):
    # Runs in a loop only if the program awaits: otherwise its own `asyncio.run` must work.
    if code.co_flags & inspect.CO_COROUTINE:
        return run_async(_awaited_value(code, namespace))
    _eval(code, namespace)
    value = namespace.pop(RESULT, None)
    if isinstance(value, Call):
        return value.result()
    if _is_awaitable(value) and not isinstance(value, (Outcome, HelpText)):
        return run_async(_awaited(value))
    return value


async def _awaited_value(code, namespace):
    await _eval(code, namespace)
    value = namespace.pop(RESULT, None)
    return await value if _is_awaitable(value) else value


async def _awaited(value):
    return await value


def exit_status(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    attempt(lambda: sys.stderr.write(f"{code}\n"))
    return 1


def flush_current():
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def complain(wire):
    """Reports failed calls whose result was never requested."""
    failures, wire.unseen_failures = wire.unseen_failures, []
    for call in failures:
        complaint = call.complaint()
        if complaint is not None:
            note(complaint)


def attempt(step):
    try:
        step()
    except BaseException as error:
        note(f"{type(error).__name__} while the program ended: {error}")


def note(text):
    try:
        _write(2, f"[codexec] {text}\n".encode(errors="backslashreplace"))
    except OSError:
        pass
