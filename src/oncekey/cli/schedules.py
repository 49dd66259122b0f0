"""`oncekey schedules`: what ticks when, and what became of the last tick."""

from __future__ import annotations

import click

from oncekey.cli.audited import audited
from oncekey.cli.options import configured, opened
from oncekey.cli.output import print_json, print_pairs, print_table
from oncekey.cli.text import moment
from oncekey.config import Settings
from oncekey.core.errors import ScheduleInvalid
from oncekey.core.ledger import Ledger
from oncekey.core.model import Record
from oncekey.core.schedules import StoredSchedule
from oncekey.schedules import keeping
from oncekey.schedules.dispatch import ref_of
from oncekey.schedules.schedule import Spec, decode_spec
from oncekey.schedules.shapes import ended_of, shape_of_schedule, shape_of_whole, upcoming_of

_COLUMNS = ("ID", "TENANT", "TICKS", "EFFECT", "MISSED", "STATE", "LAST", "NEXT")


@click.group()
def schedules() -> None:
    """Look at schedules, pause them, and let them go on."""


@schedules.command("list")
@click.option("--tenant", metavar="TENANT", help="Only schedules of this tenant.")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_schedules(settings: Settings, tenant: str | None, *, as_json: bool) -> None:
    """List schedules, with their last tick and their next.

    \b
    Examples:
      oncekey schedules list
      oncekey schedules list --tenant acme --json
    """
    with opened(settings) as ledger:
        found = ledger.run(keeping.all_of(tenant))
    if as_json:
        print_json([shape_of_schedule(each) for each in found])
    elif not found:
        click.echo("no schedules")
    else:
        print_table(_COLUMNS, [_row_of(each) for each in found])


@schedules.command("show")
@click.argument("schedule_id", metavar="ID")
@configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with what a tick carries.")
def show_schedule(settings: Settings, schedule_id: str, *, as_json: bool) -> None:
    """Show one schedule: what it does, what became of its last tick, and the next few.

    \b
    Examples:
      oncekey schedules show nightly
      oncekey schedules show nightly --json
    """
    with opened(settings) as ledger:
        stored = ledger.run(keeping.find(schedule_id))
        last, now = _last_of(ledger, stored), ledger.clock.now()
    if as_json:
        print_json(shape_of_whole(stored, last, now))
        return
    last_tick = [moment(stored.last_at, zone=True), ": ".join(ended_of(last) or ())]
    print_pairs(
        [
            *_pairs_of(stored),
            ("last tick", ", ".join(each for each in last_tick if each)),
            ("next tick", "" if stored.paused else moment(stored.next_at, zone=True)),
            *(("then", moment(tick, zone=True)) for tick in upcoming_of(stored, now)),
        ]
    )


@schedules.command("pause")
@click.argument("schedule_id", metavar="ID")
@configured
def pause_schedule(settings: Settings, schedule_id: str) -> None:
    """Stop a schedule, in every process, until it is resumed.

    A tick that is on its way is finished. Restarts change nothing about a pause, unless the
    configuration says something new about it.

    \b
    Examples:
      oncekey schedules pause nightly
    """
    with opened(settings) as ledger:
        stored = ledger.run(keeping.pause(schedule_id, ledger.clock))
        audited(ledger, "schedule.pause", schedule_id, tenant=stored.tenant)
    click.echo(f"{schedule_id}: paused")


@schedules.command("resume")
@click.argument("schedule_id", metavar="ID")
@configured
def resume_schedule(settings: Settings, schedule_id: str) -> None:
    """Let a paused schedule go on with its next tick.

    Ticks of the pause are not made up for.

    \b
    Examples:
      oncekey schedules resume nightly
    """
    with opened(settings) as ledger:
        stored = ledger.run(keeping.resume(schedule_id, ledger.clock))
        audited(ledger, "schedule.resume", schedule_id, tenant=stored.tenant)
    click.echo(f"{schedule_id}: the next tick is at {moment(stored.next_at, zone=True)}")


def _last_of(ledger: Ledger, stored: StoredSchedule) -> Record | None:
    """Of the last tick; None when there was none, or it is too long ago."""
    return None if stored.last_at is None else ledger.peek(ref_of(stored, stored.last_at))


def _row_of(stored: StoredSchedule) -> tuple[str, ...]:
    try:
        spec = decode_spec(stored)
        told: tuple[str, ...] = (spec.timing, spec.effect, spec.missed)
    except ScheduleInvalid as error:
        told = (str(error), "", "")
    next_at = "" if stored.paused else moment(stored.next_at)
    return (stored.id, stored.tenant, *told, _state_of(stored), moment(stored.last_at), next_at)


def _pairs_of(stored: StoredSchedule) -> list[tuple[str, str]]:
    spec = decode_spec(stored)
    return [
        ("id", stored.id),
        ("tenant", stored.tenant),
        ("ticks", spec.timing),
        ("effect", spec.effect),
        ("signed with", _signed_with(spec)),
        ("missed", spec.missed),
        ("declared by", spec.origin),
        ("state", _state_of(stored)),
    ]


def _signed_with(spec: Spec) -> str:
    if spec.url is None:
        return ""
    return f"variable {spec.secret_env}" if spec.secret_env else "a secret of its own"


def _state_of(stored: StoredSchedule) -> str:
    return "paused" if stored.paused else "running"
