"""`mcp.runtime`: what a program can find out about servers before it calls them.

Every function exists twice: one is awaited, and the other, whose name ends in `_sync`, blocks. Both
see every server that the user has, also those that the program may not call.
"""

import functools
from keyword import iskeyword
from codexec_guest_calls import Call, ToolError
from codexec_guest_tools import alias_of, tool_ask
from codexec_guest_wire import encode_json

MAX_TOOLS = 1000
MAX_FOUND = 20
DETAILS = ("summary", "full")
SUMMARY = (
    "Python in a sandbox without a network. `import mcp.runtime as runtime`: "
    "discovered_servers(detailed=False), describe_server(name), list_loaded_server_metadata(); "
    "awaited, or with `_sync` at the end of the name: list_servers(), list_tools(server), "
    "query_tool_docs(server, tool=None, detail='summary'|'full'), "
    "search_tool_docs(query, limit=5, detail='summary'). "
    "Only servers that are allowed (run_python: named in `servers`) can be called: "
    "`await mcp_<alias>.<tool>(..)`, `await mcp_servers['name'].<tool>(..)`, "
    "`from mcp.servers.<alias> import *`, `await runtime.call_tool(server, tool, args)`; "
    "asyncio.gather calls many at once. The value of the last expression comes back, and so does "
    "what is printed."
)


def identifier(name):
    """Returns a valid Python name for a server or a tool."""
    text = alias_of(name) or "_"
    if text[0].isdigit():
        return f"_{text}"
    return f"{text}_" if iskeyword(text) else text


def _sync(function):
    """Makes a function that runs a generator of calls and blocks for each."""

    @functools.wraps(function)
    def waits(*args, **named):
        steps = function(*args, **named)
        go_on = functools.partial(next, steps)
        try:
            while True:
                call = go_on()
                try:
                    go_on = functools.partial(steps.send, call.result())
                except ToolError as error:
                    go_on = functools.partial(steps.throw, error)
        except StopIteration as end:
            return end.value

    return waits


def _async(function):
    """Makes a function that runs a generator of calls and awaits each."""

    @functools.wraps(function)
    async def awaits(*args, **named):
        steps = function(*args, **named)
        go_on = functools.partial(next, steps)
        try:
            while True:
                call = go_on()
                try:
                    go_on = functools.partial(steps.send, await call)
                except ToolError as error:
                    go_on = functools.partial(steps.throw, error)
        except StopIteration as end:
            return end.value

    return awaits


def _text(value, what):
    if isinstance(value, str):
        return value
    raise TypeError(f"{what} must be a string, not {type(value).__name__}")


def _detail(value):
    detail = "summary" if value is None else str(value).lower()
    if detail not in DETAILS:
        raise ValueError(f"detail must be summary or full, not {value!r:.100}")
    return detail


def _limit(value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"limit must be a whole number from 1 to {MAX_FOUND}, not {value!r:.100}")
    return max(1, min(MAX_FOUND, value))


def _entry(tool, detail):
    entry = {"server": tool["server"], "serverAlias": identifier(tool["server"])}
    entry.update(tool=tool["tool"], toolAlias=identifier(tool["tool"]))
    if tool.get("description"):
        entry["description"] = tool["description"]
    if detail == "full" and tool.get("inputSchema") is not None:
        entry["inputSchema"] = tool["inputSchema"]
    return entry


def _metadata(tool):
    about = {"name": tool["tool"], "alias": identifier(tool["tool"])}
    about["description"] = tool.get("description") or ""
    about["input_schema"] = tool.get("inputSchema")
    return about


def _no_tool(server, tool, names):
    # Imported only here: programs rarely misspell a name.
    from difflib import get_close_matches

    near = get_close_matches(tool, names, 3, 0.7)
    advice = f"did you mean {', '.join(near)}?" if near else "list_tools() has all names"
    message = f'no tool "{tool}" on server "{server}"; {advice}'
    return ToolError(message, "TOOL_NOT_FOUND", server, tool)


class Asking:
    """The queries, as generators of calls."""

    def __init__(self, wire, loaded):
        self._wire = wire
        self._loaded = tuple(loaded)

    def servers(self, detailed=False):
        found = yield Call(self._wire, '{"servers":{}}', "list_servers()")
        if not detailed:
            return tuple(server["name"] for server in found)
        is_loaded = self._loaded.__contains__
        return tuple({**server, "loaded": is_loaded(server["name"])} for server in found)

    def tools(self, server, detail="full"):
        search = {"query": "", "limit": MAX_TOOLS, "server": _text(server, "the server")}
        ask = encode_json({"search": {**search, "detail": detail}})
        found = yield Call(self._wire, ask, f"list_tools({server!r:.100})")
        if not found:
            # If the list is empty because of a problem, this call raises the reason.
            ask = encode_json({"tool_names": {"server": server}})
            yield Call(self._wire, ask, f"list_tools({server!r:.100})")
        return found

    def list_tools(self, server):
        found = yield from self.tools(server)
        return [_metadata(tool) for tool in found]

    def describe(self, name):
        found = yield from self.tools(name)
        real = found[0]["server"] if found else name
        return {"name": real, "alias": identifier(real), "tools": [_metadata(t) for t in found]}

    def docs(self, server, tool=None, detail="summary"):
        detail = _detail(detail)
        found = yield from self.tools(server, detail)
        if tool is None:
            return [_entry(one, detail) for one in found]
        wanted = _text(tool, "the tool").lower()
        for one in found:
            if wanted in (one["tool"].lower(), identifier(one["tool"]).lower()):
                return [_entry(one, detail)]
        # The host resolves other spellings.
        ask = encode_json({"schema": {"name": f"{server}.{tool}"}})
        one = yield Call(self._wire, ask, f"query_tool_docs({server!r:.100}, {tool!r:.100})")
        if one is None:
            raise _no_tool(server, tool, [one["tool"] for one in found])
        return [_entry(one, detail)]

    def search(self, query, limit=5, detail="summary"):
        detail = _detail(detail)
        query = _text(query, "the query")
        if not query.strip():
            return []
        ask = encode_json({"search": {"query": query, "limit": _limit(limit), "detail": detail}})
        found = yield Call(self._wire, ask, f"search_tool_docs({query!r:.100})")
        return [_entry(tool, detail) for tool in found]

    def loaded(self):
        about = []
        for name in self._loaded:
            try:
                about.append((yield from self.describe(name)))
            except ToolError as error:
                # A server that cannot be reached does not hide the others.
                empty = {"name": name, "alias": identifier(name), "tools": []}
                about.append({**empty, "error": error.message})
        return tuple(about)


def runtime(wire, loaded):
    """The functions of the module, for a program that may call these servers."""
    asking = Asking(wire, loaded)
    awaited_docs = _async(asking.docs)

    @functools.wraps(asking.docs)
    async def query_tool_docs(server, tool=None, detail="summary"):
        docs = await awaited_docs(server, tool, detail)
        # With a tool name, this one returns the entry itself; the blocking variant returns a list.
        return docs if tool is None else docs[0]

    def call_tool(server, tool, args=None, /, **named):
        """Calls a tool: `await runtime.call_tool("server", "tool", {..})`."""
        ask = tool_ask(server, tool, args, named)
        return Call(wire, ask, f"runtime.call_tool({server!r}, {tool!r}, ..)")

    def list_servers():
        """The names of all servers."""
        return asking.servers()

    functions = {
        "MCPError": ToolError,
        "call_tool": call_tool,
        "capability_summary": lambda: SUMMARY,
        "describe_server": _sync(asking.describe),
        "discovered_servers": _sync(asking.servers),
        "list_loaded_server_metadata": _sync(asking.loaded),
        "list_servers": _async(list_servers),
        "list_servers_sync": _sync(list_servers),
        "list_tools": _async(asking.list_tools),
        "list_tools_sync": _sync(asking.list_tools),
        "query_tool_docs": query_tool_docs,
        "query_tool_docs_sync": _sync(asking.docs),
        "search_tool_docs": _async(asking.search),
        "search_tool_docs_sync": _sync(asking.search),
    }
    for name, function in functions.items():
        if function is not ToolError:
            function.__name__ = function.__qualname__ = name
    return functions
