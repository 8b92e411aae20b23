"""Environments: which value a name has, by Python's lexical rules and the tile language's frames."""

from dataclasses import dataclass, field

from tile2cu.core.span import Span


@dataclass(eq=False)
class Env:
    """One scope. Names are looked up here, then in the enclosing scopes.

    `declares`: a static number that is bound to a name here becomes a Constant of the program (module, factory and
    traced bodies; not helpers). `frame`: the body of a loop or branch of the program; names bound in it end with it.
    `loop`: a frame that runs more than once. `reads` are the names that a frame took from outside; `ended` those that
    a frame inside bound before it ended, and where. `beside` are the names that the other arm of a branch has read.
    `of_module` are those that a `global` statement lists.
    """

    parent: "Env | None" = None
    declares: bool = False
    frame: bool = False
    loop: bool = False
    values: dict[str, object] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    reads: set[str] = field(default_factory=set)
    ended: dict[str, Span] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)
    of_module: set[str] = field(default_factory=set)

    def find(self, name: str) -> "Env | None":
        """The innermost scope that binds `name`; None also where its frame has ended."""
        env: Env | None = self
        while env is not None:
            if name in env.values:
                return env
            if name in env.ended:
                return None
            if env.frame:
                env.reads.add(name)
            env = env.parent
        return None

    def find_quietly(self, name: str) -> "Env | None":
        """As `find`, for an assignment: it does not count as a read."""
        env: Env | None = self
        while env is not None and name not in env.values:
            env = None if name in env.ended else env.parent
        return env

    def bind(self, name: str, value: object, place: Span) -> None:
        if name in self.of_module:
            self.module.bind(name, value, place)
            return
        self.values[name] = value
        self.places[name] = place
        self.ended.pop(name, None)

    @property
    def module(self) -> "Env":
        """The scope of the module."""
        return self if self.parent is None else self.parent.module

    def inner_frame(self, *, loop: bool) -> "Env":
        """The scope of a loop's or branch's body inside this scope."""
        return Env(self, declares=self.declares, frame=True, loop=loop)

    def end_frame(self) -> None:
        """End a frame: what it bound is gone, in the enclosing scopes of the function too."""
        assert self.frame and self.parent is not None
        for name, place in self.places.items():
            for env in self._enclosing():
                env.values.pop(name, None)
            self.parent.ended[name] = place

    def frame_reads(self) -> list[set[str]]:
        """The names that this scope and each around it have read so far."""
        return [set(scope.reads) for scope in (self, *self._enclosing())]

    def put_aside(self, before: list[set[str]], other: "Env") -> list[set[str]]:
        """Takes back the reads of a branch's first arm, for the time in which `other`, the second, is traced."""
        scopes, reads = (self, *self._enclosing()), self.frame_reads()
        for scope, earlier, now in zip(scopes, before, reads, strict=True):
            scope.reads = earlier
            other.beside |= now - earlier
        return reads

    def put_back(self, reads: list[set[str]]) -> None:
        """The reads of the first arm count again."""
        for scope, names in zip((self, *self._enclosing()), reads, strict=True):
            scope.reads |= names

    def is_read_beside(self, name: str) -> bool:
        """Whether the other arm of a branch in a loop has read a name that this arm has not bound yet."""
        beside = False
        for env in (self, *self._enclosing()):
            if name in env.values:
                return False
            beside = beside or name in env.beside
            if env.loop and beside:
                return True
        return False

    def carried_by(self, name: str) -> "Env | None":
        """The loop that read `name` from outside before the name is now bound again inside it, if there is one."""
        if name in self.values:
            return None
        for env in (self, *self._enclosing()):
            if env.loop and name in env.reads and name not in env.values:
                return env
            if name in env.values:
                return None
        return None

    def _enclosing(self) -> "list[Env]":
        """The scopes around this frame up to that of its function."""
        found: list[Env] = []
        env = self
        while env.frame and env.parent is not None:
            env = env.parent
            found.append(env)
        return found

    def where_ended(self, name: str) -> Span | None:
        """Where a frame that has ended bound `name`."""
        env: Env | None = self
        while env is not None:
            if name in env.ended:
                return env.ended[name]
            env = env.parent
        return None

    def names(self) -> list[str]:
        """All names that can be seen from here, innermost first."""
        found: dict[str, None] = {}
        env: Env | None = self
        while env is not None:
            found.update(dict.fromkeys(env.values))
            env = env.parent
        return list(found)
