"""Exercise 8.5, an honest score. It is long, so it has a file of its own."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n08 import probes


def _percent(case: Case, name: str) -> str:
    return f"{100 * case.got[name].item():.0f} % of the forward passes"


def _shares(case: Case) -> str:
    return f"you report {case.share.item():.4f}, and {case.right['share'].item():.4f} of the reviews are right."


def _mode_left(case: Case) -> str:
    names = {1.0: "training", 0.0: "evaluation"}
    came, left = names[case.right["left in training mode"].item()], names.get(case.got["left in training mode"].item(),
        "mixed")
    return f"the model came in {came} mode and is left in {left} mode."


def _is(name: str, value: float):
    return lambda case: case.got[name] != value


def _report(case: Case) -> str:
    return f"you report {case.share.item():.4g}."


def _with_gradients(case: Case) -> str:
    return f"{_percent(case, 'with gradients')} recorded gradients."


def _in_training_mode(case: Case) -> str:
    return f"{_percent(case, 'in training mode')} ran in training mode."


SHARE = Exercise(
    given="as-given", probes=probes.share_probes, observe=probes.observe_share,
    signature="share_right(model, several) -> proportion of the reviews that are right, from 0 to 1; `several` is a list of "
    "batches with token_ids, attention_mask and labels",
    mistakes=(
        Mistake("as-given", _shares, "Begin with the mode: what does dropout do to a score? Then the gradients, which "
                "nobody needs here; then the mean; then how the model is left."),
        Mistake("training-mode", _in_training_mode, "Dropout and word dropout were active, so the same review can get two "
                "verdicts. model.eval() switches all layers; no_grad() does not."),
        Mistake("gradients", _with_gradients, "The score is right. But everything is kept for a backward that never comes, "
                "which costs memory and time. eval() does not switch that off; torch.no_grad() does."),
        Mistake("batch-means", _shares, "You average the accuracies of the batches. The last batch is shorter, so each of "
                "its reviews counts for more. Count right answers over all reviews and divide once (notebook 03, "
                "section 6)."),
        Mistake("left-in-evaluation", _mode_left, "The next epoch would train without dropout, and nothing would say so. "
                "Remember model.training at the start, and restore it."),
        Mistake("always-training", _mode_left, "You switch to training mode at the end, whatever it was before. Anyone who "
                "scores a finished model and then predicts gets dropout. Remember model.training at the start, and restore "
                "that."),
        Mistake("gradients-left-off", lambda case: "the score is right, but afterwards gradients are off: the switch is "
                f"at {case.got['gradients left on'].item():.0f}, expected 1.", "torch.set_grad_enabled(False) stays until "
                "someone turns it back on, so the next backward() would fail. `with torch.no_grad():` ends by itself."),
        Mistake("frozen", lambda case: "the score is right, but afterwards parameters of the model have requires_grad False "
                f"(all trainable: {case.trainable.item():.0f}).", "The next epoch could not train it. Use `with "
                "torch.no_grad():`, which leaves the parameters alone."),
        Mistake("per-batch", lambda case: f"you report {case.share.item():.4f}.", "You counted right answers and divided by "
                "the number of batches. Divide by the number of reviews."),
        Mistake("count", _report, "That is how many are right. Divide by the number of reviews."),
        Mistake("share-wrong", _shares, "Yours is the proportion that is wrong."),
        Mistake("percent", _report, "That is in per cent. A proportion is a number from 0 to 1: leave out the 100."),
        Mistake("last-batch", _shares, "Yours is the accuracy in the last batch alone. Count over all batches."),
    ),
    properties=(
        Property(_is("right masks", 1), lambda case: f"{_report(case)[:-1]}, and the model got a mask that isn't the "
                 "batch's.",
                 "Pass batch.attention_mask as it is, True = real: with a mask of ones padding is read as words, and an "
                 "inverted one hides the words."),
        Property(_is("in training mode", 0), _in_training_mode, "Layers such as dropout must be switched off while scoring, "
                 "all of them: model.eval() before the loop."),
        Property(_is("with gradients", 0), _with_gradients, "Nobody calls backward here. Switch it off: with "
                 "torch.no_grad()."),
        Property(lambda case: case.got["left in training mode"] != case.right["left in training mode"], _mode_left,
                 "Remember model.training before you change it, and put that back at the end."),
        Property(_is("weights moved", 0), lambda case: f"afterwards {case.got['weights moved'].item():.0f} numbers in the "
                 "model have changed.", "A score looks at a model and does not train it: no step, no new weights."),
        Property(_is("gradients left on", 1), lambda case: "afterwards gradients are off: the switch is at "
                 f"{case.got['gradients left on'].item():.0f}, expected 1.", "Use with torch.no_grad(), which ends by "
                 "itself."),
        Property(_is("trainable", 1), lambda case: "afterwards not all parameters are trainable "
                 f"({case.trainable.item():.0f}, expected 1).", "Leave requires_grad of the parameters alone."),
        Property(lambda case: (case.share - case.right["share"]).abs() > 1e-4, _shares, "How the passes ran and how the "
                 "model is left are right. So the mistake is in the number: in each review the class with the largest "
                 "logit, with the "
                 "mask passed in; right answers over all reviews, divided by how many reviews there are."),
    ),
    hints=(
        "Two different switches: one for layers such as dropout, one for recording gradients. Neither does the other's "
        "work.",
        "The last batch is shorter. How much does one of its reviews count in a mean of the batches' accuracies?",
        "was_training = model.training at the start, model.train(was_training) at the end.",
    ),
)
