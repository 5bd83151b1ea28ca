"""A server on loopback that answers like an engine: pages by address, each a text, a status or a wait."""

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path, 404)
        if isinstance(page, list):
            page = page.pop(0) if len(page) > 1 else page[0]
        if isinstance(page, float):
            time.sleep(page)
            page = 504
        status, text = (page, "") if isinstance(page, int) else (200, page)
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    do_POST = do_GET

    def log_message(self, *_):
        return


@contextmanager
def serving(pages):
    """Serve; a list of pages gives one after the other, the last for good."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.pages, server.asked = pages, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.asked
        finally:
            server.shutdown()
            thread.join()
