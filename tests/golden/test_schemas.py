"""docs/schemas is what tools/schemas.py writes; the schemas accept what is emitted and what the reader accepts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import schemas
from tile2cu.core.errors import Tile2CuError
from tile2cu.project.config import read_project

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/schemas"
HEAD = "[tool.tile2cu]\n"
ENTRY = "[[tool.tile2cu.kernels]]\nfile = 'a.py'\n"
TABLE = "[[tool.tile2cu.dispatch]]\nname = 'gemm'\nfile = 'a.py'\n"


def is_valid(name: str, data: Any) -> bool:
    return jsonschema.Draft202012Validator(schemas.SCHEMAS[name]()).is_valid(data)


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_files_are_current(name: str, update_emitted: bool) -> None:
    if update_emitted:
        (FOLDER / name).write_text(schemas.text(name), encoding="utf-8")
    assert (FOLDER / name).read_text(encoding="utf-8") == schemas.text(name), (
        "run: pytest tests/golden --update-emitted"
    )
    jsonschema.Draft202012Validator.check_schema(schemas.SCHEMAS[name]())


def test_every_emitted_manifest_is_valid() -> None:
    validator = jsonschema.Draft202012Validator(schemas.manifest())
    paths = sorted((ROOT / "emitted").rglob("*.json"))
    assert paths
    for path in paths:
        validator.validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"target": "cuda:sm_1"},
        {"files": {"a.cu": "no hash"}},
        {"arguments": [{"kind": "tensor", "name": "A", "dtype": "float32"}]},
        {"launches": []},
        {"lines": [[1]]},
    ],
)
def test_no_manifest_is_not_valid(change: dict[str, Any]) -> None:
    data = json.loads((ROOT / "emitted/cuda/sm_80/vector_add.json").read_text(encoding="utf-8")) | change
    if "launches" in change:
        del data["launch"]
    assert not is_valid("manifest.schema.json", data)


def test_the_table_of_the_documentation_is_valid() -> None:
    text = (ROOT / "docs/vendoring.md").read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in text.split("```toml\n")[1:]]
    assert len(blocks) >= 2
    for block in blocks:
        assert is_valid("project.schema.json", tomllib.loads(block)["tool"]["tile2cu"])


@pytest.mark.parametrize(
    "text",
    [
        ENTRY,
        HEAD + "output = 'x'\nstyle = 'cute'\ntargets = ['cuda:sm_80']\nline = 'python'\n" + ENTRY,
        ENTRY + "bindings = {M = 1, dtype = 'float16'}\nspecialisations = {a = {M = 2}}\nshims = ['torch']\n",
        ENTRY + "env = {A = 'b'}\n",
        ENTRY + "env = 'A=b'\n",
        TABLE + "entries = [{name = 'any'}]\n",
        HEAD + "outptu = 'x'\n" + ENTRY,
        HEAD + "style = 'rust'\n" + ENTRY,
        HEAD + "targets = ['cuda:sm_1']\n" + ENTRY,
        HEAD + "line = 'c'\n" + ENTRY,
        ENTRY + "with-test = 1\n",
        ENTRY + "shims = ['jax']\n",
        ENTRY + "specialisations = {a = 1}\n",
        "[[tool.tile2cu.kernels]]\nkernel = 'a'\n",
        TABLE + "entries = [{nam = 'any'}]\n",
        TABLE + "entries = []\n",
        TABLE,
    ],
)
def test_reader_and_schema_agree(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    try:
        read_project(tmp_path)
        accepted = True
    except Tile2CuError:
        accepted = False
    assert is_valid("project.schema.json", tomllib.loads(text)["tool"]["tile2cu"]) is accepted
