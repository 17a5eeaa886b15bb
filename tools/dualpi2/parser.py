# SPDX-License-Identifier: GPL-2.0-only
"""argparse with errors of one line, which quote the invalid word and suggest the most similar valid one."""

import argparse
import difflib
import re
import sys


def nearest(word, known):
    """" (did you mean 'X'?)" for the entry of known that is most similar to word, or an empty string."""
    found = difflib.get_close_matches(word.lower(), list(known), 1, 0.6)
    return f" (did you mean '{found[0]}'?)" if found else ""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line; exit code 2."""

    def __init__(self, *args, **more):
        more.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **more)

    def parse_args(self, args=None, namespace=None):
        given = sys.argv[1:] if args is None else list(args)
        for word in given:
            if word == "--":
                break
            self._check(word.partition("=")[0])
        found, rest = self.parse_known_args(given, namespace)
        if rest:
            self.error(f"unexpected argument '{rest[0]}'")
        return found

    def _check(self, word):
        """Reject an unknown option. Before argparse, which would report a missing argument instead."""
        known = self._option_string_actions
        long = word.startswith("--")
        if not word.startswith("-") or word == "-" or re.match(r"-[.\d]", word) or (not long and word[:2] in known) or \
                any(option.startswith(word) for option in known if long):
            return
        self.error(f"unknown option '{word}'{nearest(word, [option for option in known if option[:2] == '--'])}")

    def error(self, message):
        """Print one line: what is invalid, and where to read on."""
        named, _, rest = message.partition(": ")
        options = named.replace("argument ", "").split("/")
        action = next((one for one in self._actions if options[0] in (*one.option_strings, one.metavar)), None)
        if message.startswith("argument ") and rest.startswith("expected one argument"):
            message = f"{options[-1]} needs a value{f': {action.metavar}' if action and action.metavar else ''}"
        elif message.startswith("argument ") and rest.startswith("ignored explicit"):
            message = f"{options[-1]} takes no value"
        elif action and action.option_strings and rest.startswith("invalid choice"):
            known = [str(one) for one in action.choices]
            word = re.match(r"invalid choice: '(.*?)'", rest)[1]
            message = f"{options[-1]}: invalid argument '{word}'{nearest(word, known)}; allowed are {', '.join(known)}"
        elif message.startswith("the following arguments are required"):
            message = f"{rest} is missing"
        elif message.startswith("ambiguous option"):
            message = re.sub(r": (\S+) could", r" '\1': it could", message)
        elif message.startswith("argument "):
            message = f"{options[-1]}: {rest}"
        self.exit(2, f"{self.prog}: {message}; see: {self.prog} --help\n")
