"""`.tile2cu/`: what tile2cu remembers of a project besides its output. Git ignores it, and it can be deleted.

base/SHA256    a text that was emitted, deflated: what a later three-way merge starts from
built.json     of each job: the hashes of what it read and wrote, so that nothing is emitted twice
"""

import contextlib
import json
import subprocess
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.files import python_text, write_files
from tile2cu.project.job import Job, Outcome
from tile2cu.project.on_disk import content_of, sha256, source_sha256
from tile2cu.tool import this_tool

FOLDER = ".tile2cu"
_IGNORE = "*\n"


class Memory:
    """What is remembered below `root`. Nothing is written before `save`."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER
        self._built: dict[str, Any] = self._read()
        self._new: dict[str, bytes] = {}

    def is_current(self, job: Job) -> bool:
        """Whether the job's files are what it would write now: nothing that decides them has changed, nor they.

        A job with warnings is not, so that every build shows them.
        """
        entry = self._built.get(job.key)
        if not isinstance(entry, dict) or entry.get("tool") != this_tool().sha256 or entry.get("warnings"):
            return False
        sources, outputs = entry.get("sources", {}), entry.get("outputs", {})
        return bool(outputs) and (
            all(source_sha256(job.file.parent / name) == digest for name, digest in sources.items())
            and all(_file_sha256(job.folder / name) == digest for name, digest in outputs.items())
        )

    def note(self, outcome: Outcome) -> None:
        """Remembers the files of a finished job, and their origin."""
        job, files = outcome.job, {name: text for one in outcome.emitted for name, text in one.files.items()}
        sources: dict[str, str] = {}
        for one in outcome.emitted:
            source = json.loads(one.manifest)["source"]
            sources |= {source["file"]: source["sha256"], **source["imports"]}
        outputs = {name: _file_sha256(job.folder / name) for name in files}
        self._built[job.key] = {"tool": this_tool().sha256, "sources": sources, "outputs": outputs}
        self._built[job.key]["warnings"] = sum(len(one.warnings) for one in outcome.emitted)
        self.keep(files.values())

    def keep(self, texts: Iterable[str]) -> None:
        """Remembers texts as bases of later merges."""
        for text in texts:
            name = f"base/{sha256(text)}"
            if name not in self._new and not (self.folder / name).exists():
                self._new[name] = zlib.compress(text.encode(), 9)

    def outputs(self, job: Job) -> list[Path]:
        """The files that the job wrote when it was last built."""
        return [job.folder / name for name in self._built.get(job.key, {}).get("outputs", {})]

    def base(self, path: Path, digest: str) -> bytes | None:
        """The text with that hash that was at `path`: remembered here, or else found in the history of git."""
        packed = content_of(self.folder / "base" / digest)
        with contextlib.suppress(zlib.error):
            if packed is not None and sha256(text := zlib.decompress(packed)) == digest:
                return text
        return _from_git(path, digest)

    def base_by_prefix(self, digest: str) -> bytes | None:
        """The remembered text whose hash starts so."""
        names = [path.name for path in (self.folder / "base").glob(f"{digest}*")]
        return self.base(self.folder, names[0]) if names else None

    def save(self, jobs: Iterable[Job] = ()) -> None:
        """Writes what is remembered; of the jobs that are listed no more nothing is kept if `jobs` are given."""
        listed = {job.key for job in jobs}
        built = {key: entry for key, entry in sorted(self._built.items()) if not listed or key in listed}
        write_files({".gitignore": _IGNORE, "built.json": json.dumps(built, indent=1) + "\n", **self._new}, self.folder)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / "built.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _file_sha256(path: Path) -> str | None:
    content = content_of(path)
    return None if content is None else sha256(content)


def _from_git(path: Path, digest: str) -> bytes | None:
    """The version of a committed file that has the hash, newest first; None without git or such a version."""
    listed = _git(path, "log", "--format=%H", "--", path.name)
    for commit in (listed or b"").decode().split():
        content = _git(path, "show", f"{commit}:./{path.name}")
        if content is not None and sha256(content) == digest:
            return content
    return None


def text_at(path: Path, revision: str) -> str:
    """A Python file's text in a git revision. Raises T2C-C015 where git does not have it, T2C-C001 for other text."""
    content = _content_at(path, revision, path.name)
    if content is None:
        help = "give a branch, a tag or a commit in which the file exists"
        raise Tile2CuError("T2C-C015", f"git has no `{path.name}` in `{revision}`", help=help)
    try:
        return python_text(content)
    except (LookupError, SyntaxError, ValueError) as error:
        raise Tile2CuError("T2C-C001", f"cannot read `{path}` in `{revision}`: {error}") from None


def reader_at(path: Path, revision: str) -> Callable[[str], str | None]:
    """Reads what a Python file imports in a git revision, by paths relative to the file; None for what is not there."""

    def read(name: str) -> str | None:
        content = _content_at(path, revision, name)
        try:
            return None if content is None else python_text(content)
        except (LookupError, SyntaxError, ValueError):
            return None

    return read


def _content_at(path: Path, revision: str, name: str) -> bytes | None:
    """A file next to `path` in a revision. A revision that begins with a dash would be an option of git."""
    return None if revision.startswith("-") else _git(path, "show", f"{revision}:./{name}")


def _git(path: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(["git", "-C", str(path.parent), *arguments], capture_output=True)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
