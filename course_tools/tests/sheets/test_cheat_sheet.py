"""The cheat sheet: shapes from running the code, counts from the models, masks tried out, mistakes from the notebooks."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_tools.sheets import cheat_sheet, named_shapes
from course_tools.sheets.formulas import formula, from_markdown
from course_tools.sheets.named_shapes import SIZES, alike, count_in_letters, lines_of, section, shape_of, taught_in
from course_utils.attention import causal_mask, padding_mask, scaled_dot_product_attention
from course_utils.transformer_blocks import FeedForward

MODEL = cheat_sheet.small_model()


def every_row() -> dict[str, cheat_sheet.Row]:
    """The rows of the sheet by their first cell."""
    rows = [*cheat_sheet.input_rows(MODEL), *cheat_sheet.attention_rows(), *cheat_sheet.block_rows(MODEL),
            *cheat_sheet.language_rows(), *cheat_sheet.pretraining_rows(), *cheat_sheet.measuring_rows(MODEL),
            *cheat_sheet.distillation_rows(), *cheat_sheet.translation_rows()]
    assert len({row.what for row in rows}) == len(rows)
    return {row.what: row for row in rows}


ROWS = every_row()


def test_a_tensor_says_which_dimension_is_which():
    assert len(set(SIZES.values())) == len(SIZES) and 1 not in SIZES.values()
    assert shape_of(torch.zeros(2, 3, 6, 7)) == "(batch, heads, query, key)"
    assert shape_of(torch.zeros(2, 9, 9)) == "(batch, query, key)"
    assert shape_of(torch.zeros(2, 9, 12)) == "(batch, seq_len, d_model)"
    assert shape_of(torch.zeros(2, 1, 1, 7)) == "(batch, 1, 1, key)"
    assert (shape_of(torch.zeros(2)), shape_of(torch.tensor(1.0))) == ("(batch,)", "a number")
    with pytest.raises(ValueError, match=r"\(2, 99\).*not \[99\]"):
        shape_of(torch.zeros(2, 99))
    with pytest.raises(ValueError, match="shapes differ"):
        alike(torch.zeros(2), torch.zeros(3))


# what a person expects, without running anything
EXPECTED = {
    "tokens, ids": "(token,)", "batch, mask": "both (batch, seq_len)", "embedding": "(batch, seq_len, d_model)",
    "mean": "(batch, d_model)", "sinusoidal": "(batch, seq_len, d_model)", "learned": "table (max_len, d_model)",
    "rotary": "(batch, heads, query, d_head)", "ALiBi": "(heads, query, key)", "*Q*, *K*, *V*": "Q (batch, query, d_model)",
    "split": "Qh (batch, heads, query, d_head)", "scores": "(batch, heads, query, key)", "mask": "mask (batch, 1, 1, key)",
    "weights": "(batch, heads, query, key)", "mixture": "(batch, heads, query, d_head)",
    "merge, *W*_{o}": "(batch, query, d_model)", "layer norm": "(batch, seq_len, d_model)",
    "feed-forward": "(batch, seq_len, d_model)", "residual": "(batch, seq_len, d_model)",
    "stack": "(batch, seq_len, d_model)",
    "pooling": "w (batch, seq_len) pooled (batch, d_model)", "logits": "z (batch, classes)", "loss": "mean: a number",
    "next token": "(batch, seq_len, vocab_size)", "cache": "(batch, heads, seq_len, d_head)", "bits per byte": "",
    "hide": "both (batch, seq_len)", "hidden word": "(batch, seq_len, vocab_size)",
    "BERT": "(batch, seq_len, d_model)", "adapter": "(batch, seq_len, d_model)",
    "accuracy": "", "A minus B": "", "distance": "(batch, layers, heads)", "entropy": "(batch, layers, heads)",
    "gates": "(layers, heads)", "importance": "(layers, heads)", "occlusion": "(batch, seq_len)",
    "rollout": "(batch, query, key)", "gradients": "(batch, seq_len)", "top tokens": "(batch,)",
    "soft targets": "a number", "additive": "(batch, query, key)", "smoothing": "a number",
}


def test_the_shapes_are_those_that_a_person_expects():
    assert {what: re.sub("<[^b].*?>", "", row.cells()[2]).replace("<br>", " ").replace("</i>", "").replace("</sub>", "")
            for what, row in ROWS.items()} == EXPECTED


def test_a_shape_on_the_sheet_changes_with_the_code(monkeypatch):
    def over_features(x, mask):
        """Taught in 03_embeddings, '3. The mean that forgets its mask'."""
        return x.mean(dim=-1)

    monkeypatch.setattr(cheat_sheet, "masked_mean", over_features)
    assert every_row()["mean"].cells()[2] == "(batch, seq_len)"
    monkeypatch.setattr(cheat_sheet.MultiHeadAttention, "split", lambda layer, x: x.unflatten(-1, (4, 3)).transpose(1, 2))
    monkeypatch.setattr(cheat_sheet.MultiHeadAttention, "merge", lambda layer, x: x.transpose(1, 2).flatten(-2))
    split = next(row for row in cheat_sheet.attention_rows() if row.what == "split")
    assert "(batch, d_head, query, heads)" in split.cells()[2]                 # heads and their width mixed up


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.what)
def test_a_row_names_code_that_exists_and_a_section_that_teaches_it(row):
    *_, code, where = row.cells()
    assert row.code.__module__.startswith("course_utils.") or code == f"F.{row.code.__name__}"
    assert re.fullmatch(r"\d\d §\d+", where)
    with pytest.raises(ValueError, match="has no nonsense"):
        row._replace(method="nonsense").cells()


def test_the_whole_course_is_on_the_sheet():
    numbers = {row.cells()[4][:2] for row in ROWS.values()} | {n for places in cheat_sheet.MISTAKES for n in places}
    assert numbers == {f"{n:02}" for n in range(18)} - {"01"}                # 01 has texts and counts, no shapes


# what each formula is copied from
IN_THE_NOTEBOOKS = {
    "03": [r"`one_hot @ E`"],
    "00": [r"$$p_k = \frac{e^{z_k}}{\sum_j e^{z_j}}$$", r"$\ln p_c = z_c - \ln\sum_k e^{z_k}$",
           r"\frac{\partial\,\text{loss}}{\partial z} = p - y"],
    "04": [r"\text{weights} = \text{softmax}\left(\frac{\text{query}\;\text{key}^\top}{\sqrt{d_k}}\right)",
           r"\text{context} = \text{weights}\;\text{value}"],
    "05": [r"Q = xW_q + b_q", r"\text{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d_{head}}}\right)V_h",
           r"\text{concat}(\text{head}_0, \dots, \text{head}_{H-1})\,W_o"],
    "06": [r"\mathrm{table}[p,\,2i] = \sin\frac{p}{10000^{\,2i/d_{model}}}", r"turned by $p / 10000^{2i/d_{head}}$",
           r"$2^{-8/n}, 2^{-16/n}, …$ for $n$ heads"],
    "07": [r"\text{FFN}(x) = \text{relu}(xW_1 + b_1)\,W_2 + b_2", r"$x \leftarrow x + f(\text{LN}(x))$",
           r"$x \leftarrow \text{LN}(x + f(x))$",
           r"\text{LN}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot \gamma + \beta"],
    "08": [r"w = \text{softmax}\!\left(\frac{q\,x^\top}{\sqrt{d}}\right) \qquad \text{pooled} = w\,x"],
    "09": [r"$\sqrt{p(1-p)/n}$"],
    "10": [r"$\sum_k w_{qk}\,|q-k|$", r"$-\sum_k w_{qk} \ln w_{qk}$ divided by $\ln n$",
           r"$\left|\partial \text{loss} / \partial g_h\right|$"],
    "11": [r"$\tilde A = \frac12(\bar A + I)$", r"$f(\text{input}) - f(\text{baseline})$"],
    "12": [r"$m\,s^2/n^2$", r"$s_A^2/k_A + s_B^2/k_B$"],
    "14": ["80 % become `[MASK]`, 10 % become a random token and 10 % stay as they are",
           r"$-\ln p$(right token) over the **chosen** positions", r"$x W^T + \frac{\alpha}{r}\, x D^T U^T$",
           "$U$ starts at zero", "| after that sum | dropout | **layer norm**, then dropout |"],
    "15": [r"\alpha\, T^2\, \mathrm{KL}\big(q(T) \,\|\, p(T)\big)", r"(1 - \alpha)\, \big(\!-\ln p_{\text{label}}(1)\big)"],
    "17": [r"(1 - \varepsilon)(-\ln p_\text{right}) + \varepsilon \cdot \text{mean}_v(-\ln p_v)"],
}


@pytest.mark.parametrize("number", IN_THE_NOTEBOOKS)
def test_the_notebooks_still_write_the_formulas_as_the_sheet_does(number):
    """If one of these changes, change the row of the sheet as well."""
    text = "\n".join(lines_of(number))
    assert [fragment for fragment in IN_THE_NOTEBOOKS[number] if fragment not in text] == []


def value(letters: str, sizes: dict[str, int]) -> int:
    """What '4 <i>d</i>² + 4 <i>d</i>' comes to."""
    total = 0
    for term in re.sub("<.*?>", "", letters).split(" + "):
        product = 1
        for factor in term.replace(" · ", " ").split():
            product *= int(factor) if factor.isdigit() else sizes[factor.rstrip("²")] ** (2 if factor.endswith("²") else 1)
        total += product
    return total


def test_the_counts_in_letters_are_right_for_models_of_any_size():
    saved = cheat_sheet.ReviewClassifier.load(cheat_sheet.CHECKPOINTS / "reviews").model
    rows = {name: (letters, count) for name, letters, count in cheat_sheet.parameter_rows(MODEL, saved)}
    config = saved.config
    sizes = {"d": config.d_model, "dff": config.d_ff, "vocab_size": config.vocab_size, "classes": config.num_classes,
             "max_len": config.max_len}
    for name, (letters, count) in rows.items():
        if name not in ("learned positions", "all"):                         # the saved model has rotary positions
            assert f"{value(letters, sizes):,}" == count, name
    assert rows["all"][1] == f"<b>{sum(p.numel() for p in saved.parameters()):,}</b>"
    assert rows["learned positions"] == ("max_len · <i>d</i>", "0")
    assert {name: re.sub("<.*?>", "", letters) for name, (letters, _) in rows.items() if name != "all"} == {
        "embedding": "vocab_size · d", "learned positions": "max_len · d", "attention": "4 d² + 4 d",
        "feed-forward": "2 d dff + d + dff", "a norm; also the last": "2 d",
        "a block, with two norms": "4 d² + 2 d dff + 9 d + dff", "pooling": "d", "output": "classes · d + classes"}
    assert "4d^2 + 4d" in "\n".join(lines_of("07"))
    assert count_in_letters(FeedForward(SIZES["d_model"], SIZES["d_ff"]).parameters()) == "2 *d* *d*_{ff} + *d* + *d*_{ff}"


def test_parts_that_do_not_add_up_are_refused():
    model = cheat_sheet.small_model()
    model.forgotten = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="name the part that is missing"):
        cheat_sheet.parameter_rows(MODEL, model)


def test_the_masks_mean_what_the_table_says():
    rows = cheat_sheet.mask_rows()
    assert [means for *_, means in rows] == ["may attend"] * 3 + ["<b>leave out</b>"] * 2
    assert [re.sub("<.*?>", " ", shape).split("(", 1)[-1] for _, shape, _ in rows[:2]] == [
        "batch, 1, 1, key)", "query, key)  &amp;  of the two: (batch, 1, query, key)"]
    assert cheat_sheet.true_means(lambda flags, value: torch.tensor([5.0])) == "leave out"


def test_what_stands_below_the_masks_is_so():
    x, attention_mask = torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[5], [3]])
    layer = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    with torch.no_grad():
        alone = layer(x[1:, :3], x[1:, :3], x[1:, :3], need_weights=False)[0]
        padded = layer(x, x, x, key_padding_mask=~attention_mask, need_weights=False)[0]
        nothing = layer(x, x, x, key_padding_mask=torch.ones(2, 5, dtype=torch.bool))[0]
    assert torch.allclose(padded[1, :3], alone[0], atol=1e-6) and nothing.isnan().all()
    flags = causal_mask(5)
    numbers = torch.zeros(5, 5).masked_fill(~flags, float("-inf"))
    library = F.scaled_dot_product_attention(x, x, x, numbers)
    assert torch.allclose(library, scaled_dot_product_attention(x, x, x, flags).context, atol=1e-6)
    assert not torch.allclose(library, F.scaled_dot_product_attention(x, x, x, flags.float()), atol=1e-2)
    closed = padding_mask(torch.zeros(2, 5, dtype=torch.bool))[:, 0]
    assert (scaled_dot_product_attention(x, x, x, closed).context == 0).all()


def test_the_mistakes_are_read_from_the_notebooks(monkeypatch):
    rows = cheat_sheet.mistake_rows()
    assert len(rows) == 5 and all(written and sign and len(where.split(", ")) > 1 for written, sign, where in rows)
    assert not re.search(r"[$`\\]|\(section|\(next", str(rows))
    monkeypatch.setattr(cheat_sheet, "MISTAKES", [{"04": "words that no line has"}])
    with pytest.raises(ValueError, match="0 common mistakes of notebook 04"):
        cheat_sheet.mistake_rows()


def test_sections_and_docstrings_that_are_not_there_are_refused():
    assert taught_in(scaled_dot_product_attention) == ("04", "8. The function")
    assert section("04", "8. The function") == "04 §8"
    with pytest.raises(ValueError, match="no section '8. The functions'"):
        section("04", "8. The functions")
    with pytest.raises(ValueError, match="docstring of cheat_sheet"):
        taught_in(cheat_sheet.cheat_sheet)
    with pytest.raises(FileNotFoundError, match="no notebook 99"):
        named_shapes.lines_of("99")


def test_markdown_becomes_html_and_what_cannot_be_shown_is_refused():
    assert from_markdown("`a < b` & *c* **d**") == "<code>a &lt; b</code> &amp; <i>c</i> <b>d</b>"
    assert from_markdown(r"by $\sqrt{d_k}$, $1/e$") == 'by √<span class="root"><i>d</i><sub>k</sub></span>, 1/e'
    with pytest.raises(ValueError, match="formulas.py"):
        from_markdown(r"$\frac12$")
    assert formula("*Q*_{*h*} e^{−∞}") == "<i>Q</i><sub><i>h</i></sub> e<sup>−∞</sup>"


class Tags(HTMLParser):
    """Which tags are open, and whether each is closed where it must be."""

    def __init__(self):
        super().__init__()
        self.open, self.faults = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append((tag, self.getpos()))


def test_two_runs_write_the_same_page_without_network_scripts_or_paths(root, tmp_path):
    written = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "COURSE_OUTPUTS": str(tmp_path / seed)}
        made = subprocess.run([sys.executable, "-m", "course_tools", "cheat-sheet"], cwd=root, capture_output=True,
                              text=True, check=True, env=env)
        assert "cheat_sheet.html" in made.stdout and f" {tmp_path}" not in made.stdout
        written.append((tmp_path / seed / "sheets" / "cheat_sheet.html").read_bytes())
    assert written[0] == written[1]
    text = written[0].decode()
    assert str(root) not in text and not re.search(r"https?:|//|<script|<link|<img|@import|url\(|[_^]\{|\*\w|\w\*", text)
    tags = Tags()
    tags.feed(text)
    assert tags.faults == [] and tags.open == []


def test_writing_the_sheet_leaves_the_random_numbers_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    cheat_sheet.cheat_sheet()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_sheets_writes_both_for_learners(root, tmp_path):
    shutil.copyfile(root / "Makefile", tmp_path / "Makefile")
    said = subprocess.run(["make", "-n", "sheets"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"-m course_utils (\S+)", said) == ["cheat-sheet", "quiz-cards"]
