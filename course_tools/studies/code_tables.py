"""The tables of code: compressed, predicted by counting and by networks, elsewhere, and how fast the code model writes.

Parts of notebooks/results.md.
"""

from pathlib import Path

from course_utils.results import FOLDER, by_model, read_runs

__all__ = [
    "after_elsewhere_words", "code_parts", "code_table", "code_words", "completing_parts", "completing_table",
    "completing_words", "elsewhere_names", "elsewhere_table", "elsewhere_words", "language_models_table", "names_table",
    "networks_words",
]

CODE = """\
Bits per byte of source code that no method was trained on: the {modules} test modules of Python {python}'s standard library
({size:.2f} MB), and this repository's `course_utils` as it was at the commit `{commit}` ({files} files,
{repository:.2f} MB). Fewer are better. In brackets: 95 % intervals from resampling modules.

- **xz** compresses all modules joined into one text, unless the row says otherwise. *Primed*, it has seen the training
  modules (7.8 MB), and what they cost isn't counted.
- **n-grams** predict a token from the ones before it, with modified Kneser–Ney smoothing, counted on the training modules,
  with the 4,096 byte pairs of the course's language model. The counts don't change while they read a module, whereas xz
  learns from what it has just read."""
AFTER_CODE = """\
And this is how often an editor without a model has the right name first, or among its first five, after one character and
after two: 2,000 names of four characters or more, drawn at random, everything before the cursor known. It suggests the
file's own words, then Python's. In per cent; the last column has only names that the file doesn't contain before."""
NETWORKS = """\
The same modules, read by networks that were trained on the training modules for the same number of steps, in windows of 512
tokens: the language model of notebook [13](13_language_model.ipynb), and others of the same size. The third changes the
first's positions and GELU to GPT-2's and keeps its training. The last rows make more steps, about as many as attention's
minutes have room for{timed}. *nanoGPT's recipe* follows [its settings for small
models](https://github.com/karpathy/nanoGPT/blob/master/config/train_shakespeare_char.py): GPT-2's initial numbers, decay on
matrices alone, a rate of 0.001; and no dropout, as its README has it for a processor. Batch, window, steps and feed-forward
width are ours, its biases are kept, and its rate falls to zero. The row below it takes our rate, three times as high. The
LSTM's rate is attention's, too; nobody tried another. (In its longer training the validation loss was lowest at epoch
{epoch} of {epochs}, and the weights of that epoch are scored, after {scored} of {read:.1f} million tokens.) Its state goes
through a whole module; attention sees at most 512 tokens. A seed moves attention's row by {attention:.2f} bits, and
the others' by {others[0]:.2f} to {others[1]:.2f}. The minutes are the steps times what one takes on one core, where that was
timed."""
TIMED = """\
 (on one core, in {precision}, a step of attention takes as long as {lstm:.2f} of the LSTM's and {plain:.2f} of the plain
GPT's, which make {lstm_made:.2f} and {plain_made:.2f} times as many)"""
ELSEWHERE = """\
The language model learned from one library. Here it reads code that it never saw and that other habits shaped: this
repository's `course_utils` at the commit `{commit}`, {files} files with {size:.2f} MB. Again in bits per byte, the model's
seed by seed."""
AFTER_ELSEWHERE = """\
On the library's held-out modules the model needs the fewest bits, on every seed. On this repository it needs fewer than the
n-grams and than xz on each file by itself, but more than xz on all files joined. xz on each file by itself needs more here,
too ({alone[0]:.3f} bits there, {alone[1]:.3f} here), and the model's lead over it is about the same: {leads[0]:.2f} bits
there and {leads[1]:.2f} here, averaged over the seeds; only as a proportion it's smaller. Joined xz wins because the files
of this repository repeat one another: joining them saves {saves[1]:.2f} bits, on the library {saves[0]:.2f}.

And the names, by the first seed: in per cent, with intervals over modules. Merged with the words of the file, the model is
ahead of these words alone in three of four columns on the library's modules, and on this repository in one of four. There,
merged minus words, seed by seed and in points: first, one typed, {first}; in five, two typed, {five}.
Names that a file doesn't contain yet are where it helps on both. But there merging costs: on the library's modules, first,
two typed, the model alone has {new[0]} per cent of them, seed by seed, and merged {new[1]}."""
COMPLETING = """\
The language model of notebook [13](13_language_model.ipynb), 1.3 million parameters, on one core ({processor}), one text at
a time. With the key/value cache it writes 511 tokens after the first {ratio:.1f} times as fast as without it (middle half
of the repetitions: {low:.1f} to {high:.1f}). The Tab key's suggestions, five names and a line at 256 tokens of context, take
{warm_median:.0f} milliseconds when the text before them has been read (95th percentile {warm_p95:.0f}, of {warm_calls}
calls), and {cold_median:.0f} when it hasn't (95th percentile {cold_p95:.0f}, of {cold_calls}). Loading the model, once a
session, isn't counted."""


def code_parts(folder: Path = FOLDER) -> list[str]:
    """What the page says of code, headings, words and tables in turn, of the files that are there."""
    code, networks = read_runs("code_baselines", folder), read_runs("language_model", folder)
    parts = []
    if code:
        parts += ["## Code, without a neural network", code_words(code), code_table(code), AFTER_CODE, names_table(code)]
    if networks:
        parts += ["## Code, with a neural network", networks_words(networks, read_runs("completion_speed", folder)),
                  language_models_table(networks, read_runs("completion_speed", folder))]
    elsewhere = read_runs("code_elsewhere", folder)
    if code and networks and elsewhere:
        parts += ["## Code that isn't the library's", elsewhere_words(elsewhere), elsewhere_table(code, networks, elsewhere),
                  after_elsewhere_words(code, networks, read_runs("code_completion", folder), elsewhere),
                  names_table(elsewhere_names(code, read_runs("code_completion", folder), elsewhere))]
    return parts


def completing_parts(folder: Path = FOLDER) -> list[str]:
    """How fast the code model writes: a heading, words and a table, or nothing."""
    timed = read_runs("completion_speed", folder)
    return ["## Speed of the code model", completing_words(timed), completing_table(timed)] if timed else []


def code_table(runs: list[dict]) -> str:
    """Bits per byte of code as a Markdown table: the mean over seeds, and with one seed the interval over modules."""
    lines = ["| what predicts | seeds | standard library | this repository |", "|---" * 4 + "|"]
    for model, same in by_model(runs).items():
        if "overall" in same[0]["test"]:
            lines.append(f"| {model} | {len(same)} | {_bits(same, 'test')} | {_bits(same, 'repository')} |")
    return "\n".join(lines)


def language_models_table(runs: list[dict], timed: list[dict]) -> str:
    """Bits per byte of the networks trained on code as a Markdown table, seed by seed, with what they cost.

    `timed` are the runs of `completion_speed`.
    """
    took = _a_step(timed)
    lines = ["| model | standard library, seed by seed | mean | parameters | million tokens read | minutes |",
             "|---" * 6 + "|"]
    for model, same in by_model(runs).items():
        each = [run["test"]["overall"] for run in same]
        lines.append(f"| {model} | {', '.join(f'{bits:.3f}' for bits in each)} | {sum(each) / len(each):.3f} | "
                     f"{same[0]['parameters']:,} | {same[0]['tokens'] / 1e6:.1f} | {_minutes_on_a_core(same[0], took)} |")
    return "\n".join(lines)


def networks_words(networks: list[dict], timed: list[dict]) -> str:
    """What stands before that table; with the runs of `completion_speed`, how long a step takes."""
    took, spreads = _a_step(timed), {}
    for model, same in by_model(networks).items():
        bits = [run["test"]["overall"] for run in same]
        spreads[model] = max(bits) - min(bits)
    made = {model: same[0]["steps"] / networks[0]["steps"] for model, same in by_model(networks).items()}
    lstm, plain = "LSTM, as many minutes", "nanoGPT's recipe, as many minutes"
    attention = spreads.pop("attention")
    others = min(spreads.values()), max(spreads.values())
    longer = by_model(networks)[lstm]
    epochs, read = len(longer[0]["history"]), longer[0]["tokens"] / 1e6
    best = sorted({run["best_epoch"] for run in longer})                   # of the seeds: one, where they agree
    epoch, scored = ", ".join(map(str, best)), ", ".join(f"{read * one / epochs:.1f}" for one in best)
    return NETWORKS.format(attention=attention, others=others, epoch=epoch, epochs=epochs, read=read, scored=scored,
                           timed="" if not took else TIMED.format(
        lstm=took["LSTM"]["ratio"], plain=took[plain]["ratio"], lstm_made=made[lstm], plain_made=made[plain],
        precision=next(run["precision"] for run in timed if run["model"] == "a training step")))


def _a_step(timed: list[dict]) -> dict[str, dict]:
    """What a step of some networks takes on one core; empty if that wasn't timed."""
    return next((run["measured"] for run in timed if run["model"] == "a training step"), {})


def _minutes_on_a_core(run: dict, took: dict[str, dict]) -> str:
    """The steps of a run times what one takes; empty where no step like it was timed."""
    names = {name.partition(",")[0].removesuffix(" at our rate"): step["ms"] for name, step in took.items()}
    ms = names.get(run["model"].partition(",")[0].removesuffix(" at our rate"))
    return "" if ms is None else f"{run['steps'] * ms / 60_000:.0f}"


def _bits(runs: list[dict], split: str) -> str:
    scored = [run[split] for run in runs if split in run]
    if not scored:
        return ""
    mean = f"{sum(one['overall'] for one in scored) / len(scored):.3f}"
    around = scored[0].get("interval") if len(scored) == 1 else None
    return "{} ({:.3f} to {:.3f})".format(mean, *around) if around else mean


def names_table(runs: list[dict]) -> str:
    """Names that were completed as a Markdown table: in per cent, first and among the first five, by characters typed."""
    heads = [f"{top}, {typed} typed" for typed in (1, 2) for top in ("first", "in five")]
    lines = [f"| names of | by | names | {' | '.join(heads)} | new names: {heads[-1]} |", "|---" * 8 + "|"]
    for split, called in (("test", "the standard library"), ("repository", "this repository")):
        for model, same in by_model(runs).items():
            if "names" in same[0].get(split, {}):
                scored = same[0][split]["names"]
                cells = [_of_names(scored[typed]["all"][top]) for typed in "12" for top in ("top 1", "top 5")]
                lines.append(f"| {called} | {model} | {scored['1']['all']['names']:,} | {' | '.join(cells)} | "
                             f"{_of_names(scored['2']['new']['top 5'])} |")
    return "\n".join(lines)


def _of_names(figure: list[float]) -> str:
    return "{:.1f} ({:.1f} to {:.1f})".format(*(100 * number for number in figure)) if figure else ""


def code_words(runs: list[dict]) -> str:
    """What stands before the tables of code, with the versions and sizes that their file names."""
    test, repository = runs[0]["test"], runs[0]["repository"]
    return CODE.format(python=runs[0]["python"], modules=test["files"], size=test["bytes"] / 1e6, files=repository["files"],
                       repository=repository["bytes"] / 1e6, commit=runs[0]["commit"][:12])


def elsewhere_words(runs: list[dict]) -> str:
    """What stands before the tables of code elsewhere, with the commit and the size that their file names."""
    repository = runs[0]["repository"]
    return ELSEWHERE.format(commit=runs[0]["commit"][:12], files=repository["files"], size=repository["bytes"] / 1e6)


def after_elsewhere_words(baselines: list[dict], networks: list[dict], completion: list[dict], elsewhere: list[dict]) -> str:
    """What stands between the tables of code elsewhere, with xz, the model's lead over it, and names by seed."""
    [alone], [joined] = (by_model(baselines)[row] for row in ("xz, each file by itself", "xz"))
    splits = ("test", "repository")
    [model] = by_model(elsewhere)
    made = {"test": by_model(networks)[model], "repository": elsewhere}
    means = [sum(run[split]["overall"] for run in made[split]) / len(made[split]) for split in splits]
    bits = [alone[split]["overall"] for split in splits]
    *_, both = elsewhere[0]["repository"]["names"]
    first, five = (", ".join(f"{100 * run['repository']['names'][both][typed]['ahead'][top][0]:+.1f}" for run in elsewhere)
                   for typed, top in (("1", "top 1"), ("2", "top 5")))
    new = [", ".join(f"{100 * run['test']['names'][part]['2']['new']['top 1'][0]:.0f}" for run in completion)
           for part in completion[0]["test"]["names"]]
    return AFTER_ELSEWHERE.format(
        alone=bits, leads=[one - mean for one, mean in zip(bits, means, strict=True)], first=first, five=five, new=new,
        saves=[one - joined[split]["overall"] for one, split in zip(bits, splits, strict=True)])


def elsewhere_table(baselines: list[dict], networks: list[dict], elsewhere: list[dict]) -> str:
    """Bits per byte of the library's held-out modules and of this repository, as a Markdown table, seed by seed."""
    lines = ["| what predicts | standard library | this repository |", "|---" * 3 + "|"]
    for model, same in by_model(elsewhere).items():
        trained = {run["seed"]: run["test"]["overall"] for run in by_model(networks)[model]}
        cells = [", ".join(f"{bits:.3f}" for bits in each)
                 for each in ([trained[run["seed"]] for run in same], [run["repository"]["overall"] for run in same])]
        lines.append(f"| the language model, seeds: {len(same)} | {' | '.join(cells)} |")
    for model, [run] in by_model(baselines).items():
        if model.startswith("xz") or "5" in model:
            lines.append(f"| {model} | {_bits([run], 'test')} | {_bits([run], 'repository')} |")
    return "\n".join(lines)


def elsewhere_names(baselines: list[dict], completion: list[dict], elsewhere: list[dict]) -> list[dict]:
    """Rows for `names_table`: the nearest words of the file, the first seed's model, and both together."""
    words = [{**run, "model": "words of the file, nearest first"} for run in baselines if "nearest" in run["model"]]
    first = [run for runs in (completion, elsewhere) for run in runs if run["seed"] == 0]
    parts = list(first[0]["test"]["names"])
    return words + [{"model": part, "order": 0, "seed": 0, **{split: {"names": run[split]["names"][part]}
                     for run in first for split in ("test", "repository") if split in run}} for part in parts]


def completing_words(runs: list[dict]) -> str:
    """What stands before the table of the code model's speed, with the figures of its file."""
    measured = {run["model"]: run["measured"] for run in runs}
    tab = {f"{kind}_{part}": value for kind, times in measured["Tab"].items() for part, value in times.items()}
    low, high = measured["writing"]["spread"]
    processor = runs[0]["machine"]["processor"]
    return COMPLETING.format(processor=processor, ratio=measured["writing"]["ratio"], low=low, high=high, **tab)


def completing_table(runs: list[dict]) -> str:
    """What one more token costs after shorter and longer texts, in milliseconds, as a Markdown table."""
    [arms] = [run["measured"] for run in runs if run["model"] == "one more token"]
    lengths = list(next(iter(arms.values())))
    lines = ["| one more token, in milliseconds, after | " + " | ".join(f"{length} tokens" for length in lengths) + " |",
             "|---" * (1 + len(lengths)) + "|"]
    for arm, times in arms.items():
        lines.append(f"| {arm} | " + " | ".join(f"{times[length]:.1f}" for length in lengths) + " |")
    return "\n".join(lines)
