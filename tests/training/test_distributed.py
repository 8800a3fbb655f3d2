"""One training in several processes: the same result as one, and an orderly end. torchrun starts two real ones here."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from command_line import TINY, in_a_folder_with_reviews
from torch.distributed.run import get_args_parser
from toy_reviews import QUIET, toy_model, toy_reviews
from two_processes import cases, go_on, in_float64, one_step

from course_tools.studies.command import main as results_command
from course_utils.classifier import ReviewClassifier
from course_utils.data import DataNotAvailable, load_reviews
from course_utils.files.paths import ROOT
from course_utils.training import distributed, epochs_in, fit, processes
from course_utils.training.distributed import ENDED
from course_utils.training.processes import CannotTrainTogether, NothingCounts, part_of

__all__ = ["in_a_folder_with_reviews"]                  # pytest runs it around each test here
SCRIPT = Path(__file__).with_name("two_processes.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def start(*arguments, number=2, cwd=None, package=ROOT, **variables):
    """torchrun on this machine; the tests' helpers can be imported, and one thread is enough for a process."""
    paths = os.pathsep.join(map(str, (package, ROOT / "tests" / "helpers", Path(__file__).parent)))
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | variables
    return subprocess.Popen([*TORCHRUN, "--standalone", "--nproc-per-node", str(number), *map(str, arguments)],
                            cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# parts, without a second process

@pytest.fixture
def float64(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.float)         # so that it comes back after the test
    in_float64()


@pytest.mark.parametrize("of", [2, 3])
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case[0])
def test_parts_make_up_the_batch_and_its_gradient(case, of, float64):
    _, batch, model, loss_of = case
    _, items, expected = one_step(batch, model, loss_of)
    total, counted = torch.zeros_like(expected), 0
    for rank in range(of):
        part = part_of(batch, rank, of)
        if len(part if isinstance(part, torch.Tensor) else part[0]):
            try:
                _, number, gradient = one_step(part, model, loss_of)
            except NothingCounts:
                continue
            total, counted = total + gradient * number / items, counted + number
    assert counted == items
    assert torch.allclose(total, expected, rtol=0, atol=1e-10)


def test_fit_without_torchrun_never_touches_torch_distributed(monkeypatch):
    def touched(*arguments, **settings):
        raise AssertionError("torch.distributed was used")

    for module in (torch.distributed, torch.distributed.distributed_c10d):
        for name in ("init_process_group", "is_initialized", "get_rank", "get_world_size", "all_reduce", "broadcast",
                     "all_gather_object", "broadcast_object_list", "barrier", "is_torchelastic_launched"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, touched)
    monkeypatch.setattr(torch.nn.parallel, "DistributedDataParallel", touched)
    assert fit(toy_model(), toy_reviews(16), toy_reviews(16), epochs=1, **QUIET).best_epoch == 1
    loaded = "import sys, course_utils.recipes; print('course_utils.training.distributed' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False\n"


def test_without_torchrun_this_process_is_the_only_one():
    together = processes.here()
    assert together.is_first and (together.rank, together.number) == (0, 1) and together.first(max, 3, 2) == 3


def test_the_results_runner_refuses_torchrun(monkeypatch, capsys):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    for rank, lines in (("0", 2), ("1", 0)):
        monkeypatch.setenv("RANK", rank)
        assert results_command(["ablations"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == lines


# two processes

@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each process of one start of two_processes.py found, and the folder."""
    folder = tmp_path_factory.mktemp("found")
    running = start(SCRIPT, folder)
    _, complaint = running.communicate(timeout=540)
    assert running.returncode == 0, complaint
    return [json.loads((folder / f"found-{rank}.json").read_text()) for rank in (0, 1)], folder


@pytest.mark.slow
def test_the_gradient_is_that_of_one_process(found):
    for one in found[0]:
        assert one["processes"] == 2 and len(one["gradients"]) == 12
        assert "nothing to learn from" in one["gradients"].pop("nothing at all")
        for name, seen in one["gradients"].items():
            assert seen["items"] and seen["loss"] < 1e-10 and seen["gradient"] < 1e-10 < 1e-3 < seen["size"], name


@pytest.mark.slow
def test_a_whole_training_comes_out_as_in_one_process(found):
    for one in found[0]:
        seen = one["trainings"]
        other = seen.pop("float64, dropout, one process")
        assert all(same["best"][0] == same["best"][1] for same in seen.values())
        assert seen["float32, no dropout"]["logits"] < 1e-4
        for name in ("float64, no dropout", "float64, dropout, parts in turn"):
            assert seen[name]["logits"] < 1e-8 and seen[name]["weights"] < 1e-8 and seen[name]["train_loss"] < 1e-8
        assert other["weights"] > 1e-3                                     # other dropout: another training


@pytest.mark.slow
def test_an_error_of_the_first_process_is_raised_in_both_and_only_it_validates_and_writes(found):
    (first, second), folder = found
    assert first["stopped"] == {"error": "epoch 3 is enough", "called": 3}
    assert second["stopped"] == {"error": "epoch 3 is enough", "called": 0}
    assert {path.name for path in folder.glob("state*")} == {"state-0"} and epochs_in(folder / "state-0") == 2
    assert first["other data"] == "process 1 trains with other data than process 0; give all the same files and the same " \
                                  "version of the course"


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_a_checkpoint_goes_on_with_another_number_of_processes(number, found, float64, tmp_path):
    whole = go_on(tmp_path / "whole")
    (tmp_path / "state").write_bytes((found[1] / "state-0").read_bytes())
    if number == 1:
        other = go_on(tmp_path / "state")
    else:
        running = start(SCRIPT, tmp_path, tmp_path / "state", number=number)
        assert running.wait(timeout=300) == 0, running.communicate()
        other = json.loads((tmp_path / "found-0.json").read_text())["gone on"]
    assert other["called"] == 2 and other["best"] == whole["best"]
    assert other["weights"] == pytest.approx(whole["weights"], abs=1e-8)


# the command

MANY = [setting for setting in TINY if not setting.startswith("epochs")] + ["epochs=100000", "dropout=0"]


def train(*arguments, settings=TINY):
    return ["-m", "course_utils", "train", *arguments, *(part for setting in settings for part in ("--set", setting))]


@pytest.mark.slow
def test_train_writes_and_says_once_what_one_process_would():
    running = start(*train("good.csv", "two", settings=[*TINY, "dropout=0", "word_dropout=0"]))
    printed, complaint = running.communicate(timeout=300)
    assert running.returncode == 0, complaint
    assert printed.count("validation accuracy") == 1 and printed.count("saved in two") == 1 and complaint == ""
    alone = subprocess.run([sys.executable, *train("good.csv", "one", settings=[*TINY, "dropout=0", "word_dropout=0"])],
                           env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    one, two = (json.loads(Path(name, "result.json").read_text()) for name in ("one", "two"))
    assert (one.pop("processes"), two.pop("processes")) == (1, 2)
    assert one | {"seconds": 0} == two | {"seconds": 0} and alone.stderr == ""
    texts = ["a moving film", "its end is dull"]
    assert torch.allclose(*(ReviewClassifier.load(name).predict(texts)[1] for name in ("one", "two")), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "message"), [
    (["no-such-file.csv", "out"], "no-such-file.csv"),
    (["good.csv", "out", "--set", "layers=2"], "layers=2: expected NAME=VALUE"),
])
def test_a_wrong_argument_is_one_line_of_the_first_process(arguments, message):
    running = start("-m", "course_utils", "train", *arguments)
    _, complaint = running.communicate(timeout=300)
    assert running.returncode != 0
    (said,) = [line for line in complaint.splitlines() if line.startswith("python -m course_utils")]
    assert message in said


def workers(running) -> list[psutil.Process]:
    """The processes that torchrun has started, in the order of their ranks."""
    children = psutil.Process(running.pid).children(recursive=True)
    return sorted((child for child in children if "RANK" in child.environ()), key=lambda child: child.environ()["RANK"])


def clear(*torchruns):
    """Kill what a failed test has left."""
    for running in torchruns:
        if running.poll() is None:
            for process in (*psutil.Process(running.pid).children(recursive=True), running):
                process.kill()


def started_training(*torchruns, folder="out"):
    """Wait until the first epoch is saved; all workers."""
    until = time.monotonic() + 300
    while not Path(folder, "training_state.safetensors").exists():
        assert all(running.poll() is None for running in torchruns) and time.monotonic() < until
        time.sleep(0.05)
    return [worker for running in torchruns for worker in workers(running)]


def is_alive(pid: int) -> bool:
    """A process that has ended and waits for its parent, or for a container's, to ask for its exit status isn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def said_by_the_course(complaint: str) -> list[str]:
    """Lines of the course's message: what stands before and after it is torchrun's."""
    return [line for line in complaint.splitlines() if re.search("course_utils train: error|stopped;|and the same command|"
                                                                 "The same command", line)]


def assert_orderly_end(torchruns, pids, begun, folder="out"):
    """All have ended in time, one message, nothing half, no lock; a plain run goes on from the checkpoint."""
    complaints = [running.communicate(timeout=90)[1] for running in torchruns]
    while any(is_alive(pid) for pid in pids) and time.monotonic() - begun < 60:
        time.sleep(0.1)
    assert time.monotonic() - begun < 60 and all(running.returncode != 0 for running in torchruns)
    left = {path.name for path in Path(folder).iterdir()}
    assert left <= {"training_state.safetensors", ".lock"}, left
    assert epochs_in(Path(folder, "training_state.safetensors")) >= 1
    return complaints


def kill_at_random(number, draw):
    """Kill a process at a random moment after the first epoch; what was said."""
    running = start(*train("good.csv", "out", settings=MANY))
    try:
        all_of_them = started_training(running)
        pids = [worker.pid for worker in all_of_them]
        assert len(pids) == 2
        time.sleep(draw.uniform(0, 2))
        begun = time.monotonic()
        os.kill(pids[number], signal.SIGKILL)
        (complaint,) = assert_orderly_end([running], pids, begun)
    finally:
        clear(running)
    return complaint


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(int(os.environ.get("COURSE_KILLS", "3"))))
def test_when_a_process_is_killed_all_end_with_one_message(kill):
    draw = random.Random(kill)
    said = said_by_the_course(kill_at_random(draw.randrange(2), draw))
    assert len(said) == 2 and ENDED in said[0], said
    assert re.search(r"\d+ epochs? (is|are) saved, and the same command continues from there", said[1])
    state = Path("out/training_state.safetensors")
    done = subprocess.Popen([sys.executable, *train("good.csv", "out", settings=MANY)], stderr=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONPATH": str(ROOT)})
    before = epochs_in(state)
    while epochs_in(state) <= before and done.poll() is None:
        time.sleep(0.05)
    done.send_signal(signal.SIGINT)
    assert "anew" not in done.communicate(timeout=60)[1] and done.returncode == 130


@pytest.mark.slow
def test_ctrl_c_ends_all_with_one_message():
    running = start(*train("good.csv", "out", settings=MANY))
    try:
        pids, begun = [worker.pid for worker in started_training(running)], time.monotonic()
        running.send_signal(signal.SIGINT)
        (complaint,) = assert_orderly_end([running], pids, begun)
    finally:
        clear(running)
    (said,) = said_by_the_course(complaint)
    assert re.fullmatch(r"stopped; \d+ epochs? (is|are) saved, and the same command continues from there", said)


@pytest.mark.slow
def test_when_torchrun_itself_is_killed_its_processes_end():
    running = start(*train("good.csv", "out", settings=MANY))
    pids, begun = [worker.pid for worker in started_training(running)], time.monotonic()
    running.kill()
    assert_orderly_end([running], pids, begun)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_two_nodes_on_loopback_train_and_end_together(killed):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nodes = []
    for _ in range(2):
        command = [*TORCHRUN, "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "course",
                   "--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1"]
        nodes.append(subprocess.Popen(
            [*command, *train("good.csv", "out", settings=MANY)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}))
    try:
        all_of_them = sorted(started_training(*nodes), key=lambda worker: worker.environ()["RANK"])
        pids, begun = [worker.pid for worker in all_of_them], time.monotonic() + 2
        assert len(pids) == 2
        time.sleep(random.uniform(0, 2))
        os.kill(pids[killed], signal.SIGKILL)
        complaints = assert_orderly_end(nodes, pids, begun)
    finally:
        clear(*nodes)
    said = said_by_the_course("\n".join(complaints))
    assert len(said) == 2 and ENDED in said[0], said


@pytest.mark.slow
def test_imdb_trains_in_two_processes_and_its_results_say_so(tmp_path):
    """On a few of the course's reviews, in a copy of the package, since the command writes beside it."""
    shutil.copytree(ROOT / "course_utils", tmp_path / "course_utils", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("results", "checkpoints", "imdb/plain_text"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    (tmp_path / "data" / "handwritten.jsonl").symlink_to(ROOT / "data" / "handwritten.jsonl")
    reviews = load_reviews("reviews")
    for split, number in (("train", 200), ("test", 50)):
        some = reviews[split].select(range(number)).select_columns(["text", "label"])
        some.to_parquet(tmp_path / "data" / "imdb" / "plain_text" / f"{split}-00000-of-00001.parquet")
    running = start("-m", "course_utils", "imdb", "--seeds", "0", "--output", "out", cwd=tmp_path, package=tmp_path,
                    COURSE_DATA=str(tmp_path / "data"))
    printed, complaint = running.communicate(timeout=300)
    assert running.returncode == 0, complaint
    runs = json.loads((tmp_path / "data" / "results" / "imdb.json").read_text())
    assert [run["processes"] for run in runs] == [1, 1, 2] and printed.count("attention classifier") == 1
    assert {path.name for path in (tmp_path / "out").rglob("*")} == {".lock", "attention classifier, seed 0",
                                                                     "model.safetensors"}


@pytest.mark.parametrize(("device", "cards", "message"), [
    ("cuda", 1, "graphics cards on this machine: 1, processes: 2; start"),
    ("mps", 0, "Apple's chip; set COURSE_DEVICE=cpu"),
])
def test_processes_that_cannot_have_a_device_each_are_refused(device, cards, message, monkeypatch):
    monkeypatch.setattr(distributed, "fastest_device", lambda: torch.device(device))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    with pytest.raises(CannotTrainTogether, match=message):
        distributed._device(2)


def test_only_errors_of_the_wire_mean_that_another_process_has_ended():
    wire = [RuntimeError("[../gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:5"),
            torch.distributed.DistBackendError("the NCCL communicator was aborted")]
    others = [RuntimeError("the size of tensor a (3) must match"), DataNotAvailable("no connection to the hub")]
    assert [distributed._is_of_the_wire(error) for error in (*wire, *others)] == [True, True, False, False]


# the page about it

def test_torchrun_knows_the_options_of_every_command_on_the_page():
    page = (ROOT / "notebooks" / "several_processes.md").read_text(encoding="utf-8").replace('"', "")
    lines = re.findall(r"^.*\.venv/bin/torchrun (.+)$", page, re.M)
    assert len(lines) == 3
    for line in lines:
        line = line.replace("$SLURM_CPUS_PER_TASK", "4").replace("$SLURM_NNODES", "2")
        read = get_args_parser().parse_args(line.split())
        assert read.training_script == "course_utils" and read.module and read.training_script_args[0] == "train"


def test_the_page_quotes_what_is_said():
    page = (ROOT / "notebooks" / "several_processes.md").read_text(encoding="utf-8")
    assert f"python -m course_utils train: error: {ENDED}.\n2 epochs are saved, and the same command continues" in page
