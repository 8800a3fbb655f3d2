"""The cheat sheet: shapes and formulas of the whole course on one page, `python -m course_tools cheat-sheet`.

Does: run the course's own functions on sizes that all differ, so that each shape names itself; count parameters; try which
way round each mask is meant; read sections and mistakes from the notebooks; write outputs/sheets/cheat_sheet.html.
Does not: lay out the page (see `cheat_page`) or name shapes (see `named_shapes`).
"""

import argparse
import os
import re
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_tools.sheets.cheat_page import Box, page
from course_tools.sheets.formulas import formula, from_markdown, root
from course_tools.sheets.named_shapes import SIZES, alike, count_in_letters, lines_of, section, shape_of, taught_in
from course_utils.attention import causal_mask, padding_mask, scaled_dot_product_attention
from course_utils.attention_maps import HeadGates, attention_distance, attention_entropy, head_importance
from course_utils.classifier import (
    AttentionPooling,
    ClassifierConfig,
    ReviewClassifier,
    SelfAttentionClassifier,
)
from course_utils.distillation import distillation_loss
from course_utils.embeddings import masked_mean
from course_utils.encoder_decoder import smoothed_cross_entropy
from course_utils.explain import comprehensiveness, integrated_gradients, occlusion, rollout
from course_utils.files import write_text
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.language_model import KeyValueCache, LanguageModel, LanguageModelConfig, bits_per_byte, next_token_loss
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import AlibiPositions, LearnedPositions, RotaryPositions, SinusoidalPositions
from course_utils.pretraining import (
    BertConfig,
    BertEncoder,
    LowRankAdapter,
    MaskedLanguageModel,
    MaskedTokenLoss,
    mask_tokens,
)
from course_utils.recurrent_attention import AdditiveAttention
from course_utils.results import difference, interval
from course_utils.tokenization import WordTokenizer, pad_batch
from course_utils.training import Batch
from course_utils.transformer_blocks import Encoder, EncoderBlock, FeedForward, layer_norm


class Row(NamedTuple):
    """One line of the sheet: what, its formula (see `formulas.formula`), the tensors it gives, and the code that does it.

    `code` is a function or class of the course or of PyTorch, `method` the name of a method of it; `taught` is number and
    section of a notebook where the code's docstring doesn't say.
    """

    what: str
    formula: str
    gives: dict[str, Tensor]
    code: Callable
    method: str = ""
    taught: tuple[str, str] | None = None

    def cells(self) -> list[str]:
        """The five cells of the row as HTML. Raises ValueError for a method or a section that isn't there."""
        if self.method and not hasattr(self.code, self.method):
            raise ValueError(f"{self.code.__qualname__} has no {self.method}; correct the row {self.what!r}")
        owner = "F." if self.code.__module__ == F.__name__ else ""
        shapes = [f"{name} {shape_of(tensor)}".strip() for name, tensor in self.gives.items()]
        return [formula(self.what), formula(self.formula), "<br>".join(shapes),
                owner + ".".join(filter(None, [self.code.__qualname__, self.method])),
                section(*(self.taught or taught_in(self.code)))]


def small_batch() -> tuple[Tensor, Tensor]:
    """Ids and mask of two texts, of 9 tokens and of 5."""
    return pad_batch([[2 + i for i in range(length)] for length in (SIZES["seq_len"], 5)], pad_id=0)


def small_model() -> SelfAttentionClassifier:
    """A classifier in which every size is another one, with random weights, in evaluation mode."""
    sizes = {name: SIZES[name] for name in ("vocab_size", "d_model", "d_ff", "max_len")}
    return SelfAttentionClassifier(ClassifierConfig(
        **sizes, num_classes=SIZES["classes"], num_heads=SIZES["heads"], num_layers=SIZES["layers"],
        positions="learned")).eval()


def input_rows(model: SelfAttentionClassifier) -> list[Row]:
    """From a text to vectors with positions."""
    token_ids, mask = small_batch()
    words = "not dull but moving and never too".split()
    tokenizer = WordTokenizer(["<pad>", "<unk>", *words])
    ids = torch.tensor(tokenizer.encode("Not dull, but moving and never long"))      # eight tokens, two of them unknown
    x, d, d_head, heads = model.word_vectors(token_ids), SIZES["d_model"], SIZES["d_head"], SIZES["heads"]
    split = torch.zeros(SIZES["batch"], heads, SIZES["query"], d_head)
    angle = "*p* / 10000^{2*i*/*d*}"
    return [
        Row("tokens, ids", "words and punctuation in lower case; unknown: &lt;unk&gt;, id 1", {"": ids},
            WordTokenizer, "encode"),
        Row("batch, mask", "short rows end in 0, &lt;pad&gt;;&ensp; mask = position &lt; length",
            {"both": alike(mask, token_ids)}, pad_batch),
        Row("embedding", "*x* = one_hot *E*: for each token, its row of *E*", {"": x}, SelfAttentionClassifier,
            "word_vectors", taught=("03", "1. A lookup is a product")),
        Row("mean", "Σ_{*i*} *m*_{*i*} *x*_{*i*} / Σ_{*i*} *m*_{*i*}, with *m* the mask: padding doesn't count",
            {"": masked_mean(x, mask)}, masked_mean),
        Row("sinusoidal", f"*x* + table; in row *p*, columns 2*i*, 2*i*+1: sin, cos of {angle}",
            {"": SinusoidalPositions(d, SIZES["max_len"]).add(x)}, SinusoidalPositions),
        Row("learned", "*x* + table, one trained row for each position *p*", {"table": LearnedPositions(
            d, SIZES["max_len"]).table}, LearnedPositions),
        Row("rotary", "columns 2*i*, 2*i*+1 of *Q*_{*h*} and *K*_{*h*} turn by "
            + angle.replace("*d*}", "*d*<sub>head</sub>}"), {"": RotaryPositions(d_head).rotate(split)}, RotaryPositions),
        Row("ALiBi", "score − slope · |*q* − *k*|;&ensp; slopes 2^{−8/*n*}, 2^{−16/*n*}, … for *n* heads",
            {"": AlibiPositions(heads).bias(SIZES["query"], SIZES["key"])}, AlibiPositions),
    ]


def attention_rows() -> list[Row]:
    """One attention layer. Queries and keys come from texts of different lengths, so that no two sizes are equal."""
    layer = MultiHeadAttention(SIZES["d_model"], SIZES["heads"]).eval()
    asking, asked = (torch.randn(SIZES["batch"], SIZES[name], SIZES["d_model"]) for name in ("query", "key"))
    query, key, value = layer.project(asking, asked, asked)
    scores = query @ key.transpose(-2, -1)
    mask = padding_mask(torch.arange(SIZES["key"]) < torch.tensor([[SIZES["key"]], [4]]))
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    merged = layer.merge(context)
    heads = ("05", "3. Split and merge")
    return [
        Row("*Q*, *K*, *V*", "*Q* = *x W*_{q} + *b*_{q},&ensp; *K* = *x W*_{k} + *b*_{k},&ensp; *V* = *x W*_{v} + *b*_{v}",
            {"<i>Q</i>": layer.query_projection(asking)}, MultiHeadAttention, "project",
            ("05", "2. Three heads by hand")),
        Row("split", "*Q*_{*h*} = columns *h d*_{head} to (*h* + 1) *d*_{head} of *Q*; *K*, *V* likewise",
            {"<i>Q<sub>h</sub></i>": query}, MultiHeadAttention, "split", heads),
        Row("scores", f"*Q*_{{*h*}} *K*_{{*h*}}<sup>⊤</sup> / {root('*d*_{k}')} (+ bias);&ensp; *d*_{{k}} = *d*_{{head}}: "
            "their variance stays near 1", {"": alike(scores, weights)}, scaled_dot_product_attention,
            taught=("04", "6. Why √d_k")),
        Row("mask", "a score becomes −∞ where the mask is False; then e^{−∞} = 0", {"mask": mask}, padding_mask),
        Row("weights", "softmax(scores) over the keys: *w*_{*j*} = e^{*s*<sub>j</sub>} / Σ_{*k*} e^{*s*<sub>k</sub>}; "
            "rows sum to 1", {"": weights}, scaled_dot_product_attention),
        Row("mixture", "head_{*h*} = weights *V*_{*h*}: a weighted mean of values", {"": context},
            scaled_dot_product_attention),
        Row("merge, *W*_{o}", "concat(head_{0}, …, head_{*H*−1}) *W*_{o} + *b*_{o}",
            {"": layer.output_projection(merged)}, MultiHeadAttention, taught=("05", "5. The output projection")),
    ]


def block_rows(model: SelfAttentionClassifier) -> list[Row]:
    """From a block to the loss."""
    token_ids, mask = small_batch()
    x = model.word_vectors(token_ids)
    ones = torch.ones(SIZES["d_model"])
    feed_forward = FeedForward(SIZES["d_model"], SIZES["d_ff"])
    result = model(token_ids, mask, need_weights=True)
    stack, _ = model.run_encoder(token_ids, mask, need_weights=True)
    pooled, weights = model.pooling(stack, mask)
    block = model.encoder.blocks[0]
    return [
        Row("layer norm", f"LN(*x*) = (*x* − *μ*) / {root('*σ*² + *ε*')} ⊙ *γ* + *β*;&ensp; *μ*, *σ*² of each vector",
            {"": layer_norm(x, ones, ones)}, layer_norm),
        Row("feed-forward", "FFN(*x*) = relu(*x W*_{1} + *b*_{1}) *W*_{2} + *b*_{2};&ensp; by default gelu, not relu",
            {"": feed_forward(x)}, FeedForward),
        Row("residual", "pre-norm *x* ← *x* + *f*(LN(*x*));&ensp; post-norm *x* ← LN(*x* + *f*(*x*))",
            {"": block(x).x}, EncoderBlock),
        Row("stack", "in a block, *f* is attention, then FFN; after num_layers blocks, LN",
            {"": stack}, Encoder),
        Row("pooling", f"*w* = softmax(*q x*<sup>⊤</sup> / {root('*d*')}), pooled = *w x*;&ensp; *q* is learned",
            {"<i>w</i>": weights, "pooled": pooled}, AttentionPooling),
        Row("logits", "*z* = pooled *W* + *b*;&ensp; *p* = softmax(*z*)", {"<i>z</i>": result.logits},
            SelfAttentionClassifier),
        Row("loss", "−ln *p*_{*c*} = −*z*_{*c*} + ln Σ_{*k*} e^{*z*<sub>k</sub>}, *c* the true class; "
            "∂loss/∂*z* = *p* − *y*",
            {"mean:": F.cross_entropy(result.logits, torch.tensor([0, 4]))}, F.cross_entropy,
            taught=("00", "7. Cross-entropy: the price of being surprised")),
    ]


def language_rows() -> list[Row]:
    """The loss of a language model, its cache, and how models with different tokenizers are compared."""
    sizes = {name: SIZES[name] for name in ("vocab_size", "d_model", "d_ff", "max_len")}
    model = LanguageModel(LanguageModelConfig(**sizes, num_heads=SIZES["heads"], num_layers=2)).eval()
    token_ids, _ = small_batch()
    caches = model.new_caches()
    for new in (token_ids[:, :-1], token_ids[:, -1:]):                         # what was read before, and one more token
        model(new, caches=caches)
    return [
        Row("next token", "mean of −ln *p*(ids[:, 1:]), by softmax(logits[:, :−1])",
            {"": model(token_ids).logits}, next_token_loss),
        Row("cache", "a new token is at position len(cache); append its *K*_{*h*}, *V*_{*h*}",
            {"": alike(caches[0].key, caches[0].value)}, KeyValueCache, "append"),
        Row("bits per byte", "Σ −ln *p* / (ln 2 · bytes of UTF-8), for any tokenizer", {}, bits_per_byte),
    ]


def pretraining_rows() -> list[Row]:
    """Hidden words, the encoder that's asked for them, and an adapter for fine-tuning it."""
    sizes = {name: SIZES[name] for name in ("vocab_size", "d_model", "d_ff", "max_len")}
    model = MaskedLanguageModel(BertConfig(**sizes, num_heads=SIZES["heads"], num_layers=2)).eval()
    token_ids, mask = small_batch()
    hidden = mask_tokens(token_ids, mask, mask_id=1, vocab_size=SIZES["vocab_size"])
    result = model.encoder(hidden.inputs, mask)
    adapter = LowRankAdapter(nn.Linear(SIZES["d_model"], SIZES["d_model"]), rank=2)
    return [
        Row("hide", "of the chosen 15 %, 80 % become [MASK], 10 % a random id",
            {"both": alike(hidden.inputs, hidden.chosen)}, mask_tokens),
        Row("hidden word", "mean of −ln *p*(right id) over the chosen positions alone",
            {"": model(hidden.inputs, mask)}, MaskedTokenLoss),
        Row("BERT", "LN(*x* + position + type), post-norm blocks; pooler tanh(*x*_{0} *W* + *b*)", {"": result.x},
            BertEncoder),
        Row("adapter", "*x W*<sup>⊤</sup> + (*α*/*r*) *x D*<sup>⊤</sup> *U*<sup>⊤</sup>;&ensp; *W* is frozen, *D* starts "
            "random, *U* at 0", {"": adapter(result.x)}, LowRankAdapter),
    ]


def measuring_rows(model: SelfAttentionClassifier) -> list[Row]:
    """What notebooks 09 to 12 measure."""
    token_ids, mask = small_batch()
    attentions = model(token_ids, mask, need_weights=True).attentions
    scores = occlusion(model, token_ids, mask)
    batch = Batch(token_ids, mask, labels=torch.tensor([0, 4]), indices=[0, 1])
    return [
        Row("accuracy", f"*p* ± 1.96 {root('*p*(1 − *p*)/*n* + *s*²/*k*')};&ensp; *n* reviews, *k* seeds, variance *s*²", {},
            interval, taught=("09", "2. How sure is a number?")),
        Row("A minus B", f"± *t* {root('*m s*²/*n*² + *s*_{A}²/*k*_{A} + *s*_{B}²/*k*_{B}')};&ensp; *m* draws (twins are "
            "one)", {}, difference, taught=("12", "2. The interval of a difference")),
        Row("distance", "Σ_{*k*} *w*_{*qk*} |*q* − *k*|, mean over the queries", {"": attention_distance(attentions, mask)},
            attention_distance),
        Row("entropy", "−Σ_{*k*} *w*_{*qk*} ln *w*_{*qk*} / ln *n*, mean over the queries; *n* tokens",
            {"": attention_entropy(attentions, mask)}, attention_entropy),
        Row("gates", "*g*_{*h*} head_{*h*} before *W*_{o}: 1 is open, 0 is shut", {"": HeadGates(model).gates}, HeadGates),
        Row("importance", "|∂loss/∂*g*_{*h*}|, mean over the reviews", {"": head_importance(model, [batch])},
            head_importance),
        Row("occlusion", "*p*(class | text) − *p*(class | text without the token)", {"": scores}, occlusion),
        Row("rollout", "*Ã* = ½ (*Ā* + *I*), *Ā* the mean over heads;&ensp; *Ã*_{last} ⋯ *Ã*_{1} *Ã*_{0}",
            {"": rollout(attentions)}, rollout),
        Row("gradients", "Σ scores = *f*(input) − *f*(baseline), *f* the log-odds",
            {"": integrated_gradients(model, token_ids, mask, steps=2)}, integrated_gradients),
        Row("top tokens", "*p*(class | text) − *p*(class | text without its top tokens)",
            {"": comprehensiveness(model, token_ids, mask, scores)}, comprehensiveness),
    ]


def distillation_rows() -> list[Row]:
    """A student's loss."""
    logits = torch.zeros(SIZES["batch"], SIZES["classes"])
    loss = distillation_loss(logits, logits, torch.zeros(len(logits), dtype=torch.long))
    return [Row("soft targets", "*α T*² KL(teacher ‖ student) + (1 − *α*) loss", {"": loss}, distillation_loss)]


def translation_rows() -> list[Row]:
    """The score of 2014, and a translator's loss."""
    additive = AdditiveAttention(SIZES["d_head"], SIZES["d_head"], SIZES["d_head"])
    query, states = torch.zeros(2, SIZES["query"], SIZES["d_head"]), torch.zeros(2, SIZES["key"], SIZES["d_head"])
    weights = additive(query, states, torch.ones(states.shape[:2], dtype=torch.bool)).weights
    logits, targets = torch.zeros(2, 9, SIZES["vocab_size"]), torch.ones(2, 9, dtype=torch.long)
    loss = smoothed_cross_entropy(logits, targets)
    return [Row("additive", "softmax(*v* · tanh(*W*_{q} *query* + *W*_{k} *key*))", {"": weights}, AdditiveAttention),
            Row("smoothing", "(1 − *ε*)(−ln *p*_{right}) + *ε* mean of −ln *p*", {"": loss}, smoothed_cross_entropy)]


def parameter_rows(model: SelfAttentionClassifier, saved: SelfAttentionClassifier) -> list[list[str]]:
    """Of each part: how many parameters it has, in letters, and how many in a saved model.

    Raises ValueError where the parts don't add up to a whole model.
    """
    def parts(of: SelfAttentionClassifier) -> dict[str, nn.Module]:
        block = of.encoder.blocks[0]
        return {"embedding": of.embedding, "learned positions": of.positions, "attention": block.attention,
                "feed-forward": block.feed_forward, "a norm; also the last": of.encoder.norm,
                "a block, with two norms": block, "pooling": of.pooling, "output": of.output}

    def size(of: nn.Module) -> int:
        return sum(parameter.numel() for parameter in of.parameters())

    for one in (model, saved):
        outside = (one.embedding, one.positions, one.encoder.norm, one.pooling, one.output)
        added = sum(map(size, [*outside, *one.encoder.blocks]))
        if added != size(one):
            raise ValueError(f"the parts have {added:,} parameters and the model {size(one):,}; "
                             "name the part that is missing")
    rows = [[name, formula(count_in_letters(part.parameters())), f"{size(parts(saved)[name]):,}"]
            for name, part in parts(model).items()]
    whole = f"with {len(saved.encoder.blocks)} blocks, {saved.config.positions} positions"
    return [*rows, ["all", whole, f"<b>{size(saved):,}</b>"]]


def true_means(attend: Callable[[Tensor, float], Tensor]) -> str:
    """Which way round a mask is meant. `attend(flags, value)`: a query's context over two keys, the first of that value.

    The first key is flagged True and changed; if the context doesn't change with it, True means 'leave out'.
    """
    contexts = [attend(torch.tensor([True, False]), value) for value in (1.0, 2.0)]
    return "leave out" if torch.equal(*contexts) else "may attend"


def mask_rows() -> list[list[str]]:
    """The course's masks, PyTorch's, their shapes, and what True means in each, tried out."""
    layer = nn.MultiheadAttention(4, 1, batch_first=True).eval()

    def keys(value: float) -> Tensor:
        return torch.tensor([[[value] * 4, [5.0] * 4]])                        # (1, key, 4): the first key's flag is True

    def library(value: float, **masks: Tensor) -> Tensor:
        return layer(torch.ones(1, 1, 4), keys(value), keys(value), need_weights=False, **masks)[0].detach()

    query = torch.ones(1, 1, 4)
    means = [
        true_means(lambda flags, value: scaled_dot_product_attention(
            query, keys(value), keys(value), padding_mask(flags[None])[0]).context),
        true_means(lambda flags, value: scaled_dot_product_attention(query, keys(value), keys(value), flags[None]).context),
        true_means(lambda flags, value: F.scaled_dot_product_attention(query, keys(value), keys(value), flags[None])),
        true_means(lambda flags, value: library(value, key_padding_mask=flags[None])),
        true_means(lambda flags, value: library(value, attn_mask=flags[None])),
    ]
    _, mask = small_batch()
    causal, padding = causal_mask(SIZES["seq_len"]), padding_mask(mask)
    shapes = [shape_of(padding).replace("seq_len", "key"), shape_of(causal)]
    both = f"<code>&amp;</code> of the two: {shape_of(padding & causal)}"
    return [["<code>padding_mask(attention_mask)</code>", shapes[0], means[0]],
            ["<code>causal_mask(query_len, key_len)</code>", f"{shapes[1]}<br>{both}", means[1]],
            ["<code>F.scaled_dot_product_attention</code>", "<code>attn_mask</code>, broadcasts", means[2]],
            ["<code>nn.MultiheadAttention</code>", "<code>key_padding_mask</code> (batch, key)", f"<b>{means[3]}</b>"],
            ["", "<code>attn_mask</code> (query, key)", f"<b>{means[4]}</b>"]]


MASKS = ("So <code>nn.MultiheadAttention</code> needs <code>key_padding_mask=~attention_mask</code>. A mask of numbers is "
         "added to the scores: write 0 and −∞, not 1 and 0. A query without a key gets zeros; "
         "<code>nn.MultiheadAttention</code> may give nan.")
# of each notebook that names the mistake, what the line contains that does; the last is the one that is shown
MISTAKES: list[dict[str, str]] = [
    {"00": "`F.cross_entropy(z.softmax(-1), c)`", "03": "**Softmax before `F.cross_entropy`.**", "08": "`softmax` before"},
    {"03": "**Counting padding in the mean.**", "04": "a review's vectors differ", "08": "padding counted in the pooling"},
    {"02": "**An inverted mask.**", "04": "inverted mask", "05": "our mask given to `nn.MultiheadAttention`"},
    {"04": "no division by $\\sqrt{d_k}$", "05": "scores divided by √`d_model`"},
    {"10": "| one seed |", "12": "one seed each", "09": "one seed, two decimals"},
]


def mistake_rows() -> list[list[str]]:
    """The mistakes that several notebooks name, in the words of one: what was written, what gives it away, where.

    Raises ValueError where a notebook no longer names the mistake.
    """
    rows = []
    for places in MISTAKES:
        for number, words in places.items():
            named = lines_of(number)
            found = [line for line in named[named.index("## Common mistakes"):] if words in line]
            if len(found) != 1:
                raise ValueError(f"{len(found)} common mistakes of notebook {number} contain {words!r}; expected one: "
                                 "correct MISTAKES in course_tools/sheets/cheat_sheet.py")
        written, sign = found[0].strip("| ").split(" | ")
        rows.append([from_markdown(written), from_markdown(without_reference(sign)), ", ".join(sorted(places))])
    return rows


def without_reference(text: str) -> str:
    """The text without '(section 2)' or '(next cell)' at its end, which lead nowhere on another page."""
    return re.sub(r" \((section \d+|next cell)\)$", "", text)


def cheat_sheet() -> str:
    """The HTML of the whole page; the same bytes every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = small_model()
        saved = ReviewClassifier.load(CHECKPOINTS / "reviews").model
        flow = [(title, [row.cells() for row in rows]) for title, rows in (
            ("Text to vectors", input_rows(model)), ("Attention", attention_rows()), ("The classifier", block_rows(model)),
            ("Language models: next words, hidden words", [*language_rows(), *pretraining_rows()]),
            ("Measuring", [*measuring_rows(model), *distillation_rows(), *translation_rows()]))]
        sizes = formula(f"*d* = {saved.config.d_model}, *d*_{{ff}} = {saved.config.d_ff}")
        boxes = [
            Box(f"Parameters; in 08: {sizes}, {saved.config.vocab_size:,} ids",
                ["part", "how many", "in 08"], parameter_rows(model, saved)),
            Box("What a mask means", ["mask", "shape", "True means"], mask_rows(), MASKS),
            Box("Five mistakes that several notebooks name", ["mistake", "what gives it away", "named in"], mistake_rows()),
        ]
    return page(flow, boxes)


def main(arguments: list[str] | None = None) -> int:
    """Write the cheat sheet, one page of shapes and formulas to print, to outputs/sheets; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    path = output_folder() / "sheets" / "cheat_sheet.html"
    write_text(path, cheat_sheet())
    print(f"the cheat sheet, a page to print: {os.path.relpath(path)}")
    return 0
