"""Sites on other machines, over Flower: each calls the aggregator and keeps that connection, over which it is asked.

Of Flower it is the request and the reply over one stream that is used (`start_grpc_server`, `start_client`): its newer
way, an app that SuperNodes fetch and run, asks every three seconds whether there is work, and starts a process for each
message, of which a release has a hundred (docs/decisions/0026-flower-for-sites.md).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from understudy.boundary.schema.federation import AGGREGATOR, Federation
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sites.federated import FederatedTable
from understudy.boundary.tables.sites.link import HELLO, request
from understudy.errors import InputError, SiteError, UnderstudyError, installing

SCHEME = "flower"
REQUEST, REPLY = "request", "reply"
PATIENCE = 60.0
"""Seconds for which sites are waited for, and each of their replies; another one is ?timeout=."""
LOOK = 0.05
BETWEEN_CALLS = 0.5
CERTIFICATES = ("ca.pem", "server.pem", "server.key")
OPTIONS = ("sites", "trust", "honest", "places", "timeout", "certificates")


@dataclass(frozen=True)
class FlowerAddress:
    """Where an aggregator listens, and for whom.

    >>> FlowerAddress.of("flower://127.0.0.1:9092?sites=3&trust=nobody").federation.sites
    3
    """

    where: str
    federation: Federation
    timeout: float = PATIENCE
    certificates: Path | None = None
    """A folder with those of the aggregator; without it, the connection is open to whoever can listen."""

    @classmethod
    def of(cls, url: str) -> FlowerAddress:
        parts = urlsplit(url)
        said = dict(parse_qsl(parts.query, keep_blank_values=True))
        unknown = next((name for name in said if name not in OPTIONS), None)
        if unknown is not None:
            raise InputError(f"{unknown!r} is no option of an address of sites; known are {', '.join(OPTIONS)}", url)
        if parts.path.strip("/") or parts.username or "sites" not in said:
            raise InputError(f"{url!r} must be like flower://127.0.0.1:9092?sites=3", url)
        numbers = {name: _whole(name, said[name]) for name in ("sites", "honest", "places") if name in said}
        certificates = Path(said["certificates"]) if "certificates" in said else None
        where = checked_address(parts.netloc, secured=certificates is not None)
        federation = Federation(said.get("trust", AGGREGATOR), **numbers)
        return cls(where, federation, _seconds(said.get("timeout", str(PATIENCE))), certificates)


def checked_address(where: str, *, secured: bool) -> str:
    """Host and port; without certificates they must be on this machine: what travels is worth encrypting."""
    host, colon, port = where.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InputError(f"address ({where!r}) must be a host and a port, such as 127.0.0.1:9092", where)
    if not secured and not _is_here(host):
        raise InputError(
            f"address ({where!r}) is on another machine, so the connection must be encrypted; name the certificates",
            where,
        )
    return where


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise InputError(f"{name} ({text!r}) must be a whole number", text)
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise InputError(f"timeout ({text!r}) must be seconds, from above 0 to 86400", text)
    return seconds


def open_sites(url: str, schema: Schema, name: str | None = None) -> FederatedTable:
    """Listens at the address until as many sites as it names have joined, and puts them together."""
    address = FlowerAddress.of(url)
    gathering = Gathering(address)
    try:
        links = gathering.links()
        source = f"{SCHEME}://{address.where}"
        table = FederatedTable(
            links, schema, address.federation, name=name or f"sites at {address.where}", source=source
        )
    except BaseException:
        gathering.close()
        raise
    table.close = gathering.close
    # Else Python would wait at its end for threads that wait for sites: they must be told before they are joined.
    threading._register_atexit(gathering.close)  # type: ignore[attr-defined]
    return table


class Gathering:
    """The sites that are connected, by name; the same site may come back under another connection."""

    def __init__(self, address: FlowerAddress) -> None:
        flower = _flower()
        self._address = address
        self._manager = flower.server.client_manager.SimpleClientManager()
        self._names: dict[str, str] = {}
        try:
            self._server = flower.start_grpc_server(
                self._manager, address.where, certificates=_certificates(address.certificates)
            )
        except (RuntimeError, OSError, SystemExit):
            raise SiteError(f"nothing can listen at {address.where}; is the port taken?", address.where) from None

    def links(self) -> list[FlowerLink]:
        """One for each site, once there are enough."""
        wanted = self._address.federation.sites
        if not self._until(lambda: len(self._present()) >= wanted):
            found = ", ".join(sorted(self._present().values())) or "none"
            raise SiteError(
                f"{len(self._present())} of {wanted} sites joined at {self._address.where} within "
                f"{self._address.timeout:g} s: {found}; start the others with `understudy site`",
                self._address.where,
            )
        return [FlowerLink(name, self) for name in self._present().values()]

    def ask(self, name: str, message: bytes) -> bytes:
        """The site's reply; it is asked a second time where its connection broke and it comes back in time."""
        for _ in range(2):
            if not self._until(lambda: name in self._present().values()):
                break
            connection = next(c for c, n in reversed(self._present().items()) if n == name)
            reply = self._sent(connection, message)
            if reply is not None:
                return reply
        raise SiteError(
            f"site {name!r} dropped out, or took longer than {self._address.timeout:g} s; nothing is spent twice when "
            "the release is resumed once it is back",
            name,
        )

    def close(self) -> None:
        self._server.stop(None)

    def _present(self) -> dict[str, str]:
        """Names by connection; who is new is asked for its name first."""
        connected = self._manager.all()
        for connection in [c for c in connected if c not in self._names]:
            try:
                self._names[connection] = _greeting(partial(self._sent, connection))
            except UnderstudyError:
                continue  # it is no site of ours, or gone again
        return {c: n for c, n in self._names.items() if c in connected}

    def _sent(self, connection: str, message: bytes) -> bytes | None:
        """None where the connection breaks, or no reply comes in time."""
        flower, proxy = _flower(), self._manager.all().get(connection)
        if proxy is None:
            return None
        asked = flower.common.GetPropertiesIns({REQUEST: message})
        try:
            reply = proxy.get_properties(asked, timeout=self._address.timeout, group_id=None)
        except Exception:  # whatever a broken stream raises in gRPC's threads
            return None
        content = reply.properties.get(REPLY)
        return content if isinstance(content, bytes) else b""

    def _until(self, holds: Callable[[], bool]) -> bool:
        end = time.monotonic() + self._address.timeout
        while not holds():
            if time.monotonic() > end:
                return False
            time.sleep(LOOK)
        return True


@dataclass(frozen=True)
class FlowerLink:
    """A way to the site of this name, over whichever connection it has."""

    name: str
    gathering: Gathering

    def send(self, request: bytes) -> bytes:
        return self.gathering.ask(self.name, request)


class _Stranger:
    """A connection whose site has not said its name yet."""

    def __init__(self, send: Callable[[bytes], bytes | None]) -> None:
        self.name, self._send = "that has just joined", send

    def send(self, request: bytes) -> bytes:
        return self._send(request) or b""


def _greeting(send: Callable[[bytes], bytes | None]) -> str:
    return str(request(_Stranger(send), {"op": HELLO}).header.get("name"))


def serve(handle: Callable[[bytes], bytes], where: str, certificate: Path | None = None) -> None:
    """Answers what the aggregator at this address asks, and calls it again whenever the connection ends."""
    checked_address(where, secured=certificate is not None)
    flower, root = _flower(), certificate.read_bytes() if certificate else None
    while True:
        # There is no aggregator, or it has ended: the next release finds this site waiting.
        with suppress(flower.grpc.RpcError, StopIteration, RuntimeError):
            flower.start_client(
                server_address=where, client=flower.answering(handle), root_certificates=root, insecure=root is None
            )
        time.sleep(BETWEEN_CALLS)


def _certificates(folder: Path | None) -> tuple[bytes, ...] | None:
    if folder is None:
        return None
    try:
        return tuple((folder / name).read_bytes() for name in CERTIFICATES)
    except OSError:
        raise InputError(
            f"certificates ({str(folder)!r}) must be a folder with {', '.join(CERTIFICATES)}", folder
        ) from None


class _Flower:
    """What is used of Flower, imported late, and told to keep to itself."""

    def __init__(self) -> None:
        # Before the import: Flower would else report its use to its makers.
        os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
        # gRPC's own core writes past Python's loggers, whenever the other side ends.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        # And what it does in a forked child now and then ends programs that are started later.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
        import flwr.common
        import flwr.server.client_manager
        import grpc
        from flwr.compat.client.app import start_client
        from flwr.compat.client.client import Client
        from flwr.server.superlink.fleet.grpc_bidi.grpc_server import start_grpc_server

        for name in ("flwr", "grpc"):  # what they log of a connection that ends, we say ourselves
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.common, self.server, self.grpc = flwr.common, flwr.server, grpc
        self.start_client, self.start_grpc_server, self._client = start_client, start_grpc_server, Client

    def answering(self, handle: Callable[[bytes], bytes]) -> Any:
        """A client of Flower's whose properties are the reply."""
        common = self.common

        class Answering(self._client):  # type: ignore[misc, name-defined]
            def get_properties(self, ins: Any) -> Any:
                status, asked = common.Status(common.Code.OK, ""), ins.config.get(REQUEST)
                # What is no request of ours is refused as one, and does not end the site.
                return common.GetPropertiesRes(status, {REPLY: handle(asked if isinstance(asked, bytes) else b"")})

        return Answering()


_LOADED: list[_Flower] = []


def _flower() -> _Flower:
    if not _LOADED:
        try:
            _LOADED.append(_Flower())
        except ImportError:
            raise InputError(f"sites on other machines need Flower: {installing('federated')}", None) from None
    return _LOADED[0]
