"""Kill `ReviewClassifier.save` while it replaces one model by another, and look at what is left.

    python tests/training/kills_during_save.py random 200 # SIGKILL after a random time
    python tests/training/kills_during_save.py every kill # SIGKILL before the first, second, third … operation on a file
    python tests/training/kills_during_save.py every error  # the same, with 'No space left on device' in place of a kill
    python tests/training/kills_during_save.py limit      # files can't grow beyond 0, 1, 2, 4, … bytes: error, or kill
    python tests/training/kills_during_save.py disk FOLDER  # FOLDER is on a small disk, which is filled up to various sizes
    python tests/training/kills_during_save.py all 20     # all but the last, with 20 random kills

Prints how often the old model, the new one, a mixture or nothing readable was left; the exit status is 1 for either of
the last two. The savers are forked, so that a kill costs milliseconds; therefore torch has one thread here.
"""

import contextlib
import errno
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.tokenization import WordTokenizer


def make(seed: int) -> ReviewClassifier:
    """Two seeds differ in every file: weights, vocabulary, sizes and label names."""
    torch.manual_seed(seed)
    tokenizer = WordTokenizer(["<pad>", "<unk>", *(f"word{seed}-{i}" for i in range(2000))])
    config = ClassifierConfig(vocab_size=tokenizer.vocab_size, d_model=32, d_ff=16 + seed)
    return ReviewClassifier(SelfAttentionClassifier(config), tokenizer, [f"no-{seed}", f"yes-{seed}"])


def is_same(one: ReviewClassifier, other: ReviewClassifier) -> bool:
    """Whether two classifiers are equal in all that is saved."""
    weights, others = one.model.state_dict(), other.model.state_dict()
    return (
        one.model.config == other.model.config and one.label_names == other.label_names
        and one.tokenizer.vocabulary == other.tokenizer.vocabulary
        and all(weights[name].equal(others[name]) for name in weights)
    )


def save_in_child(classifier: ReviewClassifier, folder: Path, before, kill_after: float | None = None) -> int:
    """Fork, call before(), save; the child's exit status: 0 saved, 1 an error was raised, minus the number of a signal."""
    child = os.fork()
    if child == 0:
        try:
            before()
            classifier.save(folder)
            os._exit(0)
        except OSError:
            os._exit(1)
        finally:
            os._exit(2)
    if kill_after is not None:
        time.sleep(kill_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_operation(number: int, folder: Path, what: str):
    """A function that makes the process die, or fail, before its n-th operation on a file in `folder`."""
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        if event.startswith(("open", "os.", "shutil.")) and any(str(folder) in str(argument) for argument in arguments):
            seen += 1
            if seen == number:
                if what == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: sys.addaudithook(hook)


def limited(size: int, what: str):
    """A function that lets no file grow beyond `size` bytes: then writing is an error, or kills."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if what == "error" else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


class Trials:
    """Save one of two models over the other again and again, and count what each attempt left."""

    def __init__(self, folder: Path):
        self.models = [make(0), make(1)]
        self.folder, self.old, self.left, self.statuses = folder, 0, Counter(), Counter()
        self.models[0].save(folder)

    def attempt(self, before=lambda: None, kill_after: float | None = None) -> int:
        old, new = self.models[self.old], self.models[1 - self.old]
        status = save_in_child(new, self.folder, before, kill_after)
        self.statuses[status] += 1
        try:
            found = ReviewClassifier.load(self.folder)
        except Exception as error:
            print(f"unreadable: {error}", file=sys.stderr)
            self.left["unreadable"] += 1
            old.save(self.folder)
            return status
        if is_same(found, new):
            self.left["new"] += 1
            self.old = 1 - self.old
        else:
            self.left["old" if is_same(found, old) else "mixed"] += 1
        if status == 0 and not is_same(found, new):
            self.left["said saved, but wasn't"] += 1
        return status

    def report(self) -> int:
        self.models[self.old].save(self.folder)         # a save that ends well clears away what the others have left
        files = sorted(path.name.partition("-")[0] for path in self.folder.iterdir() if not path.name.endswith(".lock"))
        tidy = files == ["config", "model.json", "vocabulary", "weights"]
        counts = {name: self.left[name] for name in ("old", "new", "mixed", "unreadable", "said saved, but wasn't")}
        print(f"{sum(self.statuses.values())} attempts, of which {self.statuses[-9] + self.statuses[-25]} killed and "
              f"{self.statuses[1]} failed; left:", ", ".join(f"{name} {count}" for name, count in counts.items()),
              "" if tidy else f"; files not cleared away: {files}")
        bad = counts["mixed"] + counts["unreadable"] + counts["said saved, but wasn't"] + self.statuses[2]
        return 0 if tidy and not bad else 1


def run(mode: str, detail: str, folder: Path) -> int:
    trials = Trials(folder)
    if mode == "random":
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            save_in_child(trials.models[0], folder, lambda: None)
            times.append(time.perf_counter() - begun)
        draw = random.Random(0)
        while trials.statuses[-signal.SIGKILL] < int(detail):
            trials.attempt(kill_after=draw.uniform(0, 1.2 * sorted(times)[2]))
    elif mode == "every":
        for number in range(1, 1000):
            if trials.attempt(at_operation(number, folder, detail)) == 0 and detail == "kill":
                break                                   # it came to its end before the n-th operation
            if detail == "error" and number > 45:
                break                                   # of about forty operations
    elif mode == "limit":
        for what in ("error", "kill"):
            for size in (0, *(2**n for n in range(20))):
                trials.attempt(limited(size, what))
    else:
        filler = folder.parent / "filler"
        for free in range(0, 700, 7):                   # in units of 1024 bytes
            filler.unlink(missing_ok=True)
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(b"0" * 1024)
            os.truncate(filler, max(0, filler.stat().st_size - 1024 * free))
            trials.attempt()
        filler.unlink()
    return trials.report()


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    mode, detail = [*arguments, "", ""][:2]
    if mode not in ("random", "every", "limit", "disk", "all"):
        print(__doc__)
        return 2
    if mode == "disk":
        return run(mode, "", Path(detail) / "model")
    every = [("every", "kill"), ("every", "error"), ("limit", ""), ("random", detail)]
    status = 0
    for accident, how in every if mode == "all" else [(mode, detail)]:
        print(f"{accident} {how}".strip(), end=": ", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            status |= run(accident, how, Path(folder).resolve() / "model")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
