"""Import hooks for certain modules."""

import importlib.util
import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)

BACKEND = "codexec_figures"
PACKAGES = "/box/packages/python"


class AfterImport:
    """Runs an action on a module right after its first import."""

    def __init__(self, actions):
        self._actions = actions
        self._looking_for = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self._actions or name in self._looking_for:
            return None
        self._looking_for.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking_for.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._extend(spec.loader, self._actions[name])
        return spec

    @staticmethod
    def _extend(loader, action):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            attempt(action, module)

        loader.exec_module = exec_module


class BackendFinder:
    """Creates our matplotlib backend on the first import."""

    def __init__(self, fill):
        self._fill = fill

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == BACKEND else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self._fill(module)


class JustWritten:
    """The last finder: finds modules that the program has only just written. Python's own finder
    relies on a directory's timestamp, which does not change within a few milliseconds."""

    _loaders = (
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (SourceFileLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )

    def find_spec(self, name, path=None, target=None):
        try:
            here = os.getcwd()
        except OSError:
            # The current directory is gone, or is being mounted anew.
            return None
        for directory in [here] if path is None else path:
            if directory == here or directory.startswith(here + os.sep):
                spec = FileFinder(directory, *self._loaders).find_spec(name)
                if spec is not None:
                    return spec
        return None


def add_packages():
    """Adds the packages of this session or execution to the path: before other packages, so that
    their versions win, and after the standard library, so that no package can replace a part of it.
    """
    path = sys.path
    if PACKAGES not in path:
        names = ("site-packages", "dist-packages")
        others = (at for at, folder in enumerate(path) if os.path.basename(folder) in names)
        path.insert(next(others, len(path)), PACKAGES)
    # The import system may have cached that the directory is missing.
    sys.path_importer_cache.pop(PACKAGES, None)


def attempt(action, module):
    """Runs the action; an unknown version of the module must not make its import fail."""
    try:
        action(module)
    except Exception:
        pass


def compact_pandas(pandas):
    options = {"width": 120, "max_rows": 20, "min_rows": 20, "max_columns": 20}
    for name, value in options.items():
        pandas.set_option(f"display.{name}", value)


def compact_polars(polars):
    polars.Config.set_tbl_rows(20)
    polars.Config.set_tbl_cols(20)
    polars.Config.set_tbl_width_chars(120)


def headless_matplotlib(matplotlib):
    if "MPLBACKEND" not in os.environ:
        matplotlib.use(f"module://{BACKEND}")


def forking_multiprocessing(context):
    # Since 3.14 children start afresh and read the main program's file, which does not exist here.
    default = context._default_context
    if default._actual_context is None:
        default._default_context = context._concrete_contexts["fork"]


ACTIONS = {
    "pandas": compact_pandas,
    "polars": compact_polars,
    "matplotlib": headless_matplotlib,
    "multiprocessing.context": forking_multiprocessing,
}


def install(fill_backend):
    sys.meta_path.insert(0, AfterImport(ACTIONS))
    sys.meta_path.append(BackendFinder(fill_backend))
    sys.meta_path.append(JustWritten())
    for name, action in ACTIONS.items():
        if name in sys.modules:
            attempt(action, sys.modules[name])
