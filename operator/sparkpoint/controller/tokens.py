"""The tokens of the agents: one Secret per epoch, made here and read nowhere else."""

import base64
import binascii
import secrets
from collections.abc import Callable

from sparkpoint.controller import objects
from sparkpoint.controller.cluster import SECRETS, Cluster, Object, create_or_get, find, owner_uid
from sparkpoint.controller.objects import Owner
from sparkpoint.controller.ownership import check_ours

__all__ = ["Tokens", "random_token"]

_KEY = "token"


def random_token() -> str:
    """One that nobody guesses."""
    return secrets.token_urlsafe(32)


class Tokens:
    """The tokens of all jobs."""

    def __init__(self, cluster: Cluster, make: Callable[[], str] = random_token) -> None:
        self._cluster, self._make = cluster, make
        self._known: dict[tuple[str, int], str] = {}

    async def find(self, owner: Owner, epoch: int) -> str | None:
        """The token of an epoch; None if none was made."""
        known = self._known.get((owner.uid, epoch))
        if known is not None:
            return known
        name = objects.agent_secret_name(owner.name, epoch)
        body = await find(self._cluster, SECRETS, owner.namespace, name)
        if body is None or owner_uid(body) != owner.uid:
            return None
        return self._learn(owner, epoch, body)

    async def ensure(self, owner: Owner, epoch: int) -> str:
        """The name of the Secret, made if it is not there.

        One that somebody deleted is made again with the token that running drivers know.
        """
        name = objects.agent_secret_name(owner.name, epoch)
        token = self._known.get((owner.uid, epoch)) or self._make()
        body = await create_or_get(self._cluster, objects.agent_secret(owner, epoch, token))
        check_ours(body, owner)
        self._learn(owner, epoch, body)
        return name

    def forget(self, uid: str) -> None:
        """The job is gone."""
        for known in [key for key in self._known if key[0] == uid]:
            del self._known[known]

    def _learn(self, owner: Owner, epoch: int, body: Object) -> str | None:
        token = _token(body)
        if token is not None:
            self._known[owner.uid, epoch] = token
        return token


def _token(body: Object) -> str | None:
    try:
        return base64.b64decode(body["data"][_KEY], validate=True).decode()
    except (KeyError, TypeError, binascii.Error, UnicodeDecodeError):
        return None
