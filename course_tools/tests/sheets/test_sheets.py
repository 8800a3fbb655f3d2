"""Sheets to work on paper: blanks are blank, answers are right, and both stand where the notebooks say."""

import itertools
import math
import os
import re
import subprocess
import sys
from fractions import Fraction

import nbformat
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import nn
from torch.nn import functional as F

from course_tools.sheets import sheets
from course_tools.sheets.sheet_pages import Blank, page
from course_utils.attention import scaled_dot_product_attention
from course_utils.byte_pairs import BPETokenizer
from course_utils.distillation import NO_LABEL, distillation_loss, expected_calibration_error, reliability, soften
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.language_model import bits_per_byte, sampling_probabilities
from course_utils.pretraining import LowRankAdapter
from course_utils.recurrent_attention import AdditiveAttention, alignment_error_rate, links_of
from course_utils.transformer_blocks import layer_norm

EVERY = [make() for make in sheets.SHEETS]
X = torch.tensor([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], dtype=torch.float64)


def row(sheet, step: int, line: int) -> list[str]:
    """What stands in a row of a step, blanks filled in, without the row's name and cells where nothing belongs."""
    cells = sheet.steps[step - 1].rows[line][1:]
    return [text for text in (cell.answer if isinstance(cell, Blank) else cell for cell in cells) if text]


def numbers(sheet, step: int, line: int) -> torch.Tensor:
    """The numbers of such a row."""
    return torch.tensor([float(Fraction(text.replace("−", "-"))) for text in row(sheet, step, line)], dtype=torch.float64)


def same(got: torch.Tensor, right) -> bool:
    """Equal up to the rounding of three decimals."""
    return torch.allclose(got, torch.as_tensor(right, dtype=torch.float64), rtol=0, atol=5.1e-4)


@pytest.fixture(scope="module")
def saved(root):
    """The cells of a notebook by id, from its number."""
    def read(number: str) -> dict:
        path = next((root / "notebooks").glob(f"{number}_*.ipynb"))
        return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    return read


def test_every_blank_of_the_sheets_is_empty_and_none_of_the_answers_is():
    empty, filled = page("sheets", EVERY, filled=False), page("answers", EVERY, filled=True)
    blanks, answers = (re.findall(r'<td class="blank">(.*?)</td>', text) for text in (empty, filled))
    assert len(blanks) == len(answers) == sum(isinstance(cell, Blank) for sheet in EVERY for table in sheet.steps
                                              for line in table.rows for cell in line)
    assert not any(blanks)
    assert all(re.sub("<.*?>", "", answer).strip() for answer in answers)
    for sheet in EVERY:
        assert sheet.answer in filled and sheet.answer not in empty
        assert all(any(isinstance(cell, Blank) for line in table.rows for cell in line) for table in sheet.steps)
        assert not any(isinstance(cell, Blank) for table in sheet.given for line in table.rows for cell in line)


def test_every_row_has_a_cell_for_every_column():
    for sheet in EVERY:
        for table in (*sheet.given, *sheet.steps):
            assert {len(line) for line in table.rows} == {len(table.columns)}, (sheet.title, table.caption)


def test_sheets_name_sections_and_exercises_that_the_notebooks_have(saved):
    for sheet in EVERY:
        cells = saved(sheet.notebook).values()
        headings = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
        assert f"## {sheet.section}" in headings
        if sheet.exercise:
            exercise = f"### Exercise {sheet.exercise} {find_exercise(sheet.exercise).title} "
            assert any(line.startswith(exercise) for line in headings), exercise


def test_the_gradient_is_the_one_of_autograd():
    sheet, W = sheets.gradient(), torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1, 0, 1, 2])
    F.cross_entropy(X @ W, y).backward()
    for i in range(4):
        assert torch.allclose(numbers(sheet, 1, i), (torch.full((3,), 1 / 3) - F.one_hot(y[i], 3)).double())
    for f in range(3):
        assert torch.allclose(numbers(sheet, 2, f), W.grad[f])


def test_the_log_odds_are_those_of_exercise_1_3():
    sheet, reviews = sheets.log_odds(), sheets.log_odds().given[0].rows
    texts, labels = [up for _, up, _ in reviews] + [down for _, _, down in reviews], [1, 1, 0, 0]
    for line, text in enumerate(("not dull but moving", "not moving but dull")):
        right = answers_to("1.3").reference(texts, labels, text)
        product, shown, says = row(sheet, 3, line)
        assert abs(float(shown.replace("−", "-")) - right) < 5.1e-4 and abs(float(product) - math.exp(right)) < 5.1e-4
        assert says == "negative"
    assert row(sheet, 2, 2) == ["1/2", "1/2", "1", "2", "3/2"]


def test_the_merges_are_those_of_exercise_2_6_of_the_tokenizer_and_of_the_notebook(saved):
    sheet = sheets.merges()
    words, times = ["dull", "duller", "fuller", "tell"], [3, 2, 2, 1]
    figure = saved("02b")["figure-merges"].outputs[0].metadata["image/png"]["alt"]
    pieces, learned = list(map(list, words)), []
    for line in range(4):
        best, pieces = answers_to("2.6").reference(pieces, times)
        learned.append(best)
        pair, count, *shown = row(sheet, 2, line)
        assert (tuple(pair.split()), [text.split() for text in shown]) == (best, pieces)
        assert f"; {' + '.join(best)}, {count} times: {', '.join(map('|'.join, pieces))}" in figure
    tokenizer = BPETokenizer.train([word for word, n in zip(words, times) for _ in range(n)], vocab_size=257 + 4)
    assert [tuple(tokenizer.tokens[i].decode() for i in pair) for pair in tokenizer.merges] == learned
    assert row(sheet, 3, 0)[0].split() == [tokenizer.tokens[i].decode() for i in tokenizer.encode("fullest")]


def test_the_rows_of_dull_and_bland_are_those_of_the_attention_function_and_exercise_4_1():
    sheet, unscaled = sheets.row_of_dull(), math.sqrt(3)                    # section 3 does not scale yet
    context, weights = scaled_dot_product_attention(X[1:2] * unscaled, X, X)
    assert same(numbers(sheet, 1, 2)[:4], weights[0]) and same(numbers(sheet, 2, 0), context[0])
    assert same(numbers(sheet, 3, 2)[:4], answers_to("4.1").reference())


def test_the_three_heads_bring_what_the_attention_function_brings():
    sheet = sheets.three_heads()
    Q = torch.stack([-4 * X[:, 0], torch.full((4,), 4.0).double(), torch.full((4,), 4.0).double()], dim=1)  # (token, head)
    for h in range(3):
        context, weights = scaled_dot_product_attention(Q[:, h:h + 1], X[:, h:h + 1], X[:, h:h + 1])
        assert same(numbers(sheet, 1, h), Q[:, h])
        assert same(numbers(sheet, 3, h), torch.cat([weights[3], context[3]]))


def test_the_rotation_is_that_of_exercise_6_2():
    sheet, matrix = sheets.rotation(), torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64)
    five = torch.tensor(answers_to("6.2").reference(), dtype=torch.float64)
    assert same(torch.stack([numbers(sheet, 1, 0), numbers(sheet, 1, 1)]), matrix)
    assert same(torch.stack([numbers(sheet, 2, 0)[2], numbers(sheet, 2, 1)[2]]), five)
    assert same(numbers(sheet, 3, 1), [*(matrix @ five), 1.0])


def test_layer_norm_is_the_course_s():
    sheet = sheets.layer_norm()
    x, weight, bias = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 0.5, -1.0])
    assert same(numbers(sheet, 2, 0), layer_norm(x, torch.ones(3), torch.zeros(3)))
    assert same(numbers(sheet, 2, 1), layer_norm(x, weight, bias))
    assert same(numbers(sheet, 3, 0), layer_norm(10 * x, torch.ones(3), torch.zeros(3)))


def test_the_clipped_gradients_are_those_of_torch_and_the_slip_is_another():
    sheet, clipped = sheets.clipping(), []
    for gradient in ([3.0, -4.0, 12.0], [0.3, -0.4, 1.2]):
        parameter = nn.Parameter(torch.zeros(3))
        parameter.grad = torch.tensor(gradient)
        nn.utils.clip_grad_norm_([parameter], max_norm=2.6)
        clipped.append(parameter.grad)
    assert same(torch.cat([numbers(sheet, 1, 1), numbers(sheet, 2, 1)]), torch.cat(clipped))
    weight, bias = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    weight.grad, bias.grad = torch.tensor([3.0, -4.0]), torch.tensor([12.0])
    for parameter in (weight, bias):
        nn.utils.clip_grad_norm_([parameter], max_norm=2.6)
    assert same(numbers(sheet, 3, 0), torch.cat([weight.grad, bias.grad]))


def test_the_entries_of_tfidf_are_those_of_scikit_learn_and_exercise_9_2():
    sheet = sheets.tfidf()
    model = TfidfVectorizer(vocabulary=["not", "dull", "but", "moving"]).fit([text for _, text, _ in sheet.given[0].rows])
    right = model.transform(["not dull but moving", "dull dull but moving"]).toarray()
    assert same(numbers(sheet, 1, 1), model.idf_)
    assert same(numbers(sheet, 2, 2), right[0]) and same(numbers(sheet, 3, 2), right[1])
    assert same(numbers(sheet, 3, 2)[1], answers_to("9.2").reference())


def test_loss_bits_and_cuts_are_those_of_the_language_model_s_functions():
    sheet = sheets.bits_and_top_p()
    words = sheet.given[0].columns[1:]
    after = {line[0]: torch.tensor([float(text) for text in line[1:]], dtype=torch.float64) for line in sheet.given[0].rows}
    text = [*sheet.steps[0].columns[1:], row(sheet, 1, 0)[-1]]
    assert row(sheet, 1, 0) == text[1:] and all(math.isclose(p.sum(), 1) for p in after.values())
    logits = torch.stack([after[token].log() for token in text[:-1]])
    costs = F.cross_entropy(logits, torch.tensor([words.index(token) for token in text[1:]]), reduction="none")
    assert same(numbers(sheet, 1, 1), (-costs).exp()) and same(numbers(sheet, 1, 2), costs)
    tokens = dict(re.findall(r"(\S+) \(<i>p</i> = ([\d.]+)\)", sheet.steps[1].caption))
    assert "".join(tokens) == "".join(text[1:])
    for line, each in enumerate((costs, -torch.tensor([float(p) for p in tokens.values()], dtype=torch.float64).log())):
        nats = each.sum().item()
        assert same(numbers(sheet, 2, line), [nats, each.mean(), each.mean().exp(), bits_per_byte(nats, ["".join(tokens)])])
    for step in (3, 4):
        given, limit = re.search("after '(.+)', cut by top-p ([\\d.]+)", sheet.steps[step - 1].caption).groups()
        kept = sampling_probabilities(after[given].log(), top_p=float(limit))
        assert same(numbers(sheet, step, 2), torch.stack([kept[words.index(token)] for token in row(sheet, step, 0)]))


def test_hidden_words_pieces_and_an_adapter_are_those_of_the_course():
    sheet = sheets.hidden_words_and_an_adapter()
    words, (choice, fate, others) = sheet.given[0].columns[1:], [line[1:] for line in sheet.given[0].rows]
    names = ["[MASK]", *words]
    ids, others = (torch.tensor([[names.index(word) for word in line]]) for line in (words, others))
    choice, fate = (torch.tensor([[float(number) for number in line]]) for line in (choice, fate))
    chosen = choice < 0.15
    reads = answers_to("14.1").reference(ids, chosen, fate, others, 0)[0]
    assert row(sheet, 1, 0) == ["yes" if one else "no" for one in chosen[0]]
    assert row(sheet, 1, 1) == [names[i] for i in reads] == ["not", "moving", "but", "[MASK]"]             # one of each kind
    p = numbers(sheet, 2, 0)
    logits = torch.zeros(1, len(p), len(names), dtype=torch.float64)
    logits[0, torch.arange(len(p)), ids[0]] = (4 * p / (1 - p)).log()                  # gives the right word p, by softmax
    losses = [answers_to("14.3").reference(logits, ids, which) for which in (chosen, torch.ones_like(chosen))]
    assert same(numbers(sheet, 2, 1), torch.stack([*-p.log(), *losses]))
    pieces = sheet.steps[2].caption.rpartition(" is ")[2].split()
    for word, cut in zip(sheet.steps[2].columns[1:], row(sheet, 3, 0)):
        assert cut.split() == answers_to("14.2").reference(word, set(pieces)), word
    W, D, U, x = ([[float(number) for number in re.findall(r"-?\d+", vector)] for vector in found] for found in (
        re.findall(r"\((.*?)\)", part) for part in re.split("<i>[DUx]</i> =", sheet.steps[3].caption.replace("−", "-"))))
    adapter = LowRankAdapter(nn.Linear(2, 2, bias=False).requires_grad_(False), rank=1, alpha=1)
    for tensor, values in ((adapter.linear.weight, W), (adapter.down.data, D), (adapter.up.data, torch.tensor(U).T)):
        tensor.copy_(torch.as_tensor(values))
    made, merged = (torch.tensor([[float(number) for number in re.findall(r"-?\d+", line.replace("−", "-"))]
                                  for line in row(sheet, 4, which)]) for which in (0, 1))
    assert torch.equal(made, (adapter.up @ adapter.down).detach()) and torch.equal(merged, adapter.merged().weight)
    assert same(numbers(sheet, 4, 2), adapter(torch.tensor(x))[0].detach().double())
    for line, total, base in zip(row(sheet, 4, 3), row(sheet, 4, 2), adapter.linear(torch.tensor(x))[0]):
        one, sign, two, _, end = line.replace("−", "-").split()
        assert end == total.replace("−", "-") and float(one) == base and float(one) + float(sign + two) == float(end)


def test_soft_targets_and_calibration_are_those_of_the_course():
    sheet = sheets.soft_targets_and_calibration()
    teacher = torch.tensor([[float(text) for text in sheet.given[0].rows[0]]], dtype=torch.float64)
    for line, T in enumerate((1, 2)):
        assert same(numbers(sheet, 1, line), soften(teacher, T)[0])
        student = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
        loss = distillation_loss(student, teacher, torch.tensor([NO_LABEL]), T, alpha=1.0)         # T² KL
        pull = torch.autograd.grad(loss, student)[0].abs().max().item()
        assert same(numbers(sheet, 2, line), [loss.item() / T**2, pull / T**2, pull])
    sure = [float(text) for text in sheet.given[1].columns[1:]]
    right = torch.tensor([text == "yes" for text in sheet.given[1].rows[0][1:]])
    bins = reliability(torch.tensor(sure, dtype=torch.float64), right, bins=4)
    gaps = (bins.confidence - bins.accuracy).abs()
    assert all(same(numbers(sheet, 3, line), torch.stack([bins.count, bins.confidence, bins.accuracy, gaps])[:, 2 + line])
               for line in (0, 1))
    assert same(numbers(sheet, 4, 0), expected_calibration_error(torch.tensor(sure, dtype=torch.float64), right, bins=4))


def test_a_bahdanau_step_and_an_alignment_error_are_those_of_the_course():
    sheet = sheets.bahdanau_and_alignment()
    *keys, query, v = (torch.tensor([float(text.replace("−", "-")) for text in line[1:]]) for line in sheet.given[0].rows)
    keys = torch.stack(keys)                                                                     # (word, feature)
    attention = AdditiveAttention(2, 2, 2)
    for matrix, values in ((attention.W_q.weight, torch.eye(2)), (attention.W_k.weight, torch.eye(2)),
                           (attention.v.weight, v[None]), (attention.W_q.bias, torch.zeros(2))):
        matrix.data.copy_(values)
    with torch.no_grad():
        context, weights = attention(query[None, None], keys[None], torch.ones(1, len(keys), dtype=torch.bool))
        scores = attention.scores(query[None, None], keys[None])[0, 0].double()
    table = torch.stack([numbers(sheet, 1, line) for line in range(len(keys))])
    assert same(table[:, :2], (query + keys).tanh().double())
    assert same(table[:, 2:].T, torch.stack([scores, scores.exp(), weights[0, 0].double()]))
    assert same(numbers(sheet, 2, 0), context[0, 0].double())
    english, rows = sheet.given[1].columns[1:], sheet.given[1].rows
    seen = torch.tensor([[float(text) for text in line[1:]] for line in rows])
    assert torch.allclose(seen.sum(dim=1), torch.ones(len(rows)))
    named = {"the (1st)": 0, "end": 1, "of": 2, "the (2nd)": 3, "film": 4}
    assert list(named) == english
    gold = {(named[source], [line[0] for line in rows].index(target)) for target, source in re.findall(
        r"(\w+)–(\w+(?: \(\w+\))?)", sheet.intro.partition("Gold links")[2])}
    links = links_of(seen)
    assert {(named[source], target) for target, source in enumerate(row(sheet, 3, 0))} == links
    assert row(sheet, 3, 1) == ["yes" if link in gold else "no" for link in sorted(links, key=lambda link: link[1])]
    assert same(numbers(sheet, 4, 0), [len(links), len(gold), len(links & gold), alignment_error_rate([links], [gold])])
    lowest = min(alignment_error_rate([set(some)], [gold]) for some in itertools.combinations(gold, len(rows))
                 if len({target for _, target in some}) == len(rows))
    assert sheet.answer.startswith(f"{lowest:.3f}: 'du'")


def test_bleu_and_chrf_are_those_of_sacrebleu():
    sheet = sheets.bleu_and_chrf()
    (_, reference), *translations = sheet.given[0].rows
    word_scores = BLEU(max_ngram_order=2, tokenize="none", smooth_method="none", force=True)
    for line, (_, text) in enumerate(translations):
        bleu = word_scores.corpus_score([text], [[reference]])
        assert same(100 * numbers(sheet, 1, line)[:2], bleu.precisions)
        assert same(numbers(sheet, 1, line)[2:], [bleu.bp, bleu.score])
        chrf = CHRF(char_order=2)
        statistics = chrf._compute_segment_statistics(text, chrf._extract_reference_info([reference]))
        # shared, own and the reference's, for characters and for pairs; in the library own comes first and shared last
        assert numbers(sheet, 2, line).tolist() == [statistics[i] for i in (2, 0, 1, 5, 3, 4)]
        assert same(numbers(sheet, 3, line)[2], chrf.corpus_score([text], [[reference]]).score)
    assert numbers(sheet, 1, 0)[3] == numbers(sheet, 1, 1)[3] and numbers(sheet, 3, 0)[2] > numbers(sheet, 3, 1)[2] + 10


def test_two_runs_write_the_same_bytes_without_absolute_paths_network_or_scripts(root, tmp_path):
    written = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "COURSE_OUTPUTS": str(tmp_path / seed)}
        made = subprocess.run([sys.executable, "-m", "course_tools", "sheets"], cwd=root, capture_output=True,
                              text=True, check=True, env=env)
        assert "sheets.html" in made.stdout and f" {tmp_path}" not in made.stdout
        written.append([(tmp_path / seed / "sheets" / name).read_bytes() for name in ("sheets.html", "answers.html")])
    assert written[0] == written[1]
    for text in map(bytes.decode, written[0]):
        assert str(root) not in text and str(tmp_path) not in text
        assert not re.search(r"https?:|//|<script|<link|<img|@import|url\(", text)
