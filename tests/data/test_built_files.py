"""The builders' command writes files, says which differ, and writes nothing while it checks."""

from course_utils.files.built_files import write_or_check


def test_it_writes_and_checks(tmp_path, capsys):
    def build():
        return {"a.jsonl": "1\n", "SAMPLES.md": "é\n"}

    assert write_or_check(build, tmp_path, "", ["--check"]) == 1 and not list(tmp_path.iterdir())
    assert write_or_check(build, tmp_path, "", []) == 0 and write_or_check(build, tmp_path, "", ["--check"]) == 0
    (tmp_path / "a.jsonl").write_bytes(b"1\r\n")
    capsys.readouterr()
    assert write_or_check(build, tmp_path, "", ["--check"]) == 1
    said = capsys.readouterr().out
    assert "a.jsonl differs" in said and f"run python data/{tmp_path.name}/build.py" in said and "SAMPLES" not in said
    assert (tmp_path / "a.jsonl").read_bytes() == b"1\r\n"
