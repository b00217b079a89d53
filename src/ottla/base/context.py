"""What is known of the one who asks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One per connection and client id, shared by all of that client's requests."""

    listener: str
    principal: str
    client_id: str | None
    peer_host: str
