"""Runs last: docs/coverage.md says what the tests have shown."""

import os
import re

import pytest

import coverage
import harness
import wire

PAGE = harness.ROOT / "docs" / "coverage.md"


@pytest.fixture
def whole(request, offered):
    """The page is of a whole run."""
    here = {p.stem for p in harness.ROOT.glob("test/compat/test_*.py")}
    chosen = request.config.option.keyword or any("::" in a for a in request.config.args)
    if chosen or here != request.config.compat_modules:
        pytest.skip("only a part of the tests was run")
    if request.session.testsfailed:
        pytest.skip("a call whose test failed was not shown")


def test_every_service_is_on_the_page(server):
    """A service that is not here is refused with the names of those that are."""
    client = server.client("kms")
    with pytest.raises(client.exceptions.ClientError, match="this endpoint serves (.*)[.]$") as refused:
        client.list_keys()
    told = re.search("serves (.*)[.]$", str(refused.value))[1].split(", ")
    assert sorted(told) == sorted(wire.model(s).signing_name for s in wire.SERVICES)


def test_whatever_works_was_shown_with_both_clients(whole, server):
    shown = {s: [(a, bool(by["boto3"]), bool(by["cli"])) for a, by in coverage.sort(server, s)[0]] for s in wire.SERVICES}
    assert [(s, a) for s in shown for a, boto3, cli in shown[s] if boto3 != cli and s != "kurabe"] == []  # the other client of that is ours
    unproven = {s: coverage.sort(server, s)[1] for s in wire.SERVICES}
    assert {s: actions for s, actions in unproven.items() if actions} == {
        "rds": ["CopyOptionGroup", "DeleteOptionGroup", "ModifyOptionGroup"],
        "kurabe": ["AcceptDataLoss", "CreateJoinToken", "DrainHost", "GiveUpHost", "HoldDrill", "PermitDrill", "RemoveHost", "StrikeDrill"],
    }


def test_the_page_is_current(whole, server):
    text = coverage.page(server)
    if os.environ.get("KURABE_COVERAGE") == "write":
        PAGE.write_text(text)
    assert PAGE.exists() and PAGE.read_text() == text, "run KURABE_COVERAGE=write make compat and read the difference"
