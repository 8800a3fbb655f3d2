"""The decoder block, the stack and the whole Transformer equal the library's; padding, masks, steps and errors."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of, cells_of_the_blocks
from library_twins import (
    attention_pairs,
    block_pairs,
    copy_over,
    proof,
    ragged_mask,
    randomise,
    same,
    same_gradients,
    same_parameter_gradients,
)
from torch import nn
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask
from course_utils.encoder_decoder import (
    CrossAttention,
    Decoder,
    DecoderBlock,
    SmoothedLoss,
    Transformer,
    TransformerConfig,
    beam_search,
    bleu,
    smoothed_cross_entropy,
)
from course_utils.exercises.catalogue import answers_to
from course_utils.files.paths import CHECKPOINTS
from course_utils.positional_encoding import POSITIONS
from course_utils.training.pair_batches import BEGIN, END, EncodedPairs, PairBatches
from course_utils.transformer_blocks import Encoder
from course_utils.translation.subwords import SubwordTranslator

seeds = st.integers(0, 10**6)


def decoder_pairs(ours: DecoderBlock, theirs: nn.TransformerDecoderLayer):
    """(their parameter, our parameters) of a whole decoder block."""
    yield from attention_pairs(ours.attention, theirs.self_attn)
    yield from attention_pairs(ours.cross_attention, theirs.multihead_attn)
    for our, their in (
        (ours.feed_forward.expand, theirs.linear1), (ours.feed_forward.contract, theirs.linear2),
        (ours.attention_norm, theirs.norm1), (ours.cross_attention_norm, theirs.norm2),
        (ours.feed_forward_norm, theirs.norm3),
    ):
        yield their.weight, [our.weight]
        yield their.bias, [our.bias]


def norm_pairs(ours, theirs):
    return [(theirs.weight, [ours.weight]), (theirs.bias, [ours.bias])]


@pytest.mark.parametrize("norm_first", [True, False])
@proof
@given(layers=st.integers(1, 3), source=st.integers(1, 6), target=st.integers(1, 5), seed=seeds)
def test_encoder_and_decoder_equal_nn_transformer(norm_first, layers, source, target, seed):
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(seed)
        options = dict(dropout=0.0, activation="relu", norm_first=norm_first, layer_norm_eps=1e-3)
        encoder, decoder = (part(layers, 8, 2, 12, **options).to(dtype) for part in (Encoder, Decoder))
        theirs = nn.Transformer(8, 2, layers, layers, 12, batch_first=True, dtype=dtype, **options)
        randomise(encoder)
        randomise(decoder)
        pairs = [pair for our, their in zip(encoder.blocks, theirs.encoder.layers) for pair in block_pairs(our, their)]
        pairs += [pair for our, their in zip(decoder.blocks, theirs.decoder.layers) for pair in decoder_pairs(our, their)]
        if norm_first:
            pairs += norm_pairs(encoder.norm, theirs.encoder.norm) + norm_pairs(decoder.norm, theirs.decoder.norm)
        else:                                           # the library adds a norm that the paper has not
            theirs.encoder.norm = theirs.decoder.norm = None
        our_parameters, their_parameters = copy_over(pairs)
        assert len(our_parameters) == len([*encoder.parameters(), *decoder.parameters()])
        x = torch.randn(3, source, 8, dtype=dtype, requires_grad=True)
        y = torch.randn(3, target, 8, dtype=dtype, requires_grad=True)
        real = ragged_mask(3, source)
        result = decoder(y, encoder(x, padding_mask(real)).x, causal_mask(target)[None, None], padding_mask(real)).x
        expected = theirs(x, y, tgt_mask=~causal_mask(target), src_key_padding_mask=~real, memory_key_padding_mask=~real)
        torch.testing.assert_close(result, expected, atol=2e-6, rtol=2e-6)
        if dtype == torch.float64:
            same(result, expected)
            same_parameter_gradients(result, [x, y], our_parameters, expected, [x, y], their_parameters)


def test_cross_attention_has_one_row_for_a_target_word_and_one_column_for_a_source_word():
    layer, x, memory = CrossAttention(8, 2), torch.randn(3, 4, 8), torch.randn(3, 6, 8)
    mask = padding_mask(torch.arange(6) < torch.tensor([[6], [2], [4]]))
    context, weights = layer(x, memory, mask, need_weights=True)
    assert context.shape == (3, 4, 8) and weights.shape == (3, 2, 4, 6)
    assert (weights[1, :, :, 2:] == 0).all() and torch.allclose(weights.sum(-1), torch.ones(3, 2, 4))
    again, none = layer(x, mask=mask, remembered=layer.remember(memory))
    assert none is None and torch.allclose(again, context, atol=1e-6)
    with pytest.raises(ValueError, match="must be of the same size"):
        layer(x, memory[:2])
    with pytest.raises(ValueError, match="d_model=8"):
        layer(x, torch.randn(3, 6, 5))


# the whole model

def model_of(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(11, 13, **dict(d_model=16, num_heads=2, d_ff=24, max_len=20) | changes))
    return model.eval()


def a_batch(seed: int = 1):
    torch.manual_seed(seed)
    mask = torch.arange(6) < torch.tensor([[6], [3], [1]])
    return torch.randint(4, 13, (3, 6)) * mask, mask, torch.cat([torch.full((3, 1), BEGIN), torch.randint(4, 11, (3, 4))], 1)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm_first", [True, False])
def test_steps_with_the_cache_equal_the_whole_pass(positions, norm_first):
    model, (source, mask, target) = model_of(positions=positions, norm_first=norm_first), a_batch()
    with torch.no_grad():
        whole, state = model(source, mask, target).logits, model.start(model.encode(source, mask))
        for i in range(target.shape[1]):
            logits, state = model.step(target[:, i], state)
            torch.testing.assert_close(logits, whole[:, i], atol=1e-5, rtol=1e-5)


def test_a_selected_state_goes_on_like_the_rows_it_was_taken_from_and_leaves_the_old_one_alone():
    model, (source, mask, target) = model_of(), a_batch()
    rows = torch.tensor([2, 0, 0])
    with torch.no_grad():
        state = model.start(model.encode(source, mask))
        _, state = model.step(target[:, 0], state)
        chosen = state.select(rows)
        logits, _ = model.step(target[rows, 1], chosen)
        whole = model(source, mask, target).logits
        torch.testing.assert_close(logits, whole[rows, 1], atol=1e-5, rtol=1e-5)
        assert len(state.caches[0]) == 1
        torch.testing.assert_close(model.step(target[:, 1], state)[0], whole[:, 1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_changes_nothing_on_either_side(positions):
    model, (source, mask, target) = model_of(positions=positions), a_batch()
    with torch.no_grad():
        together = model(source, mask, target).logits
        alone = model(source[1:2, :3], mask[1:2, :3], target[1:2, :3]).logits
        torch.testing.assert_close(together[1:2, :3], alone, atol=1e-5, rtol=1e-5)
        other = source.masked_fill(~mask, 7)
        torch.testing.assert_close(model(other, mask, target).logits, together, atol=1e-5, rtol=1e-5)


def test_weights_come_when_asked_for_and_change_no_logit():
    model, (source, mask, target) = model_of(num_layers=3), a_batch()
    with torch.no_grad():
        plain, full = model(source, mask, target), model(source, mask, target, need_weights=True)
    assert plain.weights is None
    torch.testing.assert_close(plain.logits, full.logits, atol=1e-5, rtol=1e-5)
    shapes = [[tuple(layer.shape) for layer in part] for part in full.weights]
    assert shapes == [[(3, 2, 6, 6)] * 3, [(3, 2, 5, 5)] * 3, [(3, 2, 5, 6)] * 3]


def test_a_source_of_padding_alone_gives_finite_logits():
    model, (source, mask, target) = model_of(), a_batch()
    assert model(source * 0, mask & False, target).logits.isfinite().all()


def test_words_go_in_times_the_root_of_the_width_and_come_out_by_the_same_matrix():
    model, x = model_of(positions="none"), torch.randn(2, 16)
    for embedding in (model.source_embedding, model.target_embedding):
        torch.testing.assert_close(model.embed(embedding, torch.tensor([[5, 7]]))[0], 4 * embedding.weight[[5, 7]])
    torch.testing.assert_close(model.logits(x), x @ model.target_embedding.weight.T)
    free = model_of(tied=False)
    torch.testing.assert_close(free.logits(x), x @ free.output.weight.T)


def test_tying_saves_a_matrix_and_dropout_is_for_training():
    sizes = [sum(p.numel() for p in model_of(tied=tied).parameters()) for tied in (False, True)]
    assert sizes[0] - sizes[1] == 11 * 16
    model, (source, mask, target) = model_of(dropout=0.5), a_batch()
    assert torch.equal(model(source, mask, target).logits, model(source, mask, target).logits)
    model.train()
    assert not torch.equal(model(source, mask, target).logits, model(source, mask, target).logits)


@pytest.mark.parametrize("wrong, words", [
    (dict(source_vocab_size=1), "source_vocab_size=1"), (dict(d_model=15), "d_model=15 is not divisible"),
    (dict(positions="clock"), "positions='clock'"), (dict(layer_norm_eps=0), "layer_norm_eps=0"),
    (dict(pad_id=11), "pad_id=11"),
])
def test_a_configuration_that_cannot_be_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        TransformerConfig(**dict(vocab_size=11, source_vocab_size=13, d_model=16, num_heads=2) | wrong)


def test_wrong_arguments_get_an_error_in_words():
    model, (source, mask, target) = model_of(), a_batch()
    with pytest.raises(ValueError, match=r"ids\[None\]"):
        model(source[0], mask, target)
    with pytest.raises(ValueError, match="max_len"):
        model(source, mask, target.repeat(1, 5))
    with pytest.raises(ValueError, match="3 caches"):
        model.decoder(torch.randn(1, 2, 16), torch.randn(1, 3, 16), caches=[None] * 3)


# the loss

@proof
@given(smoothing=st.sampled_from([0.0, 0.1, 0.5]), seed=seeds)
def test_smoothing_equals_the_library(smoothing, seed):
    torch.manual_seed(seed)
    logits = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 7, (3, 5))
    targets[0, 0] = 3
    ours = smoothed_cross_entropy(logits.double(), targets, smoothing)
    theirs = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, label_smoothing=smoothing)
    torch.testing.assert_close(ours.double(), theirs, atol=1e-6, rtol=1e-6)


def test_the_loss_shifts_leaves_padding_out_and_refuses_what_it_can_not_use():
    model = model_of()
    pairs = EncodedPairs([[4, 5], [6]], [[BEGIN, 5, 6, 7, END], [BEGIN, 8, END]])
    batch = next(PairBatches(pairs, 2).batches(None))
    with torch.no_grad():
        loss, count = SmoothedLoss(0.1)(model, batch)
        each = [SmoothedLoss(0.1)(model, next(PairBatches(EncodedPairs([s], [t]), 1).batches(None)))[0]
                for s, t in zip(*pairs)]
    assert count == 6 and loss.item() == pytest.approx((4 * each[0].item() + 2 * each[1].item()) / 6, abs=1e-5)
    with pytest.raises(ValueError, match="nothing to learn"):
        smoothed_cross_entropy(torch.zeros(1, 2, 7), torch.zeros(1, 2, dtype=torch.long))
    assert SmoothedLoss(0.1).fingerprint != SmoothedLoss(0.2).fingerprint
    with pytest.raises(ValueError, match="smoothing=1.0"):
        smoothed_cross_entropy(torch.zeros(1, 2, 7), torch.ones(1, 2, dtype=torch.long), smoothing=1.0)


def test_the_loss_asks_for_the_word_that_follows_the_one_that_is_read():
    follows = {BEGIN: 5, 5: 8, 8: 6, 6: END}

    class Oracle(torch.nn.Module):
        """Sure of the word that `choose` names for each word that was read."""

        def __init__(self, choose):
            super().__init__()
            self.choose = choose

        def forward(self, source_ids, source_mask, target_ids):
            self.read = target_ids.tolist()
            chosen = torch.tensor([[self.choose(word) for word in row] for row in self.read])
            return SimpleNamespace(logits=30.0 * F.one_hot(chosen, 11))

    pairs = EncodedPairs([[4, 5], [6]], [[BEGIN, 5, 8, 6, END], [BEGIN, 5, 8, 6, END]])
    batch = next(PairBatches(pairs, 2).batches(None))
    knows, copies = Oracle(lambda word: follows.get(word, 4)), Oracle(lambda word: word)
    assert SmoothedLoss(0.0)(knows, batch)[0] < 1e-4 and SmoothedLoss(0.0)(copies, batch)[0] > 20
    assert knows.read == [[BEGIN, 5, 8, 6]] * 2


# notebook 17's own classes, with the course's answers where a learner's stand

CAPTIONS = ["A woman is reading a red book on a bench.", "Two dogs play in the snow.", "A penguin is skateboarding.",
            "My grandmother is baking bread in the kitchen."]


@pytest.fixture(scope="module")
def course() -> SubwordTranslator:
    return SubwordTranslator.load(CHECKPOINTS / "multi30k")


@pytest.fixture(scope="module")
def taught(course) -> dict:
    """What the cells of 17 define, and their model with the weights that come with the course."""
    cells = cells_of("17_encoder_decoder")
    answers = {"decoder_block": "17.7", "write_greedily": "17.5", "beam_step": "17.8", "ngram_precision": "17.6"}
    names = {name: answers_to(number).reference for name, number in answers.items()}
    for cell in ("export-imports", "export-cross", "export-block", "export-transformer"):
        exec(cells[cell], names)
    names |= {"pieces": course.pieces, "model": names["Transformer"](4000, 4000).eval()}
    names["model"].load_state_dict(course.model.state_dict())              # strict: the same names, and no others
    exec(cells["translate"].partition("\nids, sure")[0], names)
    exec(cells["export-beam"], names)
    exec(cells["export-bleu-score"].partition("\nsaid = ")[0], names)
    return names


def encoded(course: SubwordTranslator):
    """A padded batch of captions and their French."""
    source_ids, real = course.encode(CAPTIONS)
    target_ids = torch.randint(4, 4000, (4, 9), generator=torch.Generator().manual_seed(0))
    return source_ids, real, torch.cat([torch.full((4, 1), BEGIN), target_ids], dim=1)


def test_the_checkpoint_gives_the_same_logits_and_gradients_in_the_notebooks_model(taught, course):
    notebook = taught["Transformer"](4000, 4000).double().eval()
    package = course.model.double()
    notebook.load_state_dict(package.state_dict())
    ours, theirs = notebook(*encoded(course)), package(*encoded(course)).logits
    same(ours, theirs)
    same_gradients(ours, [*notebook.parameters()], theirs, [*package.parameters()])
    course.model.float()


def test_the_learners_cells_from_04_to_17_are_the_checkpoints_model(course):
    """Attention of 04, heads of 05, turned as in 06, the encoder of 07, your block and the model of 17: nothing from the
    package."""
    names = cells_of_the_blocks()

    class Heads(names["MultiHeadAttention"]):                              # 17 says which weights and which cache it wants
        def attend(self, query, key, value, mask, need_weights=True):
            return super().attend(query, key, value, mask)

        def forward(self, x, mask, rotary, cache=None):
            return super().forward(x, mask, rotary)

    class Stack(names["Encoder"]):                                         # 17 asks for the result's .x
        def forward(self, x, mask, rotary):
            return SimpleNamespace(x=super().forward(x, mask, rotary))

    layer = names["FeedForward"]
    names |= {"MultiHeadAttention": Heads, "Encoder": Stack, "decoder_block": answers_to("17.7").reference,
              "FeedForward": lambda d_model, d_ff, dropout=0.0: layer(d_model, d_ff),
              "causal_mask": lambda new, past: torch.ones(new, past).tril(past - new).bool()}
    for cell in ("export-cross", "export-block", "export-transformer"):
        exec(cells_of("17_encoder_decoder")[cell], names)
    learners = names["Transformer"](4000, 4000).eval()
    learners.load_state_dict(course.model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(learners(*encoded(course)), course.model(*encoded(course)).logits, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_notebooks_searches_write_what_the_packages_do(taught, course):
    for caption in CAPTIONS:
        ids, mask = course.encode([caption])
        theirs = beam_search(course.model, ids, mask, 5, max_len=60)[0]
        ours = taught["beam_search"](caption)
        assert [one for _, one in ours] == [one.ids for one in theirs]
        assert [score for score, _ in ours] == pytest.approx([one.score for one in theirs], abs=1e-3)
        greedy = beam_search(course.model, ids, mask, 1, 0.0, max_len=60)[0][0]
        ids, sure = taught["translate"](caption)
        assert ids == greedy.ids and sure == pytest.approx(greedy.log_probability / (len(ids) + 1), abs=1e-3)


def test_the_notebooks_bleu_is_the_packages(taught):
    said = ["la la petite voiture".split(), "elle dort ici ce soir".split()]
    wanted = ["la petite voiture rouge".split(), "elle dort ici ce soir .".split()]
    assert math.isclose(taught["bleu"](said, wanted), bleu(said, wanted).score)
