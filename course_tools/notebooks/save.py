"""`python -m course_tools save 04`: execute notebooks in place, so that they show what their code prints now."""

from course_utils.copies.notebooks import names_on_the_line, run


def main(arguments: list[str] | None = None) -> int:
    """Execute the notebooks that the line names, else all; return the exit status."""
    return int(run(names_on_the_line("save", arguments, "Execute notebooks in place.", "course_tools"), in_place=True) > 0)
