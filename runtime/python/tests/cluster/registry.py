"""An OCI registry in this process, which counts what is fetched."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>blobs|manifests)/(?P<what>[^/?]+)$")


class Registry:
    """A registry that has what was pushed, as a folder of files would."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.fetched: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reference(self, name: str) -> str:
        return f"127.0.0.1:{self.server.server_port}/{name}"

    def add(self, bundle: Path, tag: str) -> str:
        """Puts a bundle's files under a tag, as a push does. Returns the manifest's digest."""
        layers = []
        for path in [bundle / "manifest.toml", *sorted((bundle / "blobs").iterdir())]:
            data = path.read_bytes()
            digest = self._add(self.blobs, data)
            title = str(path.relative_to(bundle))
            layers.append(
                {
                    "mediaType": "application/octet-stream",
                    "digest": digest,
                    "size": len(data),
                    "annotations": {"org.opencontainers.image.title": title},
                }
            )
        empty = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": self._add(self.blobs, b"{}"), "size": 2}
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/vnd.mlxcel.bundle.v1",
            "config": empty,
            "layers": layers,
        }
        self.tags[tag] = self._add(self.manifests, json.dumps(manifest).encode())
        return self.tags[tag]

    def _add(self, to: dict[str, bytes], data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        to[digest] = data
        return digest

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: Registry

    def do_GET(self) -> None:
        found = _PATH.match(self.path)
        data, digest = None, ""
        if self.path.rstrip("/") == "/v2":
            data = b"{}"
        elif found is not None:
            have = self.registry.blobs if found["kind"] == "blobs" else self.registry.manifests
            digest = self.registry.tags.get(found["what"], found["what"])
            data = have.get(digest)
            if data is not None and self.command == "GET":
                with self.registry.lock:
                    self.registry.fetched[digest] += 1
        self.send_response(404 if data is None else 200)
        data = data or b""
        is_manifest = found is not None and found["kind"] == "manifests"
        kind = "application/vnd.oci.image.manifest.v1+json" if is_manifest else "application/octet-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass
