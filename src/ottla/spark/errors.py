"""What goes wrong in queries, said by the names that the user knows: topics, partitions, options."""

from ottla.client.errors import BrokerUnreachableError, ClientError, ClientTimeoutError

WITHOUT_LOSS = "set option failOnDataLoss to false to go on without what is gone"


class SourceError(Exception):
    """A read that cannot go on. The message says what to do."""


class DataLossError(SourceError):
    """Records that should have been read are not there any more."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} Begin anew with another checkpoint, or {WITHOUT_LOSS}.")


def wrap_client_error(error: ClientError, bootstrap: str, doing: str) -> SourceError:
    """A failure of the client as one of the query; brokers that do not answer are named by the option that named them."""
    if isinstance(error, BrokerUnreachableError | ClientTimeoutError):
        return SourceError(
            f"{doing} failed: {error.message} Look whether the brokers of option kafka.bootstrap.servers ({bootstrap}) run "
            "and are reachable from here."
        )
    return SourceError(f"{doing} failed: {error}")
