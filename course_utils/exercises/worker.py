"""The process in which a learner's functions run: `python -m course_utils.exercises.worker`, started by `workers`.

It reads requests from its standard input (a line of JSON, then a function pickled by the learner's own kernel) and
answers in lines of JSON: what the function prints, then each run (see `wire`). It ends when its input is closed, when it
has been idle for half an hour, or when its parent ends it.

Does: run one function after another. Does not: judge, read anything but its parent's requests, or stop a function: the
parent ends the whole process.
"""

import faulthandler
import json
import os
import pickle
import sys
import threading
import warnings

IDLE = 1800.0                                           # seconds without a request after which it ends
STARTING = 60.0                                         # seconds to take in a function with all that it uses
SPARE = 5.0                                             # seconds past its limit after which it ends without being told


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):                               # what is printed past sys.stdout must not get among the answers
        os.dup2(nowhere, stream)
    nothing = os.fdopen(nowhere, "w")
    warnings.simplefilter("ignore")

    def send(**frame) -> None:
        answers.write(json.dumps(frame, allow_nan=False).encode() + b"\n")

    import torch

    from course_utils.exercises import wire
    from course_utils.exercises.catalogue import find_exercise
    from course_utils.exercises.running import Run, failure, runs_of

    send(ready=True)
    while True:
        faulthandler.dump_traceback_later(IDLE, exit=True, file=nothing)        # a clock that needs no lock of Python's
        line = requests.readline()
        if not line:
            return
        asked = json.loads(line)
        faulthandler.dump_traceback_later(STARTING + SPARE, exit=True, file=nothing)
        body = requests.read(asked["size"])
        sys.path[:] = asked["path"]
        torch.set_default_device(None)                  # the function before may have set one
        try:
            os.chdir(asked["folder"])
            answer = pickle.loads(body)                 # from the learner's own kernel, which started this process
            exercise = find_exercise(asked["exercise"])  # here, since reading its chapter is no time of the learner's
        except BaseException as error:
            send(unreadable=f"{type(error).__name__}: {error}"[:300])
            continue
        faulthandler.dump_traceback_later(asked["at_most"] + SPARE, exit=True, file=nothing)
        send(begun=True)
        try:
            for run in runs_of(exercise, answer, asked["seed"], lambda text: send(printed=text)):
                send(run=wire.encode_run(run))
        except KeyboardInterrupt as error:
            send(run=wire.encode_run(Run(error=failure(error))))
        send(done=True)
        if threading.active_count() > 1:                # the function left something running
            os._exit(0)


if __name__ == "__main__":
    main()
