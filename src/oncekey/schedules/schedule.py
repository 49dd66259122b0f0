"""A schedule as it is declared, and as JSON in the store. Secrets are never part of the JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from oncekey.core.errors import ScheduleInvalid
from oncekey.core.schedules import StoredSchedule
from oncekey.core.scope import namespace_of
from oncekey.schedules.missed import POLICIES, Missed
from oncekey.schedules.signing import check_secret
from oncekey.schedules.timing import Timing

Origin = Literal["configuration", "code"]

MAX_DATA = 256 << 10
TIMEOUT = 30.0
MAX_TIMEOUT = 600.0
ATTEMPTS = 8
MAX_ATTEMPTS = 70

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNFIT = re.compile(r"[\x00-\x20\x7f#]")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class StartWorkflow:
    """Each tick starts the workflow of that name."""

    name: str
    input: Any = None


@dataclass(frozen=True, slots=True)
class CallUrl:
    """Each tick is posted to an address, signed with `secret` or what the variable `secret_env` of
    the scheduler's environment holds."""

    url: str
    data: Any = None
    secret: str | None = field(default=None, repr=False)
    secret_env: str | None = None
    timeout: float = TIMEOUT
    """Seconds for one attempt."""
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        check_url(self.url)
        if (self.secret is None) == (self.secret_env is None):
            raise ScheduleInvalid("a schedule that calls an address needs secret_env or secret")
        if self.secret is not None:
            check_secret(self.secret)
        check_timeout(self.timeout)
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise ScheduleInvalid(f"{self.attempts} attempts are not between 1 and {MAX_ATTEMPTS}")


Target = StartWorkflow | CallUrl


@dataclass(frozen=True, slots=True)
class Schedule:
    id: str
    timing: Timing
    target: Target
    tenant: str = "default"
    missed: Missed = "last"
    paused: bool = False

    def __post_init__(self) -> None:
        check_id(self.id)
        namespace_of(self.tenant)
        if self.missed not in POLICIES:
            raise ScheduleInvalid(f"missed is {self.missed!r}, not one of {', '.join(POLICIES)}")
        target = self.target
        check_data(target.input if isinstance(target, StartWorkflow) else target.data)


class Spec(msgspec.Struct, frozen=True):
    """What the store keeps of a schedule: either `workflow` or `url` says what a tick does."""

    timing: str
    paused: bool
    missed: Missed
    origin: Origin
    workflow: str | None = None
    url: str | None = None
    data: Any = None
    secret_env: str | None = None
    timeout: float = TIMEOUT
    attempts: int = ATTEMPTS

    @property
    def effect(self) -> str:
        """What a tick does, in a few words."""
        return f"workflow {self.workflow}" if self.url is None else f"POST {self.url}"


def spec_of(schedule: Schedule, origin: Origin) -> Spec:
    timing, target = str(schedule.timing), schedule.target
    if isinstance(target, StartWorkflow):
        return Spec(
            timing, schedule.paused, schedule.missed, origin, target.name, data=target.input
        )
    return Spec(
        timing,
        schedule.paused,
        schedule.missed,
        origin,
        url=target.url,
        data=target.data,
        secret_env=target.secret_env,
        timeout=target.timeout,
        attempts=target.attempts,
    )


def encode_spec(spec: Spec) -> str:
    return _encode(spec).decode()


def decode_spec(stored: StoredSchedule) -> Spec:
    try:
        return _decode(stored.spec)
    except msgspec.MsgspecError as error:
        raise ScheduleInvalid(
            f"schedule {stored.id} was stored by another version of OnceKey: {error}"
        ) from error


def check_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ScheduleInvalid(
            f"{text!r} is no id of a schedule: 1 to 64 of A-Z a-z 0-9 . _ -, with a letter or "
            "digit in front"
        )
    return text


def check_url(url: str) -> str:
    """What a schedule may call: any host, also a private one, since an operator names it."""
    if not _is_address(url):
        raise ScheduleInvalid(f"{url!r} is no address to call; write https://host/path")
    if "@" in urlsplit(url).netloc:
        raise ScheduleInvalid("a schedule's url holds no user or password: it is stored and shown")
    return url


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and parts.scheme in {"http", "https"} and not _UNFIT.search(url)


def check_timeout(seconds: float) -> float:
    if not 0 < seconds <= MAX_TIMEOUT:
        raise ScheduleInvalid(f"a timeout of {seconds:g} s is not between 0 and 10 minutes")
    return seconds


def check_data(value: Any) -> None:
    size = len(_encode(value))
    if size > MAX_DATA:
        raise ScheduleInvalid(f"what a tick carries is {size} bytes, and may be {MAX_DATA}")


def key_of(schedule_id: str, tick: int) -> str:
    """The key of a tick: whoever dispatches it, and however often, it has the same one."""
    return f"sched:{schedule_id}:{tick}"


_decode = msgspec.json.Decoder(Spec).decode
