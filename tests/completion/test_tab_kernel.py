"""Tab in a real kernel, asked over its protocol as JupyterLab asks."""

import os

import pytest
from small_code_models import counted

from course_utils.copies.notebooks import KernelOverFiles
from course_utils.files.paths import ROOT


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    counted().save(path)
    return path


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))}
    manager = KernelOverFiles(kernel_name="python3")
    manager.start_kernel(env=environment)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def tab(kernel, cell):
    """(matches, types by match, start, end) of what JupyterLab would show."""
    reply = kernel.complete(cell, len(cell), reply=True, timeout=60)["content"]
    assert reply["status"] == "ok"
    shown = reply["metadata"]["_jupyter_types_experimental"]
    assert [one["text"] for one in shown] == reply["matches"]
    return reply["matches"], {one["text"]: one["type"] for one in shown}, reply["cursor_start"], reply["cursor_end"]


def printed(kernel, code):
    """What a cell prints, on either stream, its error included."""
    said = []

    def collect(message):
        content = message["content"]
        said.append(content.get("text") or "\n".join(content.get("traceback", [])))

    reply = kernel.execute_interactive(code, output_hook=collect, timeout=120)
    assert reply["content"]["status"] == "ok", said
    return "".join(said)


def test_tab_in_a_kernel_from_activate_to_deactivate(kernel, folder, tmp_path):
    assert printed(kernel, "value_here = 3; import os, sys; from course_utils.completion import activate, deactivate") == ""
    usual = tab(kernel, "for val")
    said = printed(kernel, f"activate({str(tmp_path / 'no')!r})")
    assert said.startswith("Tab stays as it is, without the model: there is no model in") and tab(kernel, "for val") == usual

    assert printed(kernel, f"activate({str(folder)!r}); activate({str(folder)!r})").startswith("Tab now shows")
    matches, types, start, end = tab(kernel, "for val")
    assert (start, end) == (4, 7) and set(usual[0]) <= set(matches) and "value_here" in usual[0]
    names = [match for match in matches if types[match].startswith("model ")]
    assert names[0] == "value" and int(types["value"].split()[1]) == 75
    assert types["value=None):"] == "model, line" and len(matches) == len(set(matches))
    assert all(types[match] == usual[1][match] for match in usual[0])

    assert types_of_model(tab(kernel, "# for val")) == types_of_model(tab(kernel, "'val")) == []
    assert tab(kernel, "print(os.pat")[2:] == (9, 12)
    assert "path" in tab(kernel, "print(os.pat")[0]
    assert printed(kernel, "1 + 1; print(len(In), 'x' in globals())").endswith(" False\n")

    assert printed(kernel, "deactivate(); deactivate()").startswith("Tab no longer asks the model")
    assert tab(kernel, "for val") == usual
    assert printed(kernel, "print(get_ipython().Completer.custom_matchers)") == "[]\n"


def types_of_model(found):
    return [mark for mark in found[1].values() if mark.startswith("model")]
