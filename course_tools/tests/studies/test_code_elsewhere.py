"""The language model on code that isn't the library's: the sources of one commit, rows on small texts, file and tables."""

import json
import subprocess

import pytest
from small_code_models import CODE, counted

from course_tools.studies import code_data
from course_tools.studies.code_names import combined, draw_names, ranks_of
from course_tools.studies.code_scores import token_nats
from course_tools.studies.file_words import words_in_file
from course_tools.studies.sets import code_baselines, code_completion, find_set, language_model
from course_tools.studies.sets import code_elsewhere as elsewhere
from course_utils.results import read_runs

TEXT = "".join(CODE)


def git(folder, *arguments):
    named = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_package_is_read_as_a_commit_has_it(tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name, text in {"b.py": "b = 'é'\n", "inner/a.py": "a = 1\n", "inner/__init__.py": "", "c.txt": "c"}.items():
        (package / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (package / "b.py").write_text("b = 2\n", encoding="utf-8")
    (package / "new.py").write_text("new = 3\n", encoding="utf-8")
    texts = code_data.package_at(commit, tmp_path, "package")
    assert list(texts.items()) == [("package/b.py", "b = 'é'\n"), ("package/inner/a.py", "a = 1\n")]
    with pytest.raises(RuntimeError, match="commit 000000000000 .*git fetch --unshallow"):
        code_data.package_at("0" * 40, tmp_path, "package")


def test_without_git_the_message_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="git, which isn't installed"):
        code_data.package_at("0" * 40, tmp_path)


def test_the_repository_is_the_package_at_the_commit_that_is_named(monkeypatch):
    asked = []
    monkeypatch.setattr(code_data, "package_at", lambda commit: asked.append(commit) or {"a.py": "a"})
    code_data.code_texts.cache_clear()
    assert code_data.code_texts("repository") == {"a.py": "a"} and asked == [code_data.REPOSITORY]
    code_data.code_texts.cache_clear()
    assert len(code_data.REPOSITORY) == 40


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A model that knows one text by heart, and that text in two modules, in place of the repository and of the library."""
    completer = counted()
    completer.save(tmp_path / "code")
    texts = {"repository": {"r.py": TEXT, "s.py": CODE[0]}, "test": {"t.py": TEXT}}
    ids = {split: {path: completer.tokenizer.encode(text) for path, text in some.items()} for split, some in texts.items()}
    monkeypatch.setattr(code_completion, "folder_of", lambda seed: tmp_path / "code")
    for module in (code_baselines, code_completion):
        monkeypatch.setattr(module, "code_texts", texts.__getitem__)
        monkeypatch.setattr(module, "code_ids", ids.__getitem__)
    return completer, texts, ids


@pytest.fixture
def made(small):
    return elsewhere.run("attention", 0, None)


def test_a_row_says_what_was_scored_and_how_many_bits_that_took(small, made):
    completer, texts, ids = small
    repository = made["repository"]
    assert made["commit"] == code_data.REPOSITORY and len(made["weights"]) == 64
    assert (repository["files"], repository["bytes"]) == (2, len(TEXT) + len(CODE[0]))
    assert len(repository["fingerprint"]) == 12
    length = language_model.LENGTH
    model = completer.model
    nats = sum(float(token_nats(model, row, length, length // 2).double().sum()) for row in ids["repository"].values())
    assert repository["overall"] == pytest.approx(nats / 0.6931471805599453 / repository["bytes"])
    assert set(repository["modules"]) == {"r.py", "s.py"} and len(repository["interval"]) == 2
    assert f"{repository['overall']:.3f} bits per byte" in elsewhere.line([made])
    json.dumps(made, allow_nan=False)


def test_names_are_completed_as_the_methods_do_one_by_one(small, made):
    completer, texts, _ = small
    places = draw_names(texts["repository"], seed=0)

    def model_words(text):
        return [found.text for found in completer.complete(text, number=code_completion.LISTED)]

    def file_words(text):
        return words_in_file(text)[: code_completion.LISTED]

    first = made["repository"]["names"]
    for part, method in zip(code_completion.PARTS, (model_words, combined(model_words, file_words))):
        for typed in code_baselines.TYPED:
            ranks = ranks_of(method, texts["repository"], places, typed)
            assert first[part][str(typed)]["ranks"] == "".join(map(str, ranks)), (part, typed)
    alone = ranks_of(file_words, texts["repository"], places, 1)
    ours = first[code_completion.PARTS[0]]["1"]
    gain = sum(rank == "1" for rank in ours["ranks"]) - alone.count(1)
    assert ours["ahead"]["top 1"][0] == pytest.approx(gain / len(places), abs=1e-4) and gain != 0


def test_the_library_s_rows_have_windows_and_names_and_nothing_else(small):
    run = code_completion.run("attention", 0, None)
    assert set(run["test"]) == {"names", "windows"} and "repository" not in run
    assert set(run["test"]["windows"]) == {str(length) for length in code_completion.WINDOWS}
    assert "first" in code_completion.line([run])


# The committed file.


@pytest.fixture(scope="module")
def runs():
    return read_runs("code_elsewhere")


def test_the_rows_are_of_committed_models_as_they_would_be_made_now(runs, root):
    assert [(run["model"], run["seed"]) for run in runs] == [("attention", seed) for seed in range(len(runs))] != []
    baselines = read_runs("code_baselines")
    for run in runs:
        assert run["settings"] == find_set("code_elsewhere").settings() and run["commit"] == code_data.REPOSITORY
        assert run["weights"] == code_completion.weights_of(code_completion.folder_of(run["seed"]))
        scored = run["repository"]
        for other in baselines:                                            # the same text, so that figures can be compared
            assert all(scored[what] == other["repository"][what] for what in ("files", "bytes", "fingerprint"))
        assert len(scored["modules"]) == scored["files"]
        assert min(scored["modules"].values()) < scored["interval"][0] < scored["overall"] < scored["interval"][1]
