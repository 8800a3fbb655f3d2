"""The encoder classifier in one file, assembled from the cells that the notebooks export.

    python -m course_tools one-file              writes outputs/model.py

Does: collect what `SelfAttentionClassifier` needs, decide every condition that its usual settings decide (rotary positions,
pre-norm, attention pooling), leave out checks of arguments and what is never reached, and keep the comments with the shapes.
Does not: hold a model of its own. Every line comes from a notebook; the tests load trained weights into the assembled
model and compare its answers.
"""

import argparse
import ast
import copy
import operator as operators
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable

from course_utils.files import write_text
from course_utils.files.paths import ROOT, output_folder

# What is kept, from bottom to top: (module, its parts).
PARTS = {
    "attention": ("scaled_dot_product_attention",),
    "multi_head_attention": ("MultiHeadAttention",),
    "positional_encoding": ("RotaryPositions",),
    "transformer_blocks": ("FeedForward", "EncoderBlock", "Encoder"),
    "classifier": ("AttentionPooling", "ClassifierConfig", "SelfAttentionClassifier"),
}
LINE = 125
HEAD = '''"""A text classifier that reads by attention alone: {lines} lines, in plain PyTorch.

Assembled by `python -m course_tools one-file` from the notebooks named below, for the course's usual settings: rotary
positions, pre-norm, attention pooling. Left out: checks of arguments, other settings, half precision, word dropout, and
the fused kernel. What ends in # 04 is taught in notebook 04.
"""
'''
IMPORTS = """
import dataclasses
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
"""
# Arguments and attributes that the usual settings never change: they disappear, and what they decide is decided.
GONE = {"norm_first": True, "projection_bias": True, "bias": None, "cache": None, "caches": None, "offset": 0, "eps": 1e-5,
        "layer_norm_eps": 1e-5, "activation": "gelu", "dropout_p": 0.0, "attention_dropout": 0.0, "zero_init": False,
        "pooling": "attention", "positions": "rotary", "need_weights": True,
        "word_dropout": 0.0, "unk_id": 1, "max_len": 256, "wide": None,
        "embedding_std": 1.0, "pooled_dropout": 0.0, "dtype": None}
OUTER = re.compile(r"^(return |[\w., ]+ = )\((.*)\)$")                    # a tuple in brackets that it doesn't need
COMPARED = {ast.Eq: operators.eq, ast.Gt: operators.gt}
ATTRIBUTES_GONE = {"self.norm_first", "self.attention_dropout", "self.pooled_dropout"}
NEVER_NONE = {"rotary", "mask", "self.pooling"}
SELF_ATTENTION = {"MultiHeadAttention.forward": {"key": "query", "value": "query"}}    # the query is key and value, too
RESULTS = {"AttentionResult", "BlockResult", "EncoderResult", "ClassifierResult"}    # become plain tuples
INLINED = {"attend", "word_vectors", "embed", "project", "run_encoder"}     # methods whose lines go to where they are called
METHODS_LEFT_OUT = {"hidden", "__post_init__"} | INLINED
# What comments and first lines of docstrings say of the parts that are left out.
REWORDED = {
    "/ √d_k + bias) value": "/ √d_k) value",
    "rows that mask and bias leave nothing": "rows that the mask leaves nothing",
    "Project, rotate, append to the cache, attend, merge, project.": "Project, rotate, attend, merge, project.",
    "with layer norm before each (norm_first) or after each sum.": "with layer norm before each.",
    "and a last layer norm if they are pre-norm.": "and a last layer norm.",
    "(length, d_head / 2): in float32, or float64 if x is.": "(length, d_head / 2).",
}


def _is_gone(node: ast.expr) -> bool:
    """Whether an expression is a name, or an attribute of self or config, that disappears."""
    if isinstance(node, ast.Attribute):
        return node.attr in GONE and ast.unparse(node.value) in ("config", "self.config")
    return isinstance(node, ast.Name) and node.id in GONE


class _Settle(ast.NodeTransformer):
    """Put the usual settings into expressions, and decide what they decide."""

    def __init__(self, none: dict[str, str], inline: Callable[[ast.Call, dict], list[ast.stmt]]):
        self.none, self.inline = none, inline                              # arguments never given; see _Assembler.inline

    def visit_Name(self, node):
        return ast.Constant(GONE[node.id]) if isinstance(node.ctx, ast.Load) and node.id in GONE else node

    def visit_Attribute(self, node):
        if isinstance(node.ctx, ast.Load) and (_is_gone(node) or ast.unparse(node) == "self.norm_first"):
            return ast.Constant(GONE[node.attr])
        return self.generic_visit(node)

    def visit_Call(self, node):
        name = ast.unparse(node.func)
        if name.removeprefix("self.") in INLINED:
            returned = [one for one in self.inline(node, {}) if isinstance(one, ast.Return) or (
                isinstance(one, ast.If) and ast.unparse(one.test) == "need_weights")][0]
            return self.visit(returned.value if isinstance(returned, ast.Return) else returned.body[0].value)
        if name == "padding_mask":
            return ast.parse(f"{ast.unparse(node.args[0])}[:, None, None, :]", mode="eval").body
        if name == "self.pooled_dropout":
            return self.visit(node.args[0])
        if name.endswith(".to") and ast.unparse(node.args[0]) in ("wide", "query.dtype", "x.dtype"):    # no half precision
            return self.visit(node.func.value)
        if name == "F.dropout" and _is_gone(node.args[1]):
            return self.visit(node.args[0])
        if name == "self.positions.add":                                   # rotary positions add nothing
            return self.visit(node.args[0])
        if name == "make_positions":
            return ast.parse("RotaryPositions(d_model // num_heads)", mode="eval").body
        if name == "torch.arange" and _is_gone(node.args[0]):              # from position 0 on
            node.args = [node.args[1].right]
        node.args = [argument for argument in node.args if not _is_gone(argument)]
        node.keywords = [one for one in node.keywords if one.arg not in GONE]
        node = self.generic_visit(node)
        return ast.Tuple(node.args, ast.Load()) if name in RESULTS else node

    def visit_Compare(self, node):
        node, left = self.generic_visit(node), ast.unparse(node.left)
        operator, right = node.ops[0], node.comparators[0]
        if isinstance(operator, ast.Is | ast.IsNot) and (left in NEVER_NONE.union(self.none) or left == "None"):
            return ast.Constant((left in self.none or left == "None") == isinstance(operator, ast.Is))
        if isinstance(node.left, ast.Constant) and isinstance(right, ast.Constant) and type(operator) in COMPARED:
            return ast.Constant(COMPARED[type(operator)](node.left.value, right.value))
        return node

    def visit_BoolOp(self, node):
        node, stops = self.generic_visit(node), isinstance(node.op, ast.Or)
        if any(isinstance(value, ast.Constant) and bool(value.value) == stops for value in node.values):
            return ast.Constant(stops)
        left = [value for value in node.values if not isinstance(value, ast.Constant)]
        return ast.Constant(not stops) if not left else left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_IfExp(self, node):
        node = self.generic_visit(node)
        return (node.body if node.test.value else node.orelse) if isinstance(node.test, ast.Constant) else node


class _Assembler:
    """One module's source, from which parts are taken."""

    def __init__(self, module: str):
        self.source = (ROOT / "course_utils" / f"{module}.py").read_text(encoding="utf-8")
        self.lines = self.source.splitlines()
        self.definitions = {node.name: node for node in ast.parse(self.source).body
                            if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    def part(self, name: str) -> str:
        """The source of one class or function, settled."""
        node = self.definitions[name]
        return "\n".join(self.statement(node, name, {}))

    def inline(self, call: ast.Call, none: dict[str, str]) -> list[ast.stmt]:
        """The statements of a method that is called, with the call's arguments in the place of its parameters."""
        method = next(one for kind in self.definitions.values() if isinstance(kind, ast.ClassDef) for one in kind.body
                      if getattr(one, "name", "") == call.func.attr)
        given = dict(zip([one.arg for one in method.args.args[1:]], call.args))

        class Put(ast.NodeTransformer):
            def visit_Name(self, node):
                put = given.get(node.id, node)
                return ast.Name(none[put.id], node.ctx) if isinstance(put, ast.Name) and put.id in none else put

        body = [Put().visit(copy.deepcopy(one)) for one in method.body[1:]]
        if isinstance(body[-1], ast.Return) and len(body) == 1:
            body[0].moved = True
        return body

    def called(self, node: ast.Assign, owner: str, none: dict[str, str]) -> list[str]:
        """An assignment of what a method returns, with the method's own lines instead of the call."""
        *before, last = self.inline(node.value, none)
        lines = [line for one in before for line in self.statement(one, owner, none)]
        result = ast.unparse(self.settle(last.value, none)).removeprefix("(").removesuffix(")") if isinstance(
            last.value, ast.Tuple) else ast.unparse(self.settle(last.value, none))
        line = f"{ast.unparse(node.targets[0]).strip('()')} = {result}"
        comment = self.comment(node)
        return [*lines, line + comment if len(line + comment) < LINE - 8 else line]

    def comment(self, node: ast.stmt) -> str:
        """The comment at the end of a statement's last line."""
        rest = self.lines[node.end_lineno - 1][len(self.lines[node.end_lineno - 1].encode()[:node.end_col_offset].decode()):]
        return f"  {rest.strip()}" if rest.strip().startswith("#") else ""

    def settle(self, node: ast.AST, none: dict[str, str]) -> ast.AST:
        return _Settle(none, self.inline).visit(node)

    def body(self, nodes: list[ast.stmt], owner: str, none: dict[str, str]) -> list[str]:
        lines = [line for node in nodes for line in self.statement(node, owner, none)]
        ends = [k for k, line in enumerate(lines) if line.startswith("return ")]    # what follows a return is never reached
        return [f"    {line}" for line in (lines[: ends[0] + 1] if ends and not lines[ends[0]].endswith("(") else lines)]

    def statement(self, node: ast.stmt, owner: str, none: dict[str, str]) -> list[str]:
        """The lines of a statement as it is in the one file; none for one that is left out."""
        if isinstance(node, ast.ClassDef):
            bases = ["nn.Module" if ast.unparse(base) == "Positions" else ast.unparse(base) for base in node.bases]
            head = f"class {node.name}({', '.join(bases)}):" if bases else f"class {node.name}:"
            return [f"@{ast.unparse(one)}" for one in node.decorator_list] + [head, *self.body(node.body, node.name, none)]
        if isinstance(node, ast.FunctionDef):
            return self.function(node, owner)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return [f'"""{node.value.value.strip().splitlines()[0]}"""']
        if isinstance(node, ast.Raise) or ast.unparse(node).lstrip("_").startswith("check_"):
            return []
        if isinstance(node, ast.If):
            return self.branch(node, owner, none)
        if isinstance(node, ast.For | ast.With):
            return self.block(node, owner, none)
        if isinstance(node, ast.AnnAssign) and node.target.id in GONE:
            return []
        before = ast.unparse(node)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in none:
            return []
        if isinstance(node, ast.Assign) and ast.unparse(getattr(node.value, "func", node)).removeprefix("self.") in (
                "project", "run_encoder"):
            return self.called(node, owner, none)
        if isinstance(node, ast.Assign) and not self.keep_targets(node):
            return []
        settled = ast.unparse(ast.fix_missing_locations(self.settle(node, none)))
        if settled == before:                                              # as it is in the notebook
            source = textwrap.dedent(" " * node.col_offset + ast.get_source_segment(self.source, node))
            return (source + self.comment(node)).splitlines()
        target, _, value = settled.partition(" = ")
        if target == value:                                                # nothing is left of it
            return []
        return [OUTER.sub(r"\1\2", settled) + self.comment(node)]

    def keep_targets(self, node: ast.Assign) -> bool:
        """Take what disappears off the left side; False if nothing is left."""
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = [(a, b) for a, b in zip(target.elts, node.value.elts) if not _is_gone(a)]
            if len(pairs) == 1:
                node.targets, node.value = [pairs[0][0]], pairs[0][1]
            elif len(pairs) < len(target.elts):
                node.targets = [ast.Tuple([a for a, _ in pairs], ast.Store())]
                node.value = ast.Tuple([b for _, b in pairs], ast.Load())
            return bool(pairs)
        return not _is_gone(target) and ast.unparse(target) not in ATTRIBUTES_GONE

    def function(self, node: ast.FunctionDef, owner: str) -> list[str]:
        if node.name in METHODS_LEFT_OUT:
            return []
        none = SELF_ATTENTION.get(f"{owner}.{node.name}", {})
        defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + node.args.defaults
        kept = [(a, d) for a, d in zip(node.args.args, defaults) if a.arg not in GONE and a.arg not in none]
        node.args.args, node.args.defaults = [a for a, _ in kept], [d for _, d in kept if d is not None]
        returns = "" if node.returns is None or ast.unparse(node.returns) in RESULTS else f" -> {ast.unparse(node.returns)}"
        return [f"def {node.name}({ast.unparse(node.args)}){returns}:", *self.body(node.body, owner, none)]

    def branch(self, node: ast.If, owner: str, none: dict[str, str]) -> list[str]:
        if all(isinstance(inner, ast.Raise) for inner in node.body):
            return []
        test = self.settle(node.test, none)
        if isinstance(test, ast.Constant):
            taken = node.body if test.value else node.orelse
            return [line for inner in taken for line in self.statement(inner, owner, none)]
        lines = [f"if {ast.unparse(test)}:", *self.body(node.body, owner, none)]
        return lines + (["else:", *self.body(node.orelse, owner, none)] if node.orelse else [])

    def block(self, node: ast.For | ast.With, owner: str, none: dict[str, str]) -> list[str]:
        if isinstance(node, ast.With):
            if "config.embedding_std" in ast.unparse(node):                # its usual value, 1, changes nothing
                return []
            head = f"with {', '.join(map(ast.unparse, node.items))}:"
        else:
            target, items = node.target, node.iter
            if isinstance(items, ast.Call) and ast.unparse(items.func) == "zip" and any(map(_is_gone, items.args)):
                [(target, items)] = [(a, b) for a, b in zip(target.elts, items.args) if not _is_gone(b)]
            head = f"for {ast.unparse(target)} in {ast.unparse(items)}:"
        return [head, *self.body(node.body, owner, none)]


def assemble() -> str:
    """The source of the whole classifier in one file, for rotary positions, pre-norm and attention pooling."""
    parts = []
    for module, names in PARTS.items():
        assembler = _Assembler(module)
        notebook = assembler.source.partition("Exported from notebooks/")[2].partition(".ipynb")[0]
        for name in names:
            head, *rest = assembler.part(name).split("\n")
            parts.append("\n".join([f"{head}  # {notebook[:2]}", *rest]) + "\n")
    text = IMPORTS + "\n".join(parts)
    for work in (["check", "--select", "F401,I", "--fix"],
                 ["format", "--line-length", str(LINE), "--config", "format.skip-magic-trailing-comma=true"]):
        run = subprocess.run([sys.executable, "-m", "ruff", work[0], "--quiet", "--isolated", *work[1:], "-"], check=True,
                             input=text, capture_output=True, encoding="utf-8")
        text = run.stdout
    for said, now in REWORDED.items():
        if said not in text:
            raise ValueError(f"the notebooks no longer say {said!r}; mend REWORDED in tools/one_file.py")
        text = text.replace(said, now)
    text = re.sub(r"\n\n\n+", "\n\n", text)                                 # one empty line between parts, none in a part
    text = re.sub(r"\n\n(?= )", "\n", text)
    return HEAD.format(lines=len((HEAD + "\n" + text).splitlines())) + "\n" + text


def main(arguments: list[str]) -> int:
    """Write outputs/model.py and say how long it is."""
    parser = argparse.ArgumentParser(prog="python -m course_tools one-file", description="write the classifier as one file")
    parser.parse_args(arguments)
    text = assemble()
    write_text(output_folder() / "model.py", text)
    print(f"outputs/model.py: {len(text.splitlines())} lines")
    return 0
