"""Hidden words, their loss, and fine-tuning: what is masked, what is trained, and what adapters change."""

import copy

import pytest
import torch
from torch import nn

from course_utils.pretraining import (
    ADAPTABLE,
    ADAPTED,
    BertClassifier,
    BertConfig,
    BertEncoder,
    LowRankAdapter,
    MaskedLanguageModel,
    MaskedTokenLoss,
    add_adapters,
    freeze,
    layer_rates,
    layers_of,
    mask_tokens,
    merge_adapters,
)
from course_utils.training import BatchOptions, EncodedReviews, fit

MASK, VOCAB = 4, 30
CONFIG = BertConfig(VOCAB, d_model=16, num_heads=2, d_ff=24, num_layers=3, max_len=20)


def encoder(seed=0, **changes) -> BertEncoder:
    torch.manual_seed(seed)
    model = BertEncoder(BertConfig(**{**vars(CONFIG), **changes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def ids(*shape, low=5):
    return torch.randint(low, VOCAB, shape, generator=torch.Generator().manual_seed(0))


# hiding words

def test_fifteen_per_cent_are_chosen_and_of_these_80_10_and_10():
    token_ids = ids(400, 500)
    can_hide = torch.rand(token_ids.shape, generator=torch.Generator().manual_seed(1)) < 0.9
    inputs, chosen = mask_tokens(token_ids, can_hide, MASK, VOCAB, generator=torch.Generator().manual_seed(2))
    assert not chosen[~can_hide].any() and torch.equal(inputs[~chosen], token_ids[~chosen])
    assert abs(chosen[can_hide].double().mean() - 0.15) < 0.005
    hidden, kept = inputs[chosen] == MASK, inputs[chosen] == token_ids[chosen]
    swapped = inputs[chosen][~hidden & ~kept]
    assert abs(hidden.double().mean() - 0.8 - 0.1 / VOCAB) < 0.01          # a random id may be the mask's, too
    assert abs(len(swapped) / len(kept) - 0.1) < 0.01 and set(swapped.tolist()) == set(range(VOCAB)) - {MASK}
    assert abs(kept.double().mean() - 0.1) < 0.01


def test_the_same_generator_gives_the_same_and_no_argument_is_changed():
    token_ids, can_hide = ids(5, 9), torch.ones(5, 9, dtype=torch.bool)
    before = token_ids.clone()
    one, two = (mask_tokens(token_ids, can_hide, MASK, VOCAB, 0.5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one.inputs, two.inputs) and torch.equal(one.chosen, two.chosen) and torch.equal(token_ids, before)
    assert not mask_tokens(token_ids, can_hide, MASK, VOCAB, rate=0.0).chosen.any()


def test_wrong_arguments_of_masking():
    token_ids = ids(2, 3)
    for rate in (15, -0.1, 1.0):
        with pytest.raises(ValueError, match=f"rate={rate}; use a number from 0"):
            mask_tokens(token_ids, token_ids > 0, MASK, VOCAB, rate)
    with pytest.raises(ValueError, match=r"can_hide \(3,\)"):
        mask_tokens(token_ids, torch.ones(3, dtype=torch.bool), MASK, VOCAB)


def test_the_loss_is_the_mean_over_the_chosen_positions_alone():
    torch.manual_seed(0)
    model, loss_of = MaskedLanguageModel(CONFIG).eval(), MaskedTokenLoss(MASK, never=(0, 2, 3), rate=0.3)
    token_ids = ids(6, 12)
    token_ids[:, 0], token_ids[:, -1], token_ids[2, 6:] = 2, 3, 0
    loss, count = loss_of(model, token_ids)
    again, _ = loss_of(model, token_ids)
    assert torch.equal(loss, again)                                        # in evaluation always the same are hidden
    can_hide = token_ids > 3
    inputs, chosen = mask_tokens(token_ids, can_hide, MASK, VOCAB, 0.3, torch.Generator().manual_seed(0))
    logits = model(inputs, token_ids != 0)
    by_hand = [-logits[i, j].log_softmax(-1)[token_ids[i, j]] for i, j in chosen.nonzero().tolist()]
    assert count == len(by_hand) > 5 and torch.isclose(loss, torch.stack(by_hand).mean(), atol=1e-6)
    model.train()
    assert len({loss_of(model, token_ids)[1] for _ in range(8)}) > 1       # in training others each time
    nothing, count = MaskedTokenLoss(MASK, never=tuple(range(VOCAB)))(model, token_ids)
    assert nothing == 0 and count == 1


def test_padding_is_never_chosen_even_if_nobody_says_so():
    model, token_ids = MaskedLanguageModel(CONFIG).eval(), ids(6, 12)
    token_ids[:, 7:] = CONFIG.pad_id
    _, count = MaskedTokenLoss(MASK, rate=0.99)(model, token_ids)
    assert 30 < count <= 6 * 7


# a classifier on top

@pytest.mark.parametrize("pooling", ["mean", "first", "pooler"])
def test_padding_never_changes_a_logit(pooling):
    model = BertClassifier(encoder(), 3, pooling).eval()
    token_ids = ids(3, 10)
    mask = torch.arange(10) < torch.tensor([[10], [4], [1]])
    with torch.no_grad():
        together = model(token_ids.masked_fill(~mask, 0), mask).logits
        assert together.shape == (3, 3) and torch.equal(together, model(token_ids.masked_fill(~mask, 0)).logits)
        for i, length in enumerate((10, 4, 1)):
            assert (model(token_ids[i : i + 1, :length]).logits - together[i]).abs().max() < 1e-5


def test_what_is_pooled():
    base, token_ids = encoder(), ids(2, 7)
    with torch.no_grad():
        found = base(token_ids)
        for pooling, right in (("mean", found.x.mean(dim=1)), ("first", found.x[:, 0]), ("pooler", found.pooled)):
            model = BertClassifier(base, pooling=pooling).eval()
            assert torch.allclose(model(token_ids).logits, model.output(right), atol=1e-5)
    assert len(BertClassifier(base).eval()(token_ids, need_weights=True).attentions) == 3


def test_wrong_arguments_of_a_classifier():
    for wrong in (dict(pooling="max"), dict(num_classes=1), dict(dropout=1)):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            BertClassifier(encoder(), **wrong)
    with pytest.raises(ValueError, match="has no pooler; use pooling='mean'"):
        BertClassifier(encoder(pooler=False), pooling="pooler")


# what is trained

def trained(model, **settings):
    """One epoch on a few reviews; returns which parameters have changed."""
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    reviews = EncodedReviews([row.tolist() for row in ids(24, 9)], [0, 1] * 12)
    fit(model, reviews, reviews, options=BatchOptions(batch_size=8), epochs=1, learning_rate=1e-2, progress=False,
        **settings)
    return {name for name, tensor in model.named_parameters() if not torch.equal(tensor, before[name])}


@pytest.mark.parametrize("layers", [0, 1, 2, 3, None])
def test_frozen_layers_stay_as_they_were(layers):
    changed = trained(freeze(BertClassifier(encoder(pooler=False)), layers))
    blocks = {int(name.split(".")[3]) for name in changed if ".blocks." in name}
    assert blocks == set(range(3 if layers is None else layers, 3))
    assert {"output.weight", "output.bias"} <= changed
    assert not {name for name in changed if name.startswith(("encoder.embedding", "encoder.positions", "encoder.token"))}


def test_layers_are_all_of_the_model_once():
    model = BertClassifier(encoder())
    parts = layers_of(model)
    assert len(parts) == 5 and sorted(id(p) for part in parts for p in part) == sorted(map(id, model.parameters()))
    assert [group["scale"] for group in layer_rates(model, 0.5)] == [0.0625, 0.125, 0.25, 0.5, 1.0]
    with pytest.raises(ValueError, match="num_layers=4; use a whole number from 0 to 3"):
        freeze(model, 4)
    with pytest.raises(ValueError, match="decay=0; use a number above 0"):
        layer_rates(model, 0)


# adapters

@pytest.mark.parametrize("names", [ADAPTED, ADAPTABLE])
@pytest.mark.parametrize("rank, alpha", [(1, 1.0), (3, 16.0), (8, 8.0)])
def test_adapters_change_nothing_at_first_and_merge_to_the_same(rank, alpha, names):
    plain = BertClassifier(encoder()).eval()
    torch.manual_seed(1)
    adapted = add_adapters(copy.deepcopy(plain), rank, alpha, names).eval()
    token_ids = ids(2, 8)
    with torch.no_grad():
        assert torch.equal(adapted(token_ids).logits, plain(token_ids).logits)
        for name, parameter in adapted.named_parameters():
            if name.endswith(".up"):
                parameter.normal_()
        expected = adapted(token_ids).logits
        assert (expected - plain(token_ids).logits).abs().max() > 1e-3
        merged = merge_adapters(copy.deepcopy(adapted))
        assert (merged(token_ids).logits - expected).abs().max() < 1e-5
    assert [name for name, _ in merged.named_parameters()] == [name for name, _ in plain.named_parameters()]
    assert not any(isinstance(part, LowRankAdapter) for part in merged.modules())


def test_an_adapter_is_the_formula():
    torch.manual_seed(0)
    linear, x = nn.Linear(6, 4), torch.randn(5, 6)
    adapter = LowRankAdapter(copy.deepcopy(linear), rank=2, alpha=3.0)
    nn.init.normal_(adapter.up)
    expected = x @ linear.weight.T + linear.bias + 3 / 2 * x @ adapter.down.T @ adapter.up.T
    assert (adapter(x) - expected).abs().max() < 1e-6 and (adapter.merged()(x) - expected).abs().max() < 1e-6
    assert torch.equal(adapter.linear.weight, linear.weight)               # merging leaves the adapter as it is
    for rank in (0, 5):
        with pytest.raises(ValueError, match=f"rank={rank}; use a whole number from 1 to 4"):
            LowRankAdapter(linear, rank)


def test_every_matrix_of_a_block_can_have_an_adapter():
    linear = [name for name, part in encoder().encoder.blocks[0].named_modules() if isinstance(part, nn.Linear)]
    assert sorted(ADAPTABLE) == sorted(name.rpartition(".")[2] for name in linear)
    model = add_adapters(BertClassifier(encoder()), rank=2, names=ADAPTABLE)
    changed = {name.removeprefix("encoder.encoder.blocks.") for name in trained(model)}
    blocks = range(CONFIG.num_layers)
    assert changed == {"output.weight", "output.bias"} | {
        f"{i}.{name}.{half}" for i in blocks for name in linear for half in ("down", "up")}
    only = add_adapters(BertClassifier(encoder()), names=["contract"])
    where = {name for name, part in only.named_modules() if isinstance(part, LowRankAdapter)}
    assert where == {f"encoder.encoder.blocks.{i}.feed_forward.contract" for i in blocks}


def test_an_adapter_has_the_type_of_its_layer():
    adapter = LowRankAdapter(nn.Linear(6, 4).double(), rank=2)
    assert adapter.down.dtype == adapter.up.dtype == torch.float64
    assert adapter(torch.ones(1, 6, dtype=torch.float64)).dtype == adapter.merged().weight.dtype == torch.float64
    assert LowRankAdapter(nn.Linear(6, 4, device="meta"), rank=2).up.device.type == "meta"


def test_adapters_on_layers_that_are_not_there():
    for names in (["query"], ["dropout"]):
        with pytest.raises(ValueError, match="use one of query_projection.*, output_projection, expand, contract"):
            add_adapters(BertClassifier(encoder()), names=names)
    with pytest.raises(ValueError, match=r"names='expand', a text; expected several names: use names=\('expand',\)"):
        add_adapters(BertClassifier(encoder()), names="expand")


def test_adapters_are_added_in_one_call():
    """A second call would freeze the first call's adapters with the encoder that they are in."""
    model = add_adapters(BertClassifier(encoder()))
    before = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for names in (ADAPTED, ("expand", "contract")):
        with pytest.raises(ValueError, match=r"adapters on query_projection, value_projection; .*merge_adapters\(model\)"):
            add_adapters(model, names=names)
    assert {name for name, parameter in model.named_parameters() if parameter.requires_grad} == before
    again = add_adapters(merge_adapters(model), names=("expand", "contract"))
    assert sum(isinstance(part, LowRankAdapter) for part in again.modules()) == 2 * CONFIG.num_layers


@pytest.mark.parametrize("function", [layers_of, freeze, layer_rates, add_adapters, merge_adapters])
def test_an_encoder_alone_has_nothing_to_fine_tune(function):
    with pytest.raises(TypeError, match=r"a model whose `encoder` is a BertEncoder, .*\(encoder\); got a BertEncoder"):
        function(encoder())
