"""`[tool.tile2cu]` of pyproject.toml: the kernels of a project, with their targets and bindings."""

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from msgspec.structs import replace

from tile2cu.core.dispatch import dispatch_of
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import ENVIRONMENT, SHIMS, STYLES, EmitOptions
from tile2cu.core.record import Record
from tile2cu.files import read
from tile2cu.project.job import Job, Selection
from tile2cu.project.toml_place import place

_FILE = "pyproject.toml"
_TABLE = ("tool", "tile2cu")
# Each key with the type that it must have.
PROJECT_KEYS: Mapping[str, type] = {
    "output": str,
    "targets": list,
    "style": str,
    "clang-format": str,
    "line": str,
    "kernels": list,
    "dispatch": list,
}
KERNEL_KEYS: Mapping[str, type] = {
    "file": str,
    "kernel": str,
    "targets": list,
    "bindings": dict,
    "env": dict,
    "specialisations": dict,
    "generic": bool,
    "output": str,
    "name": str,
    "line": str,
    "with-test": bool,
    "shims": list,
    "tiles": str,
    "family": list,
}
_NAMES: Mapping[type, str] = {str: "a string", bool: "true or false", list: "an array", dict: "a table"}


def read_project(start: Path) -> Selection:
    """The jobs of the nearest pyproject.toml with a `[tool.tile2cu]`, in `start` or above it.

    Errors: T2C-C010 when there is none, T2C-C011 for a key that is not one, T2C-C012 for a value of the wrong kind,
    T2C-C013 when two jobs would write the same folder the same file.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        path = folder / _FILE
        if path.is_file():
            text = _read(path)
            table = _parse(path, text).get("tool", {}).get("tile2cu")
            if table is not None:
                return _Reader(path, text).selection(table)
    raise Tile2CuError(
        "T2C-C010",
        f"no {_FILE} here or above has a [tool.tile2cu]",
        help="name a file (tile2cu kernel.py -o out/), or list the kernels in [[tool.tile2cu.kernels]]",
    )


def _read(path: Path) -> str:
    return read(path)


def _parse(path: Path, text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Tile2CuError("T2C-C012", f"{path.name} is not TOML: {error}") from None
    return table


class _Reader(Record, frozen=True):
    path: Path
    text: str

    def selection(self, table: Any) -> Selection:
        """The jobs of the table, each checked."""
        at: tuple[str | int, ...] = _TABLE
        self._check(table, PROJECT_KEYS, at)
        options = EmitOptions(
            style=self._style(table, at),
            clang_format=self._clang_format(table),
            line=self._line(table, at, "off"),  # type: ignore[arg-type]
        )
        jobs: list[Job] = []
        for number, kernel in enumerate(table.get("kernels", [])):
            for job in self._jobs(table, kernel, options, (*at, "kernels", number)):
                self._refuse_twice(job, jobs, (*at, "kernels", number))
                jobs.append(job)
        for number, dispatch in enumerate(table.get("dispatch", [])):
            jobs.append(self._dispatch(table, dispatch, options, (*at, "dispatch", number)))
        if not jobs:
            self._fail("T2C-C012", "[tool.tile2cu] lists no kernels", at, "add [[tool.tile2cu.kernels]]")
        return Selection(root=self.path.parent, jobs=tuple(jobs), listed=True)

    def _jobs(
        self, table: Mapping[str, Any], kernel: Any, options: EmitOptions, at: tuple[str | int, ...]
    ) -> Iterator[Job]:
        self._check(kernel, KERNEL_KEYS, at)
        if "file" not in kernel:
            self._fail("T2C-C012", "the entry has no `file`", at, 'add for instance file = "kernels/gemm.py"')
        targets = self._targets(table, kernel, at)
        special: dict[str, Any] = kernel.get("specialisations", {})
        for name, values in special.items():
            if not isinstance(values, dict):
                self._fail("T2C-C012", f"`{name}` is not a table of values", (*at, "specialisations", name))
        versions = special if special and not kernel.get("generic", True) else {"": {}, **special}
        environment = {f"{ENVIRONMENT}{name}": str(value) for name, value in kernel.get("env", {}).items()}
        folder = self.path.parent / table.get("output", ".") / kernel.get("output", "")
        languages: dict[str, list[str]] = {}
        for target in targets:
            languages.setdefault(target.partition(":")[0], []).append(target)
        for language, those in languages.items():
            below = folder / language if len(languages) > 1 else folder
            for name, values in versions.items():
                yield Job(
                    file=self.path.parent / kernel["file"],
                    folder=below / name,
                    target=", ".join(those),
                    kernel=kernel.get("kernel"),
                    bindings={**kernel.get("bindings", {}), **values, **environment},
                    options=replace(
                        options,
                        name=kernel.get("name", ""),
                        with_test=kernel.get("with-test", False),
                        shims=self._shims(kernel, at),
                        line=self._line(kernel, at, options.line),
                        tiles=self._tiles(kernel, at),
                        family=tuple(map(str, kernel.get("family", ()))),
                    ),
                )

    def _dispatch(self, table: Mapping[str, Any], given: Any, options: EmitOptions, at: tuple[str | int, ...]) -> Job:
        """The job of a dispatch; its own fields are checked by core.dispatch."""
        output = given.get("output", "") if isinstance(given, dict) else ""
        own = {key: value for key, value in given.items() if key != "output"} if isinstance(given, dict) else given
        try:
            wanted = dispatch_of(own)
            for entry in wanted.entries:
                wanted.source(entry)
        except Tile2CuError as error:
            self._fail(error.code, error.message, at, error.help)
        return Job(
            file=self.path,
            folder=self.path.parent / table.get("output", ".") / output,
            target=", ".join(dict.fromkeys(entry.target for entry in wanted.entries)),
            kernel=wanted.name,
            options=options,
            dispatch=wanted,
        )

    def _targets(self, table: Mapping[str, Any], kernel: Mapping[str, Any], at: tuple[str | int, ...]) -> list[str]:
        """The kernel's targets, else the project's; each one known."""
        from tile2cu.targets import find

        where = (*at, "targets") if "targets" in kernel else (*_TABLE, "targets")
        targets = kernel.get("targets", table.get("targets", ["cuda:sm_80"]))
        if not targets or not all(isinstance(target, str) for target in targets):
            self._fail("T2C-C012", "`targets` is not an array of names", where, 'such as ["cuda:sm_80"]')
        for target in targets:
            try:
                find(target)
            except Tile2CuError as error:
                self._fail(error.code, error.message, where, error.help)
        return list(dict.fromkeys(targets))

    def _shims(self, kernel: Mapping[str, Any], at: tuple[str | int, ...]) -> tuple[str, ...]:
        shims = tuple(map(str, kernel.get("shims", ())))
        for shim in shims:
            if shim not in SHIMS:
                self._fail("T2C-C012", f"there is no shim `{shim}`", (*at, "shims"), f"there are {', '.join(SHIMS)}")
        return shims

    def _line(self, table: Mapping[str, Any], at: tuple[str | int, ...], default: str) -> str:
        value = str(table.get("line", default))
        if value not in ("off", "python"):
            self._fail("T2C-C012", f'`line` is "{value}"', (*at, "line"), 'it is "off" or "python"')
        return value

    def _tiles(self, table: Mapping[str, Any], at: tuple[str | int, ...]) -> str:
        value = str(table.get("tiles", "default"))
        if value not in ("default", "auto"):
            self._fail("T2C-C012", f'`tiles` is "{value}"', (*at, "tiles"), 'it is "default" or "auto"')
        return value

    def _style(self, table: Mapping[str, Any], at: tuple[str | int, ...]) -> str:
        if "style" not in table:
            return EmitOptions().style
        style = str(table["style"])
        if style not in STYLES:
            self._fail("T2C-C012", f"there is no style `{style}`", (*at, "style"), f"there are {', '.join(STYLES)}")
        return style

    def _clang_format(self, table: Mapping[str, Any]) -> str:
        return _read(self.path.parent / table["clang-format"]) if "clang-format" in table else ""

    def _check(self, table: Any, known: Mapping[str, type], at: tuple[str | int, ...]) -> None:
        """Every key is known and has a value of its type."""
        if not isinstance(table, dict):
            self._fail(
                "T2C-C012", f"`{at[-2] if isinstance(at[-1], int) else at[-1]}` has an entry that is no table", at
            )
        for key, value in table.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean `{near[0]}`? " if near else ""
                self._fail("T2C-C011", f"unknown key `{key}`", (*at, key), f"{hint}the keys are {', '.join(known)}")
            if not isinstance(value, known[key]):
                self._fail("T2C-C012", f"`{key}` is not {_NAMES[known[key]]}", (*at, key))

    def _refuse_twice(self, job: Job, jobs: Sequence[Job], at: tuple[str | int, ...]) -> None:
        """Two jobs for one kernel in one folder would overwrite each other's files."""
        for other in jobs:
            overlap = job.kernel == other.kernel or None in (job.kernel, other.kernel)
            if (job.file, job.folder) == (other.file, other.folder) and overlap:
                self._fail(
                    "T2C-C013",
                    f"`{job.file.name}` is emitted twice into `{job.folder.relative_to(self.path.parent)}`",
                    at,
                    "give one another `output`, or make them `specialisations`, which get folders of their names",
                )

    def _fail(self, code: str, message: str, at: tuple[str | int, ...], help: str = "") -> NoReturn:
        raise Tile2CuError(code, message, place(self.path.name, self.text, at), help=help)
