"""`#line`: compilers, debuggers and profilers speak of the Python file where the text comes from it."""


def with_line_directives(
    text: str, lines: list[tuple[int, int]], *, python: str, own: str
) -> tuple[str, list[tuple[int, int]]]:
    """The text with a directive wherever a line of code comes from elsewhere than the compiler would think.

    `lines` is the map of the text, `python` and `own` the names of the two files; gives the map of the new text, too.
    Every line of a statement that spans several has the Python line, and what comes from none has its own number.
    """
    starts = dict(lines)
    placed: list[str] = []
    moved: list[tuple[int, int]] = []
    python_line = 0
    thought = (own, 1)  # where the compiler takes the next line to be
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if number in starts:
            python_line = starts[number]
            moved.append((len(placed) + 1, python_line))
        is_code = bool(line.strip()) and not line.lstrip().startswith("//")
        if is_code and thought != (place := _place(python_line, python, own, len(placed) + 1)):
            thought = place if python_line else (own, len(placed) + 2)  # the directive takes a line itself
            placed.append(f'#line {thought[1]} "{thought[0]}"')
        placed.append(line)
        thought = (thought[0], thought[1] + 1)
    return "\n".join(placed) + "\n", moved


def _place(python_line: int, python: str, own: str, number: int) -> tuple[str, int]:
    return (python, python_line) if python_line else (own, number)
