"""Configs changed through the broker; a name that it does not know is said with the nearest one that it does."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.cli.failure import Failure, nearest

if TYPE_CHECKING:
    from ottla.client import Admin

Change = tuple[str, str, str | None]


def change_configs(
    admin: "Admin",
    kind: str,
    name: str,
    changes: Mapping[str, str | None] | Sequence[Change],
    *,
    is_dry_run: bool = False,
) -> None:
    from ottla.base.errors import ErrorCode
    from ottla.client.admin_results import ConfigResource
    from ottla.client.errors import BrokerError

    resource = ConfigResource(kind, name)
    try:
        admin.alter_configs({resource: changes}, validate_only=is_dry_run)
    except BrokerError as error:
        if error.code not in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            raise
        known = admin.describe_configs([resource])[resource]
        names = list(changes) if isinstance(changes, Mapping) else [change[1] for change in changes]
        unknown = next((each for each in names if each not in known), None)
        if unknown is None:
            raise
        meant = nearest(unknown, known)
        advice = f"Did you mean {meant}? " if meant else ""
        shown = f"{kind.replace('_', '-')} {name or 'default'}"
        advice += f"`ottla config describe {shown} --all` shows all there are."
        raise Failure(f"{shown} has no config {unknown!r}", advice) from error
