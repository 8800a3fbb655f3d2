"""How long an answer may take, so that a busy machine changes no verdict.

Two things are counted. Processor time, and only while one of the learner's own lines is running: what the check does itself
(it imports, it trains a model, it computes what is right) is nobody's fault. And seconds in which the process sleeps by its
own choice: in an input(), at a lock, in time.sleep. Nothing counts while the machine keeps a process waiting.

Does: say whose line a stack of calls is in, add up, say when it's too much and why. Does not: read a process's stack or its
processor time (see `worker` and `workers`), or stop anything.
"""

import os
import re
import sysconfig
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from course_utils.files.paths import EXERCISES

SECONDS = 8.0                                           # of processor time, in the learner's own lines, for a whole check
WAITING = 120.0                                         # of sleep
AROUND = 2                                              # limits that it may take with functions of ours that it calls
OURS = 40                                               # and the check's own work
TICK = 0.2                                              # seconds between two looks at a process
UNSEEN = 2.0                                            # seconds of processor time after which a look is too old

COURSE = (str(Path(__file__).resolve().parents[1]) + os.sep, str(EXERCISES) + os.sep)
LIBRARIES = (*COURSE, *(sysconfig.get_path(one) + os.sep for one in ("stdlib", "platstdlib", "purelib")))
ENTRANCE = "the_answer"                                 # the function through which `running` calls a learner's function
LISTENER = "note_a_call"                                # the function of `running` that runs at each of its calls


class Stop(NamedTuple):
    """Why an answer was stopped: 'NeverEnds', 'Waits', or 'CheckFailed', which isn't the answer's doing; in which place."""

    why: str
    file: str
    number: int


class Place(NamedTuple):
    """Where a stack of calls is: whether in a line of the learner's, or in one of ours that it has called (`inside`); and
    the learner's line."""

    learners: bool
    inside: bool
    file: str = ""
    number: int = 0


NOWHERE = Place(False, False)


def is_learners(file: str) -> bool:
    """Whether a code's file is neither the course's nor a library's nor Python's own."""
    return not (file.startswith((*LIBRARIES, "<frozen")) or "site-packages" in file or "dist-packages" in file)


def place_of(calls: Iterable[tuple[str, int, str]]) -> Place:
    """Where a stack of calls is, given as (file, line, function), the innermost first.

    What a library does is done for whoever called it. A library's function may itself be the answer: then it was called by
    ENTRANCE.
    """
    learners = None                                     # not known yet: in a library
    for file, number, name in calls:
        if is_learners(file):
            return Place(learners is not False, True, file, number)
        if file.startswith(COURSE) and name != LISTENER:
            if name == ENTRANCE:
                return Place(learners is not False, True)
            learners = False
    return NOWHERE


def calls_of(frame) -> Iterator[tuple[str, int, str]]:
    """The calls that a frame stands in, as `place_of` wants them."""
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name
        frame = frame.f_back


def calls_in(dump: Iterable[str]) -> list[tuple[str, int, str]]:
    """The same from a thread's lines in a dump of faulthandler's."""
    found = (re.match(r'  File "(.*)", line (\d+) in (.*)', line) for line in dump)
    return [(one[1], int(one[2]), one[3]) for one in found if one]


class Clock:
    """Adds up what one check takes: at most `seconds` of processor time in the learner's lines, `waiting` seconds asleep."""

    def __init__(self, seconds: float = SECONDS, waiting: float = WAITING, used: float = 0.0):
        self.seconds, self.waiting, self.used = seconds, waiting, used
        self.learners = self.inside = self.all = self.asleep = 0.0
        self.place, self.moment = NOWHERE, time.monotonic()

    def pause(self) -> None:
        """What has passed until now doesn't count: somebody was asked something."""
        self.moment = time.monotonic()

    def tick(self, place: Place | None, used: float, sleeps: bool) -> Stop | None:
        """Count what has happened since the last tick; a Stop if it's too much.

        `place` is where the process is, or None if nobody knows; `used` its processor time so far, in seconds; `sleeps` says
        that it sleeps and isn't kept waiting by the machine.
        """
        now = time.monotonic()
        passed, self.moment = min(now - self.moment, 2 * TICK), now         # longer, if this process was kept waiting itself
        worked = max(0.0, used - self.used)
        if place is None and worked < UNSEEN:           # what it does is told in a moment
            worked = 0.0
        else:
            self.used = used
            self.place = place or Place(True, True, self.place.file, self.place.number)
        if sleeps and worked < passed / 10:
            self.asleep += passed
        self.all += worked
        self.inside += worked * self.place.inside
        self.learners += worked * self.place.learners
        return self._stop()

    def _stop(self) -> Stop | None:
        why = ""
        if self.learners > self.seconds or self.inside > AROUND * self.seconds:
            why = "NeverEnds"
        elif self.asleep > self.waiting:
            why = "Waits" if self.place.inside else "CheckFailed"
        elif self.all > OURS * self.seconds:
            why = "CheckFailed"
        return Stop(why, self.place.file, self.place.number) if why else None
