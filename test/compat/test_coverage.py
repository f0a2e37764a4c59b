"""Runs last: docs/coverage.md says what the tests have shown."""

import os

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


def test_whatever_works_was_shown_with_both_clients(whole, server):
    half = [a for a in wire.actions("rds") if bool(wire.successes["rds", a]["boto3"]) != bool(wire.successes["rds", a]["cli"])]
    assert half == []
    unproven = [a for a in wire.actions("rds") if not wire.successes["rds", a]["boto3"] and coverage.refusal(server, a) is None]
    assert unproven == ["CopyOptionGroup", "DeleteOptionGroup", "ModifyOptionGroup"]


def test_the_page_is_current(whole, server):
    text = coverage.page(server)
    if os.environ.get("KURABE_COVERAGE") == "write":
        PAGE.write_text(text)
    assert PAGE.exists() and PAGE.read_text() == text, "run KURABE_COVERAGE=write make compat and read the difference"
