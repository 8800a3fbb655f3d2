"""Kill `ReviewClassifier.save`, or fill its disk, while it replaces one model by another; look at what is left.

    python tests/training/kills_during_save.py 20       # a kill, or a full disk, before each operation on a file, and when
                                                        # so many bytes are written; 20 kills at random moments

Prints what was left, and how often; the exit status is 1 if that was ever anything but the old model or the new one. The
savers are forked, so that a kill costs milliseconds; therefore torch has one thread here.
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
    """Two seeds differ in weights, vocabulary, sizes and label names."""
    torch.manual_seed(seed)
    tokenizer = WordTokenizer(["<pad>", "<unk>", *(f"word{seed}-{i}" for i in range(2000))])
    config = ClassifierConfig(vocab_size=tokenizer.vocab_size, d_model=32, d_ff=16 + seed)
    return ReviewClassifier(SelfAttentionClassifier(config), tokenizer, [f"no-{seed}", f"yes-{seed}"])


def before_operation(number: int, folder: str, kill: bool) -> None:
    """Let this process die, or find the disk full, before its n-th operation on a file in `folder`."""
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        if event.startswith(("open", "os.")) and any(folder in str(argument) for argument in arguments):
            seen += 1
            if seen == number:
                if kill:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sys.addaudithook(hook)


def at_size(size: int, kill: bool) -> None:
    """Let this process die, or find the disk full, as soon as a file grows beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kill else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def save(classifier: ReviewClassifier, name: Path, accident=None, size=None, kill_after: float | None = None) -> int:
    """Save in a process of its own; its exit status: 0 saved, 1 an error was raised, minus the number of a signal."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            if accident:
                before_operation(accident[0], str(name.parent), accident[1])
            if size:
                at_size(*size)
            classifier.save(name)
            os._exit(0)
        os._exit(1)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(random_kills: int) -> int:
    torch.set_num_threads(1)
    models, left = [make(0), make(1)], Counter()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None             # a busy disk takes seconds for each save
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        name, here = Path(folder).resolve() / "model", 0
        models[0].save(name)                            # here: what torch imports for it, each child would import again
        took, draw = [], random.Random(0)
        for _ in range(5):
            begun = time.perf_counter()
            save(models[0], name)
            took.append(time.perf_counter() - begun)
        accidents = [{"accident": (number, kill)} for kill in (True, False) for number in range(1, 9)]
        accidents += [{"size": (size, kill)} for kill in (True, False) for size in (0, 1, 1000, 100_000)]
        while accidents or left["at random"] < random_kills:
            accident = accidents.pop() if accidents else {"kill_after": draw.uniform(0, sorted(took)[2])}
            status, found = save(models[1 - here], name, **accident), ReviewClassifier.load(name)
            (which,) = [i for i, model in enumerate(models) if found.label_names == model.label_names]
            same = all(map(torch.equal, found.model.state_dict().values(), models[which].model.state_dict().values()))
            whole = same and found.tokenizer.vocabulary == models[which].tokenizer.vocabulary
            said = {0: "saved", 1: "an error"}.get(status, "killed")
            left["at random"] += said == "killed" and "kill_after" in accident
            left[said, "a mixture" if not whole else "the old one" if which == here else "the new one"] += 1
            here = which
    print("killed at random:", left.pop("at random"))
    print(*(f"{said}, {model}: {number}" for (said, model), number in sorted(left.items())), sep="\n")
    return 1 if any(model == "a mixture" or (said, model) == ("saved", "the old one") for said, model in left) else 0


if __name__ == "__main__":
    sys.exit(main(int((sys.argv[1:] or ["20"])[0])))
