"""What is kept between runs: sessions, scripts, packages and logs.

Each function calls a function of the host under a readable name. Only the host checks its
arguments.
"""

import json
import os
from collections.abc import Mapping
from codexec_guest_calls import Call, ToolError
from codexec_guest_imports import add_packages

# For each group and name: the host's name of the function, and its positional arguments.
with open(os.path.join(os.path.dirname(__file__), "host_functions.json"), encoding="ascii") as file:
    _GROUPS = json.load(file)


class Installing(Call):
    """A package install. On success its packages can be imported at once."""

    __slots__ = ()

    def settle(self, result):
        if "Ok" in result:
            add_packages()
        super().settle(result)


class Function:
    """One of them: what stands in order gets its name; keywords, or a last dict, name the rest."""

    def __init__(self, wire, write_args, written, tool, firsts):
        self._wire = wire
        self._write_args = write_args
        self._written = written
        self._head = f'{{"own":{{"name":"{tool}","args":'
        self._firsts = firsts
        self._call = Installing if tool == "install_package" else Call

    def __call__(self, *given, **named):
        if given and isinstance(given[-1], Mapping):
            named = {**given[-1], **named}
            given = given[:-1]
        if len(given) > len(self._firsts):
            firsts = ", ".join(self._firsts) or "nothing"
            hint = f"takes {firsts} in order and keywords for the rest; it was given {len(given)}"
            raise ToolError(f"{self._written} {hint} in order", "INVALID_ARGS")
        for name, value in zip(self._firsts, given):
            if value is None:
                continue
            if name in named:
                raise ToolError(f"{self._written} was given {name} twice", "INVALID_ARGS")
            named[name] = value
        args = self._write_args(None, named, self._written)
        return self._call(self._wire, f"{self._head}{args}}}}}", f"{self._written}(..)")

    def __repr__(self):
        return f"<{self._written}({', '.join([*self._firsts, '..'])})>"


class Group:
    """Functions that belong together: `await scripts.run("name")`, `dir(scripts)`."""

    def __init__(self, name, functions):
        self.__dict__.update(functions)
        self._name = name

    def __repr__(self):
        names = ", ".join(name for name in self.__dict__ if not name.startswith("_"))
        return f"<{self._name}: {names}>"


def host_groups(wire, write_args):
    """Returns the groups of functions for the program's globals."""

    def functions(group):
        for name, (tool, *firsts) in _GROUPS[group].items():
            yield name, Function(wire, write_args, f"{group}.{name}", tool, firsts)

    return {group: Group(group, functions(group)) for group in _GROUPS}
