"""The course's Transformer in Hugging Face's format: its classes give the same logits, and write the same translations."""

import dataclasses
import random

import pytest
import torch
from test_hugging_face import shaken
from transformers import AutoModelForSeq2SeqLM

from course_utils.encoder_decoder import Decoder, Transformer, TransformerConfig, beam_search
from course_utils.library_translators import (
    THEIR_TRANSFORMERS,
    library_transformer_config,
    save_transformer,
)
from course_utils.training.pair_batches import BEGIN, END, PAD

each_class = pytest.mark.parametrize("positions, norm_first", THEIR_TRANSFORMERS,
                                     ids=[kind for kind, _ in THEIR_TRANSFORMERS.values()])
SMALL = TransformerConfig(30, 25, d_model=12, num_heads=3, d_ff=20, max_len=24, positions="sinusoidal", norm_first=False)


def drawn_config(seed, positions, norm_first):
    """A configuration in which as much as possible is drawn by chance; only a Marian may have more source words."""
    draw = random.Random(seed)
    heads, sizes = draw.randint(1, 4), sorted(draw.sample(range(12, 40), 2), reverse=not norm_first and seed % 2 == 1)
    return TransformerConfig(
        sizes[1], sizes[0], d_model=heads * 2 * draw.randint(2, 6), num_heads=heads, d_ff=draw.randint(1, 60),
        num_layers=draw.randint(1, 3), max_len=draw.randint(30, 50), positions=positions, norm_first=norm_first,
        dropout=draw.choice([0.0, 0.2]), attention_dropout=draw.choice([0.0, 0.3]),
        activation=draw.choice(["gelu", "gelu_tanh", "relu"]), tied=draw.choice([True, False]))


def drawn_model(seed, positions, norm_first):
    """Noise on every parameter, and an <eos> just likely enough that some of the translations of `drawn_batch` end."""
    config = drawn_config(seed, positions, norm_first)
    model = shaken(Transformer(config), seed)
    last = model.decoder.norm if norm_first else model.decoder.blocks[-1].feed_forward_norm
    words = model.target_embedding if config.tied else model.output
    source, mask, _ = drawn_batch(config)
    with torch.no_grad():
        higher = last.bias / last.bias.square().sum()                      # adds 1 to the logit of a word, more or less
        words.weight[END] -= 8 * higher
        for _ in range(24):
            if any(best.ended for best, *_ in beam_search(model, source, mask, 5, alpha=0.0, max_len=20)):
                break
            words.weight[END] += 0.5 * higher
    return model


def drawn_batch(config):
    """Four sources of different lengths, with padding: source_ids and source_mask (4, 9), and target_ids (4, 7)."""
    mask, chance = torch.arange(9)[None] < torch.tensor([3, 9, 6, 1])[:, None], torch.Generator().manual_seed(0)
    targets = torch.randint(1, config.vocab_size, (4, 7), generator=chance)
    targets[:, 0] = BEGIN
    return torch.randint(1, config.source_vocab_size, (4, 9), generator=chance).masked_fill(~mask, PAD), mask, targets


def until_the_end(ids):
    """Up to <eos> and with it; the library fills the rest of a row with <pad> or more of <eos>."""
    return ids[: ids.index(END) + 1] if END in ids else ids


@each_class
@pytest.mark.parametrize("seed", range(4))
def test_the_library_computes_the_same(tmp_path, positions, norm_first, seed):
    model = shaken(Transformer(drawn_config(seed, positions, norm_first)), seed)
    save_transformer(model, tmp_path / "it")
    theirs, report = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "it", output_loading_info=True)
    assert type(theirs.eval()).__name__ == THEIR_TRANSFORMERS[positions, norm_first][1]
    assert not any(report.values()), report
    source, mask, targets = drawn_batch(model.config)
    with torch.no_grad():
        got = theirs(input_ids=source, attention_mask=mask.long(), decoder_input_ids=targets).logits
        expected = model(source, mask, targets).logits
    assert got.shape == expected.shape and expected.std() > 0.1
    assert (got - expected).abs().max() < 1e-5


@each_class
def test_the_library_writes_the_same(tmp_path, positions, norm_first):
    lengths = set()
    for seed in range(8):
        model = drawn_model(seed, positions, norm_first)
        theirs = AutoModelForSeq2SeqLM.from_pretrained(save_transformer(model, tmp_path / "it"))
        source, mask, _ = drawn_batch(model.config)
        for beam in (1, 5):
            # at the limit, the library counts a translation that was cut off like one that ended: the most probable wins
            found = [max(best, key=lambda one: one.log_probability)
                     for best in beam_search(model, source, mask, beam, alpha=0.0, max_len=20)]
            written = theirs.generate(input_ids=source, attention_mask=mask.long(), num_beams=beam, do_sample=False,
                                      length_penalty=0.0, max_length=21)
            assert [until_the_end(row[1:]) for row in written.tolist()] == [one.ids + [END] * one.ended for one in found]
            lengths |= {len(one.ids) for one in found if one.ended}
    assert len(lengths) > 3 and max(lengths) > 3                           # some translations end, and not at once


@each_class
def test_dropout_and_limits_are_those_of_the_configuration(tmp_path, positions, norm_first):
    config = dataclasses.replace(drawn_config(3, positions, norm_first), dropout=0.2, attention_dropout=0.3)
    model = shaken(Transformer(config), 3)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(save_transformer(model, tmp_path / "it"))
    assert theirs.config.dropout == theirs.config.activation_dropout == config.dropout
    assert theirs.config.attention_dropout == config.attention_dropout
    assert theirs.config.max_position_embeddings == theirs.generation_config.max_length == config.max_len
    source, mask, _ = drawn_batch(config)
    assert theirs.generate(input_ids=source, attention_mask=mask.long(), do_sample=False).shape[1] <= config.max_len


@each_class
def test_a_model_made_from_the_configuration_alone_forces_no_token_at_the_limit(tmp_path, positions, norm_first):
    """Without generation_config.json, the library's own kinds would put <pad>, <unk> or <bos> at the end of a long one."""
    model = shaken(Transformer(drawn_config(3, positions, norm_first)), 3)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(save_transformer(model, tmp_path / "it"))
    alone = type(theirs)(theirs.config).eval()
    alone.load_state_dict(theirs.state_dict())
    source, mask, _ = drawn_batch(model.config)
    settings = dict(input_ids=source, attention_mask=mask.long(), do_sample=False, max_length=6)
    expected = theirs.generate(**settings)
    assert ((expected[:, -1] != PAD) & (expected[:, -1] != END)).any()     # some are cut off at the limit
    assert torch.equal(alone.generate(**settings, suppress_tokens=[PAD, BEGIN]), expected)


def test_what_the_library_saves_again_is_the_same_model(tmp_path):
    """It leaves out the tables of sines, so they have to be its own."""
    model = shaken(Transformer(SMALL))
    AutoModelForSeq2SeqLM.from_pretrained(save_transformer(model, tmp_path / "it")).save_pretrained(tmp_path / "again")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again").eval()
    source, mask, targets = drawn_batch(SMALL)
    with torch.no_grad():
        got = theirs(input_ids=source, attention_mask=mask.long(), decoder_input_ids=targets).logits
        assert (got - model(source, mask, targets).logits).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["suppress_tokens", "renormalize_logits"])
def test_the_settings_of_the_search_matter(tmp_path, name):
    """Without one of them, the probabilities that a beam of 5 compares are others."""
    model = drawn_model(1, "learned", True)
    with torch.no_grad():                                                  # <pad> and <bos> as likely as <eos>
        words = model.target_embedding if model.config.tied else model.output
        words.weight[[PAD, BEGIN]] = words.weight[END].clone()
    source, mask, _ = drawn_batch(model.config)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(save_transformer(model, tmp_path / "it"))
    scores = [best[0].log_probability for best in beam_search(model, source, mask, 5, 0.0, max_len=20)]
    settings = dict(input_ids=source, attention_mask=mask.long(), num_beams=5, do_sample=False, length_penalty=0.0,
                    max_length=21, return_dict_in_generate=True, output_scores=True)
    assert torch.allclose(theirs.generate(**settings).sequences_scores, torch.tensor(scores), atol=1e-4)
    setattr(theirs.generation_config, name, None)
    assert not torch.allclose(theirs.generate(**settings).sequences_scores, torch.tensor(scores), atol=1e-2)


def test_what_the_library_does_not_compute_is_refused(tmp_path):
    def changed(**changes):
        return Transformer(dataclasses.replace(SMALL, **changes))

    for error, words, model in (
        (TypeError, "the model is a Decoder; save_transformer takes a Transformer", Decoder(1, 12, 3, 20)),
        (ValueError, "positions='rotary' with norm_first=True, where", changed(positions="rotary", norm_first=True)),
        (ValueError, "positions='learned' with norm_first=False, where they have", changed(positions="learned")),
        (ValueError, "positions='none' with norm_first=False", changed(positions="none")),
        (ValueError, "it has layer_norm_eps=0.01, where they have 1e-05", changed(layer_norm_eps=0.01)),
        (ValueError, "positions='alibi'.*; and layer_norm_eps=0.01", changed(positions="alibi", layer_norm_eps=0.01)),
        (ValueError, "source_vocab_size=31 above vocab_size=30, where a Pegasus has one size for both",
         changed(source_vocab_size=31, norm_first=True)),
        (ValueError, "source_vocab_size=31 above vocab_size=30, where a Blenderbot",
         changed(source_vocab_size=31, norm_first=True, positions="learned")),
    ):
        with pytest.raises(error, match=words):
            save_transformer(model, tmp_path / "it")
    assert not (tmp_path / "it").exists()
    assert library_transformer_config(dataclasses.replace(SMALL, source_vocab_size=31))["model_type"] == "marian"
