"""`ottla wait`: wait until a broker serves requests, for scripts and CI."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.command import command
from ottla.cli.completion import topic_names
from ottla.cli.errors import CliError
from ottla.cli.output import print_json, print_note
from ottla.cli.session import Session, require_listener

if TYPE_CHECKING:
    from ottla.client import Admin

RETRY_SECONDS = 0.1

WaitTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        autocompletion=topic_names,
        help="Also wait until this topic exists and all its partitions have leaders; repeatable.",
    ),
]


def register(root: typer.Typer) -> None:
    command(root, "wait", requires_broker=False)(wait)


def wait(session: Session, topics: WaitTopics = None) -> None:
    """Wait until a broker serves requests. Exits with 0 then, and with 1 after --timeout seconds.

    JSON: {"bootstrap", "brokers", "seconds"}.
    """
    started = time.monotonic()
    deadline = started + session.timeout_seconds
    _wait_for_listener(session, deadline)
    with session.within(deadline).admin() as admin:
        brokers = _brokers(admin, session)
        _wait_for_topics(admin, list(dict.fromkeys(topics or ())), deadline, session.timeout_seconds)
    if session.is_json:
        seconds = round(time.monotonic() - started, 3)
        print_json({"bootstrap": session.bootstrap, "brokers": brokers, "seconds": seconds})


def _wait_for_listener(session: Session, deadline: float) -> None:
    """Wait until an address accepts connections; say once that it does not yet."""
    is_noted = False
    while True:
        try:
            require_listener(session.bootstrap, max(RETRY_SECONDS, deadline - time.monotonic()))
            return
        except CliError as error:
            if time.monotonic() + RETRY_SECONDS >= deadline:
                raise CliError(
                    f"no broker is ready after {session.timeout_seconds:g} s: {error.message}", error.advice
                ) from None
            if not is_noted:
                print_note(f"ottla: {error.message}; waiting")
                is_noted = True
        time.sleep(RETRY_SECONDS)


def _brokers(admin: "Admin", session: Session) -> list[int]:
    """Return the ids of the brokers, once one responds."""
    from ottla.client.errors import ClientError, ClientTimeoutError

    try:
        return [each.node.id for each in admin.describe_cluster().brokers]
    except ClientError as error:
        message = f"no broker is ready after {session.timeout_seconds:g} s"
        if type(error) is ClientTimeoutError:
            raise CliError(f"{message}: {session.bootstrap} accepts connections but does not respond") from error
        raise CliError(f"{message}: {error.message}", error.advice) from error


def _wait_for_topics(admin: "Admin", topics: list[str], deadline: float, seconds: float) -> None:
    from ottla.client.errors import PartialFailureError, UnknownTopicOrPartitionError

    is_noted = False
    while True:
        try:
            described = admin.describe_topics(topics) if topics else {}
            missing = [
                f"topic {name!r} has no leader for partition {partition.partition}"
                for name, topic in described.items()
                for partition in topic.partitions
                if partition.leader is None
            ]
        except (UnknownTopicOrPartitionError, PartialFailureError) as error:
            missing = [error.message.rstrip(".")]
        if not missing:
            return
        if time.monotonic() + RETRY_SECONDS >= deadline:
            raise CliError(f"not ready after {seconds:g} s: {missing[0]}")
        if not is_noted:
            print_note(f"ottla: {missing[0]}; waiting")
            is_noted = True
        time.sleep(RETRY_SECONDS)
