"""Source text to a LibCST tree with places and comments. The file is read, never executed."""

import ast
import functools
import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.span import Span
from tile2cu.core.user_file import Source

MAX_CHARACTERS = 500_000
_LINE_END = re.compile("\r\n|\r|\n")  # to Python; str.splitlines ends lines at form feeds, too
_FORM_FEED = re.compile(r"^[ \t\f]*\f", re.MULTILINE)  # in an indentation, where Python counts columns anew
_FOR_TILE2CU = "tile2cu:"  # how comments begin that are no text of the kernel's
MAX_SHOWN = 300  # characters of a line in a diagnostic
_Place = tuple[int, int, int, int]  # line and column of the start and of the end: lines from 1, columns from 0
MAX_NESTING = 120  # levels of the syntax tree; deeper files would exhaust the stack of a recursive reader


def sha256(text: str) -> str:
    """The hash of a source text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class SourceFile:
    """A parsed file: its tree, and where each node is."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._plain = _FORM_FEED.sub("", text)  # LibCST knows no form feeds in indentations
        self.lines = _LINE_END.split(self._plain)
        self._reject_hostile()
        self.module = self._parse()
        self._positions = _positions(self.module)
        self._spans: dict[cst.CSTNode, Span] = {}
        self._codes: dict[cst.CSTNode, str] = {}
        self._attached: list[SourceFile] = []

    @property
    def source(self) -> Source:
        return Source(name=Path(self.file).name, sha256=sha256(self.text), text=self.text)

    def attach(self, other: "SourceFile") -> None:
        """A file that this one imports: its nodes have places, too."""
        if other is not self and other not in self._attached:
            self._attached.append(other)

    def _owner(self, node: cst.CSTNode) -> "SourceFile":
        if node in self._positions:
            return self
        return next((other for other in self._attached if node in other._positions), self)

    def span(self, node: cst.CSTNode) -> Span:
        """The place of a node; one of several lines is cut after its first."""
        found = self._spans.get(node)
        if found is None:
            owner = self._owner(node)
            if owner is not self:
                return owner.span(node)
            line, column, last, end = self._positions[node]
            if last != line:
                end = len(self.line(line).rstrip())
            found = self._spans[node] = self._shown(line, column + 1, max(end, column + 1) + 1)
        return found

    def _shown(self, line: int, column: int, end_column: int) -> Span:
        """A place whose text is short enough to be shown: the start of a long line, or none if that is elsewhere."""
        text = self.line(line)[:MAX_SHOWN]
        return Span(self.file, line, column, end_column, text if column <= len(text) + 1 else "")

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node on one line, as the user wrote it."""
        found = self._codes.get(node)
        if found is None:
            owner = self._owner(node)
            found = self._codes[node] = owner._code(node)
        return found

    def _code(self, node: cst.CSTNode) -> str:
        line, column, last, end = self._positions[node]
        if line == last:
            return self.line(line)[column:end]
        parts = (self.line(line)[column:], *self.lines[line : last - 1], self.line(last)[:end])
        return " ".join(part.strip() for part in parts)

    def start(self) -> Span:
        """The first line of the file."""
        return self._shown(1, 1, len(self.line(1)) + 1)

    def _reject_hostile(self) -> None:
        """Reject text that would take the parser's time or stack; the check itself is cheap and bounded."""
        if len(self.text) > MAX_CHARACTERS:
            raise Tile2CuError(
                "T2C-F002",
                f"the file has {len(self.text):,} characters; at most {MAX_CHARACTERS:,} are read",
                self.start(),
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text)
        except SyntaxError as error:
            raise self._syntax_error(error) from None
        except (RecursionError, MemoryError):
            raise self._too_deep(1) from None
        except ValueError as error:  # a null byte, a lone surrogate, a number of too many digits
            raise Tile2CuError("T2C-F001", f"the file is not Python: {error}", self.start()) from None
        line = _first_line_too_deep(tree)
        if line is not None:
            raise self._too_deep(line)

    def _too_deep(self, line: int) -> Tile2CuError:
        return Tile2CuError(
            "T2C-F002",
            f"the code is nested more than {MAX_NESTING} levels deep",
            self._shown(line, 1, min(len(self.line(line)), 100) + 1),
            help="name parts of it",
        )

    def _syntax_error(self, error: SyntaxError) -> Tile2CuError:
        """Python's own message, in our form."""
        number = max(1, min(error.lineno or 1, len(self.lines) or 1))
        column = max(1, min(error.offset or 1, len(self.line(number)) + 1))
        if "nested parentheses" in error.msg or "levels of indentation" in error.msg:
            return self._too_deep(number)
        return Tile2CuError("T2C-F001", f"syntax error: {error.msg[:200]}", self._shown(number, column, column + 1))

    def _parse(self) -> cst.Module:
        try:
            return cst.parse_module(self._plain)
        except cst.ParserSyntaxError as error:
            number = max(1, min(error.raw_line, len(self.lines) or 1))
            span = self._shown(number, error.raw_column + 1, error.raw_column + 2)
            raise Tile2CuError("T2C-F001", "syntax error", span) from None


def _first_line_too_deep(tree: ast.Module) -> int | None:
    """The line of a node below MAX_NESTING levels, or None. Iterative: the tree may be deep."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_NESTING):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return None
    return next((node.lineno for node in level if hasattr(node, "lineno")), 1)


class _Places(PositionProvidingCodegenState):
    """Where nodes are by LibCST's own state, in a third of its time: it makes three objects a node."""

    def __init__(self, module: cst.Module) -> None:
        provider = PositionProvider()
        super().__init__(
            default_indent=module.default_indent, default_newline=module.default_newline, provider=provider
        )
        self.tokens.append("")  # the text itself is of no use, but LibCST asks whether there is any
        self.found: dict[cst.CSTNode, _Place] = {}
        self.open: list[tuple[int, int]] = []

    def add_token(self, value: str) -> None:
        if "\n" in value or "\r" in value:
            self._update_position(value)
        else:
            self.column += len(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.open.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.open.pop()
        if node not in self.found:
            self.found[node] = (*start, self.line, self.column)

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> "_Recorded":
        return _Recorded(self, node, start_node, end_node)


class _Recorded:
    """While a node's text without the white space around it is written; `first` and `last` may be its ends instead."""

    __slots__ = ("first", "last", "node", "start", "state")

    def __init__(self, state: _Places, node: cst.CSTNode, first: cst.CSTNode | None, last: cst.CSTNode | None) -> None:
        self.state, self.node, self.first, self.last = state, node, first, last

    def __enter__(self) -> None:
        self.start = (self.state.line, self.state.column)

    def __exit__(self, *error: object) -> None:
        found = self.state.found
        start = self.start if self.first is None else found[self.first][:2]
        end = (self.state.line, self.state.column) if self.last is None else found[self.last][2:]
        found[self.node] = (*start, *end)


def _positions(module: cst.Module) -> Mapping[cst.CSTNode, _Place]:
    places = _Places(module)
    module._codegen(places)
    return places.found


def comment_text(comment: cst.Comment | None) -> str:
    """A comment without its `#`; of one that is for tile2cu, such as `# tile2cu: ignore[W002]`, nothing."""
    return "" if comment is None or _is_for_tile2cu(comment) else comment.value.lstrip("#").strip()


def comment_lines(lines: Sequence[cst.EmptyLine]) -> tuple[str, ...]:
    """The comments among the empty lines above a statement."""
    found = (line.comment for line in lines if line.comment is not None)
    return tuple(comment_text(each) for each in found if not _is_for_tile2cu(each))


def _is_for_tile2cu(comment: cst.Comment) -> bool:
    return comment.value.lstrip("#").strip().startswith(_FOR_TILE2CU)


def leading_comments(node: cst.CSTNode) -> tuple[str, ...]:
    """The comments above a statement; those between decorators and `def` included."""
    match node:
        case cst.FunctionDef():
            return comment_lines(node.leading_lines) + comment_lines(node.lines_after_decorators)
        case cst.SimpleStatementLine() | cst.If() | cst.For() | cst.With() | cst.While():
            return comment_lines(node.leading_lines)
        case _:
            return ()


def stands_apart(node: cst.CSTNode) -> bool:
    """Whether an empty line is above a statement and its comments."""
    lines: Sequence[cst.EmptyLine] = getattr(node, "leading_lines", ())
    return len(lines) > 0 and lines[0].comment is None


def trailing_comment(node: cst.CSTNode) -> str:
    """The comment at the end of a statement's line; for a compound statement, of its header."""
    match node:
        case cst.SimpleStatementLine():
            return comment_text(node.trailing_whitespace.comment)
        case cst.FunctionDef() | cst.If() | cst.For() | cst.With() | cst.While():
            body = node.body
            return comment_text(body.header.comment) if isinstance(body, cst.IndentedBlock) else ""
        case _:
            return ""


def footer_comments(body: cst.BaseSuite) -> tuple[str, ...]:
    """The comments after the last statement of a block."""
    return comment_lines(body.footer) if isinstance(body, cst.IndentedBlock) else ()


def param_comment(param: cst.Param) -> str:
    """The comment behind a parameter on its own line."""
    space = param.comma.whitespace_after if isinstance(param.comma, cst.Comma) else param.whitespace_after_param
    return comment_text(space.first_line.comment) if isinstance(space, cst.ParenthesizedWhitespace) else ""


@functools.lru_cache(maxsize=8)
def source_file(file: str, text: str) -> SourceFile:
    """The parsed file; asking twice for the same text parses once."""
    return SourceFile(file, text)
