"""The package `mcp`: `mcp.runtime` and `mcp.servers`, made when a program looks for them.

A program may have the real package of that name installed. Then it has both: what is not ours is
looked for there, and only when it is looked for is that package found and run, which takes long.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from codexec_guest_calls import Call
from codexec_guest_runtime import identifier, runtime
from codexec_guest_wire import encode_json

NAME = "mcp"
OURS = ("runtime", "servers")
# Attributes that the import system reads, and attributes that describe a package.
OF_SPEC = frozenset(("__spec__", "__loader__", "__path__", "__file__", "__cached__"))
OF_PACKAGE = frozenset(("__all__", "__version__"))

_lock = RLock()
_wire = None
_tools = None
_is_real_run = False


class Package(ModuleType):
    """`mcp`: ours, and behind it the real one."""

    def __getattr__(self, name):
        if name in OURS:
            return import_module(f"{NAME}.{name}")
        # Libraries probe every module for many such attributes.
        if name.startswith("__") and name not in OF_SPEC and name not in OF_PACKAGE:
            raise AttributeError(name)
        with _lock:
            self._find_real(is_run=name not in OF_SPEC)
        found = self.__dict__
        if name not in found and name in ("__path__", "__all__"):
            return [] if name == "__path__" else list(OURS)
        if name not in found and name == "__spec__":
            return ModuleSpec(NAME, None, is_package=True)
        if name not in found:
            raise AttributeError(f"module {NAME!r} has no attribute {name!r}")
        return found[name]

    def __dir__(self):
        return sorted({*self.__dict__, *OURS})

    def _find_real(self, is_run):
        global _is_real_run
        spec = self.__dict__.get("__spec__") or _real_spec()
        if spec is None:
            return
        places = spec.submodule_search_locations
        found = {"__spec__": spec, "__loader__": spec.loader, "__cached__": spec.cached}
        found["__path__"] = [] if places is None else places
        if spec.has_location:
            found["__file__"] = spec.origin
        self.__dict__.update(found)
        # A module that is not a package is a file of the program, and runs as usual.
        if (is_run or places is None) and not _is_real_run and hasattr(spec.loader, "exec_module"):
            _is_real_run = True
            try:
                spec.loader.exec_module(self)
            except BaseException:
                _is_real_run = False
                raise


class Finder:
    """The last finder: modules of the real package come first."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith(NAME + "."):
            return None
        _, kind, *rest = name.split(".")
        if kind == "runtime" and not rest:
            return ModuleSpec(name, Loader(_fill_runtime))
        if kind == "servers" and not rest:
            return ModuleSpec(name, Loader(_fill_servers), is_package=True)
        if kind == "servers" and len(rest) == 1:
            server = _server_of(rest[0], name)
            return ModuleSpec(name, Loader(lambda module: _fill_server(module, server)))
        return None


class Loader:
    def __init__(self, fill):
        self._fill = fill

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self._fill(module)


def install():
    """Installs the finder, once, before any program runs."""
    global _is_real_run
    sys.meta_path.append(Finder())
    package = sys.modules.get(NAME)
    if package is not None:
        # The real package was preloaded.
        package.__class__ = Package
        _is_real_run = True
        return
    package = sys.modules[NAME] = Package(NAME, __doc__)
    package.__package__ = NAME
    for name in ("__spec__", "__loader__"):
        del package.__dict__[name]


def connect(wire, tools):
    """Sets the objects that the modules are made from. Returns the package."""
    global _wire, _tools
    _wire, _tools = wire, tools
    return sys.modules[NAME]


def _real_spec():
    for finder in sys.meta_path:
        if isinstance(finder, Finder) or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(NAME, None)
        if spec is not None:
            return spec
    return None


def _fill_runtime(module):
    functions = runtime(_wire, list(_tools))
    module.__dict__.update(functions)
    module.__doc__ = functions["capability_summary"]()
    module.__all__ = list(functions)


def _fill_servers(module):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return import_module(f"{module.__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(str(error)) from None

    module.__all__ = [identifier(server) for server in _tools]
    module.__getattr__ = __getattr__
    module.__dir__ = lambda: list(module.__all__)


def _server_of(alias, name):
    for server in _tools:
        if alias == identifier(server):
            return _tools[server]
    if alias in _tools:
        return _tools[alias]
    have = ", ".join(identifier(server) for server in _tools) or "none"
    hint = f"this program may call {have}; a server has to be allowed before its tools are here"
    raise ModuleNotFoundError(f"No module named {name!r}: {hint}", name=name)


def _fill_server(module, server):
    ask = f'{{"tool_names":{{"server":{encode_json(server._server)}}}}}'
    names = Call(_wire, ask, f"import {module.__name__}").result()
    tools = {}
    for name in names:
        tools.setdefault(identifier(name), server[name])
    module.__dict__.update(tools)
    module.__doc__ = f"The tools of {server._server}."
    module.__all__ = list(tools)
