"""Whatever the OpenAPI documents allow and forbid, sent to a real server: each answer is one that
the document describes, no failure is the server's, and every refusal is a problem."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import Case, Response
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fixtures.api_site import ADMIN_DOCUMENT, DOCUMENT
from tests.fixtures.fuzzed import FuzzedSite, edge_document
from tests.fixtures.fuzzing import fuzz

with tempfile.TemporaryDirectory() as folder:
    EDGE_DOCUMENT = edge_document(Path(folder))

DOCUMENTS = {"caller": DOCUMENT, "admin": ADMIN_DOCUMENT, "edge": EDGE_DOCUMENT}


def operations_of(document: dict[str, Any]) -> list[Any]:
    schema = schemathesis.openapi.from_dict(document)
    # Who asks is drawn below; two credentials at once would be refused, whatever else is sent.
    schema.config.generation.update(with_security_parameters=False)
    return [found.ok() for found in schema.get_all_operations()]


OPERATIONS = {
    f"{name} {operation.label}": operation
    for name, document in DOCUMENTS.items()
    for operation in operations_of(document)
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MODES = {"good": GenerationMode.POSITIVE, "bad": GenerationMode.NEGATIVE}
# Mostly the one whom a document is for.
WHO = {
    "caller": [*["caller"] * 8, "nobody", "admin"],
    "admin": [*["admin"] * 8, "nobody", "caller"],
    "edge": [*["caller"] * 8, "nobody", "admin"],
}


def can_be_bad(operation: Any) -> bool:
    """Whether there is anything that the document does not allow."""
    has_form = any(body.definition.get("schema") for body in operation.body)
    return has_form or bool([*operation.query, *operation.headers])


@pytest.mark.parametrize(
    "label, mode",
    [
        (label, mode)
        for label, mode in itertools.product(OPERATIONS, MODES)
        if mode == "good" or can_be_bad(OPERATIONS[label])
    ],
)
def test_every_answer_is_as_described(fuzzed_site: FuzzedSite, label: str, mode: str) -> None:
    operation = OPERATIONS[label]
    whose = label.partition(" ")[0]

    @fuzz(8)
    @given(operation.as_strategy(MODES[mode]), st.sampled_from(WHO[whose]), st.data())
    def ask(case: Case, who: str, data: Any) -> None:
        settle_in(fuzzed_site, case, data)
        answer = send(fuzzed_site, case, who)
        case.validate_response(answer, checks=CHECKS)
        check_problem(operation.definition.raw["responses"], answer)
        fuzzed_site.learn(answer.text)

    ask()


def check_problem(described: Any, answer: Response) -> None:
    """A refusal is a problem, and of a type that is told under its status."""
    if answer.status_code < 400:
        return
    assert answer.headers["content-type"] == ["application/problem+json"], answer.text
    code = answer.json()["type"].rpartition("/")[2]
    assert code != "internal-error"
    told = described.get(str(answer.status_code), described.get("default"))["description"]
    # Neither a kept answer nor a refusal for proxies that know one only is told by its types.
    assert f"`{code}`" in told or "The stored answer" in told or "`refuse=403`" in told, answer.text


def settle_in(site: FuzzedSite, case: Case, data: Any) -> None:
    """Mostly about what is the caller's and exists, and nobody waits for long."""
    path = case.path_parameters or {}
    for name in path:
        if data.draw(st.integers(0, 4)):
            path[name] = site.known(case.path, name, data.draw(st.integers(0, 1 << 16)))
    if isinstance(case.body, dict) and "input" in case.body and data.draw(st.booleans()):
        case.body["input"] = "tea"
    if isinstance(case.query, dict) and "wait" in case.query:
        case.query["wait"] = data.draw(st.sampled_from(["0.01s", "0", "1e-3", "never", "-1s"]))


def send(site: FuzzedSite, case: Case, who: str) -> Response:
    return case.call(base_url=site.url, session=site.session, headers=site.headers(who), timeout=20)
