"""`python -m hpc.engine path`: print the Pulumi CLI, making it if need be. `status`: say what is there, as JSON."""

from __future__ import annotations

import json
import sys

from hpc.engine.cli import ensure_cli, find_cli, version_of
from hpc.engine.language import find_language_host
from hpc.engine.plugins import find_plugins
from hpc.errors import HpcError


def _status() -> dict[str, object]:
    cli, host = find_cli(), find_language_host()
    return {
        "cli": str(cli) if cli else None,
        "version": version_of(cli) if cli else None,
        "plugins": {plugin.name: str(plugin.path) if plugin.path else None for plugin in find_plugins()},
        "language_host": str(host) if host else None,
    }


def main() -> int:
    """Run one of the two sub-commands; exit code 2 where the CLI cannot be had or the words are off."""
    match sys.argv[1:]:
        case ["path"]:
            try:
                sys.stdout.write(f"{ensure_cli(lambda line: print(line, file=sys.stderr))}\n")  # noqa: T201
            except HpcError as error:
                sys.stderr.write(f"{error}\n")
                return 2
        case ["status"]:
            sys.stdout.write(json.dumps(_status(), indent=2) + "\n")
        case _:
            sys.stderr.write("usage: python -m hpc.engine path | status\n")
            return 2
    return 0


sys.exit(main())
