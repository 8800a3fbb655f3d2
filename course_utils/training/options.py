"""The rules for options are in `course_utils.options`; this name goes with the next release."""

from course_utils.options import BATCH_RULES, FIT_RULES, RUN_RULES, between, or_none  # noqa: F401
