"""Small files of reviews, and a Python process of its own, for the tests of `course_utils.data`."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from course_utils.files.paths import ROOT

NAMES = ["negative", "positive"]


def review(number, label, kind="plain", pair=None, **fields):
    return {"id": f"r{number}", "text": f"Review {number} was fine.", "label": label, "kind": kind,
            "evidence": [[0, 6], [9, 12]], "pair": pair, "frame": "f1", "unseen_frame": False} | fields


def write_lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_parquet(path, texts, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), path)
    return path


def run_python(code, environment):
    """What `code` prints, run where it finds this course's package."""
    environment = environment | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-c", code], env=environment, timeout=120, capture_output=True,
                          text=True, encoding="utf-8")


def no_child(*_args, **_settings):
    """In place of subprocess.Popen where nobody may be asked."""
    raise AssertionError("a child process was started to ask the network")
