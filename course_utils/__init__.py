"""What the notebooks of Attention from the Ground Up build, and the helpers they share.

Model modules are exported from the notebooks that teach them (see `course_utils.tools.export`): tokenization, embeddings,
attention, multi_head_attention, positional_encoding, transformer_blocks, classifier, attention_maps, explain. Everything
else is a room of its own: CONTRIBUTING.md has a table of them, and `python -m course_utils` lists the commands.
"""

import warnings

# tqdm misses ipywidgets, which the course does without: its bars are plain text
warnings.filterwarnings("ignore", message="IProgress not found")
