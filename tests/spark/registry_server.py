"""A small schema registry over HTTP, with the part of Confluent's interface that clients use."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class RegistryServer(ThreadingHTTPServer):
    """Schemas by id and by subject.

    `serialized` has Protobuf files in base64, by the text they were registered with.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.serialized: dict[str, str] = {}
        self.requests: list[str] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        with self.lock:
            created = {"schema": schema, "schemaType": kind}
            if created not in self.schemas:
                self.schemas.append(created)
            schema_id = self.schemas.index(created) + 1
            versions = self.subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
            return schema_id


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        server, parts = self.server, urlsplit(self.path)
        server.requests.append(self.path)
        match parts.path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) <= len(server.schemas):
                found = server.schemas[int(number) - 1]
                if parts.query == "format=serialized":
                    found = found | {"schema": server.serialized.get(found["schema"], found["schema"])}
                self._answer(200, found if found["schemaType"] != "AVRO" else {"schema": found["schema"]})
            case ["schemas", "ids", _]:
                self._answer(404, {"error_code": 40403, "message": "no such schema"})
            case ["subjects", subject, "versions", "latest"] if unquote(subject) in server.subjects:
                versions = server.subjects[unquote(subject)]
                self._answer(200, server.schemas[versions[-1] - 1] | {"id": versions[-1], "version": len(versions)})
            case _:
                self._answer(404, {"error_code": 40401, "message": "no such subject"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match self.path.strip("/").split("/"):
            case ["subjects", subject, "versions"]:
                self._answer(
                    200, {"id": self.server.register(unquote(subject), body["schema"], body.get("schemaType", "AVRO"))}
                )
            case _:
                self._answer(404, {"error_code": 404, "message": "no such path"})


@contextmanager
def registry_server() -> Any:
    server = RegistryServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
