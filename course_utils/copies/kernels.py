"""Kernels that talk over files instead of ports, so that many can start at once.

jupyter_client looks for five free ports, lets go of them and hands their numbers to the kernel, which opens them
most of a second later; where several kernels start side by side, another process sometimes has one of them by then, and
the kernel dies with "Address already in use". Unix sockets have names that nobody else can take.
"""

import os
from uuid import uuid4

from jupyter_client.manager import AsyncKernelManager, KernelManager
from jupyter_core.paths import jupyter_runtime_dir

LONGEST = 100                                             # bytes in a Unix socket's path; systems allow 103 or 107


class _OverFiles:
    """A kernel manager whose kernel listens on Unix sockets, where the system has them and their path isn't too long."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        file = os.path.join(jupyter_runtime_dir(), f"kernel-{uuid4().hex[:16]}.json")
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        if os.name == "posix" and len(os.fsencode(file)) + len("-ipc-5") <= LONGEST:
            self.transport, self.connection_file = "ipc", file


class KernelOverFiles(_OverFiles, KernelManager):
    """`jupyter_client.KernelManager` over Unix sockets."""


class AsyncKernelOverFiles(_OverFiles, AsyncKernelManager):
    """`jupyter_client.AsyncKernelManager` over Unix sockets; nbclient's `kernel_manager_class`."""
