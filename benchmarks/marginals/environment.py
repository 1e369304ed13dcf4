"""The Python environments of the benchmark: ours is the project's, each rival and the scorer get one under .bench."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from .case import OURS

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / ".bench"
PYTHON = "3.11"
"""dpmm 0.1.9 refuses 3.12; one version for everybody keeps the comparison even."""
PINS = {
    "smartnoise": "1.0.8",
    "smartnoise-before": "1.0.5",
    "dpmm": "0.1.9",
    "diffprivlib": "0.6.6",
    "datasynthesizer": "0.1.13",
    "opacus": "1.6.0",
    "synthcity": "0.2.12",
    "mbi": "2.0.0",
    "sdnist": "2.4",
}
INSTALLS: dict[str, tuple[tuple[str, ...], ...]] = {
    # torch first, by itself: asked for by opacus it would come with gigabytes for graphics cards.
    "smartnoise": (("torch==2.13.0",), (f"smartnoise-synth=={PINS['smartnoise']}", "scikit-learn")),
    "smartnoise-before": (("torch==2.13.0",), (f"smartnoise-synth=={PINS['smartnoise-before']}", "scikit-learn")),
    "dpmm": ((f"dpmm=={PINS['dpmm']}",),),
    # scikit-learn has lost a name since, without which diffprivlib can't be imported.
    "diffprivlib": ((f"diffprivlib=={PINS['diffprivlib']}", "scikit-learn==1.6.1", "pandas"),),
    "datasynthesizer": ((f"DataSynthesizer=={PINS['datasynthesizer']}",),),
    "opacus": (("torch==2.13.0",), (f"opacus=={PINS['opacus']}", "pandas")),
    # What its PrivBayes uses, and no more: it asks for an old torch, which comes with gigabytes for graphics cards.
    "synthcity": (
        ("torch==2.13.0",),
        ("--no-deps", f"synthcity=={PINS['synthcity']}", "pgmpy==0.1.26", "opacus==1.6.0", "xgboost==2.1.4"),
        ("numpy<2", "pandas<2.3", "scikit-learn<1.6", "scipy", "networkx<3", "lifelines==0.29.0", "statsmodels"),
        ("pydantic", "loguru", "cloudpickle", "tqdm", "importlib-metadata", "redis", "optuna", "geomloss", "pyro-ppl"),
        ("opt_einsum", "pillow"),
    ),
    # With our own package, in whose AIM it is the estimator.
    "mbi": ((f"mbi=={PINS['mbi']}", "."),),
    "sdnist": ((f"sdnist=={PINS['sdnist']}",),),
    "score": (("numpy", "pandas", "scikit-learn", "lightgbm"),),
}


class InstallError(Exception):
    """An environment could not be made; the message is pip's last word."""


def python_of(name: str) -> Path:
    """The interpreter of a tool's environment, which is made on first use."""
    if name == OURS:
        return Path(sys.executable)
    folder = BENCH / name
    stamp = folder / f".installed-{_fingerprint(name)}"
    if not stamp.exists():
        _install(name, folder)
        stamp.touch()
    return folder / "bin" / "python"


def _install(name: str, folder: Path) -> None:
    print(f"setting up {folder.relative_to(ROOT)} (once) ...", file=sys.stderr, flush=True)
    python = folder / "bin" / "python"
    if not python.exists():
        # virtualenv comes with the development extra, and works where Debian's venv lacks ensurepip.
        _call([sys.executable, "-m", "virtualenv", "--quiet", "--python", PYTHON, str(folder)])
    for requirements in INSTALLS[name]:
        _call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise InstallError(lines[-1] if lines else f"exit code {done.returncode}")


def _fingerprint(name: str) -> str:
    return hashlib.sha256(repr((PYTHON, INSTALLS[name])).encode()).hexdigest()[:12]
