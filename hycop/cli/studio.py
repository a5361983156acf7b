"""The command that opens the studio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycop.cli.common import app
from hycop.cli.terminal import say
from hycop.studio import serve_run


@app.command()
def studio(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    port: Annotated[int, typer.Option(help="Port to serve on; 0 takes any free one.")] = 5006,
    host: Annotated[
        str,
        typer.Option(
            help="Address to serve on. Anything but this machine's own gets an address with a secret token in it."
        ),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Explore a model on a page: move sliders, read and edit its program, compare it with classical schemes.

    Example: hycop studio runs/adr
    Example: hycop studio runs/adr --port 8080 --no-browser
    """
    serve_run(folder, port=port, host=host, show=browser, tell=say)
