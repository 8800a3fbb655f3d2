"""What the notebooks of Attention from the Ground Up build, and the helpers they share.

Model modules are exported from the notebooks that teach them (see `course_utils.tools.export`): tokenization, embeddings,
attention, multi_head_attention, positional_encoding, transformer_blocks, classifier, attention_maps, explain. Beside
them stand data, training, recipes, trained_models, baselines, results, claims, exercises, what draws (heatmaps, figures,
gallery), and the tools that run the course: export and notebooks.
"""

import warnings

# tqdm misses ipywidgets, which the course does without: its bars are plain text
warnings.filterwarnings("ignore", message="IProgress not found")
