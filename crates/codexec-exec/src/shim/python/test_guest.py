import asyncio
import base64
import importlib.util
import sys
import textwrap
import unittest

from test_host import Host, echo, load_guest

INSTALLED = [n for n in ("numpy", "pandas", "PIL") if importlib.util.find_spec(n)]
guest = load_guest()
guest.prepare([*INSTALLED, "no_such_module_at_all"])

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ERROR = {"code": "TOOL_NOT_FOUND", "message": "no such tool", "server": "github", "tool": "x"}


def refuse(_ask):
    return {"Err": ERROR}


def run(code, answer=echo, input=None, **host):
    return Host(guest, answer, **host).run(textwrap.dedent(code), input)


def needs(*modules):
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    return unittest.skipIf(missing, f"not installed: {missing}")


class Results(unittest.TestCase):
    def check(self, code, expected, **host):
        self.assertEqual(run(code, **host).value, expected)

    def test_the_last_expression_is_the_result(self):
        self.check("1+1", 2)
        self.check("x = 3", None)
        self.check("'hello'", "hello")
        self.check("", None)
        self.check("for i in range(3): pass\ni", 2)
        self.check("import asyncio\nawait asyncio.sleep(0, 'slept')", "slept")
        self.check("async def f(): return 5\nf()", 5)
        self.check("async def f(): return 5\nawait f()\nf()", 5)

    def test_input_is_a_global(self):
        self.check("input['a'] + 1", 2, input={"a": 1})
        self.check("input is None", True)
        self.check("[input, input_data]", [{"a": 1}] * 2, input={"a": 1})

    def test_input_can_be_called(self):
        for given in (None, 5, {"a": 1}):
            message = run("print(input)\nname = input('? ')", input=given).threw["message"]
            self.assertTrue(message.startswith("EOFError: stdin is disabled"), message)
        self.assertEqual(run("import builtins\nbuiltins.input()").threw["message"], message)
        # Where stdin is given, its lines are read.
        code = """
            import os, sys
            r, w = os.pipe(); os.write(w, b"one\\ntwo\\n"); os.close(w); os.dup2(r, 0)
            [input("? "), input(), input]
            """
        ran = run(code, input=5)
        self.assertEqual((ran.value, ran.stdout), (["one", "two", 5], "? "))
        # A program that gives the name another meaning keeps it.
        self.check("def f(input): return input(3)\nf(str)", "3")
        self.check("from operator import neg as input\ninput(3)", -3)
        self.check("globals()['input'] = abs\ninput(-3)", 3)

    def test_main_is_a_real_module(self):
        self.check(
            """
            import dataclasses, inspect, pickle, sys
            @dataclasses.dataclass
            class Point:
                x: int
            def double(n):
                return n * 2
            assert __name__ == "__main__" and sys.modules["__main__"].Point is Point
            assert sys.argv == ["main.py"] and sys.path[0] == "", sys.path
            copy = pickle.loads(pickle.dumps(Point(4)))
            [copy, inspect.getsource(double), inspect.getsource(Point).count("\\n")]
            """,
            [{"x": 4}, "def double(n):\n    return n * 2\n", 3],
        )

    def test_the_programs_own_loop_works(self):
        self.check("import asyncio\nasyncio.run(asyncio.sleep(0, 'x'))", "x")
        self.check("import asyncio\nasync def f(): return await tools.a.b()\nasyncio.run(f())['tool']", "b")
        self.assertIn("cannot be called from a running event loop", run(
            "import asyncio\nawait asyncio.sleep(0)\nasyncio.run(asyncio.sleep(0))").threw["message"])

    def test_values_become_json(self):
        self.check(
            """
            import collections, datetime, decimal, enum, pathlib, uuid
            class Colour(enum.Enum):
                RED = 1
            class Odd:
                def __repr__(self): return "o" * 20_000
            class Model:
                def model_dump(self): return {"m": {1, 2}}
            class Broken:
                def __repr__(self): raise ValueError
            Pair = collections.namedtuple("Pair", "a b")
            odd = Odd()
            {
                "nan": [float("nan"), float("inf"), 1.5], "big": 2**70, "set": {3, 1, 2},
                "mixed": len({1, "a"}), "pair": Pair(1, (2, 3)), "enum": Colour.RED,
                "decimal": decimal.Decimal("1.10"), "day": datetime.date(2026, 1, 2),
                "when": datetime.datetime(2026, 1, 2, 3), "path": pathlib.Path("/a"),
                "uuid": uuid.UUID(int=1), "text": b"ok", "bytes": b"\\xff\\x00",
                "model": Model(), "broken": Broken(), 1: "int key", (1, 2): "tuple key",
                "counter": collections.Counter("aa"), "half": "\\ud800x", "keys": {"k": 1}.keys(),
                "range": range(2), "error": ValueError("bad"), "type": int,
            }
            """,
            {
                "nan": [None, None, 1.5], "big": 2**70, "set": [1, 2, 3], "mixed": 2,
                "pair": {"a": 1, "b": [2, 3]}, "enum": 1, "decimal": "1.10", "day": "2026-01-02",
                "when": "2026-01-02T03:00:00", "path": "/a",
                "uuid": "00000000-0000-0000-0000-000000000001", "text": "ok",
                "bytes": "data:application/octet-stream;base64,/wA=", "model": {"m": [1, 2]},
                "broken": "<Broken whose repr fails: ValueError>", "1": "int key",
                "(1, 2)": "tuple key", "counter": {"a": 2}, "half": "\ufffdx", "keys": ["k"],
                "range": [0, 1], "error": "ValueError: bad", "type": "<class 'int'>",
            },
        )
        self.assertEqual(len(run("class O:\n def __repr__(s): return 'o'*20_000\nO()").value), 10_000 + 22)

    def test_what_cannot_be_json_says_so(self):
        def check(code, words):
            threw = run(code).threw
            self.assertEqual(threw["code"], "SERIALIZATION_ERROR")
            self.assertIn(words, threw["message"])

        check("a = []\na.append(a)\na", "contains itself")
        check("a = []\nfor _ in range(200): a = [a]\na", "nested deeper than 100")
        check("'x' * (16 << 20)", "16777218 bytes of JSON")
        check("10 ** 5000", "cannot be written as JSON") if sys.version_info >= (3, 11) else None

    def test_the_same_value_twice_is_no_cycle(self):
        self.check("a = [1]\n[a, a]", [[1], [1]])

    @needs("numpy", "pandas")
    def test_arrays_and_tables(self):
        self.check(
            """
            import numpy as np, pandas as pd
            frame = pd.DataFrame({"n": range(1000), "t": "x" * 500})
            text = frame
            [np.float64(1.5), np.int8(3), np.arange(4).reshape(2, 2), np.nan, np.bool_(True),
             np.array(["2026-01-01"], "M8[ns]"), pd.NaT, pd.Series([1, 2], name="s"),
             len(repr(frame)) < 3000, np.random.rand() != np.random.rand(), pd.Index([1])]
            """,
            [1.5, 3, [[0, 1], [2, 3]], None, True, ["2026-01-01T00:00:00.000000000"], None,
             "0    1\n1    2\nName: s, Length: 2, dtype: int64", True, True,
             "Index([1], dtype='int64')"],
        )
        text = run("import pandas as pd\npd.DataFrame({'n': range(1000), 't': 'x' * 500})").value
        self.assertTrue(text.endswith("[1000 rows x 2 columns]"), text)
        self.assertLess(len(text), 2500)
        two = [run("import numpy as np\nnp.random.rand()").value for _ in range(2)]
        self.assertNotEqual(*two)

    @needs("pandas")
    def test_printed_tables_are_compact(self):
        ran = run("import pandas as pd\nprint(pd.DataFrame({'n': range(1000)}))")
        self.assertEqual(len(ran.stdout.splitlines()), 1 + 20 + 1 + 2)

    def test_modules_in_the_working_directory_can_be_imported(self):
        self.check(
            """
            import os
            try: import helper
            except ImportError: pass
            os.makedirs("pkg"); open("pkg/__init__.py", "w").close()
            open("helper.py", "w").write("x = 7")
            import helper, pkg
            try: import pkg.sub
            except ImportError: pass
            open("pkg/sub.py", "w").write("y = 8")
            from pkg.sub import y
            [helper.x, y]
            """,
            [7, 8],
        )

    def test_processes(self):
        self.check(
            """
            import concurrent.futures, os
            def double(n): return n * 2
            def forbidden(_):
                try: tools.a.b()
                except RuntimeError as error: return str(error)
            with concurrent.futures.ProcessPoolExecutor(2) as pool:
                found = [list(pool.map(double, [1, 2])), list(pool.map(forbidden, [1]))]
            found.append(tools.a.b().result()["tool"])
            found
            """,
            [[2, 4], ["only the program's first process can talk to the host"], "b"],
        )


class Endings(unittest.TestCase):
    def check(self, code, status, stderr=""):
        ran = run(code)
        self.assertEqual((ran.status, ran.stderr), (status, stderr))
        return ran

    def test_exit_status(self):
        self.assertEqual(self.check("import sys; sys.exit()", 0).value, None)
        self.assertEqual(self.check("import sys; sys.exit(7)", 7).named("returned"), [])
        self.check("import sys; sys.exit('sorry')", 1, "sorry\n")
        self.check("import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(3)", 3)
        self.check("import sys; sys.exit(-1)", 255)
        self.check("exit(4)", 4)
        self.check("import os; os.kill(os.getpid(), 15)", -15)

    def test_threads_exit_functions_and_output_come_first(self):
        ran = run(
            """
            import atexit, sys, threading, time
            def late():
                time.sleep(0.1); print("thread", tools.a.b().result()["tool"])
            threading.Thread(target=late).start()
            atexit.register(lambda: sys.stdout.write("at exit"))
            print("main")
            1
            """
        )
        self.assertEqual((ran.value, ran.stdout), (1, "main\nthread b\nat exit"))

    def test_pending_calls_are_drained_but_not_for_ever(self):
        ran = run("tools.a.b()\n1", answer=lambda ask: None)
        self.assertEqual((ran.value, len(ran.asks)), (1, 1))
        ran = run("tools.a.b()\n1", answer=refuse)
        self.assertIn("never awaited: no such tool", ran.stderr)

    def test_patched_modules_do_not_harm(self):
        ran = run(
            """
            import builtins, io, json, os, socket, sys, threading, traceback
            for module, name in [(json, "dumps"), (json, "loads"), (builtins, "print"), (os, "_exit"),
                                 (socket, "socket"), (threading, "_shutdown"), (builtins, "open"),
                                 (json.JSONEncoder, "encode"), (json.JSONEncoder, "iterencode"),
                                 (json.JSONEncoder, "default"), (builtins, "repr"), (os, "write"),
                                 (traceback, "format_exc"), (builtins, "compile"), (builtins, "eval")]:
                setattr(module, name, None)
            sys.stdout = io.StringIO()
            value = tools.a.b(x=1).result()
            sys.modules.clear()
            value
            """
        )
        self.assertEqual(ran.value, {"server": "a", "tool": "b", "args": {"x": 1}})
        self.assertEqual(run("import sys\nsys.stdout = sys.stderr = None\n1").value, 1)
        self.assertEqual(run("import sys\nsys.stdout.close()\n1").value, 1)
        ran = run("import sys\nsys.modules.clear()\nsys.setrecursionlimit(60)\nraise ValueError('x')")
        self.assertEqual(ran.threw["message"], "ValueError: x")

    def test_output_flows(self):
        ran = run(
            """
            import os, subprocess, sys
            print("é\\udcff"); os.write(1, b"raw\\n"); subprocess.run(["echo", "child"])
            print("bad", file=sys.stderr)
            sys.stdin.read()
            """
        )
        self.assertEqual((ran.stdout, ran.stderr), ("é\\udcff\nraw\nchild\n", "bad\n"))
        self.assertEqual(ran.value, "")

    def test_a_program_that_closes_our_socket_still_has_its_status(self):
        for code, status in (("5", 0), ("import sys; sys.exit(6)", 6), ("1/0", 1)):
            self.assertEqual(run("import os\nos.closerange(3, 100)\n" + code).status, status)
        ran = run("import os\nos.closerange(3, 100)\nopen('x', 'w')\ntools.a.b().result()")
        self.assertEqual(ran.status, 1)

    def test_nothing_is_left_in_the_working_directory(self):
        self.assertEqual(run("1").files, [])

    def test_a_forked_child_of_the_program_cannot_speak(self):
        ran = run("import os\nif os.fork(): os.wait()\nelse: print('child')\n5")
        self.assertEqual((ran.value, ran.stdout), (5, "child\n"))


class Errors(unittest.TestCase):
    def test_an_error_shows_the_programs_own_lines(self):
        threw = run(
            """\
            import json
            def f(text):
                return json.loads(text)
            é = "é"; f("{")
            """
        ).threw
        self.assertTrue(threw["message"].startswith("json.decoder.JSONDecodeError: Expecting"))
        self.assertEqual(threw["code"], "RUNTIME_ERROR")
        column = 12 if sys.version_info >= (3, 11) else 1
        self.assertEqual(threw["at"], {"line": 3, "column": column})
        files = [line for line in threw["stack"].splitlines() if line.startswith("  File")]
        self.assertEqual(
            files,
            ['  File "main.py", line 4, in <module>', '  File "main.py", line 3, in f'],
        )
        self.assertIn("\n    return json.loads(text)\n", threw["stack"])

    @unittest.skipIf(sys.version_info < (3, 11), "no columns")
    def test_columns_count_characters(self):
        threw = run("é = 'éé'; é.x").threw
        self.assertEqual(threw["at"], {"line": 1, "column": 11})

    def test_what_a_library_handled_is_left_out(self):
        stack = run("from urllib.request import urlopen\nurlopen('http://127.0.0.1:1')").threw["stack"]
        self.assertTrue(stack.startswith('Traceback (most recent call last):\n  File "main.py"'), stack)
        code = "def f():\n    try: {}[1]\n    except KeyError: raise ValueError(2)\nf()"
        self.assertIn("During handling", run(code).threw["stack"])
        self.assertIn("direct cause", run("raise ValueError(1) from KeyError(2)").threw["stack"])

    def test_chains(self):
        stack = run(
            """
            try:
                {}["a"]
            except KeyError as error:
                try: 1/0
                except Exception: raise ValueError("bad") from error
            """
        ).threw["stack"]
        self.assertIn("KeyError: 'a'\n\nThe above exception was the direct cause", stack)
        self.assertTrue(stack.endswith("ValueError: bad"))
        stack = run("try: 1/0\nexcept Exception: nothing").threw["stack"]
        self.assertIn("During handling of the above exception", stack)

    @unittest.skipIf(sys.version_info < (3, 11), "no groups")
    def test_groups(self):
        threw = run(
            """
            import asyncio
            async def fail(n): raise ValueError(n)
            async with asyncio.TaskGroup() as group:
                for n in range(2): group.create_task(fail(n))
            """
        ).threw
        self.assertIn("unhandled errors in a TaskGroup (2 sub-exceptions)", threw["message"])
        self.assertIn("ValueError: 1", threw["stack"])
        self.assertNotIn("asyncio/", threw["stack"])

    def test_syntax(self):
        threw = run("x = 1\ny = = 2\n").threw
        self.assertEqual((threw["code"], threw["at"]), ("SYNTAX_ERROR", {"line": 2, "column": 5}))
        self.assertEqual(threw["message"], "SyntaxError: invalid syntax")
        self.assertIn("    y = = 2\n", threw["stack"])
        self.assertNotIn("compiled", run("y = = 2").frames)
        self.assertIn("the value of the last expression", run("return 1").threw["message"])
        self.assertEqual(run("x = '\0'").threw["code"], "SYNTAX_ERROR")
        self.assertEqual(run("(" * 5000).threw["code"], "SYNTAX_ERROR")
        self.assertIn("nested too deeply", run("-" * 100_000 + "1").threw["message"])
        self.assertIn("IndentationError", run("  x\n y").threw["message"])
        self.assertEqual(run("compile('= 1', 'x', 'exec')").threw["code"], "RUNTIME_ERROR")

    def test_bottomless_and_memory(self):
        threw = run("def f(): f()\nf()").threw
        self.assertIn("RecursionError: maximum recursion depth", threw["message"])
        self.assertLess(len(threw["stack"]), 2000)
        self.assertEqual(threw["at"]["line"], 1)
        threw = run("class A:\n  def __repr__(s): return repr(s)\nrepr(A())").threw
        self.assertIn("RecursionError", threw["message"])
        threw = run(
            """
            import resource
            resource.setrlimit(resource.RLIMIT_DATA, (200 << 20,) * 2)
            hoard = []
            while True: hoard.append(bytearray(100_000)); hoard.append([1, 2, 3])
            """
        ).threw
        self.assertEqual((threw["code"], threw["at"]["line"]), ("MEMORY_LIMIT", 5))

    def test_odd_exceptions(self):
        threw = run("class E(Exception):\n  def __str__(s): 1/0\nraise E").threw
        self.assertEqual(threw["message"], "E: <str() of this exception fails>")
        self.assertEqual(run("raise KeyboardInterrupt").threw["message"], "KeyboardInterrupt")
        self.assertEqual(run("raise GeneratorExit").threw["message"], "GeneratorExit")
        threw = run("e = ValueError('x' * 10**6)\nraise e").threw
        self.assertLess(len(threw["message"]), 25_000)

    def test_tool_errors_keep_their_code(self):
        threw = run("await tools.github.x()", answer=refuse).threw
        self.assertEqual(threw["code"], "TOOL_NOT_FOUND")
        self.assertEqual(threw["message"], "ToolError: no such tool")
        self.assertEqual(threw["at"]["line"], 1)
        self.assertEqual(run("tools.github.x()", answer=refuse).threw["code"], "TOOL_NOT_FOUND")
        self.assertEqual(run("raise ToolError('x', 'TIMEOUT')").threw["code"], "RUNTIME_ERROR")
        ran = run(
            """
            import pickle
            try: await tools.github.x()
            except ToolError as error: e = pickle.loads(pickle.dumps(error))
            [e.code, e.server, e.tool, e.message, str(e)]
            """,
            answer=refuse,
        )
        self.assertEqual(ran.value, ["TOOL_NOT_FOUND", "github", "x", "no such tool", "no such tool"])
