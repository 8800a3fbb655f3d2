"""Exercises 15.3 to 15.5: how far confidence is from accuracy, a temperature that mends it, and when not to answer."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap
from course_exercises.n15 import probes


def number(value) -> str:
    """Four decimals, or NaN as it's written elsewhere."""
    return "NaN" if float(value) != float(value) else f"{float(value):.4f}"

# ---------------------------------------------------------------- 15.3 the calibration error


def _error(case: Case) -> str:
    return f"your error is {number(case.answer)}, expected {number(case.expected)}."


def _counts(case: Case) -> str:
    confidence, _, bins = case.inputs
    places = ((confidence * bins).ceil() - 1).clamp(0, bins - 1).long()
    return f"{_error(case)} {len(places.unique())} of the {bins} bins hold a prediction."


def _error_and_bins(case: Case) -> str:
    return f"{_error(case)} You ignore `bins`, which is {case.inputs[2]} here."


def _edges(case: Case) -> str:
    return f"{_error(case)} That's the error with {case.inputs[2] - 1} bins instead of {case.inputs[2]}."


def _range(case: Case) -> str:
    return f"{_error(case)} The confidences go from {case.inputs[0].min():.3f} to {case.inputs[0].max():.3f}."


def _on_edges(case: Case) -> str:
    confidence, _, bins = case.inputs
    count = int((confidence * bins == (confidence * bins).round()).sum())
    return f"{_error(case)} {count} confidences lie exactly on an edge of a bin."


def _sure(case: Case) -> str:
    return f"{_error(case)} {int((case.inputs[0] == 1).sum())} predictions are sure, with a confidence of exactly 1."


def _on_an_edge(case: Case) -> str:
    confidence, _, bins = case.inputs
    inner = confidence[(confidence < 1) & (confidence * bins == (confidence * bins).round())]
    return f"{_error(case)} A confidence of {float(inner[0]):g} is exactly on the edge between two of the {bins} bins."


def _overall(case: Case) -> str:
    confidence, right, _ = case.inputs
    return (f"{_error(case)} The mean confidence is {confidence.mean():.3f} and the accuracy {right.float().mean():.3f}.")


ECE = Exercise(
    probes=probes.error_probes,
    forbidden=("course_utils.distillation.expected_calibration_error", "course_utils.distillation.reliability"),
    signature="calibration_error(confidence (examples,), right (examples,), bins) -> a number",
    not_finite={
        "NaN": "An empty bin has no mean: 0 / 0 is NaN, and one NaN spoils the sum. Skip bins that hold nothing.",
        "inf": "You divide by the 0 predictions of an empty bin. Skip bins that hold nothing.",
        "-inf": "You divide by the 0 predictions of an empty bin, or take the largest of nothing. Skip bins that hold "
        "nothing."
    },
    mistakes=(
        Mistake("bins-not-weighted", _counts, "Each bin counts the same, whether it holds one prediction or thirty. Weight "
                "each gap by the proportion of all predictions in its bin."),
        Mistake("gaps-added-up", _counts, "You add up the gaps, however many predictions a bin holds. Weight each by the "
                "proportion of all predictions in its bin."),
        Mistake("empty-bins-counted", _counts, "You divide the sum of the gaps by the number of bins, empty ones included. "
                "Weight each gap by the proportion of all predictions in its bin instead."),
        Mistake("empty-bins", _counts, "An empty bin has no mean: 0 / 0 is NaN, and one NaN spoils the sum. Skip bins that "
                "hold nothing."),
        Mistake("signs-kept", _overall, "The gaps keep their signs, so bins that are too sure and bins that aren't sure "
                "enough cancel. Take the absolute value of each gap."),
        Mistake("signs-kept-accuracy-first", _overall, "Accuracy minus confidence can be negative, and then bins cancel one "
                "another. Take the absolute value of each bin's gap."),
        Mistake("one-bin", _overall, "That's the gap of all predictions together. Too sure here and not sure enough there "
                "cancel: take the absolute value within each bin."),
        Mistake("squared", _counts, "The gaps are squared. The expected calibration error adds up their absolute values."),
        Mistake("worst-bin", _counts, "That's the largest gap, the maximum calibration error. Here the mean over all "
                "predictions is asked for.", convention=True),
        Mistake("middle-of-the-bin", _counts, "You compare the accuracy with the middle of the bin. Compare it with the "
                "mean confidence of the predictions in it."),
        Mistake("each-for-itself", _overall, "Each prediction is compared with its own 0 or 1. Someone who says 80 % and is "
                "right in 80 of 100 cases would get 0.32 for it: take the means within a bin first."),
        Mistake("not-divided", lambda case: f"{_error(case)} There are {len(case.inputs[0])} predictions.", "Your weights "
                "are the counts. Divide by the number of all predictions."),
        Mistake("equally-full-bins", _counts, "Your bins hold equally many predictions. That's done, too; here they're "
                "equally wide, from 0 to 1.", convention=True),
        Mistake("equally-full-by-tensor-split", _counts, "You sort the predictions and cut them into bins of equal size. "
                "That's done, too; here the bins are equally wide, from 0 to 1.", convention=True),
        Mistake("between-quantiles", _counts, "Your edges are quantiles of the confidences, so that the bins hold about "
                "equally many. That's done, too; here they're equally wide, from 0 to 1.", convention=True),
        Mistake("one-bin-too-few", _edges, "`linspace(0, 1, bins)` has that many edges, and so one bin fewer. It takes bins "
                "+ 1 edges."),
        Mistake("from-the-lowest", _range, "Your bins begin at the lowest confidence and end at the highest, as "
                "np.histogram and torch.histc do by themselves. They are to cover 0 to 1."),
        Mistake("from-a-half", _range, "Your bins begin at 0.5. With two classes no confidence is lower, with three it can "
                "be. They are to cover 0 to 1."),
        Mistake("sure-ones-alone", _sure, "They get a bin of their own behind the last one, since your bins stop short of "
                "their upper edges. A bin reaches up to its upper edge, included."),
        Mistake("sure-ones-lost", _sure, "They fall out of your last bin, since your bins "
                "stop short of their upper edges. A bin reaches up to its upper edge, included."),
        Mistake("edges-counted-twice", _on_edges, "They fall into two of your bins, and count twice. A bin reaches up to "
                "its upper edge, included, and begins just above its lower one."),
        Mistake("edges-lost", _on_edges, "They fall into none of your bins. A bin reaches up to its upper edge, included."),
        Mistake("closed-below", _on_an_edge, "You put it into the upper one. That's done, too; here a bin reaches up to its "
                "upper edge, included.", convention=True),
        Mistake("low-ones-lost", _range, "Some predictions fall into none of your bins, which should run from 0 to 1."),
        Mistake("always-ten-bins", _error_and_bins, "You always take ten."),
        Mistake("in-points", _error, "You return points. A number from 0 to 1 is asked for: don't multiply by 100."),
    ),
    properties=(
        Property(lambda case: len(case.inputs[0]) == 1 and gap(case) > 1e-3, _error, "Here's a single prediction, wrong "
                 "with a confidence of 0.66. Its bin has the accuracy 0, and the gap is the whole of it."),
        Property(lambda case: case.inputs[1].all() and gap(case) > 1e-3, _counts, "Everything is right here, so each gap is "
                 "1 minus the mean confidence of a bin. Is every prediction in one bin, and how much does each count?"),
        Property(lambda case: gap(case) > 1e-3, _counts, "For each bin: the mean confidence, the proportion that's right, "
                 "their absolute difference, times the proportion of all predictions."),
    ),
    hints=(
        "Go through the bins. Which predictions are in bin k, from k / bins to (k + 1) / bins? What if there are none?",
        "inside = (confidence > k / bins) & (confidence <= (k + 1) / bins), and inside.any() tells whether there are any.",
        "error += inside.float().mean() * (confidence[inside].mean() - right[inside].float().mean()).abs()",
    ),
)

# ---------------------------------------------------------------- 15.4 a temperature


def _temperatures(case: Case) -> str:
    got, right = (float(named["temperature"]) for named in (case.got, case.right))
    return f"your temperature is {got:g}, expected {right:g}."


def _test_loss(case: Case) -> str:
    got, right = (float(named["test_loss"]) for named in (case.got, case.right))
    return f"your test loss is {got:.4f}, expected {right:.4f}."


def _both(case: Case) -> str:
    """Of the two numbers, those that are wrong."""
    seen = {"temperature": _temperatures, "test_loss": _test_loss}
    wrong = [says(case) for part, says in seen.items() if gap(case, part) > 1e-4]
    return " ".join([*wrong[:1], *(f"Y{text[1:]}" for text in wrong[1:])])


FIT = Exercise(
    probes=probes.fit_probes, observe=probes.observe_fitted, forbidden=("course_utils.distillation.fit_temperature",),
    signature="temperature_and_loss(validation_logits (examples, classes), validation_labels (examples,), test_logits "
    "(more, classes), test_labels (more,), candidates (list of temperatures)) -> temperature, test_loss",
    not_finite={
        **dict.fromkeys(("inf", "-inf"), "A small probability was rounded to 0 before its logarithm, or exp of a large "
                        "logit overflowed: use cross_entropy on the logits, or log_softmax. " + EACH_MAXIMUM),
        "NaN": "exp of a large logit overflowed, or a whole row of exponentials was rounded to 0: use cross_entropy on the "
        "logits, or log_softmax. " + EACH_MAXIMUM},
    mistakes=(
        Mistake("fitted-on-test", _both, "The temperature was chosen on the test labels. Your test loss then looks better "
                "than it'll be on new text: choose on validation, and use the test labels for the score alone."),
        Mistake("fitted-on-both", _both, "Both splits took part in the choice. Every test label that helps to choose makes "
                "the score at the end too good."),
        Mistake("by-accuracy", _both, "You return the first candidate. Either your loop stops there, or you chose by "
                "accuracy, which no temperature changes."),
        Mistake("highest-loss", _both, "You took the temperature with the highest validation loss. The lowest is the best."),
        Mistake("multiplied", _both, "You multiply the logits. What you've found is 1 / T."),
        Mistake("divided-afterwards", _both, "You divide the probabilities, and cross_entropy takes what's left for logits. "
                "Divide the logits."),
        Mistake("probabilities-as-logits", _both, "There are two softmaxes: cross_entropy wants logits and gets "
                "probabilities."),
        Mistake("not-used", _both, "The temperature is right, but the test loss is that of T = 1. Divide the test logits, "
                "too."),
        Mistake("softened-again", _both, "Each candidate divides logits that the ones before it have divided already, as in "
                "logits = logits / t. Begin each time with the logits as they were given."),
        Mistake("test-loss-of-the-last", _both, "The temperature is right, but the test loss is that of the last candidate "
                "in the list. Divide the test logits by the best one."),
        Mistake("loss-of-validation", _both, "That's the validation loss. It chose the temperature, so it's a little too "
                "good; the test loss is asked for."),
        Mistake("place-for-temperature", _both, "You return where the temperature stands in the list. Return the "
                "temperature."),
        Mistake("loss-first", _both, "The two are exchanged: return the temperature first, and then the test loss."),
        Mistake("by-calibration-error", _both, "That isn't the candidate with the lowest cross-entropy, but the "
                "calibration error's choice, for one. Here cross-entropy is asked for."),
        Mistake("surest", _both, "You took the temperature that makes the model surest. Whether it's right to be sure, only "
                "the labels can say: choose by the validation loss."),
    ),
    properties=(
        Property(lambda case: not any(abs(case.temperature - t) < 1e-4 for t in case.inputs[4]), _temperatures, "That "
                 "isn't among the candidates. Compute the validation loss for each, and return the one with the lowest."),
        Property(lambda case: case.right["test_loss"] > 4 and gap(case, "temperature") < 1e-4
                 and gap(case, "test_loss") > 1e-4, _test_loss, "The temperature is right; here the model is sure and wrong "
                 "once. A small number added before the logarithm, or a clamp, puts an upper limit on what that costs. Take "
                 "it from the logits: cross_entropy or log_softmax."),
        Property(lambda case: gap(case, "temperature") > 1e-4, _temperatures, "Which candidate gives the lowest mean "
                 "cross-entropy on the validation examples, with their logits divided by it?"),
        Property(lambda case: gap(case, "test_loss") > 1e-4, _test_loss, "The temperature is right. The test loss is the "
                 "mean cross-entropy of the test logits divided by it."),
    ),
    hints=(
        "For each candidate: the validation loss with the logits divided by it. Then which one is lowest?",
        "losses = [F.cross_entropy(validation_logits / t, validation_labels).item() for t in candidates]",
        "best = candidates[losses.index(min(losses))]; return best, F.cross_entropy(test_logits / best, test_labels)",
    ),
)

# ---------------------------------------------------------------- 15.5 don't know

EACH_AS_THRESHOLD = ("Try each validation confidence as the threshold: among the validation examples at or above it, at "
                     "most `risk` may be wrong. The lowest such is asked for.")


def _three(case: Case) -> str:
    def shown(named):
        return (f"threshold {float(named['threshold']):.3f}, coverage {float(named['coverage']):.3f}, risk "
                f"{float(named['test_risk']):.3f}")
    return f"you return {shown(case.got)}; expected {shown(case.right)}."


def _at_threshold(case: Case) -> list[bool]:
    """Of the validation examples exactly at the learner's threshold: which are right."""
    return case.inputs[1][(case.inputs[0] - float(case.threshold)).abs() < 1e-6].tolist()


def _splits_ties(case: Case) -> bool:
    """Whether the learner's threshold is a confidence that several share, and too low."""
    return float(case.threshold) < float(case.right["threshold"]) - 1e-4 and len(_at_threshold(case)) > 1


def _off_without_ties(case: Case) -> bool:
    """Whether the threshold is wrong where no two validation examples share a confidence."""
    return len(case.inputs[0].unique()) == len(case.inputs[0]) and gap(case, "threshold") > 1e-4


def _rounded(case: Case) -> bool:
    """Whether the learner's threshold is a confidence rounded to two or three decimals, and none as it stands."""
    got, confidences = float(case.threshold), case.inputs[0]
    near = [(confidences.round(decimals=digits) - got).abs().min() < 1e-6 for digits in (2, 3)]
    return any(near) and not (confidences - got).abs().min() < 1e-6


def _exactly(case: Case) -> str:
    return f"your threshold is {float(case.threshold):.6g}, expected {float(case.right['threshold']):.6g}."


def _tied(case: Case) -> str:
    hits = _at_threshold(case)
    return (f"{_three(case)} {len(hits)} validation examples share your threshold of {float(case.threshold):.3g}, and "
            f"{hits.count(False)} of them are wrong.")


ABSTAIN = Exercise(
    probes=probes.abstaining_probes, observe=probes.observe_answered,
    forbidden=("course_utils.distillation.threshold_for", "course_utils.distillation.risk_coverage"),
    signature="answer_or_not(validation_confidence (examples,), validation_right (examples,), test_confidence (more,), "
    "test_right (more,), risk) -> threshold, coverage, test_risk",
    not_finite={
        "threshold inf": "A search that begins at infinity has found nothing: either no confidence was tried, or none had "
        "few enough errors at or above it. Some validation confidence always does.",
        "threshold -inf": "That lets in every example, whatever its confidence. The threshold is a validation confidence, "
        "the lowest that keeps the risk.",
        "threshold NaN": "The threshold is one of the validation confidences, and all of those are numbers.",
        "NaN": "Where no test example is answered, a mean over no numbers is NaN: the risk is 0 then.",
        "inf": "You divide by 0: where no test example is answered, the risk is 0.",
        "-inf": "You divide by 0: where no test example is answered, the risk is 0."},
    mistakes=(
        Mistake("threshold-from-test", _three, "The threshold was chosen with the test answers, so it keeps its promise "
                "there by construction. Choose it on validation; the test split shows what the promise is worth."),
        Mistake("first-violation", _three, "You stop where the risk first exceeds its limit. It can fall again when "
                "further answers are right: look at all thresholds and take the lowest that will do."),
        Mistake("ties-split", _tied, "A threshold lets in all or none of them: count the risk once all of them are in."),
        Mistake("divided-by-all", _three, "You divide the errors by all examples. The risk is the proportion of errors "
                "among those that are answered."),
        Mistake("highest-threshold", _three, "That keeps the promise by answering next to nothing. Of the thresholds that "
                "do, take the lowest: it answers the most."),
        Mistake("least-sure-answered", _three, "You answer where the model is least sure. Answer at a confidence of the "
                "threshold or above."),
        Mistake("strictly-above", _three, "An example exactly at the threshold is answered, too: >=, on both splits."),
        Mistake("strictly-above-on-both", _three, "You answer strictly above the threshold, so on validation yours is the "
                "next confidence down. An example at the threshold is answered, too: write >= in both places."),
        Mistake("strictly-above-in-the-choice", _three, "You choose with >, so an example exactly at the threshold isn't "
                "counted on validation, though you answer it on test. Write >= in the choice, too."),
        Mistake("coverage-first", _three, "The first two are exchanged: return the threshold first."),
        Mistake("coverage-last", _three, "Your last two numbers are exchanged. Return the threshold, the coverage, and then "
                "the risk."),
        Mistake("less-than-the-risk", _three, "A risk that's exactly the limit is allowed: at most, not less than."),
        Mistake("one-minus-the-risk", _three, "Your last number is the proportion that's right. The risk is the proportion "
                "that's wrong."),
        Mistake("not-answered", _three, "Your coverage is the proportion that gets 'don't know'. Coverage is what's "
                "answered."),
        Mistake("validation-scores", _three, "Coverage and risk are those of the validation examples, on which the "
                "threshold was chosen. Score the test examples."),
        Mistake("risk-as-threshold", _three, "You take 1 - risk as the threshold, so you trust the confidence to be an "
                "accuracy. That's what has to be tested: count the errors on validation."),
    ),
    properties=(
        Property(_rounded, _exactly, "The threshold is one of the validation confidences, as it stands: a rounded one lets "
                 "in or leaves out examples that lie in between. Round only where you print."),
        Property(_off_without_ties, _three, EACH_AS_THRESHOLD),
        Property(_splits_ties, _tied, "A threshold lets in all or none of them, and with all of them the risk is above its "
                 "limit. Count it once all of them are in."),
        Property(lambda case: gap(case, "threshold") > 1e-4, _three, EACH_AS_THRESHOLD),
        Property(lambda case: gap(case, "coverage") > 1e-4, _three, "The threshold is right. Coverage is the proportion of "
                 "test examples at or above it."),
        Property(lambda case: gap(case, "test_risk") > 1e-4, _three, "The last number is the proportion of wrong ones among "
                 "the test examples that are answered, and 0 if none is."),
    ),
    hints=(
        "For one threshold t: which validation examples would be answered, and what proportion of them is wrong?",
        "(~validation_right[validation_confidence >= t]).double().mean() is the risk at t. Try every validation confidence.",
        "threshold = min(t for t in validation_confidence.tolist() if that risk <= risk); then count on the test split.",
    ),
)
