"""How long the tests of each file take: the longest are started first, and a run's times are shown beside the last ones.

Seconds of a file are the sum over its tests, on whatever machine ran them; nothing is asserted of them. The last times are
those in tests/times.json, which `COURSE_SAVE_TIMES=1 make test-all` writes anew.
"""

import json
import os
from collections import Counter
from pathlib import Path

KEPT = Path(__file__).resolve().parents[1] / "times.json"
SHOWN = 5.0                                               # seconds; quicker files are shown together


def last_times() -> dict[str, float]:
    """Seconds of each file as they were kept; empty before the first time."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


class Times:
    """A pytest plugin, on the main process and on workers alike."""

    def __init__(self, root: Path):
        self.root, self.last, self.now = root, last_times(), Counter()

    def pytest_collection_modifyitems(self, items: list) -> None:
        """The files that took longest come first; a file that nobody has timed comes before them all."""
        def seconds(item) -> float:
            return -self.last.get(item.nodeid.partition("::")[0], float("inf"))

        items.sort(key=seconds)                           # stable: the tests of a file stay in order

    def pytest_runtest_logreport(self, report) -> None:
        self.now[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """The table, and the file where it's asked for."""
        rows = sorted(self.now.items(), key=lambda row: -row[1])
        if len(rows) < 10:                                # somebody runs a file or two, and looks at other things
            return
        terminalreporter.write_sep("-", "seconds by file, now and when they were last kept")
        for name, seconds in [row for row in rows if row[1] >= SHOWN]:
            terminalreporter.write_line(f"{seconds:7.1f} {_shown(self.last.get(name)):>7}  {name}")
        rest = [name for name, seconds in rows if seconds < SHOWN]
        before = sum(self.last.get(name, 0) for name in rest)
        quick = sum(self.now[name] for name in rest)
        terminalreporter.write_line(f"{quick:7.1f} {_shown(before):>7}  {len(rest)} quicker files")
        whole = sum(self.last.get(name, 0) for name in self.now)
        terminalreporter.write_line(f"{sum(self.now.values()):7.1f} {_shown(whole):>7}  together, on all processes")
        if os.environ.get("COURSE_SAVE_TIMES") == "1":
            kept = {**{name: s for name, s in self.last.items() if (self.root / name).exists()},
                    **{name: round(seconds, 1) for name, seconds in rows}}
            KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=0) + "\n", encoding="utf-8")


def _shown(seconds: float | None) -> str:
    return f"{seconds:.1f}" if seconds else "–"
