"""`mcp.runtime`, `mcp.servers` and `mcp_servers`, and a real package `mcp` beside them."""

import tempfile
import textwrap
import unittest
from pathlib import Path

from test_guest import refuse, run
from test_host import echo

SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}}


def tool(server, name, **more):
    return {"name": f"{server}.{name}", "server": server, "tool": name, **more}


# One that the program may call, and one that it may not.
TOOLS = {
    "my-server": [tool("my-server", "get-time", description="The time."), tool("my-server", "in")],
    "other": [tool("other", "x", description="X.")],
    "empty": [],
}


def answer(ask):
    ((kind, of),) = ask.items()
    if kind == "servers":
        return {"Ok": [{"name": name, "tools": len(tools)} for name, tools in TOOLS.items()]}
    if kind == "tool_names" and of["server"] == "broken":
        return refuse(ask)
    if kind == "tool_names":
        return {"Ok": [one["tool"] for one in TOOLS[of["server"]]]}
    if kind == "search":
        tools = TOOLS.get(of["server"], []) if "server" in of else sum(TOOLS.values(), [])
        more = {"inputSchema": SCHEMA} if of.get("detail") == "full" else {}
        return {"Ok": [{**one, **more} for one in tools][: of["limit"]]}
    return echo(ask) if kind == "tool" else refuse(ask)


def value(code, servers=("my-server",)):
    return run(code, answer=answer, servers=servers).value


ENTRY = {"server": "my-server", "serverAlias": "my_server", "tool": "get-time"}
ENTRY.update(toolAlias="get_time", description="The time.")
SECOND = {"server": "my-server", "serverAlias": "my_server", "tool": "in", "toolAlias": "in_"}
ABOUT = {"name": "my-server", "alias": "my_server"}
ABOUT["tools"] = [
    {"name": "get-time", "alias": "get_time", "description": "The time.", "input_schema": SCHEMA},
    {"name": "in", "alias": "in_", "description": "", "input_schema": SCHEMA},
]


class Runtime(unittest.TestCase):
    def check(self, code, expected, **more):
        self.assertEqual(
            value(f"import mcp.runtime as runtime\n{textwrap.dedent(code)}", **more), expected
        )

    def test_it_is_imported_in_every_way(self):
        for way in (
            "from mcp import runtime",
            "import mcp.runtime as runtime",
            "import mcp; runtime = mcp.runtime",
            "runtime = mcp.runtime",
        ):
            self.assertEqual(
                value(f"{way}\nruntime.list_servers_sync()"), ["my-server", "other", "empty"]
            )
        self.assertEqual(
            value("from mcp.runtime import *\ndiscovered_servers()"),
            ["my-server", "other", "empty"],
        )
        self.assertEqual(
            value("from mcp import *\n[runtime.__name__, servers.__name__]"),
            ["mcp.runtime", "mcp.servers"],
        )

    def test_servers(self):
        names = ["my-server", "other", "empty"]
        self.check("runtime.discovered_servers()", names)
        self.check("type(runtime.discovered_servers()).__name__", "tuple")
        self.check("await runtime.list_servers()", names)
        self.check("runtime.list_servers_sync()", names)
        detailed = [
            {"name": "my-server", "tools": 2, "loaded": True},
            {"name": "other", "tools": 1, "loaded": False},
        ]
        self.check("runtime.discovered_servers(detailed=True)[:2]", detailed)

    def test_lists_of_tools(self):
        self.check("await runtime.list_tools('my-server')", ABOUT["tools"])
        self.check("runtime.list_tools_sync('my-server')", ABOUT["tools"])
        self.check("runtime.list_tools_sync('empty')", [])
        self.check("runtime.describe_server('my-server')", ABOUT)
        self.check("runtime.describe_server('other')['tools'][0]['name']", "x")
        self.check("runtime.list_loaded_server_metadata()", [ABOUT])
        self.check("runtime.list_loaded_server_metadata()", [], servers=())
        broken = [
            {"name": "broken", "alias": "broken", "tools": [], "error": "no such tool"},
            ABOUT,
        ]
        self.check("runtime.list_loaded_server_metadata()", broken, servers=("broken", "my-server"))

    def test_documentation(self):
        full = [{**entry, "inputSchema": SCHEMA} for entry in (ENTRY, SECOND)]
        self.check("await runtime.query_tool_docs('my-server')", [ENTRY, SECOND])
        self.check("runtime.query_tool_docs_sync('my-server')", [ENTRY, SECOND])
        self.check("await runtime.query_tool_docs('my-server', detail='full')", full)
        self.check("await runtime.query_tool_docs('my-server', 'get-time')", ENTRY)
        self.check("runtime.query_tool_docs_sync('my-server', tool='get_time')", [ENTRY])
        self.check("runtime.query_tool_docs_sync('my-server', 'GET-TIME', 'full')", full[:1])

    def test_search(self):
        self.check(
            "[e['server'] for e in await runtime.search_tool_docs('x')]",
            ["my-server", "my-server", "other"],
        )
        self.check("runtime.search_tool_docs_sync('x', limit=1)", [ENTRY])
        self.check(
            "runtime.search_tool_docs_sync('x', limit=1, detail='full')",
            [{**ENTRY, "inputSchema": SCHEMA}],
        )
        self.check("runtime.search_tool_docs_sync('  ')", [])
        limits = [
            ask["search"]["limit"]
            for limit in (0, 20, 21)
            for ask in run(
                f"mcp.runtime.search_tool_docs_sync('x', limit={limit})", answer=answer
            ).asks
        ]
        self.assertEqual(limits, [1, 20, 20])

    def test_calls(self):
        called = {"server": "other", "tool": "x", "args": {"a": 1, "b": 2}}
        self.check("await runtime.call_tool('other', 'x', {'a': 1}, b=2)", called)
        self.check("runtime.call_tool('other', 'x').result()['args']", {})

    def test_many_at_once(self):
        code = "import asyncio\nfrom mcp import runtime\nlen(await asyncio.gather(*(runtime.call_tool('a', 'b', {'n': n}) for n in range(20))))"
        # No call is answered before all are sent.
        self.assertEqual(run(code, window=20).value, 20)

    def test_what_is_wrong_is_said(self):
        def threw(code):
            return run(f"from mcp import runtime\n{code}", answer=answer).threw["message"]

        self.assertEqual(
            threw("runtime.query_tool_docs_sync('my-server', detail='all')"),
            "ValueError: detail must be summary or full, not 'all'",
        )
        self.assertEqual(
            threw("runtime.search_tool_docs_sync(3)"),
            "TypeError: the query must be a string, not int",
        )
        self.assertEqual(
            threw("runtime.search_tool_docs_sync('a', limit='3')"),
            "TypeError: limit must be a whole number from 1 to 20, not '3'",
        )
        self.assertEqual(threw("await runtime.list_tools('broken')"), "ToolError: no such tool")
        self.assertEqual(threw("runtime.describe_server('broken')"), "ToolError: no such tool")
        self.assertEqual(
            threw("await runtime.query_tool_docs('my-server', 'nothing')"),
            "ToolError: no such tool",
        )
        self.check(
            "try:\n    runtime.list_tools_sync('broken')\nexcept runtime.MCPError as error:\n    said = error.code\nsaid",
            "TOOL_NOT_FOUND",
        )

    def test_the_summary_names_every_function(self):
        code = "import mcp.runtime as r\n[name for name in r.__all__ if name.removesuffix('_sync') not in r.capability_summary()]"
        self.assertEqual(value(code), ["MCPError", "capability_summary"])


class ServerModules(unittest.TestCase):
    def test_the_tools_of_a_server_are_functions(self):
        expected = {"server": "my-server", "tool": "get-time", "args": {"zone": "UTC"}}
        for code in (
            "from mcp.servers.my_server import *\nawait get_time(zone='UTC')",
            "from mcp.servers.my_server import get_time\nawait get_time(zone='UTC')",
            "import mcp.servers.my_server as s\nawait s.get_time({'zone': 'UTC'})",
            "from mcp.servers import my_server\nawait my_server.get_time(zone='UTC')",
            "import mcp.servers\nawait mcp.servers.my_server.get_time(zone='UTC')",
            "from mcp import servers\nawait servers.my_server.get_time(zone='UTC')",
        ):
            self.assertEqual(value(code), expected, code)
        self.assertEqual(value("import mcp.servers.my_server as s\nawait s.in_()")["tool"], "in")

    def test_what_is_not_there_is_not_imported(self):
        ran = run("import mcp.servers.other", answer=answer, servers=("my-server",))
        said = "ModuleNotFoundError: No module named 'mcp.servers.other': this program may call my_server; a server has to be allowed before its tools are here"
        self.assertEqual(ran.threw["message"], said)
        self.assertEqual(
            value(
                "import mcp\n[hasattr(mcp.servers, 'other'), hasattr(mcp, 'nothing'), hasattr(mcp, '__wrapped__')]"
            ),
            [False] * 3,
        )
        self.assertEqual(value("import mcp.servers\ndir(mcp.servers)"), ["my_server"])

    def test_servers_are_a_mapping(self):
        code = "[list(mcp_servers), len(mcp_servers), 'other' in mcp_servers, mcp_servers.get('other'), LOADED_MCP_SERVERS]"
        self.assertEqual(value(code), [["my-server"], 1, False, None, ["my-server"]])
        for way in (
            "mcp_servers['my-server']",
            "mcp_servers['my_server']",
            "mcp_servers.my_server",
            "mcp_my_server",
        ):
            self.assertEqual(
                value(f"await {way}.x(a=1)"), {"server": "my-server", "tool": "x", "args": {"a": 1}}
            )
        self.assertEqual(value("await mcp_servers['unknown'].x()")["server"], "unknown")
        self.assertEqual(value("await mcp_github.x()", servers=("GitHub",))["server"], "GitHub")
        self.assertEqual(
            value("await mcp_GitHub.x()", servers=("github", "GitHub"))["server"], "GitHub"
        )
        self.assertEqual(
            value("await mcp_github.x()", servers=("GitHub", "github"))["server"], "github"
        )


class RealPackage(unittest.TestCase):
    """A package `mcp` that the user has installed."""

    def run_beside(self, files, code):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return value(f"import sys; sys.path.insert(0, {folder!r})\n{textwrap.dedent(code)}")

    FILES = {
        "mcp/__init__.py": "from .types import Tool\nfrom . import types\nimport mcp.deep.er\nprint('ran')\n__version__ = '2'\n__all__ = ['Tool']\nclass Client: pass",
        "mcp/types.py": "class Tool: pass",
        "mcp/deep/__init__.py": "",
        "mcp/deep/er.py": "from mcp import Tool\nx = 1",
    }

    def test_both_are_there(self):
        code = """
            import mcp, importlib.util, inspect, pickle
            from mcp import Client, Tool, runtime
            from mcp.types import Tool as same
            import mcp.deep.er
            assert pickle.loads(pickle.dumps(Tool)) is same
            assert importlib.util.find_spec("mcp").origin == mcp.__file__ == inspect.getfile(mcp)
            [Tool is same, mcp.Client is Client, mcp.__version__, mcp.deep.er.x, runtime.list_servers_sync()[0], Client.__module__]
        """
        self.assertEqual(
            self.run_beside(self.FILES, code), [True, True, "2", 1, "my-server", "mcp"]
        )

    def test_it_is_not_run_for_ours(self):
        files = {"mcp/__init__.py": "raise ImportError('it is broken')", "mcp/types.py": "x = 1"}
        code = """
            import mcp.runtime
            from mcp.servers.my_server import get_time
            from mcp.types import x
            try:
                from mcp import Client
            except ImportError as error:
                said = str(error)
            [x, said, mcp.runtime.list_servers_sync()[0]]
        """
        self.assertEqual(self.run_beside(files, code), [1, "it is broken", "my-server"])

    def test_a_file_of_the_programs_own(self):
        files = {"mcp.py": "name = __name__\nseen = []\nseen.append(1)"}
        code = "import mcp\nfrom mcp import name, runtime\n[mcp.seen, name, runtime.list_servers_sync()[0]]"
        self.assertEqual(self.run_beside(files, code), [[1], "mcp", "my-server"])

    def test_one_that_comes_later(self):
        with tempfile.TemporaryDirectory() as folder:
            code = f"""
                import mcp, os, sys
                before = hasattr(mcp, "late")
                os.mkdir({folder!r} + "/mcp")
                open({folder!r} + "/mcp/__init__.py", "w").write("late = 1")
                sys.path.insert(0, {folder!r})
                [before, mcp.late, mcp.runtime.list_servers_sync()[0]]
            """
            self.assertEqual(value(textwrap.dedent(code)), [False, 1, "my-server"])


if __name__ == "__main__":
    unittest.main()
