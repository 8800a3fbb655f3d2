"""The commands with which the course is made: `python -m course_tools` lists them, `… grade --help` explains one.

Does: name the commands and where each is. Does not: run them; each is a function of the module that does the work, imported
only when it is called (see `course_utils.commands`).
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)         # Ctrl-C while libraries are imported: no traceback of them

import sys  # noqa: E402

from course_utils.commands import Command, by_name, run_command  # noqa: E402


def cheat_sheet() -> Command:
    """write the cheat sheet, one page of shapes and formulas to print"""
    from course_tools.sheets.cheat_sheet import main
    return main


def site() -> Command:
    """write the whole course as a site to outputs/site, to read without installing anything"""
    from course_tools.site.build import main
    return main


def results() -> Command:
    """compute whatever is missing from the result files, and print their tables"""
    from course_tools.studies.command import main
    return main


def imdb_facts() -> Command:
    """count what notebooks 01 and 02 say about the IMDb reviews"""
    from course_tools.studies.sets.imdb_facts import main
    return main


def explanations() -> Command:
    """score the ways to explain a prediction, for notebook 11"""
    from course_tools.studies.sets.explanations import main
    return main


def speed() -> Command:
    """measure what the course says about speed and memory, as ratios"""
    from course_tools.studies.sets.speed import main
    return main


def solutions() -> Command:
    """write every notebook with its exercises solved to outputs/solutions"""
    from course_tools.teaching.editions import solutions_command
    return solutions_command


def handout() -> Command:
    """write the course without its solutions to outputs/handout and outputs/handout.zip"""
    from course_tools.teaching.editions import handout_command
    return handout_command


def sheets() -> Command:
    """write the computations by hand as pages to print, with answers"""
    from course_tools.sheets.sheets import main
    return main


def slides() -> Command:
    """write slides from the notebooks, a deck for each and for each route, to outputs/slides"""
    from course_tools.slides.command import main
    return main


def grade() -> Command:
    """grade the exercises in handed-in notebooks, on fresh inputs"""
    from course_tools.grading.grade import main
    return main


def timetable() -> Command:
    """rewrite the timetable on the page for instructors"""
    from course_tools.teaching.timetable import main
    return main


def slide_pictures() -> Command:
    """draw the figures of the slides: executes the notebooks in the style for projectors"""
    from course_tools.slides.pictures import main
    return main


def export() -> Command:
    """copy the notebooks' exported cells into course_utils"""
    from course_tools.notebooks.export import main
    return main


def save() -> Command:
    """execute notebooks in place"""
    from course_tools.notebooks.save import main
    return main


def exercise() -> Command:
    """add an exercise to a notebook, as an example to rewrite"""
    from course_tools.notebooks.scaffold import exercise_command
    return exercise_command


def notebook() -> Command:
    """add the next notebook, with exercises and a quiz"""
    from course_tools.notebooks.scaffold import notebook_command
    return notebook_command


def models() -> Command:
    """train any missing models in data/checkpoints"""
    from course_tools.studies.kept_models import main
    return main


def gallery() -> Command:
    """draw the gallery's figures and write its page"""
    from course_tools.gallery.figures import main
    return main


def animations() -> Command:
    """draw the animations as SVG and GIF"""
    from course_tools.gallery.animations import main
    return main


def front_door() -> Command:
    """write the README's links to the site and to hosted notebooks, once pyproject.toml names the repository"""
    from course_tools.site.front_door import main
    return main


def hosted_copies() -> Command:
    """write copies of the notebooks for Colab, which fetch the course"""
    from course_tools.notebooks.hosted_copies import main
    return main


def processors() -> Command:
    """run the notebooks' tests as if on other processors"""
    from course_tools.notebooks.processors import main
    return main


def seeds() -> Command:
    """try the notebooks' claims with other random seeds"""
    from course_tools.notebooks.seeds import main
    return main


def one_file() -> Command:
    """write the whole classifier as one readable file, outputs/model.py"""
    from course_tools.notebooks.one_file import main
    return main


GROUPS = {
    "pages": (site, front_door, slides, sheets, cheat_sheet, one_file),
    "for instructors": (solutions, handout, grade, timetable),
    "measurements": (results, models, speed, explanations, imdb_facts),
    "notebooks": (exercise, notebook, export, save, gallery, slide_pictures, animations, hosted_copies, processors, seeds),
}
COMMANDS = by_name(GROUPS)


def main(arguments: list[str]) -> int:
    """Run the command that the line names and return its exit status; return 2 if the line names no command."""
    return run_command("course_tools", GROUPS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
