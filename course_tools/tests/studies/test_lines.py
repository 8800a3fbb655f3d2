"""What the command prints of a row: its accuracy, or whatever the set measures instead."""

import dataclasses

from course_tools.studies import command, runner
from course_utils.results import add_run

RUN = {"model": "m", "order": 0, "seed": 0, "seconds": 3.0, "test": {"accuracy": 0.5, "reviews": 100}, "loss": 1.5}
SET = runner.ResultSet("x", {}, lambda: "", lambda model, seed, state: {})


def said_of(one, folder, monkeypatch, capsys) -> str:
    monkeypatch.setattr(command, "find_set", lambda name: one)
    command.show("x", folder)
    return " ".join(capsys.readouterr().out.split())


def test_a_row_is_printed_with_its_accuracy_or_with_what_its_set_says(tmp_path, monkeypatch, capsys):
    add_run("x", RUN, tmp_path)
    add_run("x", {**RUN, "seed": 4, "loss": 2.5}, tmp_path)
    assert said_of(SET, tmp_path, monkeypatch, capsys) == "m 50.0 ± 9.8 seeds 0 4 3 s"
    losses = dataclasses.replace(SET, line=lambda runs: f"loss {sum(run['loss'] for run in runs) / len(runs)}")
    assert said_of(losses, tmp_path, monkeypatch, capsys) == "m loss 2.0 seeds 0 4 3 s"


def test_the_committed_figure_stands_beside_that_of_another_folder(tmp_path, monkeypatch, capsys):
    add_run("x", RUN, tmp_path / "ours")
    add_run("x", {**RUN, "test": {"accuracy": 0.6, "reviews": 100}}, tmp_path / "again")
    read = command.read_runs
    monkeypatch.setattr(command, "read_runs", lambda name, folder=tmp_path / "ours": read(name, folder))
    assert said_of(SET, tmp_path / "again", monkeypatch, capsys) == "m 60.0 ± 9.6 seeds 0 committed 50.0 ± 9.8 3 s"
