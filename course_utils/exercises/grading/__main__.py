"""`python -m course_utils.exercises.grading FOLDER`: see `grade`."""

import sys

from course_utils.exercises.grading.grade import main

if __name__ == "__main__":
    sys.exit(main())
