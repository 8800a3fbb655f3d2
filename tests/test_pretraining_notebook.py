"""Notebook 14: its encoder, built from notebook cells alone, is the package's; its fine-tuning is that of the recipes."""

import copy
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from lesson_cells import cells_of, cells_of_the_blocks
from library_twins import same
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to
from course_utils.pretraining import (
    BertClassifier,
    BertConfig,
    BertEncoder,
    LowRankAdapter,
    MaskedLanguageModel,
    add_adapters,
    load_bert,
)
from course_utils.recipes import fine_tuning
from course_utils.tokenization import pad_batch


@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of 03 to 07 and 14 define, with the course's answers to 14's exercises; nothing from the package."""
    names, cells = cells_of_the_blocks(), cells_of("14_pretraining")
    exec(cells_of("03_embeddings")["export-mean"], names)
    exec(cells_of("06_positional_encoding")["export-learned"], names)

    class Unturned(names["EncoderBlock"]):                                 # BERT turns nothing
        def forward(self, x, mask=None):
            return SimpleNamespace(x=super().forward(x, mask, rotary=lambda x: x))

    names["EncoderBlock"] = Unturned
    stack = names["Encoder"]

    def encoder(*sizes, layer_norm_eps, **options):
        made = stack(*sizes, **options)
        for module in made.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = layer_norm_eps
        return made

    learned = names["LearnedPositions"]
    learned.add = learned.forward
    names |= {"Encoder": encoder, "padding_mask": lambda mask: mask[:, None, None, :], "F": F, "nn": nn, "copy": copy,
              "NamedTuple": NamedTuple, "pad_batch": pad_batch}
    names |= {answers_to(number).reference.__name__: answers_to(number).reference
              for number in ("14.1", "14.3", "14.6", "14.7", "14.8")}
    for cell in ("export-mask", "export-encoder", "export-masked", "export-classifier", "export-adapter"):
        exec(cells[cell], names)
    return names


def notebook_encoder(taught: dict, config: BertConfig):
    return taught["BertEncoder"](config.vocab_size, config.d_model, config.num_heads, config.d_ff, config.num_layers,
                                 config.max_len)


def test_the_weights_that_come_with_the_course_give_the_same_hidden_states_in_the_notebooks_encoder(taught):
    package, tokenizer = load_bert("encoder")
    notebook = notebook_encoder(taught, package.config).eval()
    notebook.load_state_dict(package.state_dict())                         # strict: the same names, and no others
    rows = [tokenizer.encode_pair("Not dull.", "But is it moving?"), tokenizer.encode_pair("dull", "!")]
    ids, mask = pad_batch([row for row, _ in rows], 0)
    types, _ = pad_batch([row for _, row in rows], 0)
    with torch.no_grad():
        for given in (types, None):
            got, expected = notebook(ids, mask, given), package(ids, mask, given).hidden_states
            assert len(got) == len(expected) == 4
            for one, other in zip(got, expected):
                assert (one - other)[mask].abs().max() < 1e-5


def small(**changes) -> BertConfig:
    return BertConfig(30, d_model=16, num_heads=2, d_ff=24, num_layers=2, max_len=12, pooler=False, **changes)


def test_its_head_for_hidden_words_and_its_classifier_are_the_packages(taught):
    torch.manual_seed(0)
    package = MaskedLanguageModel(small()).eval()
    notebook = taught["MaskedLanguageModel"](notebook_encoder(taught, small())).eval()
    notebook.load_state_dict(package.state_dict())
    ids, mask = torch.randint(1, 30, (3, 7)), torch.arange(7) < torch.tensor([[7], [2], [4]])
    same(notebook(ids, mask)[mask], package(ids, mask)[mask])
    package = BertClassifier(package.encoder).eval()
    notebook = taught["BertClassifier"](notebook.encoder).eval()
    notebook.load_state_dict(package.state_dict())
    same(notebook(ids, mask), package(ids, mask).logits)


def test_its_adapters_stand_on_the_same_six_matrices_and_compute_the_same(taught):
    torch.manual_seed(0)
    notebook = notebook_encoder(taught, small())
    whole = BertClassifier(BertEncoder(small()))
    package = add_adapters(whole, rank=3, names=fine_tuning.ADAPTABLE).eval()
    for block in notebook.encoder.blocks:
        taught["add_adapters"](block, rank=3)
    with torch.no_grad():
        for parameter in package.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    notebook.load_state_dict(package.encoder.state_dict())
    assert sum(isinstance(module, LowRankAdapter) for module in package.modules()) == 12
    ids, mask = torch.randint(1, 30, (3, 7)), torch.ones(3, 7, dtype=torch.bool)
    with torch.no_grad():
        assert (notebook.eval()(ids, mask)[-1] - package.encoder(ids, mask).x).abs().max() < 1e-5


def test_its_hiding_leaves_alone_what_cant_be_hidden(taught):
    torch.manual_seed(0)
    ids, can_hide = torch.randint(5, 30, (200, 300)), torch.rand(200, 300) < 0.5
    inputs, chosen = taught["mask_tokens"](ids, can_hide, 4, 30)
    assert not chosen[~can_hide].any() and inputs[~chosen].equal(ids[~chosen])
    assert abs(chosen[can_hide].double().mean() - 0.15) < 0.01


class Answers(nn.Module):
    """A small classifier whose logits come as the package's do, or plain as the notebook's."""

    def __init__(self, plain: bool):
        super().__init__()
        torch.manual_seed(1)
        self.plain, self.embedding, self.output = plain, nn.Embedding(30, 8), nn.Linear(8, 2)

    def forward(self, token_ids, attention_mask):
        logits = self.output((self.embedding(token_ids) * attention_mask[..., None]).sum(dim=1))
        return logits if self.plain else SimpleNamespace(logits=logits)


def test_its_training_is_that_of_the_recipe_and_so_are_batches_and_factors(taught):
    cells = cells_of("14_pretraining")
    exec("import torch\n" + cells["batches"], taught)
    several = fine_tuning.Labelled([[1 + i % 5] * (1 + i % 4) for i in range(20)], [i % 2 for i in range(20)])
    ours, theirs = (made(several, 3, 7, 6) for made in (taught["batches_of"], fine_tuning.batches_of))
    assert len(ours) == len(theirs) == 12
    for one, other in zip(ours, theirs):
        assert all(a.equal(b) for a, b in zip(one, other))
    factors = fine_tuning.rise_and_fall(12)
    assert taught["rise_and_fall"](12) == factors and factors[0] == 1.0 and max(factors) == 1.0
    assert taught["rise_and_fall"](40)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    models = [Answers(plain) for plain in (True, False)]
    losses = [tune(model, fine_tuning.groups_of(model, 0.05), ours, factors)
              for tune, model in zip((taught["fine_tune"], fine_tuning.fine_tune), models)]
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    assert all(one.equal(other) for one, other in zip(models[0].parameters(), models[1].parameters()))


def test_a_way_lets_only_that_learn_which_it_names():
    torch.manual_seed(0)
    learns = {}
    for way in fine_tuning.RATES:
        encoder = BertEncoder(small())
        model = fine_tuning.in_one_way(way, copy.deepcopy(encoder))
        [group] = fine_tuning.groups_of(model, 0.1)
        learns[way] = sum(p.numel() for p in group["params"])
        before = {name: p.clone() for name, p in model.named_parameters()}
        several = fine_tuning.batches_of(fine_tuning.Labelled([[1, 2], [3, 4, 5]], [0, 1]), 2, 0)
        fine_tuning.fine_tune(model, [group], several, [1.0] * len(several))
        moved = {name for name, p in model.named_parameters() if not p.equal(before[name])}
        if way == "head only":
            assert moved == {"output.weight", "output.bias"}
        if way == "adapters":
            assert all(name.endswith((".down", ".up")) or name.startswith("output.") for name in moved)
        assert encoder.embedding.weight.equal(before["encoder.embedding.weight"]) == (way != "random numbers")
    assert learns["head only"] < learns["adapters"] < learns["all layers"] == learns["random numbers"]


def test_the_recipes_answers_stand_in_the_order_of_the_texts_whatever_their_lengths():
    torch.manual_seed(0)
    model = BertClassifier(BertEncoder(small())).eval()
    with torch.no_grad():
        model.output.weight.mul_(50)
    texts = [torch.randint(1, 30, (length,)).tolist() for length in torch.randint(1, 12, (150,)).tolist()]
    one_by_one = [model(*pad_batch([text], 0)).logits.argmax().item() for text in texts]
    assert set(one_by_one) == {0, 1} and fine_tuning.answers(model, SimpleNamespace(ids=texts)) == one_by_one
