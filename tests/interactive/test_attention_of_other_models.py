"""Attention views of Hugging Face's models, small and random: encoders, decoders and encoder-decoders."""

import numpy as np
import pytest
import small_language_models as small
import torch

from course_utils.interactive import attention_view
from course_utils.interactive.coded import decode

TEXT = "the film was not dull"


def maps(view, kind=0, side=0):
    """One (heads, query, key) for each layer, as the page decodes them."""
    given = view.data["sides"][side]["kinds"][kind]
    keys = len(given["keys"] or given["queries"])
    return [decode(layer["weights"])[..., :keys] for layer in given["layers"]]


def agree(decoded, attentions):
    assert len(decoded) == len(attentions) > 0
    for one, other in zip(decoded, attentions, strict=True):
        assert one.shape == other.shape[1:] and np.abs(one - other[0].detach().numpy()).max() <= 0.0005 + 1e-6


def test_an_encoder_with_its_special_tokens_and_its_answer():
    model, tokenizer = small.bert()
    model.train()
    view = attention_view(model, tokenizer, TEXT)
    assert model.training, "the model is left in the mode it was in"
    side = view.data["sides"][0]
    assert side["kinds"][0]["queries"] == ["[CLS]", *TEXT.split(), "[SEP]"] and side["pooling"] is None
    result = model.eval()(**tokenizer(TEXT, return_tensors="pt"), output_attentions=True)
    agree(maps(view), result.attentions)
    probabilities = result.logits[0].softmax(-1)
    assert side["label"] == ("bad", "good")[int(probabilities.argmax())]
    assert side["probability"] == pytest.approx(float(probabilities.detach().max()), abs=0.00051)


def test_a_decoder_whose_tokens_are_bytes():
    model, tokenizer = small.gpt2()
    text = "the film café\n"
    view = attention_view(model, tokenizer, text)
    tokens = view.data["sides"][0]["kinds"][0]["queries"]
    assert " film" in tokens and "\n" in tokens and tokens[:3] == ["t", "h", "e"] and "Ġ" not in "".join(tokens)
    assert tokens[-3:-1] == ["Ã", "©"], "halves of a character stay as the tokenizer writes them"
    agree(maps(view), model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions)
    assert all((np.triu(layer, 1) == 0).all() for layer in maps(view)), "no token attends to a later one"
    assert view.data["sides"][0]["label"] == ""


@pytest.mark.parametrize(("make", "start"), [(small.bart, "</s>"), (small.t5, "<pad>")])
def test_an_encoder_decoder_has_three_kinds(make, start):
    model, tokenizer = make()
    view = attention_view(model, tokenizer, TEXT, target="it was moving")
    kinds = view.data["sides"][0]["kinds"]
    source = tokenizer.convert_ids_to_tokens(tokenizer(TEXT)["input_ids"])
    assert [kind["name"] for kind in kinds] == ["encoder", "decoder", "cross-attention"]
    assert kinds[0]["queries"] == kinds[2]["keys"] == source
    assert kinds[1]["queries"] == kinds[2]["queries"] and kinds[2]["queries"][0] == start
    assert kinds[1]["queries"][-3:] == ["it", "was", "moving"] and kinds[0]["keys"] is kinds[1]["keys"] is None
    ids = torch.tensor([tokenizer.convert_tokens_to_ids(kinds[1]["queries"])])
    result = model(**tokenizer(TEXT, return_tensors="pt"), decoder_input_ids=ids, output_attentions=True)
    for k, attentions in enumerate((result.encoder_attentions, result.decoder_attentions, result.cross_attentions)):
        agree(maps(view, k), attentions)


def test_an_encoder_decoder_reads_what_it_writes():
    model, tokenizer = small.bart()
    view = attention_view(model, tokenizer, TEXT)
    written = model.generate(**tokenizer(TEXT, return_tensors="pt"), max_new_tokens=20, do_sample=False, num_beams=1)[0]
    assert view.data["sides"][0]["kinds"][1]["queries"] == tokenizer.convert_ids_to_tokens(written.tolist())
    with pytest.raises(ValueError, match="BartModel can't write a text by itself: give target="):
        attention_view(model.model, tokenizer, TEXT)


def test_comparing_two_texts_and_two_models():
    model, tokenizer = small.bert()
    other, _ = small.bert(layers=2, heads=2)
    view = attention_view(model, tokenizer, TEXT, compare="the film was dull", layers=[0, 1])
    assert view.data["match"][0]["queries"] == [0, 1, 2, 3, -1, 4, 5]
    view = attention_view(model, tokenizer, TEXT, compare=other)
    assert [len(maps(view, side=side)) for side in (0, 1)] == [3, 2] and maps(view, side=1)[0].shape[0] == 2
    with pytest.raises(ValueError, match="different kinds of attention"):
        attention_view(model, tokenizer, TEXT, compare=attention_view(*small.bart(), TEXT))


@pytest.mark.parametrize("make", [small.bert, small.gpt2, small.bart, small.t5])
def test_a_model_that_keeps_no_weights_says_how_to_load_it(make):
    model, tokenizer = make(kept=False)
    target = {"target": "it was moving"} if model.config.is_encoder_decoder else {}
    with pytest.raises(ValueError, match=r"returned no attentions: it was loaded with attn_implementation='sdpa'.*"
                                         r"from_pretrained\(name, attn_implementation='eager'\)"):
        attention_view(model, tokenizer, "the film", **target)
    model.set_attn_implementation("eager")  # what the message says
    assert attention_view(model, tokenizer, "the film", **target).data["sides"]


def test_other_wrong_arguments():
    model, tokenizer = small.bert()
    for call, message in [
        (lambda: attention_view(model, TEXT), r"needs its tokenizer: attention_view\(model, tokenizer, text\)"),
        (lambda: attention_view(model, tokenizer, [TEXT]), "text is of type list; expected one text"),
        (lambda: attention_view(model, tokenizer, "dull " * 30), "the text has 32 tokens, and BertForSequenceClassification "
                                                                 "reads at most 24"),
        (lambda: attention_view(model, tokenizer, TEXT, target=TEXT), "BertForSequenceClassification is none: leave it out"),
        (lambda: attention_view(*small.gpt2(), ""), "has no tokens"),
        (lambda: attention_view(*small.bart(), TEXT, target=["it"]), "target is of type list"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
