"""What an attention view says about other people's models: their answers, layers, vocabularies, lengths and refusals."""


import pytest
import small_language_models as small
import torch
import transformers as hf

from course_utils.interactive import attention_view
from course_utils.interactive.attention_hugging_face import _two_vocabularies

TEXT = "the film was not dull"  # 5 words, 7 tokens with [CLS] and [SEP]
WORDS = len(small.words())
SIZES = dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=32,
             max_position_embeddings=32, pad_token_id=0)
CLASSES = dict(id2label={0: "toxic", 1: "insult", 2: "threat"}, label2id={"toxic": 0, "insult": 1, "threat": 2})
SEVERAL = dict(CLASSES, problem_type="multi_label_classification")
DISTIL = dict(vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=32, max_position_embeddings=32)
T5 = dict(vocab_size=WORDS, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0, eos_token_id=3,
          decoder_start_token_id=0)
BART = dict(vocab_size=WORDS, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=24, init_std=0.7,
            pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3)


def side(model, text=TEXT, **options):
    return attention_view(model, small.words(), text, **options).data["sides"][0]


def numbers(model, **options):
    """The numbers of the layers that the view shows."""
    return [layer["number"] for layer in side(model, **options)["kinds"][0]["layers"]]


def logits(model, text=TEXT):
    with torch.no_grad():
        return model(**small.words()(text, return_tensors="pt")).logits[0]


@pytest.mark.parametrize(("name", "sizes"), [
    ("Bert", SIZES), ("T5", T5), ("Bart", BART),
    ("GPT2", dict(vocab_size=WORDS, n_embd=16, n_layer=2, n_head=2, pad_token_id=0)),
])
def test_classes_that_dont_exclude_each_other_have_a_sigmoid_each(name, sizes):
    config = getattr(hf, f"{name}Config")(**sizes, **SEVERAL)
    model = small.random_model(getattr(hf, f"{name}ForSequenceClassification"), config)
    view = attention_view(model, small.words(), TEXT)
    shown = view.data["sides"][0]
    assert shown["label"] == "" and shown["probability"] is None, "no single label"
    for label, probability in zip(CLASSES["id2label"].values(), logits(model).sigmoid().tolist()):
        assert f"{label} {probability:.2f}" in shown["answer"] and f"{label} {probability:.2f}" in view.alt
    assert "Predicted" not in view.alt


def test_many_classes_are_named_from_the_largest_on():
    config = hf.BertConfig(**SIZES, num_labels=28, problem_type="multi_label_classification", initializer_range=0.9)
    model = small.random_model(hf.BertForSequenceClassification, config)
    order = logits(model).sigmoid().sort(descending=True)
    first = ", ".join(f"LABEL_{k} {p:.2f}" for k, p in zip(order.indices[:6].tolist(), order.values[:6].tolist()))
    assert side(model)["answer"] == f"Probability of each class by itself: {first}; 22 others at most {order.values[6]:.2f}"


@pytest.mark.parametrize(("name", "sizes"), [("Bart", BART), ("T5", T5), ("Bert", SIZES)])
def test_a_classifier_has_its_own_label_and_probability(name, sizes):
    config = getattr(hf, f"{name}Config")(**sizes, **CLASSES)
    model = small.random_model(getattr(hf, f"{name}ForSequenceClassification"), config)
    probabilities = logits(model).softmax(-1)  # as the model computes it when nobody gives its decoder anything
    shown = side(model)
    assert shown["label"] == CLASSES["id2label"][int(probabilities.argmax())]
    assert shown["probability"] == pytest.approx(float(probabilities.max()), abs=0.00051)
    if model.config.is_encoder_decoder:
        with pytest.raises(ValueError, match="its decoder reads, too: leave target= out"):
            side(model, target=TEXT)


@pytest.mark.parametrize(("model_class", "more"), [
    ("BertForNextSentencePrediction", {}), ("ElectraForPreTraining", {}), ("BertForTokenClassification", {"num_labels": 7}),
    ("BertForSequenceClassification", {"num_labels": 1}),
    ("RobertaForSequenceClassification", {"num_labels": 3, "problem_type": "regression"})])
def test_no_label_where_no_text_is_classified(model_class, more):
    model_class = getattr(hf, model_class)
    shown = side(small.random_model(model_class, model_class.config_class(**SIZES, **more)))
    assert shown["label"] == "" and shown["probability"] is None and "answer" not in shown


GROUPED = dict(SIZES, num_key_value_heads=2, bos_token_id=2, eos_token_id=3)
HYBRIDS = {
    "Jamba": dict(GROUPED, attn_layer_period=2, attn_layer_offset=1, num_experts=2, mamba_d_state=4, mamba_dt_rank=4,
                  use_mamba_kernels=False),
    "Lfm2": dict(GROUPED, layer_types=["conv", "full_attention"] * 2),
    "Zamba2": dict(GROUPED, layers_block_type=["linear_attention", "hybrid"] * 2, n_mamba_heads=4, mamba_d_state=8,
                   mamba_ngroups=1, mamba_headdim=16, num_mem_blocks=1),  # one block of attention, used in both layers
    "NemotronH": dict({key: size for key, size in GROUPED.items() if key != "num_hidden_layers"}, head_dim=8, n_groups=1,
                      layers_block_type=["linear_attention", "full_attention", "mlp", "full_attention"],
                      mamba_num_heads=4, mamba_head_dim=16, ssm_state_size=8),
    }


@pytest.mark.parametrize("name", HYBRIDS)
def test_layers_keep_their_numbers_where_only_some_attend(name):
    model = small.random_model(getattr(hf, f"{name}ForCausalLM"), getattr(hf, f"{name}Config")(**HYBRIDS[name]))
    assert numbers(model) == [1, 3] and numbers(model, layers=[3]) == [3]
    with pytest.raises(ValueError, match=r"layers=\[0\]; expected some of \[1, 3\]"):
        numbers(model, layers=[0])


@pytest.mark.parametrize(("name", "more"), [
    ("Llama", {}), ("Albert", {"embedding_size": 32}),
])
def test_layers_that_all_attend_are_counted_from_zero(name, more):
    kind = "ForMaskedLM" if name == "Albert" else "ForCausalLM"  # all of Albert's layers are one
    sizes = SIZES if name == "Albert" else GROUPED
    model = small.random_model(getattr(hf, name + kind), getattr(hf, f"{name}Config")(**{**sizes, **more}))
    assert numbers(model) == [0, 1, 2, 3]


def with_two_vocabularies(target_words):
    """An encoder-decoder made of two BERTs."""
    decoder = hf.BertConfig(**{**SIZES, "vocab_size": target_words, "num_hidden_layers": 2}, is_decoder=True,
                            add_cross_attention=True)
    config = hf.EncoderDecoderConfig.from_encoder_decoder_configs(hf.BertConfig(**SIZES), decoder, decoder_start_token_id=2,
                                                                 pad_token_id=0, eos_token_id=3)
    torch.manual_seed(0)
    model = hf.EncoderDecoderModel(config=config).eval()
    model.set_attn_implementation("eager")
    model.generation_config.decoder_start_token_id = 2
    return model


@pytest.mark.parametrize("rows", [len(small.french()), 60])
def test_two_vocabularies_take_two_tokenizers(rows):
    model, (english, french) = with_two_vocabularies(rows), (small.words(), small.french())
    for options in ({}, {"target": "le film n' était pas ennuyeux"}):
        with pytest.raises(ValueError, match=r"may be two vocabularies: give both tokenizers, attention_view\(model, "
                                             r"\(source_tokenizer, target_tokenizer\), text\)"):
            attention_view(model, english, TEXT, **options)
    kinds = attention_view(model, (english, french), TEXT, target="le film n' était pas").data["sides"][0]["kinds"]
    assert kinds[0]["queries"] == kinds[2]["keys"] == ["[CLS]", *TEXT.split(), "[SEP]"]
    assert kinds[1]["queries"] == kinds[2]["queries"] == ["<s>", "le", "film", "n'", "était", "pas"]
    if rows == len(french):
        written = attention_view(model, (english, french), TEXT).data["sides"][0]["kinds"][1]["queries"]
        assert set(written) <= set(french.get_vocab())


def test_what_two_tokenizers_are_not_for():
    model, tokenizer = small.bart()
    assert not _two_vocabularies(model) and not _two_vocabularies(small.t5()[0])
    same = attention_view(model, (tokenizer, tokenizer), TEXT)
    assert same.html == attention_view(model, tokenizer, TEXT).html
    bert, words = small.bert()
    for call, message in [
        (lambda: attention_view(bert, (words, words), TEXT), "BertForSequenceClassification is none: give one"),
        (lambda: attention_view(model, (tokenizer,) * 3, TEXT), "got 3 tokenizers; expected one, or"),
        (lambda: attention_view(bert, small.gpt2()[1], TEXT), "but BertForSequenceClassification has 16 embeddings: is it"),
        (lambda: attention_view(with_two_vocabularies(60), (words, small.french()), TEXT), "has no token with the id"),
        (lambda: attention_view(with_two_vocabularies(12), (words, words), TEXT, target="it"),
         "the target's tokenizer has 16 tokens, but the model has 12 embeddings on that side"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


class OneForBoth:
    """One tokenizer that encodes English and decodes to French, as Marian's and FSMT's do in Hugging Face's library."""

    def __init__(self):
        self.english, french = small.words(), small.french().get_vocab()
        self.encoder, self.decoder = self.english.get_vocab(), {i: word for word, i in french.items()}
        self.all_special_tokens, self.all_special_ids, self.model_max_length = ["[CLS]", "[SEP]", "<s>", "</s>"], [2, 3], 24

    def __len__(self):
        return len(self.encoder)

    def __call__(self, *texts, **options):
        return self.english(*texts, **options)

    def convert_ids_to_tokens(self, ids):
        return [self.decoder.get(i) for i in ids]


def test_one_tokenizer_with_two_vocabularies_shows_each_side_in_its_own():
    view = attention_view(with_two_vocabularies(len(small.french())), OneForBoth(), TEXT)
    kinds = view.data["sides"][0]["kinds"]
    assert kinds[0]["queries"] == kinds[2]["keys"] == ["[CLS]", *TEXT.split(), "[SEP]"]
    assert kinds[1]["queries"][0] == "<s>" and set(kinds[1]["queries"]) <= set(small.french().get_vocab())
    with pytest.raises(ValueError, match="OneForBoth encodes a text with the source's vocabulary alone: leave target= out"):
        attention_view(with_two_vocabularies(len(small.french())), OneForBoth(), TEXT, target="le film")


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("name", ["Roberta", "MPNet", "Bert", "OPT", "GPT2"])
def test_a_text_may_be_as_long_as_the_model_reads(name, padding):
    sizes = dict(SIZES, pad_token_id=padding)
    if name == "GPT2":
        sizes = dict(vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=32, pad_token_id=padding)
    if name == "OPT":
        sizes |= {"ffn_dim": 32, "word_embed_proj_dim": 32}
    model = small.random_model(getattr(hf, f"{name}Model"), getattr(hf, f"{name}Config")(**sizes))
    tokenizer, longest = small.words(), 32
    tokenizer.model_max_length = 10**30
    if name not in ("Bert", "OPT", "GPT2"):
        longest = 32 - (1 if name == "MPNet" else padding) - 1  # MPNet counts from 2 on, whatever its padding
    text = " ".join(["dull"] * (longest - 2))
    assert len(attention_view(model, tokenizer, text).data["sides"][0]["kinds"][0]["queries"]) == longest
    with pytest.raises(ValueError, match=f"has {longest + 1} tokens, and {name}Model reads at most {longest}: give"):
        attention_view(model, tokenizer, text + " dull")


SETTINGS = {
    "return_dict_in_generate": True, "output_attentions": True, "num_return_sequences": 3, "num_beams": 4,
    "do_sample": True, "constraints": [1], "stop_strings": ["film"],
    "max_length": 1,
    "cache_implementation": "static", "min_new_tokens": 60, "guidance_scale": 2.0, "use_cache": False, "max_new_tokens": 1}


@pytest.mark.parametrize("setting", SETTINGS)
def test_whatever_the_generation_config_holds_one_text_is_written(setting):
    model, tokenizer = small.bart()
    plain = attention_view(model, tokenizer, TEXT).data["sides"][0]["kinds"][1]["queries"]
    setattr(model.generation_config, setting, SETTINGS[setting])
    own = model.generation_config
    written = attention_view(model, tokenizer, TEXT).data["sides"][0]["kinds"][1]["queries"]
    assert written == plain or setting.startswith("min_")
    assert model.generation_config is own and getattr(own, setting) == SETTINGS[setting], "the model's own is left as it was"


def test_a_setting_that_cannot_be_used_is_named():
    model, tokenizer = small.bart()
    model.generation_config.sequence_bias = {(5,): "much"}
    with pytest.raises(ValueError, match=r"generation_config\.sequence_bias=.*: set model\.generation_config"):
        attention_view(model, tokenizer, TEXT)


SPECIAL = {  # what has no attention to show: its settings, and what is said about it
    "MambaForCausalLM": (dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, state_size=4),
                         "has no attention at all"),
    "LongformerForMaskedLM": (dict(SIZES, attention_window=8), "columns are places in a window.* expected"),
    "BigBirdForMaskedLM": (SIZES, "special kind, which keeps no weights .*attention_type='original_full'"),
    "SqueezeBertForMaskedLM": (dict(SIZES, embedding_size=32), "weights are never negative, so these are something else"),
    "LEDForConditionalGeneration": (dict(BART, attention_window=8, max_encoder_position_embeddings=32,
                                         max_decoder_position_embeddings=32), r"encoder_attentions of shape .*special kind"),
    "XmodForMaskedLM": (dict(SIZES, languages=("en_XX", "fr_XX")), "can't be run on a text alone: .*set_default_language"),
    "BertForMultipleChoice": (SIZES, r"several choices, .*model\.base_model"),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_a_model_without_attention_to_show_says_so(name):
    sizes, message = SPECIAL[name]
    model_class = getattr(hf, name)
    with pytest.raises(ValueError, match=message) as caught:
        side(small.random_model(model_class, model_class.config_class(**sizes)),
             **({"target": TEXT} if name.startswith("LED") else {}))
    assert "attn_implementation='eager'" not in str(caught.value) and "key_tokens" not in str(caught.value)


def test_attention_sinks_are_named_and_shown_without_the_check():
    config = hf.GptOssConfig(**GROUPED, head_dim=8, num_local_experts=2, num_experts_per_tok=1)
    model = small.random_model(hf.GptOssForCausalLM, config)
    with pytest.raises(ValueError, match=r"attention sinks \(.*sinks\), which take a part .* check_rows=False shows them"):
        side(model)
    assert numbers(model, check_rows=False) == [0, 1, 2, 3]


def test_half_of_an_encoder_decoder_is_called_that():
    model, tokenizer = small.bart()
    for half, part in (("encoder", model.get_encoder()), ("decoder", model.get_decoder())):
        for options in ({}, {"target": "it was"}):
            with pytest.raises(ValueError, match=f"is only the {half} of an encoder-decoder: pass the whole model"):
                attention_view(part, tokenizer, TEXT, **options)


@pytest.mark.parametrize("name", ["T5EncoderModel", "UMT5ForTokenClassification"])
def test_an_encoder_that_stands_alone_is_shown(name):
    model_class = getattr(hf, name)
    shown = side(small.random_model(model_class, model_class.config_class(**T5)))
    assert [kind["name"] for kind in shown["kinds"]] == ["attention"]


def test_a_compiled_model_is_run_as_it_is():
    model, tokenizer = small.bert()
    assert attention_view(torch.compile(model), tokenizer, TEXT).html == attention_view(model, tokenizer, TEXT).html
