"""What travels between an aggregator and its sites: plain values, public facts of known kinds, and whole numbers.

A message is a header in JSON and the bytes of its arrays behind it, all of it compressed. Objects are built of a fixed
list of frozen kinds, whose fields have the declared types, and each of which checks itself when it is made: reading a
message runs nothing else, and no pickle.
"""

from __future__ import annotations

import functools
import json
import re
import struct
import types
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from fractions import Fraction
from importlib import import_module
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.expression import Predicate, parse
from understudy.boundary.schema.schema import Schema
from understudy.errors import InternalError, SiteError, UnderstudyError

MOST_BYTES = 1 << 31
"""Of a message once it is unpacked: what claims to be larger is refused before it fills the memory."""
LENGTH = struct.Struct("<I")
NUMBERS = ("u1", "u2", "u4", "i1", "i2", "i4", "i8", "u8")
"""The types in which whole numbers travel."""
_SHARE = re.compile(r"-?[0-9]{1,1000}/[0-9]{1,1000}")

_HOMES = {
    "boundary.schema.column": ("Boolean", "Categorical", "Datetime", "Identifier", "Integer", "Number", "Ordinal"),
    "boundary.schema.derived": ("DerivedInteger", "DerivedNumber", "DerivedPart"),
    "boundary.schema.domain": ("Coding", "Domain", "EvenCoding"),
    "boundary.schema.grouped_sums": ("GroupedSums", "PersonCount", "RowCount", "ValueSum"),
    "boundary.schema.moment": ("Moment",),
    "boundary.schema.partition": ("Bundle", "CrossTable", "Crossed", "Grid", "Split", "Tree"),
    "boundary.privacy.asks.counts": ("Marginals", "Moments", "Partitions", "Tally", "Total"),
    "boundary.privacy.budget": ("Amount",),
    "inference.polya.dyadic": ("Dyadic",),
    "predictors.additive_model": ("AdditiveModel", "BoostedTree"),
    "predictors.decision_tree": ("DecisionTree", "LeafClasses"),
    "predictors.gradients": ("GradientCells", "GradientTable", "HuberLoss", "LogisticLoss"),
    "predictors.splits": ("ColumnSplit",),
}
"""The kinds that a message may hold, by the module that has them; these are imported when one is met."""
_KINDS = {name: home for home, names in _HOMES.items() for name in names}


def packed(header: Mapping[str, Any], *content: Any) -> bytes:
    """A message: plain values by name, and any number of objects."""
    packing = _Packing()
    body = [packing.put(value) for value in content]
    text = json.dumps({**header, "objects": packing.objects, "content": body}, allow_nan=False).encode()
    arrays = [packing.shapes, b"".join(packing.buffers)]
    shapes = json.dumps(arrays[0]).encode()
    whole = LENGTH.pack(len(text)) + text + LENGTH.pack(len(shapes)) + shapes + b"".join(packing.buffers)
    return zlib.compress(whole, level=1)


@dataclass(frozen=True)
class Message:
    """What came in: the plain values, and the objects, which are built when they are asked for."""

    header: Mapping[str, Any]
    _buffers: list[NDArray[Any]] = field(repr=False)

    @classmethod
    def read(cls, data: bytes, sender: str) -> Message:
        """Refuses whatever is no message; `sender` is who is to be blamed."""
        try:
            return cls._read(data)
        except (ValueError, KeyError, TypeError, struct.error, zlib.error, RecursionError, MemoryError):
            raise SiteError(f"{sender} sent something that is no message of ours", sender) from None

    @classmethod
    def _read(cls, data: bytes) -> Message:
        unpacking = zlib.decompressobj()
        whole = memoryview(unpacking.decompress(data, MOST_BYTES))
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise ValueError("too large, or cut short")
        text, rest = _first(whole)
        shapes, rest = _first(rest)
        header, buffers = json.loads(bytes(text), parse_constant=_refuse), []
        for kind, shape in json.loads(bytes(shapes)):
            if kind not in NUMBERS:
                raise ValueError("an array of another kind")
            count = int(np.prod(shape, dtype=np.int64)) if all(n >= 0 for n in shape) else -1
            used = count * np.dtype(kind).itemsize
            buffers.append(np.frombuffer(rest[:used], dtype=f"<{kind}", count=count).reshape(shape))
            rest = rest[used:]
        if not isinstance(header, dict) or len(rest):
            raise ValueError("bytes that belong to nothing")
        return cls(header, buffers)

    def content(self, schema: Schema) -> list[Any]:
        """The objects; conditions in them are read by this schema."""
        try:
            return _Unpacking(schema, self._buffers, self.header["objects"]).all(self.header["content"])
        except (UnderstudyError, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise SiteError(f"a message holds an object that can't be: {type(error).__name__}", None) from None


def _refuse(word: str) -> Any:
    """JSON has no NaN and no infinity; Python would read them."""
    raise ValueError(word)


def _first(data: memoryview) -> tuple[memoryview, memoryview]:
    (length,) = LENGTH.unpack(data[: LENGTH.size])
    end = LENGTH.size + length
    if end > len(data):
        raise ValueError("cut short")
    return data[LENGTH.size : end], data[end:]


class _Packing:
    """Objects by number, each written once however often it occurs: a tree is the base of many partitions."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.shapes: list[tuple[str, list[int]]] = []
        self.buffers: list[bytes] = []
        self._known: dict[int, int] = {}
        self._held: list[Any] = []
        """Keeps them alive, and so their identities apart, until all is written."""

    def put(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Schema | Predicate) or is_dataclass(value) or hasattr(value, "_fields"):
            return {"is": self._number(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        match value:
            case tuple():
                return {"tuple": [self.put(v) for v in value]}
            case list():
                return {"list": [self.put(v) for v in value]}
            case datetime():
                return {"moment": value.isoformat()}
            case Fraction():
                return {"share": f"{value.numerator}/{value.denominator}"}
            case np.bool_() | np.integer() | np.floating():
                return self.put(value.item())
        raise InternalError(f"a {type(value).__name__} can't be sent to a site.", type(value))

    def _number(self, value: Any) -> int:
        known = self._known.get(id(value))
        if known is None:
            packed = self._object(value)
            self.objects.append(packed)
            self._held.append(value)
            known = self._known[id(value)] = len(self.objects) - 1
        return known

    def _object(self, value: Any) -> list[Any]:
        if isinstance(value, Schema):
            return ["Schema", value.dumps()]
        if isinstance(value, Predicate):
            return ["Predicate", value.text]
        name = type(value).__name__
        if name not in _KINDS or type(value) is not _kind(name):
            raise InternalError(f"a {name} can't be sent to a site.", type(value))
        if hasattr(value, "_fields"):
            return [name, {n: self.put(getattr(value, n)) for n in value._fields}]
        return [name, {f.name: self.put(getattr(value, f.name)) for f in fields(value) if f.init}]

    def _array(self, array: NDArray[Any]) -> int:
        narrow = narrowed(array)
        self.shapes.append((narrow.dtype.str[1:], list(narrow.shape)))
        self.buffers.append(narrow.astype(narrow.dtype.newbyteorder("<"), copy=False).tobytes())
        return len(self.buffers) - 1


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the narrowest type that holds them: counts are mostly small, and there are many."""
    if array.dtype.kind not in "iu":
        raise InternalError(f"an array of {array.dtype} can't be sent to a site.", array.dtype)
    if array.dtype.kind == "u" or not array.size:
        return array
    kind = np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
    return array if kind.kind not in "iu" else array.astype(kind)


class _Unpacking:
    def __init__(self, schema: Schema, buffers: list[NDArray[Any]], objects: list[Any]) -> None:
        self._schema, self._buffers = schema, buffers
        self._objects: list[Any] = []
        for name, value in objects:
            # In order: what an object holds stands before it.
            self._objects.append(self._object(name, value))

    def all(self, content: list[Any]) -> list[Any]:
        return [self._get(value) for value in content]

    def _object(self, name: str, value: Any) -> Any:
        if name == "Schema":
            return schema_of(value)
        if name == "Predicate":
            return parse(value, self._schema.kinds)
        kind, given = _kind(name), {n: self._get(v) for n, v in value.items()}
        wanted = _types(name)
        odd = next((n for n, v in given.items() if not _is_of(v, wanted[n])), None)
        if odd is not None:
            raise ValueError(f"{odd} of a {name} is of another type")
        return kind(**given)

    def _get(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, inside),) = value.items()
        match kind:
            case "is":
                return self._objects[inside]
            case "array":
                return self._buffers[inside]
            case "tuple":
                return tuple(map(self._get, inside))
            case "list":
                return list(map(self._get, inside))
            case "moment":
                return datetime.fromisoformat(inside)
            case "share" if _SHARE.fullmatch(inside):  # of "1e999999999" the digits alone would fill the memory
                return Fraction(inside)
        raise ValueError(kind)


@functools.lru_cache(maxsize=8)
def schema_of(text: str) -> Schema:
    """Read once, however many questions come with it."""
    return Schema.loads(text)


def _kind(name: str) -> Any:
    return getattr(import_module(f"understudy.{_KINDS[name]}"), name)


@functools.cache
def _types(name: str) -> Mapping[str, Any]:
    """The declared types of the fields of a kind."""
    return get_type_hints(_kind(name))


def _is_of(value: Any, declared: Any) -> bool:
    """Whether a value has a declared type, all the way down: proofs about a kind hold for no other."""
    origin, inside = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return any(_is_of(value, each) for each in inside)
    if origin in (tuple, Sequence):
        return type(value) in (tuple, list)[: 1 + (origin is Sequence)] and all(_is_of(v, inside[0]) for v in value)
    if declared is float:
        return type(value) in (int, float)
    if getattr(declared, "_is_protocol", False):  # which of our kinds may stand there is for whoever counts to say
        return type(value).__name__ in _KINDS
    return isinstance(value, declared)
