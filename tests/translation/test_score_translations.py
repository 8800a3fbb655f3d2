"""`python -m course_utils translate --score ENGLISH FRENCH`: the scores of the library, and files that aren't pairs."""

import gzip

import pytest
from called import called

from course_utils.data.translations import load_translations
from course_utils.files.paths import CHECKPOINTS
from course_utils.translation import command as translate
from course_utils.translation.quality import quality, read_pairs

ENGLISH = ["The film was too long.", "The box was empty.", "The actress didn't laugh.", "They were tired."]


def run(arguments, capsys):
    return called(translate.main, arguments, capsys)


@pytest.fixture
def files(tmp_path):
    def write(english, french, ending=""):
        paths = tmp_path / f"pairs.en{ending}", tmp_path / f"pairs.fr{ending}"
        for path, lines in zip(paths, (english, french)):
            content = "".join(f"{line}\n" for line in lines).encode()
            path.write_bytes(gzip.compress(content) if ending else content)
        return paths
    return write


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_scores_are_those_of_the_library(files, capsys, ending):
    pairs = load_translations("translation")["test"].select(range(12))
    translator = translate.load_translator(CHECKPOINTS / "translation")
    english = list(pairs["source"])
    french = [f"{text} Oui." if i % 3 == 0 else text for i, text in enumerate(pairs["target"])]
    expected = quality(translator.translate(english, 2), french)
    status, printed, said = run(["--score", *files(english, french, ending), "--from", CHECKPOINTS / "translation",
                                 "--beam", 2], capsys)
    assert status == 0 and "model: data/checkpoints/translation" in said
    lines = printed.splitlines()
    for line, name in zip(lines, ("bleu", "chrf", "split_bleu")):
        assert line.endswith(f"{expected[name]['score']:.2f} ± {expected[name]['half']:.2f}")
        assert expected[name]["score"] > 20
    assert lines[-1] == f"chrF: {expected['chrf']['signature']}" and expected["bleu"]["signature"] in lines[-2]
    assert sum(int(line.split("words: ")[1].split()[0]) for line in lines if "words: " in line) == 12
    assert not any(word in printed for word in french[1].split() if len(word) > 4)             # no word of the texts


def test_what_is_not_a_list_of_pairs_is_refused_before_anything_is_loaded(files, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(translate, "load_translator", lambda folder: pytest.fail("loaded"))
    for english, french, message in ((ENGLISH, ENGLISH[:3], "has 4 lines, and .*has 3"),
                                     (ENGLISH[:1], ENGLISH[:1], "two or"),
                                     ([*ENGLISH[:2], " ", ENGLISH[3]], ENGLISH, "pairs.en: line 3 is empty")):
        paths = files(english, french)
        with pytest.raises(ValueError, match=message):
            read_pairs(*paths)
        assert run(["--score", *paths], capsys)[0] == 2
    english, french = files(ENGLISH, ENGLISH)
    status, _, said = run(["--score", english, french, "The box."], capsys)
    assert status == 2 and "leave out the texts" in said
    assert run(["--score", english, tmp_path / "nothing"], capsys)[0] == 2
    french.write_bytes("été".encode("latin-1"))
    with pytest.raises(ValueError, match="expected UTF-8 text"):
        read_pairs(english, french)
    english, french = files(ENGLISH, ENGLISH, ".gz")
    french.write_bytes(french.read_bytes()[:-6])
    with pytest.raises(ValueError, match="pairs.fr.gz can't be read"):
        read_pairs(english, french)
