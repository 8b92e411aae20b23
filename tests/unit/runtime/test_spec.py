"""The manifest: what is read, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import ManifestError, parse_manifest, read_manifest
from tile2cu_runtime.shape import parse_extent
from tile2cu_runtime.spec import ScalarArgument, SizeArgument, TensorArgument


def test_reads_every_field(axpy_data: dict[str, Any]) -> None:
    manifest = parse_manifest(axpy_data)
    assert (manifest.kernel, manifest.entry, manifest.target) == ("axpy", "axpy", "cuda:sm_80")
    assert (manifest.text_file, manifest.header_file) == ("axpy.cu", "axpy.h")
    assert [type(argument) for argument in manifest.arguments] == [TensorArgument] * 3 + [ScalarArgument] + [
        SizeArgument
    ] * 2
    assert [argument.name for argument in manifest.called] == ["X", "Y", "Z", "alpha"]
    assert manifest.output_names == {"Z"}
    assert [str(extent) for extent in manifest.tensors[0].shape] == ["M", "N"]
    assert manifest.launch.threads == 128
    assert manifest.facts[0].rule == "layout.plain"
    assert dict(manifest.bindings) == {"block": 128}


def test_a_line_belongs_to_the_last_pair_at_or_above_it(axpy_data: dict[str, Any]) -> None:
    manifest = parse_manifest(axpy_data)
    assert [manifest.python_line(line) for line in (0, 1, 6, 7, 10, 11, 400)] == [0, 0, 0, 4, 4, 6, 6]


def test_unknown_fields_are_ignored(axpy_data: dict[str, Any]) -> None:
    assert parse_manifest(axpy_data | {"later": 1}) == parse_manifest(axpy_data)


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Changes the manifest at a path to the last of the arguments; `...` there removes the field."""
    *keys, last, value = path

    def change(data: Any) -> None:
        for key in keys:
            data = data[key]
        if value is ...:
            del data[last]
        else:
            data[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (put("format", 2), "T2C-R003", "format 2"),
        (put("entry", ...), "T2C-R002", "`entry` must be a string, but is missing"),
        (put("format", True), "T2C-R002", "`format` must be an integer, but is True"),
        (put("arguments", {}), "T2C-R002", "`arguments` must be an array"),
        (put("entry", "axpy(); //"), "T2C-R002", "is not a C identifier"),
        (put("target", "sm_80"), "T2C-R002", "`target` is 'sm_80'"),
        (put("files", {"../axpy.cu": "0", "axpy.h": "0"}), "T2C-R002", "'../axpy.cu'"),
        (put("files", {"axpy.h": "0"}), "T2C-R002", "exactly one kernel text"),
        (put("arguments", 0, "kind", "pointer"), "T2C-R002", "`kind` is 'pointer'"),
        (put("arguments", 0, "dtype", "float12"), "T2C-R002", "unknown dtype 'float12'"),
        (put("arguments", 0, "access", "maybe"), "T2C-R002", "`access` is 'maybe'"),
        (put("arguments", 0, "alignment", 12), "T2C-R002", "power of two"),
        (put("arguments", 0, "shape", ["M", "Q"]), "T2C-R002", "the shape of `X` uses `Q`"),
        (put("arguments", 0, "shape", ["M", "N.real"]), "T2C-R002", "not a simple expression"),
        (put("arguments", 1, "name", "X"), "T2C-R002", "two arguments have the same name"),
        (put("arguments", 3, "kind", "size"), "T2C-R002", None),
        (put("outputs", [0]), "T2C-R002", "output 0 is not the index of a written tensor"),
        (put("outputs", [True]), "T2C-R002", "output True"),
        (put("outputs", [17]), "T2C-R002", "output 17"),
        (put("lines", [[3, 1], [2, 1]]), "T2C-R002", "ascending order"),
        (put("lines", [[3]]), "T2C-R002", "not a pair"),
    ],
)
def test_refusals(axpy_data: dict[str, Any], change: Callable[[Any], None], code: str, says: str | None) -> None:
    change(axpy_data)
    if says is None:  # a size that stands among the called arguments is fine where it is last
        assert [size.name for size in parse_manifest(axpy_data).sizes] == ["alpha", "M", "N"]
        return
    with pytest.raises(ManifestError) as raised:
        parse_manifest(axpy_data)
    assert raised.value.code == code
    assert says in str(raised.value)


def test_a_size_before_a_tensor_is_refused(axpy_data: dict[str, Any]) -> None:
    axpy_data["arguments"].insert(0, axpy_data["arguments"].pop())
    axpy_data["outputs"] = [3]
    with pytest.raises(ManifestError, match="a size precedes"):
        parse_manifest(axpy_data)


def test_files_that_are_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as raised:
        read_manifest(tmp_path / "none.json")
    assert raised.value.code == "T2C-R001"
    for text in ("{", json.dumps([1])):
        (tmp_path / "bad.json").write_text(text, encoding="utf-8")
        with pytest.raises(ManifestError) as raised:
            read_manifest(tmp_path / "bad.json")
        assert raised.value.code == "T2C-R002"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (128, 128),
        ("128", 128),
        ("M", 7),
        (" M ", 7),
        ("M // 2", 3),
        ("(N + 127) // 128", 2),
        ("ceildiv(N, 100) * M", 14),
        ("max(M, N) - min(M, N) % 4", 197),
        ("64 * 2", 128),
    ],
)
def test_extents(text: object, value: int) -> None:
    assert parse_extent(text, "here").evaluate({"M": 7, "N": 200}) == value


@pytest.mark.parametrize(
    "text",
    [
        -1,
        True,
        1.5,
        None,
        "",
        "M +",
        "M / 2",
        "M ** 2",
        "M << 2",
        "__import__('os')",
        "M.__class__",
        "[M]",
        "M if N else 1",
        "ceildiv(M)",
        "ceildiv(M, b=2)",
        "'a'",
        "1.5",
        "True",
        "0 - 1",
        "4 // 0",
        "(" * 300 + "M" + ")" * 300,
    ],
)
def test_expressions_that_are_refused(text: object) -> None:
    with pytest.raises(ManifestError) as raised:
        parse_extent(text, "here")
    assert raised.value.code == "T2C-R002"
