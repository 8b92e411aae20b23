"""`tile2cu completion bash`: a script for a shell, to be sourced from its start-up file."""

import argparse
import importlib
from collections.abc import Iterator

from tile2cu.cli import VERBS
from tile2cu.cli import add_arguments as add_arguments_of

# Without the colon among bash's word breaks, cuda:sm_80 is one word.
_BASH = """\
COMP_WORDBREAKS="${{COMP_WORDBREAKS//:}}"
_tile2cu() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" verb="${{COMP_WORDS[1]}}"
  case "$previous" in
{values}
  esac
  if [[ "$word" == -* ]]; then
    case "$verb" in
{options}
    esac
  elif [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "{verbs}" -- "$word") $(compgen -f -X '!*.py' -- "$word"))
  fi
}}
complete -o default -F _tile2cu tile2cu
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    parser.epilog = 'in ~/.bashrc: eval "$(tile2cu completion bash)"'


def run(options: argparse.Namespace) -> int:
    if options.shell == "fish":
        print("\n".join(_fish()))
    else:
        head = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
        print(head + _bash(), end="")
    return 0


def _actions(verb: str) -> list[argparse.Action]:
    """The options of a verb, with a long name or a short one."""
    parser = argparse.ArgumentParser()
    add_arguments_of(importlib.import_module(f"tile2cu.cli.{verb}"), parser)
    return [action for action in parser._actions if action.option_strings]


def _values(verbs: list[list[argparse.Action]]) -> Iterator[tuple[str, str]]:
    """The options that take one of some words, with these."""
    from tile2cu.targets import TARGETS

    yield "--target", " ".join(target.name for target in TARGETS)
    found: dict[str, dict[str, None]] = {}
    for action in (action for actions in verbs for action in actions):
        if action.choices:
            found.setdefault(action.option_strings[-1], {}).update(dict.fromkeys(map(str, action.choices)))
    yield from ((option, " ".join(words)) for option, words in found.items())


def _bash() -> str:
    actions = {verb: _actions(verb) for verb in VERBS}
    options = {verb: " ".join(each.option_strings[-1] for each in found) for verb, found in actions.items()}
    lines = [f'      {verb}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;' for verb, words in options.items()]
    lines.append(f'      *) COMPREPLY=($(compgen -W "{options["emit"]} --version" -- "$word")) ;;')
    values = [
        f'    {option}) COMPREPLY=($(compgen -W "{words}" -- "$word")); return ;;'
        for option, words in _values(list(actions.values()))
    ]
    return _BASH.format(verbs=" ".join(VERBS), options="\n".join(lines), values="\n".join(values))


def _fish() -> Iterator[str]:
    seen = f"__fish_seen_subcommand_from {' '.join(VERBS)}"
    for verb, about in VERBS.items():
        yield f"complete -c tile2cu -n 'not {seen}' -a {verb} -d {_quoted(about)}"
    for verb in VERBS:
        where = f"__fish_seen_subcommand_from {verb}"
        where = f"not {seen}; or {where}" if verb == "emit" else where
        for action in _actions(verb):
            name = action.option_strings[-1]
            flag = f"-l {name[2:]}" if name.startswith("--") else f"-o {name[1:]}"
            words = f" -x -a {_quoted(' '.join(map(str, action.choices)))}" if action.choices else ""
            yield f"complete -c tile2cu -n '{where}' {flag}{words} -d {_quoted(action.help or '')}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
