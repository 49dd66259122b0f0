"""The checker: every rule over every story. It knows nothing but the history."""

from collections.abc import Iterable, Iterator

from tests.chaos.history import Event
from tests.chaos.rules import Rule, Violation, answers, effects, endings, work
from tests.chaos.story import stories

RULES: tuple[Rule, ...] = (
    answers.one_answer,
    answers.one_operation,
    answers.not_contradicted,
    answers.backed_by_its_effect,
    answers.no_answer_of_another,
    answers.marked_as_replays,
    answers.expected_answers,
    answers.forgeries_refused,
    effects.one_effect,
    effects.one_body,
    effects.only_what_was_asked,
    effects.finished_steps_stay_finished,
    effects.steps_repeat_for_a_reason,
    effects.journal_never_changes,
    work.started_once,
    work.one_result,
    work.one_winner,
    work.accepted_is_delivered,
    work.results_are_journaled,
    work.controlled_once,
    work.cancelled_stays_cancelled,
    work.forks_build_on_what_was_done,
    work.strangers_see_nothing,
    endings.nobody_stuck,
    endings.servers_live,
)


def name_of(rule: Rule) -> str:
    return rule.__name__.replace("_", "-")


def check(events: Iterable[Event]) -> Iterator[Violation]:
    """Each violation once, in the order of the jobs."""
    for story in stories(events):
        for rule in RULES:
            for told in dict.fromkeys(rule(story)):
                yield Violation(name_of(rule), story.job, told)
