"""A server that writes what a test gives it, in the form and at the pace of a model's answer."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROMPT_TOKENS = 24


class Writer:
    """Answers every request with the deltas that `script` was given."""

    def __init__(self):
        self.deltas: list[dict] = []
        self.pace = 0.0
        self.finish = "stop"
        self.is_whole = True
        self.bodies: list[dict] = []
        self.gone = threading.Event()
        self.limit: int | None = None
        self.limit_changed = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/chat/completions"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def script(self, text: str = "", *, reasoning: str = "", deltas=(), pace=0.0, size=5, finish="stop", is_whole=True, limit=None):
        """Sets the answer. Without `is_whole` the stream breaks off before its end.

        After `limit` deltas every stream waits for `go_on`, so that a slow machine sees the answer unfinished, too.
        """
        parts = [{"reasoning_content": word + " "} for word in reasoning.split()]
        parts += [{"content": text[at : at + size]} for at in range(0, len(text), size)]
        self.deltas, self.pace, self.finish, self.is_whole = [*parts, *deltas], pace, finish, is_whole
        self.bodies.clear()
        self.gone.clear()
        self.go_on(limit)

    def go_on(self, limit: int | None = None):
        """Lets the streams write up to `limit` deltas, or all that is left."""
        with self.limit_changed:
            self.limit = limit
            self.limit_changed.notify_all()

    def wait_for_limit(self, written: int):
        with self.limit_changed:
            self.limit_changed.wait_for(lambda: self.limit is None or written < self.limit)

    def handler(self):
        writer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                writer.bodies.append(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.close_connection = True
                try:
                    self.write()
                except OSError:
                    writer.gone.set()

            def event(self, data):
                text = data if isinstance(data, str) else json.dumps(data)
                event = f"data: {text}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.wfile.flush()

            def write(self):
                finish, deltas = writer.finish, writer.deltas
                for written, delta in enumerate(deltas):
                    writer.wait_for_limit(written)
                    self.event(chunk([{"index": 0, "delta": delta, "finish_reason": None}]))
                    if writer.pace:
                        time.sleep(writer.pace)
                if writer.is_whole:
                    self.event(chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
                    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": len(deltas)}
                    self.event({**chunk([]), "usage": usage})
                    self.event("[DONE]")
                self.wfile.write(b"0\r\n\r\n")

        return Handler


def chunk(choices: list) -> dict:
    return {"id": "chatcmpl-0", "object": "chat.completion.chunk", "choices": choices, "usage": None}
