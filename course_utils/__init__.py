"""What the notebooks of Attention from the Ground Up build, and the helpers they share.

Model modules are exported from the notebooks that teach them (`course_tools.notebooks.export`): tokenization, embeddings,
attention, multi_head_attention, positional_encoding, transformer_blocks, classifier, attention_maps, explain. Everything
else is a room of its own: CONTRIBUTING.md has a table of them, and `python -m course_utils` lists the commands.
"""

import os
import warnings
from pathlib import Path

from course_utils import moved

# The course has progress bars of its own (files.bars). Libraries write theirs to the error stream, which notebooks show on
# red; they read these when they're imported, as they are after this module. Set to 0, the bars come back.
for _library in ("DATASETS", "HUB"):                       # HUB is for transformers, too
    os.environ.setdefault(f"HF_{_library}_DISABLE_PROGRESS_BARS", "1")
# tqdm misses ipywidgets, which the course does without: its bars are plain text
warnings.filterwarnings("ignore", message="IProgress not found")


def __getattr__(name: str) -> str:
    """`course_utils.__version__`, from the one place where it's written: pyproject.toml, or what pip made of it."""
    if name != "__version__":
        raise AttributeError(f"module 'course_utils' has no attribute {name!r}")
    import tomllib
    from importlib.metadata import version

    project = Path(__file__).resolve().parents[1] / "pyproject.toml"
    if not project.is_file():
        return version("attention-from-the-ground-up")
    return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]


moved.install()
