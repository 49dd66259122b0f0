"""The command: python -m bench."""

import argparse
import json
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench import machine, plot, report
from bench.contenders import CONTENDERS, Contender
from bench.results import QUICK, Plan, Results, results_of
from bench.scenarios import DURABLE, EDGE, LEDGER, RESTATE, SCENARIOS, Scenario
from bench.stage import Stage

HERE = Path(__file__).parent
FOLDERS = {
    LEDGER: HERE,
    DURABLE: HERE / "durable",
    EDGE: HERE / "edge",
    RESTATE: HERE / "restate",
}
EXAMPLES = """\
examples:
  python -m bench                             everything; about 43 minutes
  python -m bench --group durable             workflows beside DBOS; about 7 minutes
  python -m bench --group edge                the edge beside nginx and Caddy; about 3 minutes
  python -m bench --group restate             the edge on Restate, and its ingress; about 7 minutes
  python -m bench --quick                     the main contenders, short rounds; about 5 minutes
  python -m bench --only new-keys replays     these scenarios
  python -m bench --contender asgi: redis     contenders whose name has a word, and their bare app
  python -m bench --list                      scenarios and contenders, and who cannot run here

A whole group writes its RESULTS.md, results.json and results.svg: the ledger's to bench, the others
to bench/durable, bench/edge and bench/restate; bench/RESULTS.md has the goals of all of them. Any
other run writes the same files to bench/out, so that what is published is always from one run.
Leave the machine alone meanwhile: ratios survive noise, but wide ranges are worth less.
"""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures OnceKey beside the bare app and its peers, in interleaved rounds.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--quick", action="store_true", help="fewer contenders, shorter rounds")
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="SCENARIO", help=", ".join(names)
    )
    parser.add_argument("--group", choices=tuple(FOLDERS), help="all scenarios of a group")
    parser.add_argument(
        "--contender", nargs="+", metavar="WORD", help="parts of contenders' names, see --list"
    )
    parser.add_argument("--rounds", type=int, help="rounds per scenario")
    parser.add_argument("--seconds", type=int, help="seconds per sample")
    parser.add_argument(
        "--scratch", metavar="DIR", help="folder on the disk to measure (default /var/tmp)"
    )
    parser.add_argument("--redraw", action="store_true", help="report the last whole run again")
    parser.add_argument("--list", action="store_true", help="show what there is and stop")
    return parser.parse_args()


def _plan(arguments: argparse.Namespace) -> Plan:
    plan = QUICK if arguments.quick else Plan()
    given = {"rounds": arguments.rounds, "seconds": arguments.seconds}
    return replace(plan, **{name: value for name, value in given.items() if value})


def _scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    found = []
    for each in SCENARIOS:
        chosen = not arguments.only or each.name in arguments.only
        if not chosen or arguments.group not in {None, each.group}:
            continue
        lacking = [name for name in each.needs if machine.program(name) is None]
        if lacking:
            print(f"{each.name} is left out: it needs {' and '.join(lacking)}")
        else:
            found.append(each)
    return found


def _contenders(arguments: argparse.Namespace) -> list[Contender]:
    chosen = [each for each in CONTENDERS if each.quick or not arguments.quick]
    if not arguments.contender:
        return chosen
    wanted = [each for each in CONTENDERS if any(word in each.name for word in arguments.contender)]
    frameworks = {each.framework for each in wanted}
    return [
        each
        for each in CONTENDERS
        if each in wanted or (each.is_bare and each.framework in frameworks)
    ]


def _show() -> None:
    print("scenarios")
    for scenario in SCENARIOS:
        print(f"  {scenario.name:12} {scenario.summary}")
    print("contenders (* also in --quick)")
    for each in CONTENDERS:
        mark = "*" if each.quick else " "
        print(f" {mark} {each.name:42} {each.version():12} {each.missing()}")


def _run(
    stage: Stage,
    scenarios: list[Scenario],
    contenders: list[Contender],
    plan: Plan,
    *,
    by_default: bool,
) -> None:
    """Group by group. Each is published when it is over: who fails later takes nothing back."""
    results = Results(
        plan=plan,
        started=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        machine=machine.describe(stage.scratch),
        versions=report.versions_of(contenders),
    )
    for group in FOLDERS:
        chosen = [scenario for scenario in scenarios if scenario.group == group]
        if not chosen:
            continue
        if any(scenario.needs_servers for scenario in chosen):
            stage.start(contenders)
        for scenario in chosen:
            print(f"{scenario.name}: {scenario.summary}", flush=True)
            results.findings[scenario.name] = scenario.run(stage, plan)
        # Whoever comes next has the machine to itself.
        stage.end_servers()
        if stage.services.postgres:
            results.machine["postgresql"] = f"{stage.services.postgres.version}, fsync on"
        results.absent = {**stage.absent}
        _publish(results, group, by_default=by_default)


def _publish(results: Results, group: str, *, by_default: bool) -> None:
    """Where it was run as a whole and as it is by default; else aside."""
    names = [scenario.name for scenario in SCENARIOS if scenario.group == group]
    findings = {name: results.findings[name] for name in names if name in results.findings}
    base = HERE if by_default and len(findings) == len(names) else HERE / "out"
    _write(replace(results, findings=findings), base / FOLDERS[group].relative_to(HERE))
    _sum_up(base)


def _write(results: Results, folder: Path) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    report.write(results, folder)
    if {"new-keys", "replays"} & set(results.findings):
        plot.draw(results, folder / "results.svg")
    print(report.goals_table(results))
    print(f"Written: {folder / 'RESULTS.md'}")


def _sum_up(base: Path) -> None:
    """The goals of all groups stand together, with the last results of each."""
    places = [folder.relative_to(HERE) for folder in FOLDERS.values()]
    found = {
        "" if place == Path() else place.as_posix(): _read(base / place)
        for place in places
        if (base / place / "results.json").exists()
    }
    if "" in found:
        report.write(found[""], base, report.all_goals(found))


def _read(folder: Path) -> Results:
    return results_of(json.loads((folder / "results.json").read_text()))


def main() -> None:
    arguments = _arguments()
    if arguments.list:
        _show()
        return
    if arguments.redraw:
        for folder in FOLDERS.values():
            if (folder / "results.json").exists():
                _write(_read(folder), folder)
        _sum_up(HERE)
        return
    missing = machine.install_tools()
    scenarios = _scenarios(arguments)
    # Whoever ends it early is not left with its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine.warn_if_busy()
    machine.pin_self(machine.LOAD_CPU)
    changed = (arguments.quick, arguments.contender, arguments.rounds, arguments.seconds, missing)
    with Stage(arguments.scratch) as stage:
        contenders, plan = _contenders(arguments), _plan(arguments)
        _run(stage, scenarios, contenders, plan, by_default=not any(changed))


if __name__ == "__main__":
    main()
