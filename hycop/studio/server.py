"""Serves the studio: on this machine only, unless told; elsewhere only to those who know the address with its token."""

from __future__ import annotations

import errno
import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable
from ipaddress import ip_address

from panel.io.server import get_server

from hycop.data import Dataset
from hycop.errors import InvalidInputError
from hycop.studio.page import served
from hycop.studio.session import Session
from hycop.surrogate import HyCOP

TOKEN_BYTES = 24
MOST_UPLOAD = 200 * 2**20
"""Bytes of a message from the page, so of a file that it sends."""


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Refusals(logging.Filter):
    """Tells of a page from another address in our words: Bokeh's name options that hycop does not have."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def filter(self, record: logging.LogRecord) -> bool:
        refusal = record.getMessage().startswith("Refusing websocket connection")
        if refusal:
            self._tell("refused a page that came from another address; open the one above as it stands")
        return not refusal


def serve(model: HyCOP, data: Dataset | None, *, port: int, host: str, show: bool, tell: Callable[[str], None]) -> None:
    """Serves the studio until it is interrupted; every visitor has a session of their own. Beyond this machine the
    address has a random part, and whoever does not know it is refused."""
    port = free_port(host, port)
    first = Session(model, data)
    first.ask(first.controls())  # the first answer loads compiled loops, for which no visitor should wait
    logging.getLogger("tornado.access").setLevel(logging.ERROR)  # each refused request would be a line
    logging.getLogger("bokeh.server.views.ws").addFilter(_Refusals(tell))
    prefix = "" if is_loopback(host) else secrets.token_urlsafe(TOKEN_BYTES)
    try:
        server = get_server(
            {"/": lambda: served(Session(model, data))},
            port=port,
            address=host,
            prefix=prefix,
            websocket_origin=_origins(host, port),
            websocket_max_message_size=MOST_UPLOAD,
            title="HyCOP studio",
            show=False,
            start=False,
        )
    except OSError as error:
        raise _refused(host, port, error) from None
    shown = _visible(host)
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{server.port}/{prefix + '/' if prefix else ''}"
    tell(f"studio at {address} (Ctrl-C ends it)")
    server.start()
    if show:
        webbrowser.open(address)
    try:
        server.io_loop.start()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


def free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Refuses one that is in use, and an address that is not of this machine."""
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"--port is {port}: a number from 0 to 65535 is needed; 0 takes any free one")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            return int(probe.getsockname()[1])
    except OSError as error:
        raise _refused(host, port, error) from None


def _refused(host: str, port: int, error: OSError) -> InvalidInputError:
    if error.errno == errno.EADDRINUSE:
        return InvalidInputError(f"--port {port}: is in use; give another, or 0 for any free one")
    if error.errno == errno.EACCES:
        return InvalidInputError(f"--port {port}: may not be used; give one above 1023")
    return InvalidInputError(
        f"--host {host}: cannot be served ({error.strerror or error}); give an address of this machine"
    )


def _visible(host: str) -> str:
    """What to type into a browser."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else host


def _origins(host: str, port: int) -> list[str]:
    """Pages whose scripts may talk to the studio: its own, under the names of this machine."""
    names = {host, "localhost", "127.0.0.1"}
    if host in ("0.0.0.0", "::"):
        names |= {socket.gethostname(), socket.getfqdn(), *_own_addresses()}
    return sorted(f"{f'[{name}]' if ':' in name else name}:{port}" for name in names)


def _own_addresses() -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return set()
