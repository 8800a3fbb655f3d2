"""Exercise 3.4, an epoch from memory. It is long, so it has a file of its own."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n03 import probes


def _gap(case: Case) -> float:
    """How far the parameters are from where they should be."""
    return max((case.got[name] - case.right[name]).abs().max().item() for name in ("table", "weight"))


def _after(case: Case) -> str:
    several = "one batch" if len(case.inputs[1]) == 1 else f"{len(case.inputs[1])} batches"
    return f"after an epoch of {several} your parameters are off by up to {_gap(case):.3f}."


def _losses(case: Case) -> str:
    return f"your epoch returns {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _still(case: Case) -> bool:
    return case.moved != "yes"


def _only_loss(case: Case) -> str:
    return f"the model is trained correctly, but {_losses(case)}"


def _nothing_moved(case: Case) -> str:
    return f"no parameter has moved: {case.moved}."


EPOCH = Exercise(
    tolerance=1e-4, probes=probes.epoch_probes, observe=probes.observe_epoch,
    signature="train_epoch(model, optimizer, several) -> mean loss, a number; `several` is a list of batches with "
    "token_ids, attention_mask and labels",
    mistakes=(
        Mistake("never-cleared", _after, "With one batch they are right; with several, each step uses the sum of all "
                "gradients so far. backward adds to what is there: clear before it, for every batch (section 5)."),
        Mistake("cleared-between", lambda case: f"no parameter has moved, though {case.moved}.",
                "The step had no gradient to go by: it came before backward, or the gradient was cleared between the two."),
        Mistake("no-backward", _nothing_moved, "Without loss.backward() there is no gradient, and the step does nothing. "
                "There is no error."),
        Mistake("no-step", _nothing_moved, "The gradients are computed and never used: optimizer.step() is missing."),
        Mistake("one-step", _after, "The gradients of all batches add up, and one step follows the loop. step belongs "
                "inside it, and so does zero_grad: a step for each batch."),
        Mistake("last-batch-only-steps", _after, "Only the last batch's gradient is used: step comes after the loop. It "
                "belongs inside."),
        Mistake("mean-of-means", _only_loss, "That is the mean of the batch losses. The last batch is short, and its "
                "reviews count too much; weight each loss by the size of its batch (section 6)."),
        Mistake("last-loss", _only_loss, "That is the loss of the last batch alone. Sum over the batches as you go."),
        Mistake("sum-of-means", _only_loss, "The losses of the batches are summed and not divided. Each is a mean over its "
                "reviews; what is asked for is the mean over all reviews."),
        Mistake("total", _only_loss, "That is the sum over all reviews. Divide by how many there were, in all batches."),
        Mistake("summed", lambda case: f"{_after(case)} The loss that you return is right.", "You took the gradient of the "
                "summed loss, so a batch of four moves four times as far. cross_entropy gives the mean by itself; use that "
                "for backward."),
        Mistake("evaluation-mode", lambda case: f"{_after(case)} The forward passes ran in evaluation mode.",
                "The model came in that mode, and nothing switched it. The bag of this notebook does not notice; a model "
                "with dropout does."),
        Mistake("softmax-first", _losses, "cross_entropy got probabilities. It takes logits and does the softmax itself; "
                "done twice, the loss cannot come near zero and the gradients are small. There is no error."),
        Mistake("returned-in-the-loop", _after, "They are where the first batch left them: the return is inside the "
                "loop, so the other batches are never seen. Move it to the left."),
    ),
    properties=(
        Property(lambda case: case.got["right masks"] != 1, lambda case: f"{_after(case)[:-1]}, and the model got a mask "
                 "that isn't the batch's.", "Pass batch.attention_mask as it is, True = real: with a mask of ones "
                 "padding is read as words, and an inverted one hides the words."),
        Property(_still, _nothing_moved, "A step needs three things in this order: a cleared gradient, backward, step."),
        Property(lambda case: case.got["training mode"] != 1, lambda case: f"{_after(case)} At least one forward pass ran "
                 "in evaluation mode.", "model.train() comes before the loop, and nothing in the loop should switch back."),
        Property(lambda case: len(case.inputs[1]) == 1 and _gap(case) > 1e-4, _after, "So something inside one step is not "
                 "as in section 5: forward, loss, clear, backward, step, each once."),
        Property(lambda case: _gap(case) > 1e-4, _after, "With one batch they are right, so a step by itself is. Which "
                 "lines belong inside the loop, and does every batch get its step?"),
        Property(lambda case: len(case.inputs[1]) == 1 and abs(case.loss - case.right["loss"]) > 1e-4, _only_loss,
                 "For a single batch this is the loss that cross_entropy gave, before the step."),
        Property(lambda case: abs(case.loss - case.right["loss"]) > 1e-4, _only_loss, "For a single batch it is right. For "
                 "several, each batch counts by its number of reviews."),
    ),
    hints=(
        "Six lines in the loop: forward, loss, clear, backward, step, and one that remembers the loss.",
        "loss.item() * len(batch.labels) is the summed loss of one batch. Add it up, and count the reviews as well.",
        "model.train() before the loop, return loss_sum / count after it.",
    ),
)
