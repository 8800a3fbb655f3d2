"""The table of translators on the course's own corpus: a part of notebooks/results.md."""

from course_utils.results import by_model, interval

__all__ = ["translators_table", "translators_words"]

WORDS = """\
{test:,} test pairs of the course's own translations, English to French. All networks read the same {steps:,} batches and
have as many parameters, to 2 %. The highest learning rate is 4e-3 for recurrent networks and 3e-3 for Transformers, and only
the row *Transformer* was trained with label smoothing. A translation counts if it's the reference, word for word; the
columns are lengths of the English sentence in tokens. AER is the alignment error rate of the largest weights, in per cent,
lower is better; of the Transformer's heads the best one's, chosen on the same pairs. IBM Model 1 aligns, and doesn't
translate; of two equal words it takes the first, and notebook 16 computes what that costs. Notebooks
[16](16_recurrent_attention.ipynb), [17](17_encoder_decoder.ipynb) and the extra
[on Luong's variants](extras/luong_variants.ipynb) say what these are. Minutes are those of one core in the quickest run.
Others had to share the computer with other work, and took up to {slower:.0f} times as long for the same batches."""


def translators_words(recurrent: list[dict]) -> str:
    """What stands before the table."""
    first, times = recurrent[0], [[run["seconds"] for run in same] for same in by_model(recurrent).values()]
    slower = max(max(each) / min(each) for each in times)
    return WORDS.format(test=first["test"]["reviews"], steps=first["steps"], slower=slower)


def error_rate(run: dict) -> float | None:
    """A run's alignment error rate; of several heads the best one's; None for a model without attention."""
    heads = run["test"].get("alignment_error_rate")
    if heads is not None:
        return min(min(layer) for layer in heads["writes"])
    return run["alignment"]["aer"] if run["alignment"] else None


def translators_table(recurrent: list[dict], variants: list[dict], transformer: list[dict]) -> str:
    """Exact matches by length with 95 % intervals, alignment, parameters and minutes, as a Markdown table.

    None right of n: at most 3 / n with 95 % confidence (Hanley and Lippman-Hand 1983, doi:10.1001/jama.1983.03330370053031).
    """
    groups = recurrent[0]["test"]["reviews_by_length"]
    lines = [f"| translator | seeds | {' | '.join(groups)} | AER | parameters | minutes |", "|---" * (len(groups) + 5) + "|"]
    for model, same in by_model([*recurrent, *variants, *transformer]).items():
        name = f"general, after, GRU, {model}" if any(run["model"] == model for run in variants) else model
        name = f"Transformer, {model}" if model == "no smoothing" else name
        cells = [name, str(len(same))]
        for group, count in groups.items():
            if "by_length" not in same[0]["test"]:
                cells.append("")
                continue
            mean, half = interval([run["test"]["by_length"][group] for run in same], count)
            cells.append(f"{100 * mean:.1f} ± {100 * half:.1f}" if mean else f"0, at most {300 / count:.1f}")
        errors = [error_rate(run) for run in same]
        cells.append("" if None in errors else f"{100 * sum(errors) / len(errors):.1f}")
        size, seconds = same[0]["parameters"], min(run["seconds"] for run in same)
        cells += [f"{size:,}", f"{seconds / 60:.0f}"] if size else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
