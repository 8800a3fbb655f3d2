"""Kernels of tests and tools talk over files that nobody else can take, and leave none behind."""

import os

import nbformat
import pytest
from nbclient import NotebookClient

from course_utils.copies import notebooks
from course_utils.copies.notebooks import AsyncKernelOverFiles, KernelOverFiles

posix = pytest.mark.skipif(os.name != "posix", reason="this system has no Unix sockets")


@posix
def test_each_kernel_has_its_own_files_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "jupyter_runtime_dir", lambda: "/tmp/" + tmp_path.name[:20] + str(os.getpid()))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(6 * 7)", id="it")])
    clients = [NotebookClient(notebook, kernel_manager_class=AsyncKernelOverFiles, kernel_name="python3") for _ in range(2)]
    files = [client.create_kernel_manager().connection_file for client in clients]
    folder = os.path.dirname(files[0])
    assert len(set(files)) == 2 and os.listdir(folder) == []
    clients[0].km = None
    clients[0].execute()
    assert notebook.cells[0].outputs[0].text == "42\n"
    assert os.listdir(folder) == []
    os.rmdir(folder)


@posix
def test_a_kernel_listens_on_its_files(tmp_path, monkeypatch):
    manager = KernelOverFiles(kernel_name="python3")
    manager.start_kernel()
    try:
        assert manager.transport == "ipc" and manager.ip.startswith(os.path.splitext(manager.connection_file)[0])
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=120)
        assert all(os.path.exists(f"{manager.ip}-{number}") for number in manager.ports)
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)
    assert not os.path.exists(manager.connection_file)
    assert not any(os.path.exists(f"{manager.ip}-{number}") for number in manager.ports)


def test_where_the_path_is_too_long_for_a_socket_ports_are_used(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "jupyter_runtime_dir", lambda: str(tmp_path / ("a" * 90)))
    assert KernelOverFiles().transport == "tcp"
