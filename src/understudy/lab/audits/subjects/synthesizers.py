"""Methods that make synthetic tables, as subjects of an audit."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.schema import DRAFT
from understudy.lab.audits.subjects.harness import RunContext
from understudy.lab.audits.subjects.subject import RunOutput
from understudy.methods.method import Method, Variant
from understudy.methods.registry import METHODS
from understudy.releases.certificate import Certificate
from understudy.releases.release import Release
from understudy.releases.synthesis import Plan


def variants() -> dict[str, tuple[Method, Variant]]:
    """Every way to run a method that is audited by itself, by its name."""
    return {f"{m.name}{v.ending}": (m, v) for m in METHODS.values() for v in m.variants}


@dataclass(frozen=True)
class SynthesisSubject:
    """A method of the registry, as `synthesize` runs it."""

    name: str
    budget: Budget
    kind: str = "method"
    buys_keys: bool = True

    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        self._plan(context, seed).learn(curator)

    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        release = self._plan(context, seed).release(curator, "pyarrow")
        return RunOutput(outside(release), release.arrow)

    def claim(self, context: RunContext, curator: Curator) -> Certificate:
        return self._plan(context, 0).certificate(curator, rows=1)

    def _plan(self, context: RunContext, seed: int) -> Plan:
        schema, (method, variant) = context.schema, variants()[self.name]
        options = variant.options([c.name for c in schema.modelled])
        draft = schema.status == DRAFT
        return Plan.of(schema, self.budget, method.name, options, context.rows, seed, accept_draft=draft)


def outside(release: Release) -> dict[str, Any]:
    """Everything that a release shows, but for the values of its measurements and of its synthetic rows."""
    from understudy.releases.synthetic_table import to_native

    files = release.files("csv")
    return {
        "files": sorted(files),
        "schema.toml": files["schema.toml"],
        "header": files["synthetic.csv"].split(b"\n")[0],
        "measurements": _shapes(files["measurements.npz"]),
        "certificate": _lasting(json.loads(files["certificate.json"])),
        "arrow": [(f.name, str(f.type), f.nullable) for f in release.arrow.schema],
        "kind of frame": type(to_native(release.arrow, "pyarrow")).__module__,
        "rows": release.arrow.num_rows,
        "domain": repr(release.domain.codings),
    }


def _shapes(content: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        shapes = {name: (arrays[name].shape, str(arrays[name].dtype)) for name in arrays.files}
        return shapes | {"questions": arrays["questions"].tobytes()}


def _lasting(certificate: dict[str, Any]) -> dict[str, Any]:
    hashes = sorted(certificate["files"])
    return {k: v for k, v in certificate.items() if k not in ("created", "digest")} | {"files": hashes}
