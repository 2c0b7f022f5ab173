"""Runs one module of CPython's own tests in this interpreter, and returns the result.

The same text runs in a guest and outside; only the appended lines differ.
"""

import io
import re
import unittest

from test import support

# Skip tests that need a network, a display, much time or much disk.
support.use_resources = ()
support.verbose = 0


def name_of(case):
    name = case.id()
    around = re.fullmatch(r"((?:setUp|tearDown)(?:Class|Module)) \((.*)\)", name)
    name = f"{around[2]}.{around[1]}" if around else name.partition(" ")[0]
    return name.removeprefix("test.")


def names(cases):
    return sorted({name_of(case) for case, _ in cases})


def run(module):
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
    except unittest.SkipTest:
        return {"tests": 0, "failures": [], "errors": [], "skipped": [module], "log": ""}
    log = io.StringIO()
    result = unittest.TextTestRunner(log, verbosity=0).run(suite)
    unexpected = [(case, "") for case in result.unexpectedSuccesses]
    return {
        "tests": result.testsRun,
        "failures": names(result.failures + unexpected),
        "errors": names(result.errors),
        "skipped": names(result.skipped),
        "log": log.getvalue()[-100_000:],
    }
