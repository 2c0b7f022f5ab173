"""Converts a program's result to JSON."""

import dataclasses
import datetime
import sys
from binascii import b2a_base64
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, Set, ValuesView
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import isfinite
from pathlib import PurePath
from uuid import UUID
from codexec_guest_calls import NOT_AWAITED, Call
from codexec_guest_pictures import mime_of
from codexec_guest_wire import encode_json, utf8

MAX_DEPTH = 100
MAX_VALUE_BYTES = 15 << 20
MAX_REPR_CHARS = 10_000
MAX_ROWS = 20
MAX_COLUMNS = 20
MAX_CELL_CHARS = 80

UNKNOWN = object()
_PLAIN = frozenset((str, int, bool, type(None)))


class SerializationError(Exception):
    pass


def returned_json(value, show):
    """Returns the JSON text of a result. `show(x)` sends x if it is a picture and returns a text to
    stand for it, or None."""
    try:
        text = encode_json(_Walk(show).walk(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationError(f"the result cannot be written as JSON: {error}") from error
    size = len(utf8(text)) if len(text) * 4 > MAX_VALUE_BYTES else 0
    if size > MAX_VALUE_BYTES:
        raise SerializationError(
            f"the result is {size} bytes of JSON, and at most {MAX_VALUE_BYTES} can be given "
            "back: return less of it, or write it to a file"
        )
    return text


def simplify_argument(value):
    """Converts arguments of tools: values without an obvious JSON form are an error there."""
    if isinstance(value, Call):
        raise TypeError(NOT_AWAITED.format(call=value._text))
    simpler = simplify(value)
    if simpler is UNKNOWN:
        raise TypeError(f"{_name_of(type(value))} has no JSON form: {_repr(value)[:200]}")
    return simpler


class _Walk:
    def __init__(self, show):
        self._show = show
        self._above = set()

    def walk(self, value, depth):
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if isfinite(value) else None
        if depth >= MAX_DEPTH:
            raise SerializationError(f"the result is nested deeper than {MAX_DEPTH} levels")
        if id(value) in self._above:
            raise SerializationError("the result contains itself: JSON cannot hold a cycle")
        self._above.add(id(value))
        try:
            return self._inside(value, kind, depth + 1)
        finally:
            self._above.discard(id(value))

    def _inside(self, value, kind, depth):
        if kind is dict:
            words = self._show(value) if "type" in value else None
            return words if words is not None else {
                key if type(key) is str else _key(key): (
                    inner if type(inner) in _PLAIN else self.walk(inner, depth)
                )
                for key, inner in value.items()
            }
        if kind is list or kind is tuple:
            return [
                inner if type(inner) in _PLAIN else self.walk(inner, depth) for inner in value
            ]
        if kind is Call:
            return self.walk(value.result(), depth)
        words = self._show(value)
        if words is not None:
            return words
        try:
            simpler = simplify(value)
        except Exception:
            # This is code of the value's own class: if it fails, the repr is used.
            simpler = UNKNOWN
        return _repr(value) if simpler is UNKNOWN else self.walk(simpler, depth)


def simplify(value):
    """Returns the value one step closer to JSON, or UNKNOWN."""
    kind = type(value)
    if isinstance(value, type):
        return UNKNOWN
    if isinstance(value, Enum):
        return value.value
    for base in (str, int):
        if isinstance(value, base):
            return base.__str__(value) if base is str else int(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return dict(zip(value._fields, value))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple, deque, range, KeysView, ValuesView, ItemsView)):
        return list(value)
    if isinstance(value, Set):
        return _sorted_if_possible(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if kind.__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (Decimal, Fraction, PurePath, UUID, datetime.timedelta)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(value))
    if isinstance(value, BaseException):
        return f"{_name_of(kind)}: {value}"
    table = _table_text(value)
    if table is not None:
        return table
    return _by_method(value, kind)


def _by_method(value, kind):
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        # `tolist` would turn a time into a bare number.
        return value.astype(str).tolist() if value.dtype.kind in "mM" else _unwrapped(value)
    if callable(getattr(kind, "model_dump", None)):
        return value.model_dump()
    if callable(getattr(kind, "tolist", None)):
        return value.tolist()
    return UNKNOWN


def _unwrapped(value):
    simpler = value.tolist()
    return UNKNOWN if type(simpler) is type(value) else simpler


def _table_text(value):
    pandas = sys.modules.get("pandas")
    if pandas is not None and hasattr(pandas, "DataFrame"):
        if isinstance(value, pandas.DataFrame):
            return value.to_string(
                max_rows=MAX_ROWS,
                max_cols=MAX_COLUMNS,
                max_colwidth=MAX_CELL_CHARS,
                show_dimensions=True,
            )
        if isinstance(value, pandas.Series):
            return value.to_string(max_rows=MAX_ROWS, length=True, dtype=True, name=True)
        if isinstance(value, pandas.Index):
            return repr(value)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(value, (polars.DataFrame, polars.Series)):
        return str(value)
    return None


def _sorted_if_possible(values):
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def _bytes_text(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        mime = mime_of(data) or "application/octet-stream"
        return f"data:{mime};base64,{b2a_base64(data, newline=False).decode()}"


def _key(key):
    if isinstance(key, Enum):
        key = key.value
    return str.__str__(key) if isinstance(key, str) else str(key)


def _repr(value):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{_name_of(type(value))} whose repr fails: {_name_of(type(error))}>"
    if len(text) > MAX_REPR_CHARS:
        return f"{text[:MAX_REPR_CHARS]}... ({len(text)} characters)"
    return text


def _name_of(kind):
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
