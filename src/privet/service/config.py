"""The configuration of a server: a TOML file in which every mistake is told with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from privet.errors import QuestionError, did_you_mean
from privet.kernel import as_epsilon, fraction_of, is_name
from privet.service.permits import ANSWERS, MODELS, Permit
from privet.text import quoted, read_text, shown

_LONGEST = 2**20  # characters of a configuration
_TABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Limits:
    """What a request, and an analyst, may take of a server."""

    body: int = 16 * 2**20  # bytes
    nesting: int = 64  # lists and objects in one another
    header_seconds: float = 20  # from a connection, or its last answer, to the end of the next request's headers
    body_seconds: float = 20  # from the first byte of a body to its last
    rate: float = 100  # requests a second, on average, of an analyst
    burst: int = 200  # requests at once
    concurrent: int = 4  # questions of an analyst at a time, and as many requests that ask no engine
    sittings: int = 20  # of an analyst
    idle: float = 3600  # seconds after which a sitting ends that nobody uses
    jobs: int = 4  # fits of an analyst that wait or run
    workers: int = 8  # threads that ask engines: more than one analyst can keep busy
    grace: float = 30  # seconds for what runs when the server stops
    refresh: float = 1  # seconds after which tokens are read again


@dataclass(frozen=True)
class TableConfig:
    """A data set that is served."""

    name: str
    data: str
    domain: str
    budget: str | None = None
    delta: str | None = None
    access: str = "auto"
    snapshot_limit: str | None = None
    tick: float | None = None  # seconds; None: from the public bound of the rows; 0: answers leave when they are there


@dataclass(frozen=True)
class Grant:
    """What an analyst may use."""

    tables: Mapping[str, Fraction | None]  # with a cap of their own, or None
    expires: date | None = None


@dataclass(frozen=True)
class Config:
    """All that a server is started with."""

    tables: tuple[TableConfig, ...]
    ledger: str | None
    host: str = "127.0.0.1"
    port: int = 8000
    operations: tuple[str, int] | None = None  # where health and metrics are
    certificate: str | None = None
    private_key: str | None = None
    hosts: tuple[str, ...] = ()  # names under which it answers; loopback names are always among them
    proxies: tuple[str, ...] = ()  # whose word about the client and about TLS is taken
    analysts: Mapping[str, Grant] | None = None  # None: whoever has a token may use what it is for
    owners: tuple[str, ...] = ()
    permits: Mapping[str, Permit] = field(default_factory=dict)
    limits: Limits = Limits()
    path: Path | None = None

    def check(self) -> Config:
        """Refuse to send tokens and answers over a network in the clear.

        Raises
        ------
        QuestionError
        """
        if (self.certificate is None) != (self.private_key is None):
            raise QuestionError("TLS needs a certificate and its private key; give both, or none.")
        if not is_loopback(self.host) and self.certificate is None and not self.proxies:
            raise QuestionError(
                f"'{self.host}' is not this machine alone, and tokens would cross the network in the clear; give a "
                "certificate and private_key, or name the proxies that speak TLS for this server."
            )
        if not is_loopback(self.host) and not self.hosts:
            raise QuestionError(
                f"'{self.host}' is not this machine alone; name the hosts under which the server answers, as "
                'hosts = ["privet.example.org"].'
            )
        if self.operations is not None and self.operations[1] == self.port != 0 and self.operations[0] == self.host:
            raise QuestionError("operations must listen at another address than the server itself.")
        return self


def is_loopback(host: str) -> bool:
    """Is it a name of this machine that nobody else can reach?"""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address_of(text: str, where: str = "address") -> tuple[str, int]:
    """Return the host and the port of an address; QuestionError if it is none.

    >>> address_of("127.0.0.1:8000"), address_of("[::1]:0")
    (('127.0.0.1', 8000), ('::1', 0))
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise QuestionError(f"{where} is a host and a port, as 127.0.0.1:8000, not {quoted(text)}.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def load(path: Path) -> Config:
    """Read a configuration file.

    Parameters
    ----------
    path : Path
        A TOML file in UTF-8. Paths in it are relative to its folder.

    Returns
    -------
    Config

    Raises
    ------
    QuestionError
        In one sentence, with the line.
    """
    where = shown(str(path), 300)
    try:
        text = read_text(path, _LONGEST)
    except UnicodeDecodeError:
        raise QuestionError(f"the configuration '{where}' is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise QuestionError(f"cannot read the configuration '{where}' ({error.strerror}); check the path.") from None
    if text is None:
        raise QuestionError(f"the configuration '{where}' has more than {_LONGEST} characters; shorten it.")
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise QuestionError(f"{where}: not valid TOML: {shown(str(error), 200)}.") from None
    return _Reader(where, text, path.parent).config(content, path)


class _Reader:
    """Reads the sections of a configuration, and names the line of what it refuses."""

    def __init__(self, where: str, text: str, folder: Path) -> None:
        self._where, self._lines, self._folder = where, text.splitlines(), folder

    def config(self, content: Mapping[str, Any], path: Path) -> Config:
        self._only(content, ("server", "limits", "tables", "analysts", "permits"), "")
        server = self._section(content, "server")
        known = ("address", "ledger", "operations", "certificate", "private_key", "hosts", "proxies", "owners")
        self._only(server, known, "server")
        tables = tuple(self._table(name, entry) for name, entry in self._section(content, "tables").items())
        if not tables:
            raise self._refused("", "tables", "declare at least one table, as [tables.patients]")
        names = {table.name for table in tables}
        analysts = {name: self._grant(name, entry, names) for name, entry in self._section(content, "analysts").items()}
        host, port = self._address(server, "address") or ("127.0.0.1", 8000)
        config = Config(
            tables,
            self._ledger(server),
            host,
            port,
            self._address(server, "operations"),
            self._file(server, "certificate"),
            self._file(server, "private_key"),
            self._texts(server, "hosts"),
            self._texts(server, "proxies"),
            analysts,
            self._texts(server, "owners"),
            self._permits(content, names, self._texts(server, "owners")),
            self._limits(self._section(content, "limits")),
            path,
        )
        try:
            return config.check()
        except QuestionError as error:
            raise self._refused("server", "address", str(error).rstrip(".")) from None

    # -- sections ---------------------------------------------------------------------------

    def _table(self, name: str, entry: object) -> TableConfig:
        section = f"tables.{name}"
        if not _TABLE.fullmatch(name) or not isinstance(entry, Mapping):
            raise self._refused(section, None, "a table is a section such as [tables.patients], of letters and digits")
        self._only(entry, ("data", "domain", "budget", "delta", "access", "snapshot_limit", "tick"), section)
        for needed in ("data", "domain"):
            if not isinstance(entry.get(needed), str):
                raise self._refused(section, needed, f"{needed} must be a text: the file or address")
        for amount in ("budget", "delta"):
            if amount in entry:
                self._number(entry, amount, section)
        try:
            if "budget" in entry:
                as_epsilon(str(entry["budget"]), "budget")
        except QuestionError as error:
            raise self._refused(section, "budget", str(error).rstrip(".")) from None
        tick = None if "tick" not in entry else float(self._number(entry, "tick", section, least=0))
        data = entry["data"]
        if "://" not in data:
            data = str(self._folder / data)
        texts = {key: str(entry[key]) for key in ("budget", "delta", "access", "snapshot_limit") if key in entry}
        return TableConfig(name, data, str(self._folder / entry["domain"]), tick=tick, **texts)

    def _grant(self, name: str, entry: object, names: set[str]) -> Grant:
        section = f"analysts.{name}"
        if not is_name(name) or not isinstance(entry, Mapping):
            raise self._refused(section, None, "an analyst is a section such as [analysts.ada]")
        self._only(entry, ("tables", "expires"), section)
        return Grant(self._caps(entry, section, names), self._expires(entry, section))

    def _permits(self, content: Mapping[str, Any], tables: set[str], owners: tuple[str, ...]) -> dict[str, Permit]:
        permits = self._section(content, "permits")
        return {name: self._permit(name, entry, tables, owners) for name, entry in permits.items()}

    def _permit(self, name: str, entry: object, tables: set[str], owners: tuple[str, ...]) -> Permit:
        section = f"permits.{name}"
        if not _TABLE.fullmatch(name) or not isinstance(entry, Mapping):
            raise self._refused(section, None, "a permit is a section such as [permits.heart-study]")
        known = ("tables", "analysts", "spend", "purposes", "expires", "approvals", "release")
        self._only(entry, known, section)
        analysts = self._texts(entry, "analysts", section)
        if not analysts:
            raise self._refused(section, "analysts", 'a permit has analysts, as analysts = ["ada"]')
        spenders = self._texts(entry, "spend", section) if "spend" in entry else analysts
        for spender in spenders:
            if spender not in analysts:
                raise self._refused(section, "spend", f"'{shown(spender)}' is none of its analysts")
        approvals = self._number(entry, "approvals", section, least=1) if "approvals" in entry else Fraction(1)
        if approvals not in (1, 2):
            raise self._refused(section, "approvals", "approvals is 1 or 2: how many owners must agree to a raise")
        if approvals > len(set(owners)):
            raise self._refused(section, "approvals", "two owners must agree to a raise, and owners names fewer")
        release = self._texts(entry, "release", section) if "release" in entry else (ANSWERS, MODELS)
        if not release or not set(release) <= {ANSWERS, MODELS}:
            raise self._refused(section, "release", 'release is what may leave, as ["answers", "models"]')
        caps, expires = self._caps(entry, section, tables), self._expires(entry, section)
        purposes = self._texts(entry, "purposes", section)
        return Permit(name, caps, analysts, spenders, purposes, expires, int(approvals), tuple(sorted(set(release))))

    def _caps(self, entry: Mapping[str, Any], section: str, names: set[str]) -> dict[str, Fraction | None]:
        listed = entry.get("tables")
        if isinstance(listed, list) and all(isinstance(table, str) for table in listed):
            listed = dict.fromkeys(listed)
        if not isinstance(listed, Mapping):
            raise self._refused(section, "tables", 'tables are a list, or caps, as tables = {patients = "0.5"}')
        caps: dict[str, Fraction | None] = {}
        for table, cap in listed.items():
            if table not in names:
                meant = did_you_mean(table, names)
                raise self._refused(section, "tables", f"there is no table '{shown(table)}'{meant}")
            try:
                caps[table] = None if cap is None else as_epsilon(str(cap), "a cap")
            except QuestionError as error:
                raise self._refused(section, "tables", str(error).rstrip(".")) from None
        return caps

    def _expires(self, entry: Mapping[str, Any], section: str) -> date | None:
        expires = entry.get("expires")
        if expires is not None and type(expires) is not date:
            raise self._refused(section, "expires", "expires is a date without quotes, as 2027-12-31")
        return expires

    def _limits(self, entry: Mapping[str, Any]) -> Limits:
        fields = Limits.__dataclass_fields__
        self._only(entry, tuple(fields), "limits")
        limits = Limits()
        for name in entry:
            number = self._number(entry, name, "limits", least=0)
            whole = fields[name].type == "int"
            if whole and (number.denominator != 1 or number < 1):
                raise self._refused("limits", name, f"{name} is a whole number of at least 1")
            if not number:
                raise self._refused("limits", name, f"{name} is a number above 0")
            values: dict[str, Any] = {name: int(number) if whole else float(number)}
            limits = replace(limits, **values)
        return limits

    # -- values -----------------------------------------------------------------------------

    def _ledger(self, server: Mapping[str, Any]) -> str:
        ledger = server.get("ledger", "privet.ledger")
        if not isinstance(ledger, str):
            raise self._refused("server", "ledger", "ledger is a file, or a postgresql:// address")
        return ledger if "://" in ledger else str(self._folder / ledger)

    def _address(self, server: Mapping[str, Any], name: str) -> tuple[str, int] | None:
        if name not in server:
            return None
        try:
            return address_of(str(server[name]), name)
        except QuestionError as error:
            raise self._refused("server", name, str(error).rstrip(".")) from None

    def _file(self, server: Mapping[str, Any], name: str) -> str | None:
        if name not in server:
            return None
        path = self._folder / str(server[name])
        if not path.is_file():
            raise self._refused("server", name, f"there is no file '{shown(str(path), 300)}'")
        return str(path)

    def _texts(self, entry: Mapping[str, Any], name: str, section: str = "server") -> tuple[str, ...]:
        listed = entry.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(text, str) and is_name(text) for text in listed):
            raise self._refused(section, name, f"{name} is a list of texts")
        return tuple(listed)

    def _number(self, entry: Mapping[str, Any], name: str, section: str, least: int | None = None) -> Fraction:
        value = entry[name]
        number = None if isinstance(value, bool) else fraction_of(value)
        if number is None or (least is not None and number < least):
            raise self._refused(section, name, f"{name} must be a number, not {quoted(value)}")
        return number

    def _section(self, content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        section = content.get(name, {})
        if not isinstance(section, Mapping):
            raise self._refused("", name, f"{name} is a section, [{name}]")
        return section

    def _only(self, content: Mapping[str, Any], known: tuple[str, ...], section: str) -> None:
        for name in content:
            if name not in known:
                meant = did_you_mean(name, known) or f"; it has {', '.join(known)}"
                what = f"[{section}]" if section else "the configuration"
                raise self._refused(section, name, f"{what} has no '{shown(name)}'{meant}")

    def _refused(self, section: str, name: str | None, problem: str) -> QuestionError:
        """Return the error of a line: that of the name in its section, or of the section."""
        at, current = 0, ""
        heads = {section, *(section.rsplit(".", 1)[:1] if name is None else ())}
        for number, line in enumerate(self._lines, 1):
            head = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
            if head:
                current = head[1].replace('"', "").replace("'", "")
                at = number if current in heads or (name and current == name) else at
            elif (
                name is not None
                and current == section
                and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*[.=]""", line)
            ):
                at = number
                break
        line_text = f", line {at}" if at else ""
        return QuestionError(f"{self._where}{line_text}: {problem}.")
