"""T5 in the course's blocks: the library's buckets, logits and answers; the sentences; tasks told apart."""

import pytest
import torch
import transformers
from transformers.models.t5.modeling_t5 import T5Attention

from course_utils import t5
from course_utils.training.pair_batches import END, PAD, WordList

SMALL = dict(vocab_size=40, d_model=24, d_kv=8, num_heads=3, d_ff=32, num_layers=2, decoder_start_token_id=PAD,
             pad_token_id=PAD, eos_token_id=END)


def library_model(seed=0, **changes):
    torch.manual_seed(seed)
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**SMALL | changes)).eval()
    for stack in (model.encoder, model.decoder):               # begin far from zero, so that a wrong bucket shows
        stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight.data.normal_()
    return model


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("number, furthest", [(32, 128), (8, 10), (16, 40), (64, 1000)])
def test_buckets_are_the_library_s(both_ways, number, furthest):
    distance = torch.arange(-1500, 1501)
    expected = T5Attention._relative_position_bucket(
        distance, bidirectional=both_ways, num_buckets=number, max_distance=furthest)
    assert torch.equal(t5.buckets(distance, both_ways, number, furthest), expected)


def test_a_bias_depends_on_the_distance_alone_and_begins_at_zero():
    bias = t5.RelativeBias(3, both_ways=True, number=8, furthest=10)
    assert bias(5).shape == (3, 5, 5) and not bias(5).any()
    torch.nn.init.normal_(bias.table.weight)
    made = bias(9)
    for shift in range(-8, 9):
        assert all(diagonal.unique().numel() == 1 for diagonal in made.diagonal(shift, 1, 2))
    assert torch.equal(bias(5), made[:, :5, :5])


@pytest.mark.parametrize("seed", range(3))
def test_logits_are_the_library_s_with_padding_too(seed):
    theirs = library_model(seed)
    ours, source = t5.load_t5(theirs), torch.randint(1, 40, (3, 31))
    target = torch.randint(1, 40, (3, 7))
    source[0, 20:], source[2, 5:] = PAD, PAD
    with torch.no_grad():
        expected = theirs(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target).logits
        assert (ours(source, target) - expected).abs().max() < 1e-5
        alone = ours(source[2:, :5], target[2:])
        assert (alone - expected[2:]).abs().max() < 1e-5       # padding never matters


def test_it_writes_what_the_library_writes():
    theirs = library_model(4, tie_word_embeddings=True)
    words = WordList(["<pad>", "<unk>", "<bos>", "<eos>", *(f"w{i}" for i in range(36))])
    texts = ["w1 w2 w3", "w9", "w30 w31 w4 w4 w4"]
    ids = t5.ids_of(words, texts)
    written = theirs.generate(
        input_ids=ids, attention_mask=(ids != PAD).long(), max_new_tokens=12, do_sample=False, num_beams=1)
    expected = [" ".join(words.words[i] for i in (row[1 : row.index(END, 1)] if END in row else row[1:]))
                for row in written.tolist()]
    assert [answer.replace("<pad>", "").split() for answer in t5.write(t5.load_t5(theirs), words, texts)] == [
        text.replace("<pad>", "").split() for text in expected]


def test_another_t5_is_refused():
    for changes in ({"feed_forward_proj": "gated-gelu"}, {"d_kv": 6}):
        with pytest.raises(ValueError, match="T5 here is that of 2020, such as google-t5/t5-small"):
            t5.load_t5(library_model(**changes))


def test_the_sentences_are_balanced_and_every_one_has_both_tasks():
    made = t5.opinions()
    assert len(made) == len({english for english, _, _ in made}) == 800
    assert sum(label == "positive" for _, label, _ in made) == 400
    assert ("the story was not boring but moving", "positive", "l' histoire n' était pas ennuyeuse mais émouvante") in made
    assert ("the film was bad and not funny", "negative", "le film était mauvais et pas drôle") in made
    training, testing = t5.split(made)
    assert len(testing) == 200 and not {row[0] for row in training} & {row[0] for row in testing}
    pairs = t5.as_tasks(made)
    assert len(pairs) == 1600 and ("sentiment: the play was not bad", "positive") in pairs
    own, other = t5.apart(made), t5.apart(made, swapped=True)
    assert sorted(own + other) == sorted(pairs)
    assert {text.split()[2] for text, _ in own if text.startswith("sentiment:")} == set(t5.JUDGED)


def test_training_learns_and_a_hidden_word_is_not_seen_by_the_decoder():
    training, _ = t5.split(t5.opinions(("film", "story")), tested=20)
    pairs = t5.as_tasks(training, ["sentiment:"])
    words = WordList.train(text.split() for pair in pairs for text in pair)
    model = t5.train(words, pairs, seed=0, steps=3)
    assert 0 <= t5.right(model, words, pairs) <= 1 and 0 <= t5.obeyed(model, words, pairs) <= 1
    source = t5.ids_of(words, ["sentiment: the film was bad"])
    memory = model.read(source).x
    seen, target = torch.arange(source.shape[1])[None] >= 1, torch.zeros(1, 1, dtype=torch.long)
    moved = memory.clone()
    moved[:, 0] += 100
    assert torch.equal(model.decode(memory, seen, target).x, model.decode(moved, seen, target).x)
