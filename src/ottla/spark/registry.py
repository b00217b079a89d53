"""Client of a schema registry (Confluent's REST interface), and the five-byte prefix of values that names their schema.

Schemas are cached by id, since an id never changes. The latest version of a subject is requested for each plan.
"""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any

MAGIC = 0
FRAME = Struct(">bI")
FRAME_BYTES = FRAME.size
SECONDS_MAX = 30.0
TRIES_MAX = 3
RESPONSE_BYTES_MAX = 32 << 20
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryError(Exception):
    """The registry is unreachable or rejected the request."""


class UnknownSchema(RegistryError):
    """The registry does not have the schema."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema in the registry. For Protobuf, `text` is a FileDescriptorProto in base64."""

    id: int
    schema_type: str
    """AVRO, JSON or PROTOBUF."""
    text: str


class Registry:
    """`url` may include user and password. Several URLs, separated by commas, are tried in order.

    `setting` names the option with the URL in errors.
    """

    def __init__(
        self, url: str, *, setting: str = "option schemaRegistryUrl", seconds_max: float = SECONDS_MAX
    ) -> None:
        self._setting, self._seconds_max = setting, seconds_max
        self._urls = [each.strip().rstrip("/") for each in url.split(",") if each.strip()]
        self._by_id: dict[int, RegisteredSchema] = {}

    def by_id(self, schema_id: int) -> RegisteredSchema:
        found = self._by_id.get(schema_id)
        if found is None:
            response = self._request(f"/schemas/ids/{schema_id}", what=f"schema {schema_id}")
            found = self._by_id[schema_id] = self._registered_schema(schema_id, response)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the schema of the subject's latest version."""
        response = self._request(
            f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest", what=f"subject {subject!r}"
        )
        found = self._registered_schema(response["id"], response)
        self._by_id[found.id] = found
        return found

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """Register a schema under a subject, unless it is registered already, and return its id."""
        body = {"schema": text} if schema_type == "AVRO" else {"schema": text, "schemaType": schema_type}
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        return int(self._request(path, body, what=f"a new version of subject {subject!r}")["id"])

    def _registered_schema(self, schema_id: int, response: dict[str, Any]) -> RegisteredSchema:
        schema_type = response.get("schemaType") or "AVRO"
        text = response["schema"]
        if response.get("references"):
            raise RegistryError(
                f"Schema {schema_id} has references, which are not supported; register it with everything included."
            )
        if schema_type == "PROTOBUF":
            text = self._request(f"/schemas/ids/{schema_id}?format=serialized", what=f"schema {schema_id}")["schema"]
        return RegisteredSchema(schema_id, schema_type, text)

    def _request(self, path: str, body: dict[str, Any] | None = None, *, what: str) -> dict[str, Any]:
        problem = "no URL is configured"
        for _ in range(TRIES_MAX):
            for url in self._urls:
                try:
                    return self._request_from(url, path, body)
                except urllib.error.HTTPError as error:
                    problem = f"status {error.code}, {_message(error)}"
                    if error.code < 500:
                        schema_type = UnknownSchema if error.code == 404 else RegistryError
                        raise schema_type(
                            f"Request for {what} to the schema registry at {_without_password(url)} failed: {problem}."
                        ) from None
                except (OSError, ValueError) as error:
                    problem = str(error)
        shown = ", ".join(_without_password(url) for url in self._urls)
        raise RegistryError(
            f"Request for {what} to the schema registry at {shown} failed: {problem}. Check {self._setting}."
        )

    def _request_from(self, url: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise RegistryError(
                f"{self._setting[0].upper()}{self._setting[1:]} must start with http:// or https://, "
                f"not {_without_password(url)!r}."
            )
        address = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) + path
        request = urllib.request.Request(address, data=None if body is None else json.dumps(body).encode())
        request.add_header("Accept", CONTENT_TYPE)
        if body is not None:
            request.add_header("Content-Type", CONTENT_TYPE)
        if parts.username is not None:
            plain = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            request.add_header("Authorization", "Basic " + base64.b64encode(plain.encode()).decode())
        with urllib.request.urlopen(request, timeout=self._seconds_max) as reply:
            response: dict[str, Any] = json.loads(reply.read(RESPONSE_BYTES_MAX))
        return response


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(RESPONSE_BYTES_MAX)).get("message", error.reason))
    except (ValueError, AttributeError, OSError):
        return str(error.reason)


def _without_password(url: str) -> str:
    """Return the URL without credentials."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@cache
def registry_at(url: str) -> Registry:
    """Return the process-wide client, which caches schemas across tasks."""
    return Registry(url)


def subject_of(strategy: str, topic: str, record_name: str | None, *, is_key: bool) -> str:
    """Return the subject of a schema by topic, record name, or both."""
    if strategy == "topicnamestrategy":
        return f"{topic}-{'key' if is_key else 'value'}"
    if not record_name:
        raise RegistryError(
            f"Option subjectStrategy ({strategy}) needs a named schema; set keySubject or valueSubject instead."
        )
    return record_name if strategy == "recordnamestrategy" else f"{topic}-{record_name}"
