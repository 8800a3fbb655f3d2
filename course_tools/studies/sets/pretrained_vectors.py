"""What pretrained vectors know: word senses and pronouns in MiniLM, a set of runs for course_tools/studies/command.py.

Writes data/results/pretrained_vectors.json, which the extra of the same name shows. The encoder is all-MiniLM-L6-v2 (Wang
et al. 2020: distilled from a larger model; then trained on pairs of sentences): the folder `minilm` in that of
COURSE_MODELS, or the hub's. Its controls are encoders of the same configuration: with new random weights, and with its own
weights shuffled within each matrix. Nothing is trained. The sentences are those of data/meanings.

    COURSE_MODELS=folder python -m course_tools results pretrained_vectors --jobs 1 [--seeds 0 1 2]

Lines of whole numbers are thousandths (`decoded` reads them): of a weight, or of ten times a difference of cosines.
"""

import copy
import functools
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from course_tools.studies.runner import ResultSet
from course_utils.attention_maps import HeadGates
from course_utils.data.meanings import load_pronouns, load_senses
from course_utils.files import sha256
from course_utils.pretrained_vectors import (
    attention_lean,
    pair_shift,
    position_of,
    read_texts,
    same_sense,
    states_at,
    vector_lean,
)
from course_utils.pretraining import BertEncoder, WordPieceTokenizer, load_bert
from course_utils.results import decoded, fingerprint
from course_utils.training import seed_everything
from course_utils.training.hugging_face import first_there

NAME = first_there("minilm", "sentence-transformers/all-MiniLM-L6-v2")
REAL, RANDOM, SHUFFLED = "MiniLM", "random weights", "shuffled weights"
QUERIES = ("it", "because", "was", "adjective")         # whose weights and vectors lean towards a noun
FAMOUS = ("The animal didn't cross the street because it was too tired.",
          "The animal didn't cross the street because it was too wide.")  # an example of Uszkoreit (2017), who drew it

BANK = ("The bank by the river.", "The bank was steep and muddy.", "They sat on the muddy bank.",  # three by the river
        "The bank raised its rates.", "The bank refused the loan.")


@functools.cache
def base() -> tuple[BertEncoder, WordPieceTokenizer]:
    """The pretrained encoder and its tokenizer."""
    encoder, tokenizer = load_bert(NAME)
    if tokenizer is None:
        raise ValueError(f"the folder of {NAME} has no tokenizer of word pieces")
    return encoder, tokenizer


def weights_of(encoder: BertEncoder) -> str:
    """A checksum of all weights, in the order of their names."""
    return sha256(b"".join(tensor.numpy().tobytes() for _, tensor in sorted(encoder.state_dict().items())))[:16]


@functools.cache
def settings() -> str:
    """What every run depends on: the encoder, its vocabulary, and the sentences."""
    encoder, tokenizer = base()
    sentences = load_senses(), load_pronouns(), FAMOUS, BANK
    return fingerprint(str(encoder.config), weights_of(encoder), tokenizer.vocabulary, *sentences)


def encoder_of(model: str, seed: int) -> BertEncoder:
    """The encoder of a row."""
    encoder = base()[0]
    if model == REAL:
        return encoder
    seed_everything(seed)
    if model == RANDOM:
        return BertEncoder(encoder.config).eval()
    shuffled = copy.deepcopy(encoder)
    for parameter in shuffled.parameters():
        parameter.data = parameter.data.flatten()[torch.randperm(parameter.numel())].view_as(parameter)
    return shuffled


def by_theme(values: Tensor, themes: Sequence[int]) -> Tensor:
    """The mean over the pairs of each theme: (pairs, ...) -> (themes, ...)."""
    themes = torch.as_tensor(themes)
    return torch.stack([values[themes == theme].mean(dim=0) for theme in themes.unique()])


# ------------------------------------------------------------------------------------------ words with two senses
def sense_scores(vectors: Tensor, senses: list[str], misleading: list[bool]) -> dict[str, list[float]]:
    """`same_sense` for every layer of vectors (sentences, layers, d_model), on ordinary and on misleading sentences.

    Ordinary ones are compared with each other, misleading ones with the ordinary ones.
    """
    label, odd = torch.tensor([sorted(set(senses)).index(sense) for sense in senses]), torch.tensor(misleading)
    scores = {"ordinary": [], "misleading": []}
    for layer in vectors.unbind(dim=1):
        scores["ordinary"].append(round(same_sense(layer[~odd], label[~odd]), 4))
        scores["misleading"].append(round(same_sense(layer, label, odd), 4))
    return scores


def measure_senses(encoder: BertEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """Of each word: its own vectors, the mean of its neighbours' vectors, and its neighbours without context."""
    found, sentences = {}, load_senses()
    for word in dict.fromkeys(sentence.word for sentence in sentences):
        mine = [sentence for sentence in sentences if sentence.word == word]
        texts = [sentence.text for sentence in mine]
        at, result = [position_of(tokenizer, text, word) for text in texts], read_texts(encoder, tokenizer, texts)
        tokens = [[token.text for token in tokenizer.tokenize(text)] for text in texts]
        others, static = [], []
        for i, row in enumerate(tokens):                # neighbours: all words but this one, no punctuation
            keys = [k for k, token in enumerate(row) if token.strip("#").isalnum() and k != at[i]]
            others.append(torch.stack([layer[i, keys].mean(dim=0) for layer in result.hidden_states]))
            static.append(encoder.embedding.weight[[tokenizer.ids[row[k]] for k in keys]].mean(dim=0))
        what = {"word": states_at(result.hidden_states, at), "neighbours": torch.stack(others),
                "bag": torch.stack(static)[:, None],
                "static": encoder.embedding.weight[tokenizer.ids[word]].expand(len(texts), 1, -1)}
        found[word] = {"film": mine[0].film} | {
            name: sense_scores(vectors.detach(), [s.sense for s in mine], [s.misleading for s in mine])
            for name, vectors in what.items()}
    return found


def bank_cosines(encoder: BertEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """The cosines between the vectors of 'bank' in the texts of BANK, a line (text, text) after each of 0 to all layers."""
    at = [position_of(tokenizer, text, "bank") for text in BANK]
    vectors = states_at(read_texts(encoder, tokenizer, BANK).hidden_states, at)                    # (texts, layers, d_model)
    x = F.normalize(vectors.detach().double(), dim=-1).transpose(0, 1)                             # (layers, texts, d_model)
    return {"texts": list(BANK), "cosines": coded(x @ x.mT)}


# ------------------------------------------------------------------------------------------ pronouns
def places(tokenizer: WordPieceTokenizer, pairs: list) -> dict[str, list[int]]:
    """Of both sentences of every pair: the positions of the queries, and of the right and the wrong noun."""
    found = {name: [] for name in (*QUERIES, "right", "wrong")}
    for pair in pairs:
        for k, text in enumerate(pair.texts):
            words = {"adjective": pair.adjectives[k], "right": pair.nouns[k], "wrong": pair.nouns[1 - k]}
            for name in found:
                place = position_of(tokenizer, text, words.get(name, "it"))
                found[name].append(place + {"because": -1, "was": 1}.get(name, 0))         # "because it was"
    return found


def sentence_lean(encoder: BertEncoder, tokenizer: WordPieceTokenizer, pairs: list) -> Tensor:
    """Whether a sentence's vector (the mean of its tokens') is closer to the sentence with the right noun in place of 'it'.

    The cosine with the right noun's sentence minus that with the wrong one's: (2 * pairs,).
    """
    def vectors(texts):
        mask = [len(tokenizer.encode(text)) for text in texts]
        x = read_texts(encoder, tokenizer, texts).x
        return torch.stack([row[:length].mean(dim=0) for row, length in zip(x, mask)])

    texts = [(text, pair.nouns[k], pair.nouns[1 - k]) for pair in pairs for k, text in enumerate(pair.texts)]
    own = vectors([text for text, _, _ in texts])
    right, wrong = (vectors([one[0].replace(" it was ", f" the {one[noun]} was ") for one in texts]) for noun in (1, 2))
    return F.cosine_similarity(own, right, dim=-1) - F.cosine_similarity(own, wrong, dim=-1)


def static_lean(encoder: BertEncoder, tokenizer: WordPieceTokenizer, pairs: list) -> Tensor:
    """How much closer the adjective's own word vector is to the right noun's than to the wrong one's: (2 * pairs,)."""
    def vectors(words):
        return encoder.embedding.weight.detach()[[tokenizer.ids[word] for word in words]]

    adjectives = vectors([adjective for pair in pairs for adjective in pair.adjectives])
    right, wrong = (vectors([pair.nouns[k] for pair in pairs for k in order]) for order in ((0, 1), (1, 0)))
    return F.cosine_similarity(adjectives, right, dim=-1) - F.cosine_similarity(adjectives, wrong, dim=-1)


def measure_pronouns(encoder: BertEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """How far heads and vectors lean to the right noun, for each theme (for 'it' in heads, for each pair)."""
    pairs = load_pronouns()
    themes, at = [pair.theme for pair in pairs], places(tokenizer, pairs)
    result = read_texts(encoder, tokenizer, [text for pair in pairs for text in pair.texts])
    nouns = (at["right"], at["wrong"])
    heads = {query: pair_shift(attention_lean(result.attentions, at[query], *nouns)) for query in QUERIES}
    weights, text = torch.stack(result.attentions, dim=1), torch.arange(2 * len(pairs))
    to_it = [weights[text, :, :, torch.tensor(noun), torch.tensor(at["it"])] for noun in nouns]
    heads["from the nouns"] = pair_shift(to_it[0] - to_it[1])              # the other direction
    vectors = {query: pair_shift(vector_lean(result.hidden_states, at[query], *nouns)) for query in QUERIES}
    return {
        "it": coded(heads.pop("it")), "heads": {name: coded(by_theme(shift, themes)) for name, shift in heads.items()},
        "vectors": {name: coded(10 * by_theme(shift, themes)) for name, shift in vectors.items()},
        "static": coded(10 * pair_shift(static_lean(encoder, tokenizer, pairs))),
    }


def measure_shut(encoder: BertEncoder, tokenizer: WordPieceTokenizer, shifts: list[str]) -> dict:
    """The lean of the last vector of 'it' with one head shut: that which shifts most on the first set of pairs.

    `lean`: a line for each theme, in ten times cosines.
    """
    pairs, shape = load_pronouns(), HeadGates(encoder).gates.shape
    at, gates = places(tokenizer, pairs), torch.ones(shape)
    first = decoded(shifts, *shape)[[not pair.second_set for pair in pairs]].mean(axis=0)
    chosen = divmod(int(first.argmax()), shape[1])
    gates[chosen] = 0
    with HeadGates(encoder, gates):
        states = read_texts(encoder, tokenizer, [text for pair in pairs for text in pair.texts]).hidden_states
    lean = pair_shift(vector_lean(states[-1:], at["it"], at["right"], at["wrong"]))
    return {"head": list(chosen), "lean": coded(10 * by_theme(lean, [pair.theme for pair in pairs]))}


def examples(encoder: BertEncoder, tokenizer: WordPieceTokenizer, shifts: list[str]) -> dict:
    """Maps to look at: the pair that looks best in any head, in all heads, and the famous one."""
    pairs = load_pronouns()
    best = decoded(shifts).max(axis=1).argmax()
    found = {}
    for name, texts in (("best", pairs[best].texts), ("famous", FAMOUS)):
        maps = torch.stack(read_texts(encoder, tokenizer, texts).attentions, dim=1)        # (2, layers, heads, query, key)
        found[name] = {"texts": list(texts), "tokens": [[t.text for t in tokenizer.tokenize(text)] for text in texts],
                       "maps": [coded(one.flatten(0, 1)) for one in maps]}
    return found


def run(model: str, seed: int, state) -> dict:
    """Measure one encoder."""
    begun, tokenizer, encoder = time.perf_counter(), base()[1], encoder_of(model, seed)
    result = {"encoder": weights_of(encoder), "parameters": sum(p.numel() for p in encoder.parameters()),
              "sentences": fingerprint(load_senses(), load_pronouns()),
              "senses": measure_senses(encoder, tokenizer), "bank": bank_cosines(encoder, tokenizer),
              "pronouns": measure_pronouns(encoder, tokenizer)}
    if model == REAL:
        pairs = load_pronouns()
        lean = by_theme(pair_shift(sentence_lean(encoder, tokenizer, pairs)), [pair.theme for pair in pairs])
        result["pronouns"]["sentence"] = coded(10 * lean)
        result["pronouns"]["shut"] = measure_shut(encoder, tokenizer, result["pronouns"]["it"])
        result["examples"] = examples(encoder, tokenizer, result["pronouns"]["it"])
    result["seconds"] = round(time.perf_counter() - begun, 1)
    return result


def line(runs: list[dict]) -> str:
    """What the command prints of a row: the score of senses after each layer, over words; the first seed's."""
    by_word = np.array([word["word"]["ordinary"] for word in runs[0]["senses"].values()])
    return "same sense " + " ".join(f"{score:.2f}" for score in by_word.mean(axis=0))


def coded(values: Tensor | np.ndarray) -> list[str]:
    """Numbers (rows, ...) as a line of thousandths for each row."""
    thousandths = np.rint(1000 * np.asarray(values, dtype=float)).astype(int)
    return [" ".join(map(str, row.ravel())) for row in thousandths]


SET = ResultSet(
    "pretrained_vectors", {name: {"weights": name} for name in (REAL, RANDOM, SHUFFLED)}, settings, run,
    seeds=lambda row, asked: asked[:1] if row == REAL else asked, line=line,
)
