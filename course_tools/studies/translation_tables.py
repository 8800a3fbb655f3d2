"""The tables of translators trained on Multi30k, with what others report: a part of notebooks/results.md."""

import math
import statistics

from course_utils.results import by_model

__all__ = ["BY_LENGTH", "WORST", "lengths_table", "translations_table", "translations_words", "worst_table"]

WU, OPUS = "https://arxiv.org/abs/2105.14462", "https://huggingface.co/Helsinki-NLP/opus-mt-tc-big-en-fr"
PUBLISHED = [                                           # what, BLEU, BLEU of lower-case tokens, parameters
    (f"elsewhere: Transformer-Tiny, text alone ([Wu and others 2021]({WU}))", "", "61.8", "2.6 million"),
    (f"elsewhere: opus-mt-tc-big-en-fr, trained on other texts ([Helsinki-NLP]({OPUS}))", "52.4", "", ""),
]
WORDS = """\
English to French on Multi30k, captions of photographs: trained on 29,000 pairs, scored on the {sentences:,} of the test set
of 2016. Transformers as in notebook [17](17_encoder_decoder.ipynb). The recurrent networks are *general, after, GRU* of
[16](16_recurrent_attention.ipynb), the weakest of its attentions on the course's corpus. Here they were trained with label
smoothing and the Transformer's learning rate, as they weren't there. All have equally many parameters to 5 %, except the row
with published settings, which has 11 % more than the other Transformers. With beam 5, unless it says greedy; the mean over
seeds, with a 95 % interval for the choice of sentences (1,000 bootstrap samples) and of seeds. Minutes are those of a row's
quickest run on one core of a shared processor, or on a graphics card where it says so, validation included; they leave the
scoring out. An hour, twenty minutes and "as many minutes" count a processor core's time: there, eleven passes of the
recurrent network take about as long as seven of the Transformer. The two recurrent rows' minutes were taken while other work
shared the processor, so they aren't in proportion to the steps. A graphics card took these steps in {cards} of the {runs}
runs.

- **BLEU** and **chrF** are sacrebleu's: `{bleu}` and `{chrf}`.
- **BLEU, lower case** counts tokens of lower-case text, with *l'* and *d'* split off. That's close to what papers on
  Multi30k report, and several points higher for the same translations: the two columns can't be compared.
- The last rows are what others report. Wu's model was trained on the same pairs, with two GPUs. Our row with published
  settings follows it but for the tokenizer (ours for Moses's, so its score is in other tokens), the way the rate falls, and
  the mean of ten checkpoints, which we don't take. OPUS's was trained on a large collection of other translations."""
BY_LENGTH = "By the number of words in the English sentence, BLEU with beam 5, the mean over seeds:"
WORST = """\
The ten translations with the lowest chrF in the first row's first run, by their line in the test files. What they say stays
there: the captions aren't ours to print. A translation can be right and still share few words with its one reference."""


def translations_words(runs: list[dict]) -> str:
    """What stands before the tables, with the signatures that the file names."""
    scored = runs[0]["test"]["beam"]
    return WORDS.format(sentences=scored["sentences"], bleu=scored["bleu"]["signature"], chrf=scored["chrf"]["signature"],
                        cards=sum("cuda" in run["device"] for run in runs), runs=len(runs))


def translations_table(runs: list[dict]) -> str:
    """Translators on Multi30k as a Markdown table: quality and cost, then what others report."""
    lines = ["| what is trained | seeds | BLEU | chrF | BLEU, lower case | BLEU, greedy | parameters | steps | minutes |",
             "|---" * 9 + "|"]
    for model, same in by_model(runs).items():
        lower = same[0]["change"]["network"] == "published"                # its own texts are lower-case tokens
        cells = [_score(same, "beam", name) for name in ("bleu", "chrf", "split_bleu")] + [_score(same, "greedy", "bleu")]
        if lower:
            cells = ["", "", cells[2], ""]
        lines.append(f"| {model} | {len(same)} | {' | '.join(cells)} | {same[0]['parameters']:,} | {same[0]['steps']:,} | "
                     f"{_minutes(same)} |")
    lines += [f"| {what} | | {bleu} | | {split} | | {size} | | |" for what, bleu, split, size in PUBLISHED]
    return "\n".join(lines)


def lengths_table(runs: list[dict]) -> str:
    """BLEU by the number of source words as a Markdown table, the mean over seeds, on how many sentences."""
    groups = {name: group["sentences"] for name, group in runs[0]["test"]["by_length"].items()}
    heads = [f"{name}and more ({number})".replace("-and", " and") if name.endswith("-") else f"{name} ({number})"
             for name, number in groups.items()]
    lines = [f"| words (sentences) | {' | '.join(heads)} |", "|---" * (1 + len(groups)) + "|"]
    for model, same in by_model(runs).items():
        means = [statistics.mean(run["test"]["by_length"][name]["bleu"] for run in same) for name in groups]
        if same[0]["change"]["network"] != "published":
            lines.append(f"| {model} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return "\n".join(lines)


def worst_table(runs: list[dict]) -> str:
    """The worst translations of the first run as a Markdown table, without a word of them."""
    lines = ["| pair | English words | words of the reference | words of the translation | chrF |", "|---" * 5 + "|"]
    for one in runs[0]["test"]["worst"]:
        lines.append(f"| {one['row'] + 1} | {one['source_words']} | {one['reference_words']} | {one['translation_words']} | "
                     f"{one['chrf']:.0f} |")
    return "\n".join(lines)


def _minutes(runs: list[dict]) -> str:
    on_processor = [run["seconds"] / 60 for run in runs if run["device"].startswith("cpu")]
    return f"{min(on_processor):.0f}" if on_processor else f"{min(run['seconds'] for run in runs) / 60:.0f} on a card"


def _score(runs: list[dict], search: str, name: str) -> str:
    scores = [run["test"][search][name]["score"] for run in runs]
    half = statistics.mean(run["test"][search][name]["half"] for run in runs)
    seeds = 1.96 * statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return f"{statistics.mean(scores):.1f} ± {math.hypot(half, seeds):.1f}"
