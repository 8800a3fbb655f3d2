"""The sheet on notebook 15: a teacher's softened answer, and the calibration error of eight predictions."""

import math

from course_tools.sheets.formulas import fraction
from course_tools.sheets.sheet_numbers import CALCULATOR, blanks, exact, rounded
from course_tools.sheets.sheet_pages import Blank, Sheet, Table

__all__ = ["soft_targets_and_calibration"]

CLASSES = ["positive", "mixed", "negative"]
TEACHER = (4.0, 2.0, 0.0)
PREDICTIONS = [(0.6, True), (0.7, True), (0.7, True), (0.8, False), (0.9, True), (0.9, True), (1.0, False), (1.0, False)]
BINS = [(0.5, 0.75), (0.75, 1.0)]                       # (low, high]


def softened(temperature: float) -> list[float]:
    """The teacher's probabilities."""
    weights = [math.exp(z / temperature) for z in TEACHER]
    return [weight / sum(weights) for weight in weights]


def soft_targets_and_calibration() -> Sheet:
    warm = {T: softened(T) for T in (1, 2)}
    divergence = {T: sum(q * math.log(3 * q) for q in row) for T, row in warm.items()}     # the student gives each 1/3
    pull = {T: max(abs(q - 1 / 3) / T for q in row) for T, row in warm.items()}
    rows, error = [], 0.0
    for low, high in BINS:
        inside = [(sure, right) for sure, right in PREDICTIONS if low < sure <= high]
        confidence = sum(sure for sure, _ in inside) / len(inside)
        accuracy = sum(right for _, right in inside) / len(inside)
        error += len(inside) / len(PREDICTIONS) * abs(confidence - accuracy)
        rows.append([f"over {low} to {high}", Blank(str(len(inside))),
                     *blanks([confidence, accuracy, abs(confidence - accuracy)])])
    overall = abs(sum(sure - right for sure, right in PREDICTIONS)) / len(PREDICTIONS)
    power = "<i>e</i><sup><i>z<sub>{0}</sub></i>/<i>T</i></sup>"
    return Sheet(
        title="Soft targets and calibration", notebook="15", section="3. A loss with soft targets", need=CALCULATOR,
        intro="A teacher gives three classes the logits below; the student's three logits are equal, so it gives each class "
        "1/3 at every temperature. Below that, eight predictions of another model, each with its confidence.",
        given=[Table("Given: the teacher's logits", CLASSES, [list(map(exact, TEACHER))]),
               Table("Given: eight predictions", ["confidence", *(exact(sure) for sure, _ in PREDICTIONS)],
                     [["right?", *("yes" if right else "no" for _, right in PREDICTIONS)]])],
        formulas=["<i>q<sub>i</sub></i> = " + fraction(power.format("i"), "Σ<sub><i>j</i></sub> " + power.format("j")),
                  "KL = Σ<sub><i>i</i></sub> <i>q<sub>i</sub></i> ln(<i>q<sub>i</sub></i> / <i>p<sub>i</sub></i>), and its "
                  "gradient with respect to the student's logits is (<i>p</i> − <i>q</i>) / <i>T</i>",
                  "ECE: the mean gap between confidence and accuracy of a bin, weighted by its number of predictions"],
        steps=[Table("Step 1: the teacher's probabilities (the first is done)", ["<i>T</i>", *CLASSES],
                     [["1", rounded(warm[1][0]), *blanks(warm[1][1:])], ["2", *blanks(warm[2])]]),
               Table("Step 2: KL, the largest number of its gradient (without its sign), and that times <i>T</i>²",
                     ["<i>T</i>", "KL", "gradient", "times <i>T</i>²"],
                     [[str(T), *blanks([divergence[T], pull[T], T * T * pull[T]])] for T in warm]),
               Table("Step 3: the eight predictions in two bins",
                     ["confidence", "predictions", "mean confidence", "accuracy", "gap"], rows),
               Table("Step 4: weighted by their number", ["", ""], [["ECE", Blank(rounded(error))]])],
        question="Of all eight together, how far apart are mean confidence and accuracy? Why is that less than the ECE?",
        answer=f"They're {rounded(overall)} apart, the ECE is {rounded(error)}. The first bin isn't sure enough and the "
        "second is too sure, so in the mean of all eight one partly makes up for the other. The ECE takes each gap without "
        "its sign.")
