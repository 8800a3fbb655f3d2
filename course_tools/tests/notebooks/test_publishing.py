"""What publishes the course and opens it elsewhere: workflows, Binder, Codespaces. Their files name what there is."""

import json
import os
import re

import pytest
import yaml

from course_tools.__main__ import COMMANDS as TOOLS
from course_tools.teaching.editions import HANDED_OUT
from course_utils.__main__ import COMMANDS
from course_utils.copies.hosted import BRANCH, HOSTED
from course_utils.files.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
START = "notebooks/my_copies/START.ipynb"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def steps(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def workflow(request) -> dict:
    return yaml.safe_load(request.param.read_text(encoding="utf-8"))


def test_a_workflow_runs_only_targets_and_commands_that_there_are(workflow):
    lines = [line for step in steps(workflow) for line in step.get("run", "").splitlines()]
    assert lines
    targets = set(re.findall(r"^([\w-]+)::?", read("Makefile") + read("course_tools/targets.mk"), re.M))
    assert {name for line in lines for name in re.findall(r"\bmake ([\w-]+)", line)} <= targets
    for program, commands in (("course_utils", COMMANDS), ("course_tools", TOOLS)):
        assert {name for line in lines for name in re.findall(rf"-m {program} ([\w-]+)", line)} <= set(commands)


def test_a_workflow_s_packages_are_kept_by_files_that_there_are(workflow):
    for step in steps(workflow):
        for name in step.get("with", {}).get("cache-dependency-path", "").split():
            assert (ROOT / name).is_file(), name


def test_a_workflow_may_read_and_every_job_has_an_end(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 90 and all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
                                                    for step in job["steps"] if "uses" in step), name


def test_only_what_publishes_may_write_and_only_what_it_publishes():
    jobs = yaml.safe_load(read(".github/workflows/publish.yml"))["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None, "site": {"pages": "write", "id-token": "write"}, "hosted": {"contents": "write"}}
    assert not any("checkout" in step.get("uses", "") or "course" in step.get("run", "").replace("copies", "")
                   for name in ("site", "hosted") for step in jobs[name]["steps"])      # these run no code of the course
    assert jobs["site"]["needs"] == jobs["hosted"]["needs"] == "build"


def test_what_is_published_is_what_the_commands_write_and_where_the_links_look():
    workflow = yaml.safe_load(read(".github/workflows/publish.yml"))
    paths = {step["with"]["path"] for step in steps(workflow) if "upload" in step.get("uses", "")}
    assert paths == {"outputs/site", "outputs/hosted"}
    push = next(step["run"] for step in steps(workflow) if "git push" in step.get("run", ""))
    assert f"--initial-branch {HOSTED}\n" in push and re.search(rf"git push .* {HOSTED}$", push.strip())
    when = workflow[True]["workflow_run"]                       # YAML reads the key 'on' as true
    assert when["branches"] == [BRANCH]
    assert when["workflows"] == [yaml.safe_load(read(".github/workflows/tests.yml"))["name"]]


def test_every_push_builds_the_site_and_opens_that_site_in_a_browser():
    workflow = yaml.safe_load(read(".github/workflows/tests.yml"))
    assert workflow[True]["push"] is None and workflow[True]["pull_request"] is None         # of any branch
    (job,) = [job for job in workflow["jobs"].values() if "make test-browser" in str(job["steps"])]
    assert "if" not in job and "continue-on-error" not in job
    built, kept, opened = (next(k for k, step in enumerate(job["steps"]) if wanted in step.get("run", step.get("uses", "")))
                           for wanted in ("make site", "upload-artifact", "make test-browser"))
    assert built < kept < opened
    folder = job["steps"][kept]["with"]["path"]
    assert folder == job["steps"][opened]["env"]["COURSE_SITE"] == "outputs/site"
    assert 'os.environ.get("COURSE_SITE")' in read("course_tools/tests/browser/conftest.py")


def test_codespaces_uses_the_course_s_own_set_up_and_opens_start():
    settings = json.loads(read(".devcontainer/devcontainer.json"))
    begins, copies = settings["postCreateCommand"].split(" && ")
    assert (ROOT / begins.removeprefix("sh ")).is_file() and copies.endswith("-m course_utils copy")
    assert settings["customizations"]["codespaces"]["openFiles"] == [START]
    assert wanted_python() <= tuple(map(int, settings["image"].rpartition(":")[2].split(".")))


def test_binder_installs_the_build_for_the_cpu_and_opens_start():
    script = read(".binder/postBuild")
    assert os.access(ROOT / ".binder" / "postBuild", os.X_OK) or os.name == "nt"
    assert [name for name in re.findall(r"\.\w+/[\w.-]+\.\w+", script) if not (ROOT / name).is_file()] == []
    assert script.index("$(cat .ci/torch-cpu-index.txt)") < script.index("install -r requirements.txt -e .")
    page = f"/lab/tree/{START}"
    settings = json.loads(read(".binder/jupyter_config.json"))
    assert settings == {**{app: {"default_url": page} for app in ("LabApp", "ServerApp")},
                        "ContentsManager": {"hide_globs": ["__pycache__", "exercises"]}}
    assert page in read("Makefile")
    assert wanted_python() <= tuple(map(int, read(".binder/runtime.txt").strip().removeprefix("python-").split(".")))


def wanted_python() -> tuple[int, ...]:
    return tuple(map(int, re.search(r'requires-python = ">=([\d.]+)"', read("pyproject.toml"))[1].split(".")))


def test_an_edition_for_a_class_is_published_by_nobody():
    assert {".github", ".binder", ".devcontainer"} & set(HANDED_OUT) == set()
