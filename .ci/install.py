"""Run pip and say, in one line that changes, what it is doing and how much it has downloaded; keep all it prints in a file.

    python .ci/install.py LOG install -r requirements.txt      ends with pip's own exit status

Where nobody watches (the output is no terminal), a line is printed for each large file instead. Standard library alone:
it runs before anything is installed.
"""

import re
import subprocess
import sys
import threading
import time

FILE = re.compile(r"\s*(?:Downloading|Using cached|Processing) (\S+?)(?: \(([\d.]+) (kB|MB|GB)\))?(?: \(from .*)?$")
RAW = re.compile(r"Progress (\d+) of (\d+)$")
BYTES = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
LARGE = 10e6


class Progress:
    """What pip's lines say so far: `files` seen, bytes `done` in whole files, and the file that is on its way."""

    def __init__(self):
        self.files, self.done, self.size, self.arrived, self.name, self.doing = 0, 0.0, 0.0, 0.0, "", "looking for packages"

    def read(self, line: str) -> str:
        """Take one line of pip's; return what to print about it where nobody watches, '' for most lines."""
        if raw := RAW.match(line):
            self.arrived = float(raw[1])
        elif found := FILE.match(line):
            self.done, self.arrived, self.files = self.done + self.size, 0.0, self.files + 1
            self.name = found[1].rpartition("/")[2].split("-")[0]
            self.size = float(found[2]) * BYTES[found[3]] if found[2] else 0.0
            if self.name.endswith(".metadata") or ".metadata" in found[1]:
                self.size, self.files = 0.0, self.files - 1
            self.doing = f"downloading {self.name}" + (f" ({self.size / 1e6:.0f} MB)" if self.size >= LARGE else "")
            return self.doing if self.size >= LARGE else ""
        elif line.startswith("Installing collected packages"):
            self.done, self.size, self.arrived = self.done + self.size, 0.0, 0.0
            self.doing = f"installing {line.count(',') + 1} packages"
            return self.doing
        return ""

    def __str__(self) -> str:
        megabytes = (self.done + self.arrived) / 1e6
        return f"{self.doing}; {megabytes:.0f} MB so far" if megabytes >= 1 else self.doing


def main(log_file: str, arguments: list[str]) -> int:
    """Run `pip arguments`, and show what it does. Ctrl-C ends pip, too."""
    import pip

    raw = tuple(int(part) for part in re.findall(r"\d+", pip.__version__)[:2]) >= (24, 1)
    command = [sys.executable, "-m", "pip", *arguments, *(["--progress-bar", "raw"] if raw else [])]
    progress, begun, watched, ended = Progress(), time.monotonic(), sys.stdout.isatty(), threading.Event()

    def show() -> None:
        while not ended.wait(0.5):
            print(f"\r\033[Ksetup: {progress} ({time.monotonic() - begun:.0f} s)"[:120], end="", flush=True)

    if watched:
        threading.Thread(target=show, daemon=True).start()
    with open(log_file, "a", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   encoding="utf-8", errors="replace")
        try:
            for line in process.stdout:
                if not RAW.match(line.strip()):
                    log.write(line)
                if (said := progress.read(line.rstrip())) and not watched:
                    print(f"setup: {said}", flush=True)
            return process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
            ended.set()
            if watched:
                print("\r\033[K", end="", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
