"""Does the course's reader read better after more sentences? A set of runs for course_tools/studies/command.py.

Writes data/results/reader_more.json, which notebook 15 shows. The readers of the set `reader` go on learning from labels
alone, for equally many steps, and from equally many whole reviews and sentences: "more sentences" above all from those of
data/written_more, "older sentences again" from the generated ones and those of data/written instead. The part of the
training whose weights are kept is chosen on validation texts, and so is the seed of "more sentences" that comes with the
course. What is kept and scored is rounded to 8 bits a weight. The ordinary sentences and the hand-written reviews are for
testing alone; the third 300 ordinary sentences had been scored by no model before these.

    COURSE_MODELS=folder COURSE_PRECISION=bf16 python -m course_tools results reader_more --jobs 2 --seeds 0 1 2

It begins with what `python -m course_tools results reader --only reader` leaves in outputs/reader.
"""

import functools

from course_tools.studies.pretrained_reviews import FixedSteps, tokens_in
from course_tools.studies.runner import ResultSet
from course_tools.studies.sets import pretrained, reader
from course_tools.studies.sets.student import facts, joined
from course_tools.studies.student_texts import rows_in
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.files import sha256
from course_utils.results import fingerprint, split_fingerprints
from course_utils.training import classification_loss, fastest_device, fit, seed_everything
from course_utils.training.saved_models import in_eight_bits

READS = {                                               # texts of each source
    "more sentences": {"imdb": 4_000, "reviews": 3_600, "sentences": 8_000, "written": 8_000, "written_more": 34_000},
    "older sentences again": {"imdb": 4_000, "reviews": 3_600, "sentences": 33_600, "written": 16_400},
}
STEPS, PARTS, FIT = 900, 3, {"learning_rate": 1e-4, "weight_decay": 0.01, "warmup": 0.05, "clip": 1.0}
LABELLED = (*reader.LABELLED, "written_more")
TESTED = (*reader.TESTED, "ordinary_third", "written_more")


@functools.cache
def settings() -> str:
    """What every run depends on: the readers' settings, the further texts, the training."""
    corpora = [split_fingerprints(load_reviews(source)) for source in TESTED[-2:]]
    return fingerprint(reader.settings(), corpora, STEPS, PARTS, FIT, list(reader.OPTIONS))


def begun(seed: int) -> ReviewClassifier:
    """The reader of this seed, as the set `reader` left it. Raises FileNotFoundError where it isn't there."""
    folder = reader.kept(f"reader-{seed}")
    if not folder.exists():
        raise FileNotFoundError(f"{folder} isn't there; make it first: python -m course_tools results reader --only reader "
                                "--seeds 0 1 2")
    return ReviewClassifier.load(folder)


def run(model: str, seed: int, state) -> dict:
    """Train a reader further, round it, and score it."""
    seed_everything(seed)
    classifier = begun(seed)
    if classifier.tokenizer.vocabulary != reader.reader_pieces().vocabulary:
        raise ValueError(f"the reader of seed {seed} has other word pieces than `reader.reader_pieces()`: make it again")
    net = classifier.model.to(fastest_device())
    begun_as, reads = weights_of(net), READS[model]
    texts = joined([reader.chosen(source, "train", "student", rows_in(len(reader.texts_of(source)), number))
                    for source, number in reads.items()])
    result = fit(net, FixedSteps(texts, reader.OPTIONS, STEPS // PARTS), to_validate(), loss_of=classification_loss,
                 options=reader.OPTIONS, checkpoint=state, seed=seed, progress=False, precision=pretrained.precision(),
                 epochs=PARTS, **FIT)
    net.load_state_dict(in_eight_bits(net.state_dict()))
    made = {"begun": begun_as, "ended": weights_of(net), **facts(net, result, STEPS, tokens_in(texts)),
            "texts": len(texts.ids), **scored(net)}
    reader.keep(f"{model.replace(' ', '-')}-{seed}", net, model, seed, made)
    return made


def weights_of(net) -> str:
    """A fingerprint of the weights."""
    return fingerprint([sha256(tensor.cpu().numpy().tobytes()) for tensor in net.state_dict().values()])


def to_validate():
    """The first `VALIDATED` validation texts of each source with labels."""
    return joined([reader.chosen(source, "validation", "student",
                                 range(len(reader.labels_of(source, "validation")))[:reader.VALIDATED])
                   for source in LABELLED])


def scored(net) -> dict:
    """What `student.score` says of every source's test texts."""
    return reader.scored(net.eval(), reader.OPTIONS, "student", TESTED)


def line(runs: list[dict]) -> str:
    """Accuracy on every source of test texts."""
    return "  ".join(f"{name} {100 * sum(run[name]['accuracy'] for run in runs) / len(runs):.1f}" for name in TESTED)


SET = ResultSet(
    "reader_more", READS, settings, run,
    seeds=lambda row, asked: [seed for seed in asked if seed in reader.TEACHERS],
    change=lambda row: {"reads": READS[row]}, line=line,
)
