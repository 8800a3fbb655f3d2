"""The tables of pretrained encoders on IMDb: fine-tuned, with what others report; and by the number of labels.

Parts of notebooks/results.md.
"""

from collections import defaultdict

from course_utils.results import by_model, percent, summarise

__all__ = ["fine_tuning_table", "fine_tuning_words", "labels_table", "labels_words"]

RASCHKA = "https://github.com/rasbt/LLMs-from-scratch/tree/main/ch06/03_bonus_imdb-classification"
SANH, DEVLIN = "https://arxiv.org/abs/1910.01108", "https://arxiv.org/abs/1810.04805"
PUBLISHED = [                                           # what, labelled reviews, seeds, accuracy, parameters, minutes
    (f"elsewhere: DistilBERT, one pass ([Raschka]({RASCHKA}))", 35_000, 1, "91.4", "66 million", "4 on a GPU"),
    (f"elsewhere: GPT-2, one pass ([Raschka]({RASCHKA}))", 35_000, 1, "91.9", "124 million", "9 on a GPU"),
    (f"elsewhere: DistilBERT ([Sanh and others 2019]({SANH}))", 25_000, "", "92.8", "66 million",
     "not reported; distilled in 90 hours on 8 GPUs"),
    (f"elsewhere: BERT-base ([Sanh and others 2019]({SANH}))", 25_000, "", "93.5", "110 million",
     f"not reported; pretrained in 4 days on 16 TPU chips ([Devlin and others 2019]({DEVLIN}))"),
]
WORDS = """\
all-MiniLM-L6-v2 ({parameters:.0f} million parameters in six layers), loaded into the classes of notebook
[14](14_pretraining.ipynb) and fine-tuned with them in {precision}, each review cut to 192 word pieces, head and tail, if
the row doesn't say otherwise. Scored on {test:,} of IMDb's test reviews. The part of the training whose weights are kept was
chosen on 1,000 of {validation:,} validation reviews. With 5,000 reviews, adapters and the training of all layers were tried
at three rates, each in a row of its own; nothing else was searched for. Adapters are those of the query and value
projections, if it isn't said that every matrix of a block has one. Rows with equally many reviews made equally many steps.
Minutes are those of the fastest run on a graphics card ({device}) with several
runs at a time, validation included, if nothing else is said. Don't compare them between rows: about the same work took
{low:.0f} to {high:.0f} seconds, depending on what else ran. Two processor cores read 1,500 word pieces a second in float32,
2,200 in bf16 (20 steps of 320 word pieces, timed once): over an hour for the longest rows.
The last rows are what others report for other models, splits and lengths: a frame for these figures, not a comparison."""


def fine_tuning_words(runs: list[dict]) -> str:
    """What stands before the table, with the sizes that the file names."""
    data, same_work = runs[0]["data"], defaultdict(list)
    for run in runs:
        if run["device"] == runs[0]["device"]:
            same_work[run["trained"], run["tokens"] // 100_000].append(run["seconds"])
    seconds = max(same_work.values(), key=lambda each: max(each) - min(each))
    return WORDS.format(low=min(seconds), high=max(seconds), test=data["test"],
                        validation=data["validation"], parameters=runs[0]["parameters"] / 1e6,
                        precision=runs[0]["precision"],
                        device=" or ".join(dict.fromkeys(run["device"].partition("(")[2].rstrip(")") for run in runs
                                                         if run["device"].startswith("cuda"))))


def fine_tuning_table(runs: list[dict]) -> str:
    """A pretrained encoder on IMDb as a Markdown table: accuracy, what was trained, the cost; then what others report."""
    head = ("what is trained", "learning rate", "labelled reviews", "seeds", "accuracy", "numbers trained",
            "million tokens read", "minutes")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for model, same in by_model(runs).items():
        first, change = same[0], same[0]["change"]
        way, rate = _way(model, first).partition(", rate ")[0], f"{change['learning_rate']:.6f}".rstrip("0")
        cells = [way, rate, f"{change['number']:,}", str(len(same))]
        cells.append(percent(summarise(same, "test", "accuracy")))
        cells.append("" if model.startswith("failure: ") else f"{first['trained']:,}")
        where = " on a processor core" if first["device"].startswith("cpu") else ""
        cells += [f"{first['tokens'] / 1e6:.1f}", f"{min(run['seconds'] for run in same) / 60:.1f}{where}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {what} | | {number:,} | {seeds} | {accuracy} | {size} | | {minutes} |"
              for what, number, seeds, accuracy, size, minutes in PUBLISHED]
    return "\n".join(lines)


LABELS = """\
What do a few labels come to, with pretraining and without? A **bag** is the mean of its pieces' vectors, and a linear
layer (notebook [03](03_embeddings.ipynb)), here with MiniLM's word pieces: its vectors are learned, or the checkpoint's
own, either frozen or trained further. {encoder}Each seed draws other reviews. The part of the training whose weights are
kept, and for the bags the learning rate, are chosen on 1,000 validation reviews: more than somebody with 100 labels has.
Test accuracy on the same 5,000 reviews as above; the number of seeds is in brackets. Compare rows with equally many
steps."""
ENCODER = """\
The **small encoder** has the architecture of notebook [14](14_pretraining.ipynb) and begins with random numbers,
or is pretrained on hidden words in IMDb's texts, labels unseen: once in two passes and once in six, in windows of 128
tokens, and once in six in windows of 192. So the seeds are those of the fine-tuning alone. """
ITS_RATES = "Its rates differ: {random:g} from random numbers, if nothing else is said, {pretrained:g} after pretraining. "
STARTS = {                                              # by set, and by what its rows start from
    ("static_vectors", "learned"): "bag, learned vectors",
    ("static_vectors", "frozen"): "bag, MiniLM's vectors, frozen",
    ("static_vectors", "trained on"): "bag, MiniLM's vectors, trained further",
    ("small_encoder", "random"): "small encoder, from random numbers",
    ("small_encoder", "random at 0.0003"): "small encoder, from random numbers, rate 0.0003",
    ("small_encoder", "pretrained in two passes"): "small encoder, pretrained on IMDb's texts in two passes",
    ("small_encoder", "pretrained"): "small encoder, pretrained in six passes",
    ("small_encoder", "pretrained in windows of 192"): "small encoder, pretrained in six passes, windows of 192",
    ("pretrained", "all layers"): "MiniLM, all layers trained",
}


def labels_words(sets: dict[str, list[dict]]) -> str:
    """What stands before `labels_table` of the same runs."""
    changes = [run["change"] for run in sets.get("small_encoder", [])]
    rates = {change["start"]: change["learning_rate"] for change in changes if {"start", "learning_rate"} <= change.keys()}
    encoder = (ENCODER if changes else "") + (ITS_RATES.format_map(rates) if len(rates) > 1 else "")
    return LABELS.format(encoder=encoder)


def labels_table(sets: dict[str, list[dict]]) -> str:
    """Accuracy on IMDb by the number of labels, as a Markdown table, from the runs of the sets in `STARTS`.

    A set that has no runs yet, or `sets` doesn't name, has no row.
    """
    found: dict[str, dict[int, list[dict]]] = defaultdict(dict)
    for (name, start), called in STARTS.items():
        for model, same in by_model(sets.get(name, [])).items():
            change = same[0]["change"]
            if "number" in change and change.get("start", _way(model, same[0])) == start:
                found[called][change["number"]] = same
    numbers = sorted({number for amounts in found.values() for number in amounts})
    lines = [f"| labelled reviews | {' | '.join(f'{number:,}' for number in numbers)} | steps |",
             "|---" * (2 + len(numbers)) + "|"]
    for called, amounts in found.items():
        cells = [f"{percent(summarise(amounts[n], 'test', 'accuracy'))} ({len(amounts[n])})" if n in amounts else ""
                 for n in numbers]
        steps = [_steps(same[0]) for same in amounts.values()]
        ends = " to ".join(f"{number:,}" for number in sorted({min(steps), max(steps)}))
        lines.append(f"| {called} | {' | '.join(cells)} | {ends} |")
    return "\n".join(lines)


def _way(model: str, run: dict) -> str:
    """A row's name without its number of reviews, which has a column of its own."""
    return model.removesuffix(f", {run['change']['number']:,} reviews")


def _steps(run: dict) -> int:
    """How many steps a run made: what it says, or its passes over its reviews in batches of 32."""
    return run.get("steps") or run["change"]["passes"] * -(-run["change"]["number"] // 32)
