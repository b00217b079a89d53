"""`ottla perf produce|consume|latency`: how fast it is from here, with this client."""

import typer

from ottla.cli import perf_consume, perf_latency, perf_produce
from ottla.cli.command import command

app = typer.Typer(no_args_is_help=True, help="Measure rates and latencies.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="perf")


command(app, "produce")(perf_produce.produce)
command(app, "consume")(perf_consume.consume)
command(app, "latency")(perf_latency.latency)
