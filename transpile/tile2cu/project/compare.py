"""The output folders against the files that would be emitted now."""

import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2cu.core.record import Record
from tile2cu.project.job import Outcome, Selection
from tile2cu.project.on_disk import content_of, left_beside, manifests, placed, read_manifest, sha256

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted


class State(Enum):
    """How a file differs."""

    MISSING = "missing"
    STALE = "stale"
    EDITED = "edited"
    EDITED_STALE = "edited and stale"
    UNLISTED = "unlisted"


class Difference(Record, frozen=True, kw_only=True):
    """A file that is not what is emitted now. `now` is None for a file that nothing emits any more."""

    path: Path
    state: State
    why: str
    there: str | None
    now: str | None

    @property
    def first_line(self) -> int:
        """The first line that differs, from 1."""
        there, now = (self.there or "").splitlines(), (self.now or "").splitlines()
        same = next((n for n, (a, b) in enumerate(zip(there, now, strict=False)) if a != b), min(len(there), len(now)))
        return min(same + 1, max(len(there), 1))

    def diff(self) -> str:
        """What would have to change in the file, as a unified diff that `git apply` takes in the current folder."""
        name = Path(os.path.relpath(self.path)).as_posix()
        lines = difflib.unified_diff(
            (self.there or "").splitlines(keepends=True),
            (self.now or "").splitlines(keepends=True),
            "/dev/null" if self.there is None else f"a/{name}",
            "/dev/null" if self.now is None else f"b/{name}",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def differences(selection: Selection, outcomes: Sequence[Outcome]) -> list[Difference]:
    """All files that differ, in the order of the jobs; then the kernels that lie there and are listed no more."""
    found = [each for outcome in outcomes for one in outcome.emitted for each in _of_kernel(outcome.job.folder, one)]
    return found + list(_unlisted(selection, outcomes))


def by_cause(found: Sequence[Difference]) -> list[tuple[Difference, ...]]:
    """The differences in groups that one edit of the source made, each where its first file is; manual edits alone."""
    groups: dict[tuple[object, ...], tuple[Difference, ...]] = {}
    for each in found:
        key = (each.state, each.path if each.state is State.EDITED else each.why)
        groups[key] = (*groups.get(key, ()), each)
    return list(groups.values())


def _of_kernel(folder: Path, emitted: "Emitted") -> Iterator[Difference]:
    name = f"{emitted.kernel}.json"
    why = _why(read_manifest(folder / name), json.loads(emitted.manifest))
    for file in placed(folder, emitted.kernel, emitted.files):
        now = emitted.files[file.path.name]
        if file.content is None:
            yield _difference(file.path, State.MISSING, "no such file", None, now)
        elif file.content != now.encode():
            stale = file.base != sha256(now)
            state = (State.EDITED_STALE if stale else State.EDITED) if file.edited else State.STALE
            yield _difference(file.path, state, why if stale else "not as it was emitted", file.content, now)
    content = content_of(folder / name)
    if content is None:
        yield _difference(folder / name, State.MISSING, "no such file", None, emitted.manifest)
    elif content != emitted.manifest.encode():
        yield _difference(folder / name, State.STALE, why, content, emitted.manifest)


def _difference(path: Path, state: State, why: str, there: bytes | None, now: str | None) -> Difference:
    text = None if there is None else there.decode("utf-8", "replace")
    return Difference(path=path, state=state, why=why, there=text, now=now)


def _unlisted(selection: Selection, outcomes: Sequence[Outcome]) -> Iterator[Difference]:
    """Manifests in a project's folders that no entry of it emits, and tests and shims that none asks for any more."""
    if not selection.listed:
        return
    expected = {outcome.job.folder / f"{one.kernel}.json" for outcome in outcomes for one in outcome.emitted}
    for folder in dict.fromkeys(job.folder for job in selection.jobs):
        for path in manifests(folder):
            if path not in expected:
                why = "no entry of [tool.tile2cu] emits this kernel"
                yield _difference(path, State.UNLISTED, why, path.read_bytes(), None)
    for outcome in outcomes:
        for one in outcome.emitted:
            for path in left_beside(outcome.job.folder, one.kernel, one.files):
                yield _difference(path, State.UNLISTED, "no entry asks for it", path.read_bytes(), None)


def _why(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> str:
    """What has changed since the manifest was written."""
    if old is None:
        return "no manifest has its origin"
    source, wanted = old.get("source", {}), new["source"]
    reasons = []
    if source.get("sha256") != wanted["sha256"]:
        reasons.append(f"{wanted['file']} has changed")
    imports = source.get("imports", {})
    reasons += [
        f"{name} has changed"
        for name in sorted({*imports, *wanted["imports"]})
        if imports.get(name) != wanted["imports"].get(name)
    ]
    if old.get("tool") != new["tool"]:
        reasons.append(f"tile2cu has changed (it was {old.get('tile2cu')})")
    for key, what in (("target", "the target"), ("look", "the style or the format")):
        if old.get(key) != new[key]:
            reasons.append(f"{what} has changed")
    reasons += dict.fromkeys(_of_values(old.get("bindings", {}), new["bindings"]))
    return ", ".join(reasons) or "the manifest is not as it was emitted"


def _of_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of the factory that have other values; of a dispatch, those of its entries."""
    for name in sorted({*old, *new}):
        if isinstance(old.get(name), dict) and isinstance(new.get(name), dict):
            yield from _of_values(old[name], new[name])
        elif old.get(name) != new.get(name):
            now, was = (f"{values[name]}" if name in values else "open" for values in (new, old))
            yield f"{name} is {now} (it was {was})"
