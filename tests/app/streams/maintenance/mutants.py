"""Exports with something wrong in them, under checksums that are right."""

import json
import struct
from typing import Any

import numpy as np

from app.storage import Position
from app.streams.log.horizon import Horizon
from app.streams.state.state import StreamState
from core.kinds import KINDS
from core.snapshot import DIGEST_BYTES, MAGIC, digest
from tests.core.histories import Life
from tests.core.samples import clusters, detector

START = 1.7e9
NUMBERS = [0, -1, 1, -2, 0.5, 2, 300, 1e-10, 1e-160, 1e-308, 5e-324, 1e30, -1e30, 1e100, 1e150, -1e300, 1.7e308]
NUMBERS += [np.nan, np.inf, -np.inf, 2**31, 2**53, 2**62, -(2**62), 2**63 - 1, 500_000]
JUNK: list[Any] = [None, True, False, "", "x", [], [1], {}, {"a": 1}, 10**30, *NUMBERS]

Header = dict[str, Any]


def exports() -> list[bytes]:
    """Streams of all sorts: by profile, mixture, kind of feature and half-life; young, labelled, full."""
    trained = [
        learned({"round_growth": 0.2, "max_nodes": 15}),
        learned(
            {
                "round_growth": 0.3,
                "max_nodes": 15,
                "family": "gaussian_diagonal",
                "threshold": "hindsight",
                "drift_relative": True,
            }
        ),
        learned({"mixture": "eg", "threshold": "ogd", "half_life_samples": 40.0, "round_growth": 0.5}),
        learned({"profile": "paper", "learn_from": "all", "max_nodes": 15, "max_round": 32, "round_growth": 0.2}),
        learned(
            {"profile": "paper", "learn_from": "all", "half_life_seconds": 60.0, "scaling": "auto", "round_growth": 0.1}
        ),
        learned({"max_nodes": 5, "split": "both", "half_life_seconds": 100.0, "round_growth": 0.2}),
        learned({"mixture": "soft_bayes", "split": "both", "half_life_samples": 50.0, "round_growth": 0.3}),
        learned(
            {
                "scaling": {"location": [0.0, 1.0], "scale": [1.0, 2.0]},
                "threshold": "fixed",
                "max_nodes": 15,
                "threshold_value": 9.0,
            }
        ),
        of_kinds("gaussian", "categorical", "poisson"),
        of_kinds("gamma", "exponential", "bernoulli", "lognormal"),
    ]
    young = {"round_growth": 0.3, "max_nodes": 9}
    return [*trained, waiting(young), waiting(young | {"half_life_seconds": 60.0})]


def exported(model: Any, newest: float | None = None) -> bytes:
    return StreamState(model, Position(model.next_seq - 1, 0), Horizon(3, [(5, START)]), newest).to_bytes()


def learned(fields: dict[str, Any]) -> bytes:
    model = detector(2, **fields)
    X = clusters(300, 2, missing=0.05)
    records = model.observe(X, START + np.arange(300.0)).records
    model.feedback(records[20:240], [i % 7 == 0 for i in range(220)])
    model.observe(X[:5], START + np.arange(300.0, 305.0))
    return exported(model, START + 304.0)


def of_kinds(*kinds: str) -> bytes:
    features = [{"name": kind, "kind": kind} for kind in kinds]
    model = detector(len(kinds), features=features, round_growth=0.3, max_nodes=9)
    life = Life(5, 0, model.config)
    life.missing, life.unit, life.twins = 0.1, 1.0, False
    records = model.observe(life.values(200)).records
    model.feedback(records[20:180], [i % 7 == 0 for i in range(160)])
    return exported(model)


def waiting(fields: dict[str, Any]) -> bytes:
    model = detector(2, **fields)
    model.observe(clusters(9, 2, missing=0.2), START + np.arange(9.0))
    return exported(model)


class Mutant:
    """An export taken apart, to be put together again with one thing changed."""

    def __init__(self, body: bytes, rng: np.random.Generator) -> None:
        self.rng, self.said = rng, ""
        self.outer, payload = apart(body)
        self.engine, self.payload = apart(payload)
        self.arrays = arrays_of(self.engine, self.payload)

    def body(self) -> bytes:
        """Change something, and say what in `said`."""
        ways = [self._entry] * 8 + [self._fill, self._whole, self._shape, self._layout, self._payload, self._bytes]
        ways += [self._outer, self._config, self._config, self._meta]
        return ways[self.rng.integers(len(ways))]()

    def _say(self, *what: Any) -> None:
        self.said = " ".join(map(str, what))[:200]

    def _pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def _name(self) -> str:
        return str(self._pick(sorted(name for name, array in self.arrays.items() if array.size)))

    def _entry(self) -> bytes:
        name = self._name()
        array = self.arrays[name]
        at, way = int(self.rng.integers(array.size)), self._pick(["number", "number", "bit", "times", "other"])
        old = array.flat[at]
        match way:
            case "number":
                array.flat[at] = cast(self._pick(NUMBERS), array.dtype)
            case "bit":
                raw = array.reshape(-1).view(np.uint8)
                raw[at * array.itemsize + self.rng.integers(array.itemsize)] ^= 1 << int(self.rng.integers(8))
            case "times":
                array.flat[at] = cast(float(old) * self._pick([-1.0, 1e-9, 0.5, 2.0, 1e9]), array.dtype)
            case "other":
                array.flat[at] = array.flat[int(self.rng.integers(array.size))]
        self._say(name, at, way, old, "->", array.flat[at])
        return self._together()

    def _fill(self) -> bytes:
        name = self._name()
        value = cast(self._pick(NUMBERS), self.arrays[name].dtype)
        self.arrays[name][...] = value
        self._say("fill", name, value)
        return self._together()

    def _whole(self) -> bytes:
        """Scale, turn round or mix up an array."""
        name, way = self._name(), self._pick(["times", "reversed", "shuffled", "shifted"])
        array, factor = self.arrays[name], self._pick([-1.0, 1e-30, 1e-9, 0.5, 2.0, 1e9, 1e30])
        match way:
            case "times":
                mixed = np.array([cast(float(v) * factor, array.dtype) for v in array.flat]).reshape(array.shape)
            case "reversed":
                mixed = array[::-1]
            case "shuffled":
                mixed = self.rng.permutation(array.reshape(-1)).reshape(array.shape)
            case _:
                mixed = np.roll(array, 1)
        self.arrays[name] = mixed.astype(array.dtype)
        self._say(way, name, factor)
        return self._together()

    def _shape(self) -> bytes:
        name, way = self._name(), self._pick(["drop", "cut", "grow", "double", "flat", "retype", "swap", "empty"])
        array = self.arrays[name]
        match way:
            case "drop":
                del self.arrays[name]
            case "swap":
                other = self._name()
                self.arrays[name], self.arrays[other] = self.arrays[other], array
            case "retype":
                self.arrays[name] = array.astype(np.int64 if array.dtype == np.float64 else np.float64)
            case _:
                changes = {
                    "cut": lambda a: a[:-1],
                    "grow": lambda a: np.concatenate([a, a[-1:]]),
                    "double": lambda a: np.concatenate([a, a]),
                    "flat": lambda a: a.reshape(-1, 1),
                    "empty": lambda a: a[:0],
                }
                self.arrays[name] = changes[way](array)
        self._say(way, name)
        return self._together()

    def _layout(self) -> bytes:
        """Change what the header says of the arrays, and leave their bytes."""
        layout, way = self.engine["arrays"], self._pick(["name", "type", "shape", "twice", "order", "extra"])
        item = self._pick(layout)
        match way:
            case "name":
                item[0] = self._pick(layout)[0]
            case "type":
                item[1] = self._pick(["<f8", "<i8", "|i1", "|u1", "|b1", "|O", ">f8", "<c16"])
            case "shape":
                item[2] = item[2][::-1] if len(item[2]) > 1 else [*item[2], 1]
            case "twice":
                layout.append(item)
            case "order":
                layout.reverse()
            case "extra":
                layout.append([self._pick(["", "x", item[0] + "_"]), "<f8", [0]])
        self._say("layout", way, item)
        return self._wrapped(sealed(self.engine, self.payload))

    def _payload(self) -> bytes:
        """Flip bits anywhere in the arrays, cut them short or double them."""
        payload, way = bytearray(self.payload), self._pick(["bit", "bit", "bits", "cut", "double"])
        if way in ("bit", "bits"):
            for _ in range(1 if way == "bit" else 20):
                payload[int(self.rng.integers(len(payload)))] ^= 1 << int(self.rng.integers(8))
        self._say("payload", way)
        changed = {"cut": payload[: int(self.rng.integers(len(payload)))], "double": payload * 2}.get(way, payload)
        return self._wrapped(sealed(self.engine, bytes(changed)))

    def _bytes(self) -> bytes:
        """Flip a bit of the engine's header, cut or double the whole; the outer checksum is right."""
        engine, way = bytearray(sealed(self.engine, self.payload)), self._pick(["header", "cut", "double", "stale"])
        match way:
            case "header":
                body = engine[:-DIGEST_BYTES]
                body[int(self.rng.integers(len(MAGIC) + 4 + 200))] ^= 1 << int(self.rng.integers(8))
                engine = body + digest(bytes(body))
            case "cut":
                engine = engine[: int(self.rng.integers(len(engine)))]
            case "double":
                engine = engine * 2
            case "stale":
                engine[int(self.rng.integers(len(engine)))] ^= 1
        self._say("bytes", way)
        return self._wrapped(bytes(engine))

    def _outer(self) -> bytes:
        """Change what stands beside the engine."""
        meta, way = self.outer["meta"], self._pick(["field", "field", "field", "mark", "version", "twice"])
        match way:
            case "field":
                name = self._pick(sorted(meta))
                meta[name] = self._pick(JUNK)
                self._say("stream", name, meta[name])
            case "mark":
                meta["marks"] = [[self._pick(JUNK), self._pick(JUNK)]]
                self._say("marks", meta["marks"])
            case "version":
                name = self._pick(["version", "kind"])
                self.outer[name] = self._pick(JUNK)
                self._say("stream", name, self.outer[name])
            case "twice":
                self.outer["arrays"] *= 2
                self._say("engine named twice")
        return self._wrapped(sealed(self.engine, self.payload))

    def _config(self) -> bytes:
        config = self.engine["meta"]["config"]
        name = self._pick(sorted(config))
        config[name] = self._pick(
            [*JUNK, "eg", "tree", "soft_bayes", "paper", "none", "gaussian", "ogd", "labelled_normal"]
        )
        if name == "features" and self.engine["meta"]["config"]["features"] is None:
            config["features"] = [{"name": str(i), "kind": self._pick(sorted(KINDS))} for i in range(2)]
        self._say("config", name, config[name])
        return self._wrapped(sealed(self.engine, self.payload))

    def _meta(self) -> bytes:
        target = self._pick([self.engine, self.engine["meta"]])
        name = self._pick(sorted(target))
        target[name] = self._pick(JUNK)
        self._say("engine", name, target[name])
        return self._wrapped(sealed(self.engine, self.payload))

    def _together(self) -> bytes:
        layout = [[name, array.dtype.str, list(array.shape)] for name, array in self.arrays.items()]
        payload = b"".join(array.tobytes() for array in self.arrays.values())
        return self._wrapped(sealed(self.engine | {"arrays": layout}, payload))

    def _wrapped(self, engine: bytes) -> bytes:
        twice = len(self.outer["arrays"])
        self.outer["arrays"] = [["engine", "|u1", [len(engine)]]] * twice
        return sealed(self.outer, engine * twice)


def apart(blob: bytes) -> tuple[Header, bytes]:
    """The header of a snapshot, and the bytes of its arrays."""
    start = len(MAGIC) + 4
    (length,) = struct.unpack("<I", blob[len(MAGIC) : start])
    return json.loads(blob[start : start + length]), blob[start + length : -DIGEST_BYTES]


def arrays_of(header: Header, payload: bytes) -> dict[str, np.ndarray]:
    arrays, start = {}, 0
    for name, code, shape in header["arrays"]:
        count = int(np.prod(shape, dtype=int))
        arrays[name] = np.frombuffer(payload, code, count, start).reshape(shape).copy()
        start += arrays[name].nbytes
    return arrays


def sealed(header: Header, payload: bytes) -> bytes:
    """A snapshot of any header, NaN and infinities too, under a checksum that is right."""
    text = json.dumps(header).encode()
    body = MAGIC + struct.pack("<I", len(text)) + text + payload
    return body + digest(body)


def cast(value: float, dtype: np.dtype) -> Any:
    """What a value is in this type, or the nearest thing to it."""
    if dtype.kind == "f":
        return value
    limits = {1: (0, 255)}.get(dtype.itemsize, (-(2**63), 2**63 - 1))
    if dtype.kind == "i" and dtype.itemsize == 1:
        limits = (-128, 127)
    whole = value if isinstance(value, int) else int(np.clip(np.nan_to_num(value), -9e18, 9e18))
    return min(max(whole, limits[0]), limits[1])
