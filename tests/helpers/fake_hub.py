"""Hubs on the loopback address that may misbehave: one with a data set, one with a model."""

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


class _Loopback(http.server.ThreadingHTTPServer):
    """A server on the loopback address that answers with `files`, misbehaving as `mode` says; `asked` counts the requests.

    `repository` and `revision` are what it says about itself.
    """

    daemon_threads = True

    def __init__(self, handler, mode, files, repository, revision):
        super().__init__(("127.0.0.1", 0), handler)
        self.mode, self.files, self.repository, self.revision = mode, files, repository, revision
        self.asked, self.stop = 0, threading.Event()
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


class _Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked += 1
        path = self.path.split("?")[0].replace("%2F", "/")
        if self.server.mode == "silent":
            self.server.stop.wait(60)
        elif self.server.mode == "error":
            self.answer(b"", status=500)
        elif self.server.mode == "drip" or self.server.mode == "drip files" and ".parquet" in path:
            self.answer(b" " * 60, drip=True)
        elif "/resolve/" in path:
            name = path.split("/resolve/")[1].split("/", 1)[1]
            if name in self.server.files:
                self.answer(self.server.files[name], ETag=f'"{name.replace("/", "-")}"',
                            stall=self.server.mode == "stalls" and name.endswith("safetensors"))
            else:
                self.answer(b"", status=404, **{"X-Error-Code": "EntryNotFound"})
        else:
            self.answer(json.dumps(self.about(path)).encode(), **{"Content-Type": "application/json"})

    do_HEAD = do_GET

    def about(self, path):
        """What the hub says about its files."""
        if "/tree/" in path:
            return [{"type": "file", "oid": name, "size": len(content), "path": name}
                    for name, content in self.server.files.items()]
        return {"id": self.server.repository, "sha": self.server.revision,
                "siblings": [{"rfilename": name} for name in self.server.files]}

    def answer(self, content, status=200, drip=False, stall=False, **headers):
        self.send_response(status)
        headers = {"Content-Length": len(content), "X-Repo-Commit": self.server.revision, "ETag": '"0"'} | headers
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        if stall:
            self.server.stop.wait(60)
        for byte in content if drip else ():
            self.wfile.write(bytes([byte]))
            if self.server.stop.wait(1):
                return
        self.wfile.write(b"" if drip else content)

    def log_message(self, *_):
        """No request log among the test's output."""


class ModelHub(_Loopback):
    """As much of the hub as `huggingface_hub` needs for one small model."""

    def __init__(self, mode, files):
        super().__init__(_Answer, mode, files, "some/model", "c" * 40)


class Hub(_Loopback):
    """As much of the hub as `datasets` needs; `revisions` are those that were asked for."""

    def __init__(self, folder, mode, corpus=IMDB):
        files = {"README.md": CARDS[corpus.name].encode()}
        files |= {f"{corpus.folder}/{path.name}": path.read_bytes() for path in folder.glob("*/*.parquet")}
        super().__init__(_AnswerOfCorpus, mode, files, corpus.repository, corpus.revision)
        self.corpus, self.revisions = corpus, set()


class _AnswerOfCorpus(_Answer):
    def do_GET(self):
        self.server.revisions.update(re.findall(r"/(?:revision|tree|resolve)/([^/?]+)", self.path.replace("%2F", "/")))
        super().do_GET()

    do_HEAD = do_GET

    def about(self, path):
        folder = f"/tree/{self.server.revision}/{self.server.corpus.folder}"
        if path.endswith(folder):
            return [one for one in super().about(path) if "/" in one["path"]]
        if path.endswith(folder.rpartition("/")[0]):
            return [{"type": "directory", "oid": "0", "size": 0, "path": self.server.corpus.folder}]
        return super().about("") | {"siblings": []}
