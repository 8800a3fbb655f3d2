"""A hub of data sets on the loopback address, which may misbehave."""

import http.server
import json
import re
import threading

from course_utils.data.hub import IMDB

# what the hub's own cards say of the files
CARDS = {"imdb": """---
configs:
- config_name: plain_text
  default: true
  data_files:
  - {split: train, path: plain_text/train-*}
  - {split: test, path: plain_text/test-*}
  - {split: unsupervised, path: plain_text/unsupervised-*}
dataset_info:
  config_name: plain_text
  features:
  - {name: text, dtype: string}
  - {name: label, dtype: {class_label: {names: {'0': neg, '1': pos}}}}
---
""", "sst2": """---
configs:
- config_name: default
  data_files:
  - {split: train, path: data/train-*}
  - {split: validation, path: data/validation-*}
  - {split: test, path: data/test-*}
dataset_info:
  features:
  - {name: idx, dtype: int32}
  - {name: sentence, dtype: string}
  - {name: label, dtype: {class_label: {names: {'0': negative, '1': positive}}}}
---
"""}


class Hub(http.server.ThreadingHTTPServer):
    """As much of the hub as `datasets` needs, misbehaving as `mode` says; `asked` counts the requests."""

    daemon_threads = True

    def __init__(self, folder, mode, corpus=IMDB):
        super().__init__(("127.0.0.1", 0), HubAnswer)
        self.mode, self.asked, self.revisions, self.stop = mode, 0, set(), threading.Event()
        self.corpus, self.files = corpus, {"README.md": CARDS[corpus.name].encode()}
        self.files |= {f"{corpus.folder}/{path.name}": path.read_bytes() for path in folder.glob("*/*.parquet")}
        self.address = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """A client that is stopped while it waits is what these tests are about."""


class HubAnswer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked += 1
        path = self.path.split("?")[0].replace("%2F", "/")
        corpus = self.server.corpus
        self.server.revisions.update(re.findall(r"/(?:revision|tree|resolve)/([^/]+)", path))
        if self.server.mode == "silent":
            self.server.stop.wait(60)
        elif self.server.mode == "error":
            self.answer(b"", status=500)
        elif self.server.mode == "drip" or self.server.mode == "drip files" and ".parquet" in path:
            self.answer(b" " * 60, drip=True)
        elif "/resolve/" in path:
            name = path.split("/resolve/")[1].split("/", 1)[1]
            if name in self.server.files:
                self.answer(self.server.files[name], ETag=f'"{name.replace("/", "-")}"')
            else:
                self.answer(b"", status=404, **{"X-Error-Code": "EntryNotFound"})
        elif path.endswith(f"/tree/{corpus.revision}"):
            self.answer_json([{"type": "directory", "oid": "0", "size": 0, "path": corpus.folder}])
        elif path.endswith(f"/tree/{corpus.revision}/{corpus.folder}"):
            self.answer_json([{"type": "file", "oid": "0", "size": len(content), "path": name}
                              for name, content in self.server.files.items() if "/" in name])
        else:
            self.answer_json({"id": corpus.repository, "sha": corpus.revision, "siblings": []})

    do_HEAD = do_GET

    def answer_json(self, value):
        self.answer(json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def answer(self, content, status=200, drip=False, **headers):
        self.send_response(status)
        headers = {"Content-Length": len(content), "X-Repo-Commit": self.server.corpus.revision, "ETag": '"0"'} | headers
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        for byte in content if drip else ():
            self.wfile.write(bytes([byte]))
            if self.server.stop.wait(1):
                return
        self.wfile.write(b"" if drip else content)

    def log_message(self, *_):
        """No request log among the test's output."""


