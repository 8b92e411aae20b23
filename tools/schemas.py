"""docs/schemas/*.json: JSON Schemas of `[tool.tile2cu]` and of a kernel's manifest, for editors and build systems.

Written by `pytest tests/golden/test_schemas.py --update-emitted`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tile2cu.core.dispatch import Dispatch, Entry
from tile2cu.core.origin import SHIMS, STYLES
from tile2cu.emitter.manifest import FORMAT
from tile2cu.project.config import KERNEL_KEYS, PROJECT_KEYS
from tile2cu.targets import TARGETS
from tile2cu.tuning import record

Schema = dict[str, Any]
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[type, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
}
_TARGET: Schema = {"enum": [target.name for target in TARGETS]}
_VALUE: Schema = {"type": ["string", "number", "boolean"]}
_BINDINGS: Schema = {"type": "object", "additionalProperties": _VALUE}
_SHA256: Schema = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
# What a key of the project's tables holds, where its type alone does not state it.
_HOLDS: Mapping[str, Schema] = {
    "targets": {"type": "array", "items": _TARGET, "minItems": 1},
    "style": {"enum": list(STYLES)},
    "line": {"enum": ["off", "python"]},
    "tiles": {"enum": ["default", "auto"]},
    "family": {"type": "array", "items": {"type": "string"}},
    "bindings": _BINDINGS,
    "env": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    "specialisations": {"type": "object", "additionalProperties": _BINDINGS},
    "shims": {"type": "array", "items": {"enum": list(SHIMS)}},
}


def project() -> Schema:
    """`[tool.tile2cu]` of pyproject.toml."""
    entry = {name: {"type": "string"} for name in Entry.__struct_fields__} | {"target": _TARGET, "bindings": _BINDINGS}
    dispatch = {name: {"type": "string"} for name in Dispatch.__struct_fields__}
    dispatch |= {"output": {"type": "string"}, "entries": _array(_object(entry, required=["name"]))}
    keys = _keys(PROJECT_KEYS) | {
        "kernels": {"type": "array", "items": _object(_keys(KERNEL_KEYS), required=["file"])},
        "dispatch": {"type": "array", "items": _object(dispatch, required=["name", "entries"])},
    }
    return {"$schema": _DRAFT, "title": "[tool.tile2cu] of pyproject.toml", **_object(keys)}


def manifest() -> Schema:
    """NAME.json. More keys than these are allowed, as later versions may add some."""
    extent: Schema = {"type": ["integer", "string"]}
    shape = {"type": "array", "items": extent}
    named = {"name": {"type": "string"}, "dtype": {"type": "string"}}
    tensor = {**named, "kind": {"const": "tensor"}, "shape": shape, "access": {"enum": ["read", "write", "readwrite"]}}
    scalar = {**named, "kind": {"enum": ["scalar", "size"]}}
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    count = {"type": "integer", "minimum": 0}
    launch = _open(
        {
            "grid": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
            "threads": {"type": "integer", "minimum": 1, "maximum": 1024},
            "shared_bytes": count,
            "shared_limit": count,
            "tile_registers": count,
        }
    )
    fact = {"about": {}, "what": {}, "value": {}, "rule": {}}
    content = {
        "format": {"const": FORMAT},
        "tile2cu": {"type": "string"},
        "tool": _open({"sha256": _SHA256}),
        "kernel": {"type": "string"},
        "function": {"type": "string"},
        "target": _TARGET,
        "source": _open(
            {
                "file": {"type": "string"},
                "sha256": _SHA256,
                "imports": {"type": "object", "additionalProperties": _SHA256},
            }
        ),
        "look": _open({"style": {"enum": list(STYLES)}, "clang_format": {"type": "string"}, "line": _HOLDS["line"]}),
        "bindings": {"type": "object"},
        "entry": {"type": "string"},
        "files": {"type": "object", "additionalProperties": _SHA256},
        "arguments": {"type": "array", "items": {"oneOf": [_open(tensor), _open(scalar)]}},
        "outputs": {"type": "array", "items": count},
        "workspace": {"type": "array", "items": _open({**named, "shape": shape})},
        "resources": _open({"shared": numbers, "fragments": numbers, "stages": numbers}),
        "numerics": {"type": "object"},
        "licences": {"type": "object", "additionalProperties": {"type": "string"}},
        "facts": {
            "type": "array",
            "items": _open({name: {"type": "string"} for name in fact} | {"line": count}),
        },
        "lines": {"type": "array", "items": {"type": "array", "items": count, "minItems": 2, "maxItems": 2}},
    }
    several: Schema = {"launches": {"type": "array", "items": launch, "minItems": 2}}
    return {
        "$schema": _DRAFT,
        "title": "The manifest of a kernel that tile2cu emitted",
        **_open(content),
        "oneOf": [_open({"launch": launch}), _open(several)],
    }


def tuned() -> Schema:
    """NAME.tune.json, of `tile2cu tune`."""
    positive: Schema = {"type": "number", "exclusiveMinimum": 0}
    setting: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    file: Schema = {"type": "string"}
    figure = {
        "file": file,
        "setting": setting,
        "us": positive,
        "spread": {"type": "number", "minimum": 0},
        "rounds": {"type": "integer", "minimum": 1},
    }
    entry = {
        "card": {"type": "string"},
        "sizes": setting,
        "bindings": _BINDINGS,
        "file": file,
        "setting": setting,
        "us": positive,
        "spread": figure["spread"],
        "by": {"enum": ["model", "default", "measured"]},
        "default_us": positive,
        "figures": _array(_object(figure, required=list(figure))),
        "rejected": {"type": "array", "items": _open({"file": file, "setting": setting, "because": file})},
        "family": {"type": "object", "additionalProperties": _SHA256},
        "clocks": {"type": "string"},
        "tools": {"type": "string"},
    }
    content = {
        "format": {"const": record.FORMAT},
        "kernel": {"type": "string"},
        "target": _TARGET,
        "sha256": _SHA256,
        "entries": {"type": "array", "items": _object(entry, required=list(entry))},
    }
    return {"$schema": _DRAFT, "title": "Measured settings of a kernel", **_object(content, required=list(content))}


SCHEMAS = {"project.schema.json": project, "manifest.schema.json": manifest, "tune.schema.json": tuned}


def text(name: str) -> str:
    """A schema as its file holds it."""
    return json.dumps(SCHEMAS[name](), indent=1) + "\n"


def _keys(known: Mapping[str, type]) -> dict[str, Schema]:
    return {key: _HOLDS.get(key, _TYPES[kind]) for key, kind in known.items()}


def _object(properties: Mapping[str, Schema], *, required: list[str] | None = None) -> Schema:
    """An object that has no other keys."""
    found = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return found | ({"required": required} if required else {})


def _open(properties: Mapping[str, Schema]) -> Schema:
    """An object that has these keys, and may have others."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}
