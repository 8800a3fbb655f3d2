"""Recurrent translators: equal to the papers' formulas written word by word, and blind to padding."""

import dataclasses

import pytest
import torch
from lesson_cells import cells_of
from torch import nn

from course_utils.encoder_decoder import Transformer, TransformerConfig
from course_utils.exercises.catalogue import answers_to
from course_utils.recurrent_attention import (
    AdditiveAttention,
    LuongAttention,
    RecurrentEncoder,
    Seq2Seq,
    Seq2SeqConfig,
    alignment_error_rate,
    greedy,
    links_of,
    teacher_forcing_loss,
)
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import BEGIN, END, PAD, UNKNOWN, EncodedPairs, PairBatch, PairBatches
from course_utils.translation.translators import kept_translator, translation_corpus

KINDS = [("none", "before"), *((score, when) for score in ("additive", "dot", "general", "concat")
                               for when in ("before", "after"))]
SOURCE = torch.tensor([[4, 9, 5, 6, 8], [7, 4, PAD, PAD, PAD], [5, 5, 6, PAD, PAD]])
TARGET = torch.tensor([[BEGIN, 4, 8, 6, END], [BEGIN, 9, END, PAD, PAD], [BEGIN, 5, 7, 7, END]])


def translator(score="additive", when="before", cell="GRU", **changes) -> Seq2Seq:
    """A small one in float64, with biases that aren't zero."""
    seed_everything(0)
    config = Seq2SeqConfig(**{"source_vocab_size": 12, "target_vocab_size": 11, "d_model": 5, "d_hidden": 6} | changes,
                           score=score, when=when, cell=cell)
    model = Seq2Seq(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        model.encoder.embedding.weight[PAD] = 0
    return model


# the formulas, one number at a time where that can be read

def cell_by_formula(rnn: nn.Module, x, h, c, end: str = "l0"):
    """One update of a GRU (Cho et al. 2014, with PyTorch's place for the reset gate) or of an LSTM: new state, new cell."""
    W, U, b, d = (getattr(rnn, f"{name}_{end}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    given, past = W @ x + b, U @ h + d
    if isinstance(rnn, nn.GRU):
        (r, z, n), (past_r, past_z, past_n) = given.chunk(3), past.chunk(3)
        r, z = torch.sigmoid(r + past_r), torch.sigmoid(z + past_z)
        return (1 - z) * torch.tanh(n + r * past_n) + z * h, None
    i, f, g, o = (given + past).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def read_by_formula(encoder: RecurrentEncoder, ids: list[int]):
    """States (source, d_hidden) and summary of one sentence without padding."""
    x, half = encoder.embedding(torch.tensor(ids)), encoder.rnn.hidden_size
    sides = []
    for end, order in (("l0", range(len(ids))), ("l0_reverse", range(len(ids) - 1, -1, -1))):
        h = c = torch.zeros(half, dtype=x.dtype)
        states = {}
        for place in order:
            h, c = cell_by_formula(encoder.rnn, x[place], h, c, end)
            states[place] = h
        sides.append(([states[place] for place in range(len(ids))], h))
    return torch.stack([torch.cat(both) for both in zip(sides[0][0], sides[1][0])]), torch.cat([sides[0][1], sides[1][1]])


def score_by_formula(attention: nn.Module, s, h):
    if isinstance(attention, AdditiveAttention):
        return attention.v.weight[0] @ torch.tanh(attention.W_q.weight @ s + attention.W_q.bias + attention.W_k.weight @ h)
    if attention.score == "concat":
        W = torch.cat([attention.W_q.weight, attention.W_h.weight], dim=1)
        return attention.v.weight[0] @ torch.tanh(W @ torch.cat([s, h]) + attention.W_q.bias)
    return s @ (h if attention.score == "dot" else attention.W.weight @ h)


def context_by_formula(attention: nn.Module, s, states):
    exponentials = [torch.exp(score_by_formula(attention, s, h)) for h in states]
    weights = [one / sum(exponentials) for one in exponentials]
    return sum(weight * h for weight, h in zip(weights, states)), torch.stack(weights)


def logits_by_formula(model: Seq2Seq, source: list[int], target: list[int]):
    """Logits (target, vocab) and weights (target, source) of one pair: Bahdanau et al. 2015, Luong et al. 2015."""
    decoder = model.decoder
    states, summary = read_by_formula(model.encoder, source)
    s = torch.tanh(decoder.bridge.weight @ summary + decoder.bridge.bias)
    c, logits, looked = torch.zeros_like(s), [], []
    for word in target:
        y, context = decoder.embedding.weight[word], summary
        if decoder.attention is not None and model.config.when == "before":
            context, weights = context_by_formula(decoder.attention, s, states)
        fed = decoder.attention is None or model.config.when == "before"
        s, c = cell_by_formula(decoder.rnn, torch.cat([y, context]) if fed else y, s, c)
        if decoder.attention is not None and model.config.when == "after":
            context, weights = context_by_formula(decoder.attention, s, states)
        read = torch.tanh(decoder.readout.weight @ torch.cat([s, context]) + decoder.readout.bias)
        logits.append(decoder.embedding.weight @ read)
        looked.append(weights if decoder.attention is not None else torch.zeros(len(source), dtype=s.dtype))
    return torch.stack(logits), torch.stack(looked)


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
@pytest.mark.parametrize("score, when", KINDS)
def test_equal_to_the_formulas_logits_weights_and_gradients(score, when, cell):
    model = translator(score, when, cell)
    result = model(SOURCE, SOURCE != PAD, TARGET[:, :-1], need_weights=True)
    assert (result.weights is None) == (score == "none")
    generator, total, by_formula = torch.Generator().manual_seed(1), 0.0, 0.0
    for b in range(3):
        source = SOURCE[b][SOURCE[b] != PAD].tolist()
        target = TARGET[b][TARGET[b] != PAD].tolist()[:-1]
        logits, weights = logits_by_formula(model, source, target)
        assert torch.allclose(result.logits[b, : len(target)], logits, atol=1e-12, rtol=0)
        if score != "none":
            assert torch.allclose(result.weights[b, : len(target), : len(source)], weights, atol=1e-12, rtol=0)
            assert result.weights[b, :, len(source):].abs().sum() == 0
        upstream = torch.randn(logits.shape, generator=generator, dtype=torch.float64)
        total = total + (result.logits[b, : len(target)] * upstream).sum()
        by_formula = by_formula + (logits * upstream).sum()
    parameters = dict(model.named_parameters())
    ours, theirs = (torch.autograd.grad(one, list(parameters.values())) for one in (total, by_formula))
    for name, mine, other in zip(parameters, ours, theirs):
        if "encoder.embedding" in name:
            assert mine[PAD].abs().sum() == 0
        assert torch.allclose(mine, other, atol=1e-10, rtol=0), name
        if name != "decoder.attention.W_q.bias" or score != "none":
            assert mine.abs().sum() > 0, name


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
@pytest.mark.parametrize("score, when", KINDS)
def test_padding_and_neighbours_never_matter(score, when, cell):
    model = translator(score, when, cell).float()
    wide = torch.cat([SOURCE, torch.zeros(3, 4, dtype=torch.long)], dim=1)
    together = model(wide, wide != PAD, TARGET[:, :-1], need_weights=True)
    for b in range(3):
        ids = SOURCE[b][SOURCE[b] != PAD][None]
        alone = model(ids, ids != PAD, TARGET[b : b + 1, :-1], need_weights=True)
        assert torch.allclose(together.logits[b], alone.logits[0], atol=1e-5)
        if score != "none":
            assert torch.allclose(together.weights[b, :, : ids.shape[1]], alone.weights[0], atol=1e-5)
    later = TARGET[:, :-1].clone()
    later[:, 3] = 10                                                       # a later word changes no earlier logit
    assert torch.allclose(model(wide, wide != PAD, later).logits[:, :3], together.logits[:, :3], atol=1e-6)


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
@pytest.mark.parametrize("score, when", KINDS)
def test_step_by_step_is_the_same_and_rows_can_be_chosen(score, when, cell):
    model = translator(score, when, cell)
    mask = SOURCE != PAD
    whole = model(SOURCE, mask, TARGET[:, :-1], need_weights=True)
    state = model.start(model.encode(SOURCE, mask))
    for place in range(4):
        logits, state = model.step(TARGET[:, place], state)
        assert torch.allclose(logits, whole.logits[:, place], atol=1e-12)
        if score == "none":
            assert state.weights is None
        else:
            assert torch.allclose(state.weights, whole.weights[:, place], atol=1e-12)
        if place == 1:
            chosen = state.select(torch.tensor([2, 0, 2]))
    again, _ = model.step(TARGET[[2, 0, 2], 2], chosen)
    assert torch.allclose(again, whole.logits[[2, 0, 2], 2], atol=1e-12)
    listed, _ = model.step(TARGET[[1], 2], state.select([1]))
    assert listed.shape == (1, 11)


def test_greedy_writes_the_most_probable_word_until_the_end():
    model = translator()
    with torch.no_grad():
        model.decoder.embedding.weight[END] += 0.5                         # so that some sentence ends
    result = greedy(model, SOURCE, SOURCE != PAD, max_len=7)
    for b, ids in enumerate(result.ids):
        read = torch.tensor([[BEGIN, *ids]])
        logits = model(SOURCE[b : b + 1], SOURCE[b : b + 1] != PAD, read).logits[0]
        best = (logits[:, 1:].argmax(dim=-1) + 1).tolist()                 # padding is never written
        assert best[: len(ids)] == ids and END not in ids
        assert best[len(ids)] == END if len(ids) < 7 else len(ids) == 7
        assert result.weights[b].shape == (len(ids), int((SOURCE[b] != PAD).sum()))
        assert torch.allclose(result.weights[b].sum(dim=-1), torch.ones(len(ids), dtype=torch.float64))
    assert greedy(translator("none"), SOURCE, SOURCE != PAD, max_len=1).weights is None
    assert len(greedy(model, SOURCE, SOURCE != PAD, max_len=1).ids[0]) <= 1
    assert any(len(ids) < 7 for ids in result.ids)      # or nothing above looked at an end


def test_greedy_runs_any_model_with_encode_start_and_step_and_stops_at_the_models_own_length():
    seed_everything(0)
    model = Transformer(TransformerConfig(11, 12, d_model=8, num_heads=2, d_ff=12, num_layers=1, max_len=6)).eval()
    written = greedy(model, SOURCE, SOURCE != PAD)
    assert written.weights is None and written.ended == [len(ids) < 6 for ids in written.ids]
    for b, ids in enumerate(written.ids):
        logits = model(SOURCE[b : b + 1], SOURCE[b : b + 1] != PAD, torch.tensor([[BEGIN, *ids][:6]])).logits[0]
        assert (logits[:, 1:].argmax(dim=-1) + 1).tolist()[: len(ids)] == ids


def test_a_sentence_without_a_word_gives_zeros_and_finite_gradients():
    states = torch.randn(2, 3, 4, requires_grad=True)
    attention = AdditiveAttention(4, 4, 4)
    result = attention(torch.randn(2, 1, 4), states, torch.tensor([[True, False, True], [False] * 3]))
    assert result.context[1].abs().sum() == 0 and result.weights[1].abs().sum() == 0
    result.context.sum().backward()
    assert states.grad.isfinite().all() and all(p.grad.isfinite().all() for p in attention.parameters())


def test_the_loss_asks_each_word_once_one_step_later():
    model = translator()
    batch = PairBatch(SOURCE, SOURCE != PAD, TARGET, [0, 1, 2])
    loss, count = teacher_forcing_loss(model, batch)
    by_hand = [-model(SOURCE, SOURCE != PAD, TARGET[:, :-1]).logits[b, i].log_softmax(-1)[TARGET[b, i + 1]]
               for b in range(3) for i in range(4) if TARGET[b, i + 1] != PAD]
    assert count == len(by_hand) == 10 and torch.isclose(loss.double(), sum(by_hand) / 10, atol=1e-6)
    padded = torch.cat([TARGET, torch.zeros(3, 5, dtype=torch.long)], dim=1)
    again, count = teacher_forcing_loss(model, batch._replace(target_ids=padded))
    assert count == 10 and torch.isclose(again, loss)
    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        teacher_forcing_loss(model, batch._replace(target_ids=TARGET[:, :1]))


def test_a_copying_task_is_learned():
    """Three words, written in reverse: only a decoder that hears of the source can do it."""
    rows = torch.cartesian_prod(*[torch.arange(4, 8)] * 3).tolist()
    data = PairBatches(EncodedPairs(rows, [[BEGIN, *row[::-1], END] for row in rows]), 16)
    model = translator(d_model=16, d_hidden=24).float()
    fit(model, data, MeanLoss(data, teacher_forcing_loss), loss_of=teacher_forcing_loss, epochs=40, learning_rate=2e-2,
        progress=False)
    ids = torch.tensor(rows)
    assert greedy(model, ids, ids != PAD).ids == [row[::-1] for row in rows]


def test_unknown_words_give_finite_logits_and_dropout_stops_in_evaluation():
    model = translator(dropout=0.3)
    ids = torch.full((2, 3), UNKNOWN)
    logits = model(ids, ids != PAD, ids).logits
    assert logits.isfinite().all() and torch.equal(logits, model(ids, ids != PAD, ids).logits)
    model.train()
    assert not torch.equal(model(ids, ids != PAD, ids).logits, model(ids, ids != PAD, ids).logits)


@pytest.mark.parametrize("ids, mask, words", [
    (torch.tensor([4, 5]), torch.tensor([True, True]), r"source_ids\[None\]"),
    (torch.tensor([[4, 5]]), torch.tensor([[1, 1]]), "torch.bool"),
    (torch.tensor([[4, 5], [0, 0]]), torch.tensor([[True, True], [False, False]]), "sentence 1 of the batch has no word"),
    (torch.tensor([[0, 5]]), torch.tensor([[False, True]]), "padding must come after the words"),
])
def test_what_is_no_batch_of_sentences_is_refused(ids, mask, words):
    with pytest.raises(ValueError, match=words):
        translator()(ids, mask, TARGET[:1])


@pytest.mark.parametrize("changes, words", [
    ({"score": "cosine"}, "score='cosine'"), ({"when": "during"}, "when='during'"), ({"cell": "RNN"}, "cell='RNN'"),
    ({"d_hidden": 7}, "d_hidden=7 is odd"), ({"dropout": 1.0}, "dropout=1.0"),
])
def test_options_that_cannot_be_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        Seq2SeqConfig(**{"source_vocab_size": 9, "target_vocab_size": 9} | changes)
    assert dataclasses.replace(Seq2SeqConfig(9, 9), d_hidden=8).d_hidden == 8


def test_parts_that_are_used_alone_name_what_cannot_be():
    for build, words in ((lambda: RecurrentEncoder(9, 4, 6, cell="RNN"), "cell='RNN'"),
                         (lambda: RecurrentEncoder(9, 4, 1), "d_hidden=0"),
                         (lambda: greedy(translator(), SOURCE, SOURCE != PAD, max_len=0), "max_len=0")):
        with pytest.raises(ValueError, match=words):
            build()


def test_scores_that_cannot_be_are_named():
    with pytest.raises(ValueError, match="use score='general'"):
        LuongAttention("dot", 4, 6)
    with pytest.raises(ValueError, match="score='additive'"):
        LuongAttention("additive", 4, 4)
    with pytest.raises(ValueError, match="d_attention=0"):
        AdditiveAttention(4, 4, 0)


# alignments

def test_links_and_error_rate_by_hand():
    weights = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4]])
    assert links_of(weights) == {(0, 0), (2, 1), (1, 2)}
    gold = {(0, 0), (2, 1), (2, 2), (1, 3)}
    assert alignment_error_rate([links_of(weights)], [gold]) == pytest.approx(1 - 2 * 2 / (3 + 4))
    assert alignment_error_rate([gold, {(0, 0)}], [gold, {(1, 1)}]) == pytest.approx(1 - 2 * 4 / (5 + 5))
    assert alignment_error_rate([set()], [gold]) == 1


@pytest.mark.parametrize("predicted, gold, words", [
    ([{(0, 0)}], [], "1 sentences"), ({(0, 0)}, {(0, 0)}, r"\[links\], \[gold\]"), ([set()], [set()], "no links at all"),
])
def test_what_cannot_be_compared_is_refused(predicted, gold, words):
    with pytest.raises(ValueError, match=words):
        alignment_error_rate(predicted, gold)

# the notebook's cells beside the package

@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 16 define, with the course's answers for what the learner writes."""
    cells = cells_of("16_recurrent_attention")
    names = {name: answers_to(number).reference for number, name in (
        ("16.2", "additive_step"), ("16.3", "translation_loss"), ("16.6", "step_before"))}
    for cell in ("export-imports", "export-encoder", "export-additive", "step-after", "export-decoder", "attention-decoder",
                 "export-seq2seq", "export-loss", "export-greedy"):
        exec(cells[cell], names)
    return names


def by_the_notebook(taught: dict, package: Seq2Seq) -> nn.Module:
    """The notebook's translator with a package's weights; the decoder's GRU is a cell there."""
    config = package.config
    decoder = taught["OneVectorDecoder" if config.score == "none" else "AttentionDecoder"]
    model = taught["Seq2Seq"](taught["RecurrentEncoder"](config.source_vocab_size, config.d_model, config.d_hidden),
                              decoder(config.target_vocab_size, config.d_model, config.d_hidden))
    model = model.to(next(package.parameters()).dtype).eval()
    model.load_state_dict({                                                # strict: the same names, and no others
        name.replace("decoder.rnn", "decoder.cell").replace("_l0", "") if name.startswith("decoder") else name: numbers
        for name, numbers in package.state_dict().items()})
    return model


@pytest.mark.parametrize("score", ["none", "additive"])
def test_the_notebooks_translator_is_the_packages(taught, score):
    package = translator(score)
    notebook = by_the_notebook(taught, package)
    expected = package(SOURCE, SOURCE != PAD, TARGET[:, :-1], need_weights=True)
    found = notebook(SOURCE, SOURCE != PAD, TARGET[:, :-1])
    assert torch.allclose(found.logits, expected.logits, atol=1e-12, rtol=0)
    if score == "none":
        assert found.weights is expected.weights is None
    else:
        assert torch.allclose(found.weights, expected.weights, atol=1e-12, rtol=0)
    batch = PairBatch(SOURCE, SOURCE != PAD, TARGET, [0, 1, 2])
    (ours, count), (theirs, total) = taught["teacher_forcing_loss"](notebook, batch), teacher_forcing_loss(package, batch)
    assert count == total and torch.isclose(ours, theirs.double(), atol=1e-6)


def test_the_notebooks_step_after_is_the_packages(taught):
    package = translator("additive", "after")
    decoder, state = package.decoder, package.start(package.encode(SOURCE, SOURCE != PAD))
    cell = nn.GRUCell(5, 6).double()
    cell.load_state_dict({name.removesuffix("_l0"): numbers for name, numbers in decoder.rnn.state_dict().items()})

    def attend(query):
        context, weights = decoder.attention(query[:, None], state.memory.states, state.memory.mask, state.keys)
        return context[:, 0], weights[:, 0]

    logits, hidden, weights = taught["step_after"](
        decoder.embedding(TARGET[:, 0]), state.hidden, attend, cell,
        lambda both: decoder.readout(both).tanh() @ decoder.embedding.weight.T)
    expected, after = package.step(TARGET[:, 0], state)
    for one, other in ((logits, expected), (hidden, after.hidden), (weights, after.weights)):
        assert torch.allclose(one, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["one_vector", "additive"])
def test_the_notebooks_translator_reads_the_trained_weights_and_says_the_same(taught, name):
    package, pairs = kept_translator(name), translation_corpus().pairs["test"]
    notebook = by_the_notebook(taught, package)
    batch = next(iter(PairBatches(EncodedPairs(pairs.source[:20], pairs.target[:20]), 20).batches(None)))
    inputs = batch.source_ids, batch.source_mask, batch.target_ids[:, :-1]
    with torch.no_grad():
        assert torch.allclose(notebook(*inputs).logits, package(*inputs).logits, atol=1e-4)
    assert taught["greedy"](notebook, *inputs[:2]) == greedy(package, *inputs[:2]).ids
