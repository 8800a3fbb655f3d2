"""A JupyterHub on the loopback address, as the page about classrooms configures it, and students who use it over HTTP.

Does: start the hub with its proxy, log students in, follow a link of nbgitpuller's, run code in kernels, read and save
notebooks. Does not: install anything, or check anything.
"""

import contextlib
import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import requests
import websocket

# What a test hub needs beyond the page: people without passwords, home folders for people whom the system doesn't know.
TRIAL = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.JupyterHub.db_url = "sqlite:///{folder}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{homes}/{{username}}"
c.Spawner.args = {arguments}
c.Spawner.default_url = "/lab"
c.Spawner.http_timeout = c.Spawner.start_timeout = 120
"""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Hub:
    """A hub in `folder`, whose programs are in `programs` (see Makefile); `address` is where its proxy listens."""

    def __init__(self, folder: Path, homes: Path, programs: Path):
        self.folder, self.homes, self.programs = folder, homes, programs
        self.config, port, hub_port, proxy_port = folder / "jupyterhub_config.py", *free_ports(3)
        self.address = f"http://127.0.0.1:{port}"
        folder.mkdir(parents=True)
        proxy = programs / "proxy" / "node_modules" / ".bin" / "configurable-http-proxy"
        self.config.write_text(TRIAL.format(
            port=port, hub_port=hub_port, proxy_port=proxy_port, folder=folder, homes=homes, proxy=proxy,
            arguments=["--allow-root"] if os.geteuid() == 0 else []), encoding="utf-8")

    @contextlib.contextmanager
    def running(self) -> Iterator["Hub"]:
        """Start the hub and stop it, its proxy and its students' servers at the end."""
        log = self.folder / "hub.log"
        keep = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
        path = os.pathsep.join([str(self.programs / "hub" / "bin"), os.environ["PATH"]])
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(["jupyterhub", "--config", str(self.config)], cwd=self.folder, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**keep, "PATH": path, "HOME": str(self.folder)})
            try:
                end = time.monotonic() + 90
                while not self._answers():
                    if process.poll() is not None or time.monotonic() > end:
                        raise RuntimeError(f"the hub didn't start: {log.read_text('utf-8')[-3000:]}")
                    time.sleep(0.3)
                yield self
            finally:
                process.terminate()
                process.wait(60)

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.address}/hub/login", timeout=5).ok
        except requests.RequestException:
            return False


class Student:
    """Someone with a browser: logs in, clicks links, runs cells. `home` is their folder on the hub."""

    def __init__(self, name: str, hub: Hub):
        self.name, self.hub, self.home = name, hub, hub.homes / name
        self.web = requests.Session()
        self.web.get(f"{hub.address}/hub/login", timeout=30)
        answer = self.web.post(f"{hub.address}/hub/login", params={"_xsrf": self._xsrf("/hub/")},
                               data={"username": name, "password": "none"}, timeout=120)
        answer.raise_for_status()

    def _xsrf(self, path: str) -> str:
        return next(cookie.value for cookie in self.web.cookies if cookie.name == "_xsrf" and cookie.path == path)

    @property
    def base(self) -> str:
        return f"/user/{self.name}/"

    def ask(self, method: str, place: str, **given) -> requests.Response:
        """Ask the student's own server. Raises requests.HTTPError for a refusal."""
        answer = self.web.request(method, self.hub.address + self.base + place, timeout=120,
                                  headers={"X-XSRFToken": self._xsrf(self.base)}, **given)
        answer.raise_for_status()
        return answer

    def click(self, link: str) -> str:
        """Follow a link of nbgitpuller's as its page does; return what Git said. Raises RuntimeError where it failed."""
        end = time.monotonic() + 180
        while True:
            page = self.web.get(link, timeout=120)
            if urlsplit(page.url).path == f"{self.base}git-pull" and page.ok:
                break
            if time.monotonic() > end:
                raise RuntimeError(f"the server of {self.name} didn't start: {page.status_code} {page.url}")
            time.sleep(0.5)
        asked = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
        events = self.ask("GET", "git-pull/api", params={name: value for name, value in asked.items() if name != "urlpath"},
                          stream=True)
        told = [json.loads(line[6:]) for line in events.iter_lines(decode_unicode=True) if line.startswith("data: ")]
        said = "".join(one.get("output", "") for one in told)
        if told[-1]["phase"] != "finished":
            raise RuntimeError(f"nbgitpuller stopped: {told[-1]}\n{said}")
        self.ask("GET", asked["urlpath"])
        return said

    def notebook(self, path: str) -> dict:
        """A notebook as JupyterLab loads it; `path` is relative to the home folder."""
        return self.ask("GET", f"api/contents/{path}").json()["content"]

    def save(self, path: str, notebook: dict) -> None:
        """Save a notebook as JupyterLab does."""
        self.ask("PUT", f"api/contents/{path}", json={"type": "notebook", "format": "json", "content": notebook})

    @contextlib.contextmanager
    def kernel(self, path: str) -> Iterator["Kernel"]:
        """A kernel of the notebook's at `path`, with the name that the notebook asks for."""
        name = self.notebook(path)["metadata"]["kernelspec"]["name"]
        session = self.ask("POST", "api/sessions", json={"path": path, "name": "", "type": "notebook",
                                                         "kernel": {"name": name}}).json()
        cookies = self.web.cookies.get_dict(path=self.base) | self.web.cookies.get_dict(path="/")
        place = f"{self.base}api/kernels/{session['kernel']['id']}/channels?_xsrf={self._xsrf(self.base)}"
        channel = websocket.create_connection(
            self.hub.address.replace("http", "ws") + place, timeout=300, origin=self.hub.address,
            cookie="; ".join(f"{name}={value}" for name, value in cookies.items()))
        try:
            yield Kernel(channel)
        finally:
            channel.close()
            self.ask("DELETE", f"api/sessions/{session['id']}")


class Kernel:
    """A running kernel behind a websocket."""

    def __init__(self, channel: websocket.WebSocket):
        self.channel = channel

    def run(self, source: str) -> list[dict]:
        """Execute a cell; return its outputs as a notebook keeps them."""
        number = uuid.uuid4().hex
        self.channel.send(json.dumps({
            "channel": "shell", "parent_header": {}, "metadata": {},
            "header": {"msg_id": number, "msg_type": "execute_request", "version": "5.3", "username": "", "session": number,
                       "date": "2000-01-01T00:00:00Z"},
            "content": {"code": source, "silent": False, "store_history": True, "user_expressions": {},
                        "allow_stdin": False, "stop_on_error": True}}))
        outputs = []
        while True:
            message = json.loads(self.channel.recv())
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != number:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return outputs
            if kind in ("stream", "display_data", "execute_result", "error"):
                content.pop("transient", None)
                outputs.append({"output_type": kind, **content})

    def says(self, source: str) -> str:
        """What a cell prints. Raises RuntimeError for a cell that fails."""
        outputs = self.run(source)
        for output in outputs:
            if output["output_type"] == "error":
                raise RuntimeError(f"{output['ename']}: {output['evalue']}")
        return "".join(output.get("text", "") for output in outputs)
