# Read by setup.sh and lint.sh: `find_python` sets $python to a Python that is new enough, or ends with one line that says
# what is missing; `make_environment folder why` makes a virtual environment with it.
fit='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
    python=
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c "$fit" >/dev/null 2>&1; then python=$name; return; fi
    done
    found=$("${PYTHON:-python3}" --version 2>&1 | head -n 1)
    fail "the course needs Python 3.11 or newer, found '${found:-none}'; install one, or name it: make PYTHON=/path/to/python3.11 ..."
}

make_environment() {
    find_python
    rm -rf "$1"
    "$python" -c "import venv, ensurepip" 2>/dev/null ||
        fail "$("$python" --version) has no venv module; on Debian or Ubuntu: sudo apt install python3-venv"
    echo "setup: making $1 with $("$python" --version) ($2)"
    "$python" -m venv "$1" || fail "could not make $1; is the disk full or the folder read-only?"
}

fail() { echo "setup: $*" >&2; exit 1; }
