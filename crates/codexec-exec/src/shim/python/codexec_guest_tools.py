"""The guest's access to tools. Names and arguments become JSON here; only the host checks them."""

import re
from collections.abc import Mapping
from codexec_guest_calls import Call, ToolError
from codexec_guest_host_functions import host_groups
from codexec_guest_values import simplify_argument
from codexec_guest_wire import Encoder, encode_json, utf8

MAX_ARGS_BYTES = 8 << 20
MAX_BATCH = 100
MAX_PARALLEL = 32

_encode_args = Encoder(default=simplify_argument).encode
_not_in_names = re.compile(r"[^A-Za-z0-9_]")


class Outcome(dict):
    """The result of `call_tool`: a dict that can also be awaited."""

    def __await__(self):
        return self
        yield


class HelpText(str):
    """A text that can also be awaited."""

    def __await__(self):
        return self
        yield


def alias_of(server):
    return _not_in_names.sub("_", server)


def _text(value, what):
    if isinstance(value, str):
        return encode_json(value)
    raise TypeError(f"{what} must be a string, not {type(value).__name__}")


def _args(args, named, target):
    if args is None:
        args = named
    elif not isinstance(args, Mapping):
        kind = type(args).__name__
        hint = f"{target} takes named arguments, or one dict of them; it was given a {kind}"
        raise ToolError(hint, "INVALID_ARGS")
    elif named or not isinstance(args, dict):
        args = {**args, **named}
    try:
        text = _encode_args(args)
    except (TypeError, ValueError, RecursionError) as error:
        why = f"the arguments of {target} cannot be written as JSON: {error}"
        raise ToolError(why, "INVALID_ARGS") from None
    # Only a long text is measured: a character is at most four bytes.
    size = len(utf8(text)) if len(text) * 4 > MAX_ARGS_BYTES else 0
    if size > MAX_ARGS_BYTES:
        why = f"the arguments of {target} are {size} bytes; at most {MAX_ARGS_BYTES} are allowed"
        raise ToolError(why, "INVALID_ARGS")
    return text


def tool_ask(server, tool, args, named):
    head = f'{{"tool":{{"server":{_text(server, "the server")}'
    text = _args(args, named, f"{server}.{tool}")
    return f'{head},"tool":{_text(tool, "the tool")},"args":{text}}}}}'


def _named_ask(name, args, named):
    head = f'{{"named":{{"name":{_text(name, "the name of the tool")}'
    return f'{head},"args":{_args(args, named, name)}}}}}'


class Tool:
    """One tool: call it with named arguments or with one dict."""

    def __init__(self, wire, server, tool):
        self._wire = wire
        self._server = server
        self._tool = tool
        self._written = f"tools.{server}.{tool}(..)"
        if not (server.isidentifier() and tool.isidentifier()):
            self._written = f"tools[{server!r}][{tool!r}](..)"

    def __call__(self, args=None, /, **named):
        return Call(self._wire, tool_ask(self._server, self._tool, args, named), self._written)

    def __repr__(self):
        return f"<tool {self._written}>"


class ServerTools:
    """The tools of one server: `tools.server.tool(..)` or `tools["server"]["tool"](..)`."""

    def __init__(self, wire, server):
        self._wire = wire
        self._server = server
        self._made = {}
        self._known = None

    def __getattr__(self, name):
        # Python and libraries probe objects for dunder names, which are never tools.
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name):
        tool = self._made.get(name)
        if tool is None:
            _text(name, "the name of a tool")
            tool = self._made[name] = Tool(self._wire, self._server, name)
        return tool

    def _names(self):
        if self._known is None:
            ask = f'{{"tool_names":{{"server":{encode_json(self._server)}}}}}'
            self._known = Call(self._wire, ask, f"dir(tools.{self._server})").result()
        return list(self._known)

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def __bool__(self):
        return True

    def __contains__(self, name):
        return name in self._names()

    def __dir__(self):
        return self._names()

    def __repr__(self):
        return f"<tools of {self._server}: list(..) gives their names>"


class Tools:
    """Every server the program may use: `tools.github`, `tools["my-server"]`, `list(tools)`."""

    def __init__(self, wire, servers):
        self._wire = wire
        self._servers = {name: ServerTools(wire, name) for name in servers}
        self._aliases = {}
        for name, server in self._servers.items():
            self._aliases.setdefault(alias_of(name), server)
        # Lower-case names work, too.
        for alias in [alias for alias in self._aliases if not alias.islower()]:
            self._aliases.setdefault(alias.lower(), self._aliases[alias])
        self._unknown = {}

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name):
        server = self._servers.get(name) or self._aliases.get(name) or self._unknown.get(name)
        if server is None:
            _text(name, "the name of a server")
            # Still callable: the host resolves other spellings.
            server = self._unknown[name] = ServerTools(self._wire, name)
        return server

    def __iter__(self):
        return iter(self._servers)

    def __len__(self):
        return len(self._servers)

    def __bool__(self):
        return True

    def __contains__(self, name):
        return name in self._servers or name in self._aliases

    def __dir__(self):
        return list(self._servers)

    def __repr__(self):
        return f"<tools of {', '.join(self._servers) or 'no server'}>"


class Servers(dict):
    """The same as a mapping: `mcp_servers["my-server"]`, `mcp_servers.github`."""

    def __init__(self, tools):
        super().__init__(tools._servers)
        self._tools = tools

    def __missing__(self, name):
        return self._tools[name]

    def __getattr__(self, name):
        return getattr(self._tools, name)


def _list_call(wire, kind, server, written):
    name = "null" if server is None else _text(server, "the server")
    return Call(wire, f'{{"{kind}":{{"server":{name}}}}}', written)


class Resources:
    """What servers can be read: `await resources.list()`, `await resources.read("server", uri)`."""

    def __init__(self, wire):
        self._wire = wire

    def list(self, server=None):
        """The resources of one server, or of all."""
        return _list_call(self._wire, "resources", server, "resources.list(..)")

    def templates(self, server=None):
        """The templates of one server's resources, or of all."""
        return _list_call(self._wire, "resource_templates", server, "resources.templates(..)")

    def read(self, server, uri):
        """One resource: a text, JSON, or the blocks that it has."""
        server, uri = _text(server, "the server"), _text(uri, "the uri")
        ask = f'{{"read_resource":{{"server":{server},"uri":{uri}}}}}'
        return Call(self._wire, ask, "resources.read(..)")

    def __repr__(self):
        return "<resources: list(), templates(), read(server, uri)>"


class Prompts:
    """Prompts of servers: `await prompts.list()`, `await prompts.get("server", "name", {..})`."""

    def __init__(self, wire):
        self._wire = wire

    def list(self, server=None):
        """The prompts of one server, or of all."""
        return _list_call(self._wire, "prompts", server, "prompts.list(..)")

    def get(self, server, name, args=None, /, **named):
        """One prompt's messages."""
        head = f'{{"prompt":{{"server":{_text(server, "the server")}'
        name, text = _text(name, "the name of the prompt"), _args(args, named, name)
        return Call(self._wire, f'{head},"name":{name},"args":{text}}}}}', "prompts.get(..)")

    def __repr__(self):
        return "<prompts: list(), get(server, name, args)>"


def _outcome(call):
    result = call.outcome()
    if "Ok" in result:
        return Outcome(ok=True, result=result["Ok"])
    return Outcome(ok=False, error=result["Err"])


def _failure(error, server, tool):
    # An ask that cannot even be built is an outcome, too.
    details = {"code": "INVALID_ARGS", "message": str(error), "server": server, "tool": tool}
    return Outcome(ok=False, error=details)


def _entry_call(wire, entry):
    if not isinstance(entry, Mapping):
        raise TypeError(f"a call is a dict with server, tool and args, not {entry!r:.100}")
    args = entry.get("args")
    if entry.get("server") is None and entry.get("name") is not None:
        return Call(wire, _named_ask(entry["name"], args, {}), entry["name"])
    server, tool = entry.get("server"), entry.get("tool")
    return Call(wire, tool_ask(server, tool, args, {}), f"{server}.{tool}")


def api(wire, servers):
    """Returns the names for the program's globals."""

    tools = Tools(wire, servers)

    def call_mcp_tool(name=None, args=None, **kwargs):
        """Calls a tool by its joined name: `await call_mcp_tool("mcp__github__x", {..})`."""
        if name is None:
            name = kwargs.pop("tool_name", None)
        if args is None and isinstance(kwargs.get("params"), Mapping):
            args = kwargs.pop("params")
        ask = _named_ask(name, args, kwargs)
        return Call(wire, ask, f"call_mcp_tool({name!r}, ..)")

    def call_tool(server, tool=None, args=None, **kwargs):
        """Calls a tool and waits: {"ok": True, "result": ..} or {"ok": False, "error": {..}}."""
        is_joined = not isinstance(tool, str) and args is None
        try:
            if is_joined:
                ask = _named_ask(server, tool, kwargs)
            else:
                ask = tool_ask(server, tool, args, kwargs)
        except (ToolError, TypeError) as error:
            return _failure(error, *((None, None) if is_joined else (server, tool)))
        return _outcome(Call(wire, ask, "call_tool(..)"))

    def call_tools(calls, max_parallel=8):
        """Calls up to 100 tools, some at a time; gives what `call_tool` gives, in order."""
        calls = list(calls)
        if len(calls) > MAX_BATCH:
            raise ValueError(f"call_tools takes at most {MAX_BATCH} calls, not {len(calls)}")
        if not isinstance(max_parallel, int) or not 1 <= max_parallel <= MAX_PARALLEL:
            raise ValueError(f"max_parallel must be 1 to {MAX_PARALLEL}, not {max_parallel!r}")
        under_way, outcomes = {}, [None] * len(calls)
        for index, entry in enumerate(calls):
            if len(under_way) >= max_parallel:
                wire.wait(lambda: any(call.done() for call in under_way.values()))
                for done in [i for i, call in under_way.items() if call.done()]:
                    outcomes[done] = _outcome(under_way.pop(done))
            try:
                under_way[index] = _entry_call(wire, entry)
            except (ToolError, TypeError) as error:
                about = entry if isinstance(entry, Mapping) else {}
                outcomes[index] = _failure(error, about.get("server"), about.get("tool"))
        for index, call in under_way.items():
            outcomes[index] = _outcome(call)
        return outcomes

    def discover_mcp_tools(search=None, *, search_terms=None):
        """Every tool in which one of the words occurs; all of them without words."""
        if search is None:
            search = search_terms
        if isinstance(search, Mapping):
            search = search.get("search")
        if search is None:
            search = []
        words = [search] if isinstance(search, str) else list(search)
        texts = ",".join(_text(word, "a search word") for word in words)
        return Call(wire, f'{{"discover":{{"words":[{texts}]}}}}', "discover_mcp_tools(..)")

    def search_tools(
        query="", limit=10, *, server=None, read_only=False, destructive=None, detail="summary"
    ):
        """The tools that match a sentence best; without one, all of them.

        read_only: only those that change nothing; destructive=False: only those that destroy
        nothing; detail: names, summary or full.
        """
        if not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise ValueError(f"the limit must be 1 to 1000, not {limit!r}")
        if detail not in ("names", "summary", "full"):
            raise ValueError(f"detail must be names, summary or full, not {detail!r}")
        ask = f'{{"search":{{"query":{_text(query, "the query")},"limit":{int(limit)}'
        if server is not None:
            ask += f',"server":{_text(server, "the server")}'
        if detail != "summary":
            ask += f',"detail":"{detail}"'
        if read_only:
            ask += ',"kind":"read_only"'
        elif destructive is not None:
            ask += ',"kind":"destructive"' if destructive else ',"kind":"safe"'
        return Call(wire, ask + "}}", f"search_tools({query!r:.100})")

    def get_tool_schema(name=None, *, tool_name=None):
        """One tool's whole definition."""
        if name is None:
            name = tool_name
        ask = f'{{"schema":{{"name":{_text(name, "the name of the tool")}}}}}'
        return Call(wire, ask, f"get_tool_schema({name!r:.100})")

    def help(name=None):
        """How to use everything, one server, or one tool. Any other object: Python's own help."""
        if isinstance(name, Tool):
            name = f"{name._server}.{name._tool}"
        elif isinstance(name, ServerTools):
            name = name._server
        elif isinstance(name, Tools):
            name = None
        if name is not None and not isinstance(name, str):
            import pydoc

            return pydoc.help(name)
        ask = f'{{"help":{{"name":{encode_json(name)}}}}}'
        return HelpText(Call(wire, ask, "help(..)").result())

    def progress(text):
        """Sends a progress message to the client."""
        if isinstance(text, Mapping) and "message" in text:
            text = text["message"]
        wire.say(f'{{"progress":{encode_json(str(text)[:10_000])}}}')

    names = {
        "tools": tools,
        "ToolError": ToolError,
        "call_mcp_tool": call_mcp_tool,
        "callMCPTool": call_mcp_tool,
        "call_tool": call_tool,
        "callTool": call_tool,
        "call_tools": call_tools,
        "discover_mcp_tools": discover_mcp_tools,
        "discoverMCPTools": discover_mcp_tools,
        "search_tools": search_tools,
        "searchTools": search_tools,
        "get_tool_schema": get_tool_schema,
        "getToolSchema": get_tool_schema,
        "help": help,
        "progress": progress,
        "resources": Resources(wire),
        "prompts": Prompts(wire),
        **host_groups(wire, _args),
    }
    for alias, server in tools._aliases.items():
        names["mcp_" + alias] = server
    names["mcp_servers"] = Servers(tools)
    names["LOADED_MCP_SERVERS"] = tuple(tools._servers)
    return names
