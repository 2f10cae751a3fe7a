"""Entry point of the `hpc` command: registers the command groups and turns errors into exit codes."""

from __future__ import annotations

import sys
import traceback
from datetime import UTC, datetime

import typer

from hpc.cli import catalog, cluster, demo, doctor, local, plan, preview, validate
from hpc.cli.output import err, print_error
from hpc.errors import CannotRunError, HpcError
from hpc.paths import state_dir

app = typer.Typer(
    name="hpc",
    help="MPI clusters with Slurm and eRDMA on Alibaba Cloud.\n\nExit codes: 0 clean, 1 refused, 2 could not run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from hpc import __version__

        typer.echo(f"hpc {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


for module in (validate, plan, preview, catalog, cluster, local, demo, doctor):
    module.register(app)


def main() -> None:
    """Run the command line; never a traceback for a user's mistake.

    Exit codes: 0 clean, 1 refused, 2 could not run, 130 interrupted.
    """
    try:
        app()
    except HpcError as error:
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err().print("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception:
        log = state_dir() / "logs" / f"hpc-{datetime.now(UTC):%Y%m%dT%H%M%S}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(traceback.format_exc(), encoding="utf-8")
        last = traceback.format_exc().strip().splitlines()[-1]
        print_error(
            CannotRunError(f"an error of this program: {last}", code="HPC010", fix=f"report it with {log}"),
            as_json="--json" in sys.argv,
        )
        sys.exit(2)
