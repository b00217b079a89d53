"""Errors of queries, in terms of topics, partitions and options."""

from ottla.client.errors import BrokerUnreachableError, ClientError, ClientTimeoutError

WITHOUT_LOSS = "set option failOnDataLoss to false to skip lost records"


class SourceError(Exception):
    """A read that cannot continue. The message says what to do."""


class DataLossError(SourceError):
    """Records that should have been read no longer exist."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} Start with a new checkpoint, or {WITHOUT_LOSS}.")


def wrap_client_error(error: ClientError, bootstrap: str, doing: str) -> SourceError:
    """Convert a client error to a query error. Connection errors name the option with the addresses."""
    if isinstance(error, BrokerUnreachableError | ClientTimeoutError):
        return SourceError(
            f"{doing} failed: {error.message} Check that the brokers of option kafka.bootstrap.servers ({bootstrap}) "
            "run and are reachable."
        )
    return SourceError(f"{doing} failed: {error}")
