"""Names that stay, and folders that every store can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.runtime.errors import IdentityError
from sparkpoint.runtime.identity import Identities, Identity, Place, folder_of_name

HERE = Place("job.py", 10, "first.writeStream.start()")
THERE = Place("job.py", 20, "second.writeStream.start()")


def nobody(_: str) -> bool:
    return False


def everybody(_: str) -> bool:
    return True


@pytest.mark.parametrize("name", ["visits", "a.b-c_d", "Ünïcode"[1:2], "x" * 100, "9"])
def test_a_safe_name_is_its_own_folder(name: str) -> None:
    assert folder_of_name(name) == name


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("append events", "append-events-08dc07cf"),
        ("a/b", "a-b-c14cddc0"),
        ("..", "5ec1f7e7"),
        ("Ü", "913d7314"),
    ],
)
def test_an_unsafe_name_becomes_a_folder_close_to_it(name: str, folder: str) -> None:
    assert folder_of_name(name) == folder


@given(st.text(min_size=1))
def test_every_folder_is_safe_and_always_the_same(name: str) -> None:
    folder = folder_of_name(name)

    assert folder == folder_of_name(name)
    assert folder.isascii()
    assert folder[0].isalnum()
    assert len(folder) <= 100
    assert not {"/", "\\", "\0", " "} & set(folder)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_no_two_names_share_a_folder_unnoticed(names: list[str]) -> None:
    identities = Identities()
    first = identities.claim(names[0], HERE, is_active=nobody)
    try:
        second = identities.claim(names[1], THERE, is_active=nobody)
    except IdentityError:
        return
    assert first.folder.lower() != second.folder.lower()


def test_names_that_differ_in_case_alone_are_refused() -> None:
    identities = Identities()
    identities.claim("Visits", HERE, is_active=nobody)

    with pytest.raises(IdentityError, match="would share the checkpoint folder"):
        identities.claim("visits", THERE, is_active=nobody)


def test_one_query_without_a_name_gets_one() -> None:
    assert Identities().claim(None, HERE, is_active=nobody) == Identity("query", "query")


def test_the_same_line_again_is_the_same_query_once_the_first_has_ended() -> None:
    identities = Identities()
    identities.establish(identities.claim(None, HERE, is_active=nobody))

    assert identities.claim(None, HERE, is_active=nobody).name == "query"
    with pytest.raises(IdentityError):
        identities.claim(None, HERE, is_active=everybody)


def test_two_queries_without_names_are_refused_with_both_lines() -> None:
    identities = Identities()
    identities.claim(None, HERE, is_active=nobody)

    with pytest.raises(IdentityError) as refused:
        identities.claim(None, THERE, is_active=nobody)

    assert "job.py:10: first.writeStream.start()" in str(refused.value)
    assert "job.py:20: second.writeStream.start()" in str(refused.value)


@pytest.mark.parametrize("names", [("query", None), (None, "query")])
def test_a_query_called_query_beside_one_without_a_name_is_refused(
    names: tuple[str | None, str | None],
) -> None:
    identities = Identities()
    identities.claim(names[0], HERE, is_active=nobody)

    with pytest.raises(IdentityError, match="called 'query'"):
        identities.claim(names[1], THERE, is_active=nobody)


def test_a_start_that_failed_leaves_its_name_free() -> None:
    identities = Identities()
    identities.release(identities.claim(None, HERE, is_active=nobody))

    assert identities.claim(None, THERE, is_active=nobody).name == "query"


def test_a_name_that_ran_before_is_not_given_away_by_a_start_that_failed() -> None:
    identities = Identities()
    identities.establish(identities.claim(None, HERE, is_active=nobody))
    identities.release(identities.claim(None, HERE, is_active=nobody))

    with pytest.raises(IdentityError):
        identities.claim(None, THERE, is_active=nobody)
