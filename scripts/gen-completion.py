#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Completion of dualpi2 and dualpi2-top for bash, zsh and fish, in tools/completion, from their parsers; there also of
dualpi2 in tc for zsh and fish, from the list of options. gen-options.py writes the latter for bash.

usage: gen-completion.py            write all
       gen-completion.py --check    say which is not up to date
"""

import argparse
import importlib
import os
import re
import shlex
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True

from dualpi2 import cli  # noqa: E402
from dualpi2.doctor import cli as doctor  # noqa: E402
from dualpi2.top import cli as top  # noqa: E402

VALUED, LISTS = importlib.import_module("gen-options").completed()

WRITTEN = "Written by scripts/gen-completion.py; do not edit."
LICENCE = "SPDX-License-" + "Identifier: GPL-2.0-only"  # reuse reads the word in one piece as this file's
BASH_LISTS = {"device": "/sys/class/net", "netns": "/run/netns"}


class Captured(BaseException):
    """Carries a parser out of the function that builds it."""


def captured(main):
    """The parser that a program's main() uses."""
    def leave(parser, *_):
        raise Captured(parser)

    real, argparse.ArgumentParser.parse_known_args = argparse.ArgumentParser.parse_known_args, leave
    try:
        main([])
    except Captured as found:
        return found.args[0]
    finally:
        argparse.ArgumentParser.parse_known_args = real
    raise AssertionError("no parser")


class Argument:
    """An option or a positional argument of a parser."""

    def __init__(self, action):
        self.flags = sorted(action.option_strings, key=len)
        self.metavar = action.metavar or action.dest.upper()
        # The first clause: a list has one line for each option.
        self.help = re.split(r"[,;:(]", (action.help or "").replace("%%", "%"))[0].strip()
        self.takes = not action.option_strings or action.nargs != 0
        self.optional = action.nargs in ("?", "*")
        self.words = list(getattr(action, "completions", None) or action.choices or [])
        self.kind = {"DEV": "device", "NETNS": "netns", "FILE": "file", "TRACE": "file"}.get(self.metavar)
        if action.dest == "netns":
            self.kind = "netns"


class Command:
    """What can be completed after a program or one of its commands."""

    def __init__(self, name, parser, about=""):
        self.name = name
        self.about = about
        actions = [action for action in parser._actions if not isinstance(action, argparse._SubParsersAction)]
        found = [Argument(action) for action in actions]
        self.options = [one for one in found if one.flags]
        self.positional = [one for one in found if not one.flags]


def commands():
    """(dualpi2 itself, its commands, dualpi2-top)."""
    parser = cli.parser()
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    about = {action.dest: action.help for action in verbs._choices_actions}
    found = [Command(name, doctor.parser() if name == "doctor" else one, about[name])
             for name, one in verbs.choices.items()]
    return Command("dualpi2", parser), found, Command("dualpi2-top", captured(top.main))


# bash

def _bash_words(argument):
    if argument.kind in BASH_LISTS:
        return f"words=$(command ls {BASH_LISTS[argument.kind]} 2>/dev/null)"
    if argument.kind == "file":
        return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return 0"
    return f"words='{' '.join(argument.words)}'"


def bash(name, verbs, main):
    """Text of the completion of one program. verbs: its commands; main: its own options."""
    values, flags, others = [], [], []
    for one in verbs or [main]:
        verb = one.name if verbs else ""
        for option in one.options:
            if option.takes:
                values.append((" | ".join(f"'{verb} {flag}'" for flag in option.flags), _bash_words(option)))
        words = " ".join(flag for option in one.options for flag in option.flags)
        flags.append((f"'{verb} -'*", f"words='{words}{' --' if verb in ('up', 'set') else ''}'"))
        if one.positional:
            first, *rest = map(_bash_words, one.positional)
            action = f"if (( COMP_CWORD == 2 )); then {first}; else {rest[0]}; fi" if rest else first
            others.append((f"'{verb} '*", action))
    own = " ".join([*(one.name for one in verbs), *(flag for option in main.options for flag in option.flags)])

    def case(what, rows, indent):
        merged = {}
        for pattern, action in rows:
            merged.setdefault(action, []).append(pattern)
        lines = [f"    {' | '.join(patterns)}) {action} ;;" for action, patterns in merged.items()]
        return "\n".join(" " * indent + line for line in [f"case {what} in", *lines, "esac"])

    function = "_" + name.replace("-", "_")
    verb = "local verb=${COMP_WORDS[1]}" if verbs else "local verb=''"
    first = f"""    if (( COMP_CWORD == 1 )); then
        mapfile -t COMPREPLY < <(compgen -W '{own}' -- "$cur")
        return 0
    fi
""" if verbs else ""
    # The value of an option takes precedence over an option, and that over an argument.
    return f"""# bash completion for {name}                              -*- shell-script -*-
# {LICENCE}
# {WRITTEN}

{function}()
{{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    {verb} word words=''

    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ $word != -- ]] || return 0
    done
{first}{case('"$verb $prev"', [*values, ("*", case('"$verb $cur"', [*flags, *others], 12).strip())], 4)}
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}} &&
complete -F {function} {name}
"""


def _tc_options(end="\n"):
    """(keywords that a value follows, lists of which one can be given, with commas) of tc, as lines."""
    return [end.join(textwrap.wrap(" ".join(words), 110, initial_indent=" " * 8, subsequent_indent=" " * 8,
                                   break_on_hyphens=False, break_long_words=False))
            for words in (VALUED, map(",".join, LISTS))]


# zsh

def _zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def _zsh_value(argument):
    action = {"device": "_dualpi2_devices", "netns": "_dualpi2_netns", "file": "_files"}.get(argument.kind)
    return action or (f"({' '.join(argument.words)})" if argument.words else " ")


def _zsh_specs(command):
    lines = []
    for option in command.options:
        tail = f"[{_zsh_text(option.help)}]" + (f":{option.metavar}:{_zsh_value(option)}" if option.takes else "")
        for flag in option.flags:
            others = f"({' '.join(option.flags)})" if option.flags[1:] else ""
            sign = "=" if option.takes and flag.startswith("--") else ""
            lines.append(f"'{others}{flag}{sign}{tail}'")
    lines += [f"':{':' if one.optional else ''}{one.metavar}:{_zsh_value(one)}'" for one in command.positional]
    return lines


def zsh(main, verbs, other):
    """Text of the completion of both programs."""
    def arguments(command, indent):
        return "_arguments -S \\\n" + " \\\n".join(" " * indent + line for line in _zsh_specs(command))

    cases = "".join(f"        {one.name})\n            {arguments(one, 16)}\n            ;;\n" for one in verbs)
    described = "\n".join(f"            '{one.name}:{_zsh_text(one.about)}'" for one in verbs)
    valued, lists = _tc_options()
    # -p: tried before what else completes tc, which runs if _dualpi2_tc fails.
    return f"""#compdef dualpi2 dualpi2-top -p tc
# {LICENCE}
# {WRITTEN}

_dualpi2_devices() {{ compadd -- /sys/class/net/*(N:t) }}
_dualpi2_netns() {{ compadd -- /run/netns/*(N:t) }}

_dualpi2_command() {{
    local -a commands=(
{described}
    )
    if (( CURRENT == 2 )) && [[ $words[2] == -* ]]; then
        {arguments(main, 12)}
    elif (( CURRENT == 2 )); then
        _describe -t commands command commands
    else
        local verb=$words[2]
        shift words
        (( CURRENT-- ))
        case $verb in
{cases}        esac
    fi
}}

_dualpi2_top() {{
    {arguments(other, 8)}
}}

_dualpi2_tc() {{
    local list expl
    local -a before=($words[2,CURRENT-1]) one given left=()
    local -a valued=(
{valued}
    )
    local -a lists=(
{lists}
    )
    (( $before[(I)dualpi2(|_mq)] )) || return 1
    _compskip=all
    (( ! $valued[(Ie)$before[-1]] )) || return 0
    for list in $lists; do
        one=(${{(s:,:)list}})
        given=(${{one:*before}})
        (( $#given )) || left+=($one)
    done
    _wanted options expl option compadd -- $left
}}

case $service in
    dualpi2) _dualpi2_command "$@" ;;
    dualpi2-top) _dualpi2_top "$@" ;;
    tc) _dualpi2_tc ;;
esac
"""


# fish

def _fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_value(argument):
    found = {"device": "(command ls /sys/class/net)", "netns": "(command ls /run/netns 2>/dev/null)"}.get(argument.kind)
    return found or " ".join(argument.words)


def fish(name, verbs, main):
    """Text of the completion of one program."""
    lines = [f"# {LICENCE}", f"# {WRITTEN}", f"complete -c {name} -f"]
    for one in verbs:
        lines.append(f"complete -c {name} -n __fish_use_subcommand -a {one.name} -d {_fish_quoted(one.about)}")
    for one in [main, *verbs]:
        when = "__fish_use_subcommand" if one is main else f"__fish_seen_subcommand_from {one.name}"
        condition = f"-n {shlex.quote(when)} " if verbs else ""
        for option in one.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            value = "" if not option.takes else " -r -F" if option.kind == "file" else " -x"
            words = _fish_value(option)
            value += f" -a {_fish_quoted(words)}" if option.takes and words else ""
            lines.append(f"complete -c {name} {condition}{flags}{value} -d {_fish_quoted(option.help)}")
        for argument in one.positional:
            values = "-F" if argument.kind == "file" else "-a " + _fish_quoted(_fish_value(argument))
            lines.append(f"complete -c {name} {condition}{values} -d {_fish_quoted(argument.metavar)}")
    return "\n".join(lines) + "\n"


def fish_tc():
    """Text that adds to the completion of tc, for a directory that fish reads at start: it reads only one tc.fish.
    __fish_seen_subcommand_from of fish 4.0 also finds parts of words.
    """
    valued, lists = _tc_options(" \\\n")
    return f"""# {LICENCE}
# {WRITTEN}

function __dualpi2_tc
    set -l valued \\
{valued}
    set -l lists \\
{lists}
    set -l before (commandline -opc)
    contains -- $before[-1] $valued
    and return
    for list in $lists
        set -l words (string split , -- $list)
        set -l given
        for word in $words
            contains -- $word $before
            and set given $word
        end
        test -n "$given"
        or printf '%s\\n' $words
    end
end
complete -c tc -n 'contains dualpi2 (commandline -opc)' -f -a '(__dualpi2_tc)'
complete -c tc -n 'contains dualpi2_mq (commandline -opc)' -f -a '(__dualpi2_tc)'
"""


def files():
    """{path: text}."""
    main, verbs, other = commands()
    return {"bash/dualpi2": bash("dualpi2", verbs, main), "bash/dualpi2-top": bash("dualpi2-top", [], other),
            "zsh/_dualpi2": zsh(main, verbs, other), "fish/dualpi2.fish": fish("dualpi2", verbs, main),
            "fish/dualpi2-top.fish": fish("dualpi2-top", [], other), "fish-conf/tc-dualpi2.fish": fish_tc()}


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    for name, text in files().items():
        path = os.path.join(ROOT, "tools/completion", name)
        if sys.argv[1:]:
            try:
                with open(path, encoding="utf-8") as file:
                    same = file.read() == text
            except OSError:
                same = False
            if not same:
                print(f"tools/completion/{name} is not up to date; run: scripts/gen-completion.py")
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
