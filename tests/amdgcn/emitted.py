"""Emitted kernels for AMD, in folders of the tests' own."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def portable(name: str, target: str, folder: Path, *, text: str | None = None) -> Path:
    """The manifest of an emitted CUDA source without MMA, as one for AMD: headers/tl/hip has all that it uses.

    Its warps of 32 become halves of a wavefront. `text` replaces the emitted source.
    """
    source = ROOT / "emitted" / "cuda" / "sm_80"
    data = json.loads((source / f"{name}.json").read_text(encoding="utf-8"))
    content = (source / f"{name}.cu").read_text(encoding="utf-8") if text is None else text
    content = content.replace('check_device("sm_80"', f'check_device("{target.removeprefix("hip:")}"')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.hip").write_text(content, encoding="utf-8")
    shutil.copy(source / f"{name}.h", folder)
    del data["files"][f"{name}.cu"]
    data["files"][f"{name}.hip"] = hashlib.sha256(content.encode()).hexdigest()
    data["target"] = target
    manifest = folder / f"{name}.json"
    manifest.write_text(json.dumps(data), encoding="utf-8")
    return manifest
