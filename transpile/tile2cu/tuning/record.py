"""NAME.tune.json, beside the kernel's file: one entry for each card and shape, sorted, to be reviewed and committed."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from tile2cu.core.choice import Candidate, Setting
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.files import write_files

FORMAT = 3
Sizes = tuple[tuple[str, int], ...]
Bindings = tuple[tuple[str, str | int | float | bool], ...]


class Figure(Record, frozen=True, kw_only=True):
    """A measured setting of a file: the median of its rounds in microseconds, and (slowest - fastest) / median."""

    file: str
    setting: Setting
    us: float
    spread: float
    rounds: int

    @property
    def candidate(self) -> Candidate:
        return Candidate(self.file, self.setting)


class Tuned(Record, frozen=True, kw_only=True):
    """The result for one shape: the `best` setting, the file's own, and all `figures`, fastest first.

    `by` is "model" where the model's choice stays, "default" where the file's own does, "measured" where another
    setting won by the margin. `rejected` are settings that were not timed, with the reason. `card`, `clocks` and
    `tools` describe the machine. `family` has the SHA-256 of each other file whose settings took part, by its path.
    `bindings` are the values of the factory's other arguments.
    """

    sizes: Sizes
    card: str
    best: Figure
    by: str
    default_us: float
    figures: tuple[Figure, ...]
    rejected: tuple[tuple[Candidate, str], ...] = ()
    family: tuple[tuple[str, str], ...] = ()
    bindings: Bindings = ()
    clocks: str = ""
    tools: str = ""

    @property
    def key(self) -> tuple[str, Sizes, str]:
        return self.card, self.sizes, json.dumps(self.bindings)

    def as_data(self) -> dict[str, Any]:
        """The entry as JSON has it; `entry_of` reads it."""
        return {
            "card": self.card,
            "sizes": dict(self.sizes),
            "bindings": dict(self.bindings),
            "file": self.best.file,
            "setting": dict(self.best.setting),
            "us": self.best.us,
            "spread": self.best.spread,
            "by": self.by,
            "default_us": self.default_us,
            "figures": [{**asdict(each), "setting": dict(each.setting)} for each in self.figures],
            "rejected": [
                {"file": each.file, "setting": dict(each.setting), "because": because}
                for each, because in self.rejected
            ],
            "family": dict(self.family),
            "clocks": self.clocks,
            "tools": self.tools,
        }

    def us_of(self, candidate: Candidate) -> float | None:
        """The measured time of a setting of a file on this shape."""
        return next((figure.us for figure in self.figures if figure.candidate == candidate), None)

    def of_files(self, files: Collection[str]) -> Figure | None:
        """The best setting among those of these files; None where none of theirs was measured."""
        if self.best.file in files:
            return self.best
        return next((figure for figure in self.figures if figure.file in files), None)


class TuneFile(Record, frozen=True, kw_only=True):
    """All results for one kernel and target; `sha256` is that of the Python file that was measured."""

    kernel: str
    target: str
    sha256: str
    entries: tuple[Tuned, ...] = ()

    def with_entry(self, entry: Tuned) -> "TuneFile":
        """The file with an entry in the place of an older one for the same card and sizes."""
        others = {each.key: each for each in self.entries}
        return replace(self, entries=tuple(each for _, each in sorted({**others, entry.key: entry}.items())))

    def find(self, sizes: Sizes, bindings: Bindings, card: str = "") -> Tuned | None:
        """The entry for these sizes and other arguments: the card's whose name is given, else the first one's."""
        found = [entry for entry in self.entries if (entry.sizes, entry.bindings) == (sizes, bindings)]
        return next((entry for entry in found if entry.card == card), found[0] if found else None)

    def text(self) -> str:
        """The file's content: equal results give equal bytes."""
        content = {
            "format": FORMAT,
            "kernel": self.kernel,
            "target": self.target,
            "sha256": self.sha256,
            "entries": [entry.as_data() for entry in self.entries],
        }
        return json.dumps(content, indent=1) + "\n"


def place_of(path: Path, kernel: str) -> Path:
    """Where the results for a kernel of a Python file are."""
    return path.with_name(f"{kernel}.tune.json")


def read(path: Path) -> TuneFile | None:
    """The results in a file; None where there is none. Errors: T2C-C021 where it is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']}")
        entries = tuple(map(entry_of, content["entries"]))
        return TuneFile(
            kernel=str(content["kernel"]),
            target=str(content["target"]),
            sha256=str(content["sha256"]),
            entries=entries,
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Tile2CuError("T2C-C001", f"cannot read `{path}`: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        help = "remove it, or tune again"
        raise Tile2CuError("T2C-C021", f"`{path}` has no results of tile2cu tune: {error}", help=help) from None


def add(path: Path, file: TuneFile, entry: Tuned) -> TuneFile:
    """Adds an entry to the file on disk, between those that other processes have added; all of it or nothing.

    Entries of another version of the kernel's file, or another target, are dropped.
    """
    from filelock import FileLock

    with FileLock(path.with_name(f".{path.name}.lock")):
        there = read(path)
        same = there is not None and (there.target, there.sha256) == (file.target, file.sha256)
        merged = (there if there is not None and same else replace(file, entries=())).with_entry(entry)
        write_files({path.name: merged.text()}, path.parent)
    return merged


def entry_of(data: Mapping[str, Any]) -> Tuned:
    """The entry in data of JSON. Raises ValueError, KeyError, TypeError or StopIteration for other data."""
    figures = tuple(map(_figure, data["figures"]))
    best = _candidate(data)
    return Tuned(
        sizes=_pairs(data["sizes"]),
        bindings=sorted_bindings(data["bindings"]),
        card=str(data["card"]),
        best=next(figure for figure in figures if figure.candidate == best),
        by=str(data["by"]),
        default_us=float(data["default_us"]),
        figures=figures,
        rejected=tuple((_candidate(each), str(each["because"])) for each in data["rejected"]),
        family=tuple((str(file), str(sha256)) for file, sha256 in data["family"].items()),
        clocks=str(data["clocks"]),
        tools=str(data["tools"]),
    )


def _figure(data: Mapping[str, Any]) -> Figure:
    return Figure(
        **_candidate(data)._asdict(), us=float(data["us"]), spread=float(data["spread"]), rounds=int(data["rounds"])
    )


def _candidate(data: Mapping[str, Any]) -> Candidate:
    return Candidate(str(data["file"]), _pairs(data["setting"]))


def _pairs(data: Mapping[str, Any]) -> Setting:
    return tuple((str(name), int(value)) for name, value in data.items())


def sorted_sizes(sizes: Mapping[str, int] | Iterable[tuple[str, int]]) -> Sizes:
    """Sizes as entries have them."""
    return tuple(sorted(dict(sizes).items()))


def sorted_bindings(bindings: Mapping[str, object]) -> Bindings:
    """Values of arguments as entries have them: those that JSON has no type for by their text."""
    return tuple(
        (name, value if isinstance(value, str | int | float) else repr(value))
        for name, value in sorted(bindings.items())
    )
