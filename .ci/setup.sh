#!/bin/sh
# Make .venv from requirements.txt if it is missing or stale; say in one line what is wrong if it cannot be made.
cd "$(dirname "$0")/.." || exit 1
fail() { echo "setup: $*" >&2; exit 1; }

wanted=$(cat requirements.txt pyproject.toml | cksum)
if [ -x .venv/bin/python ] && [ "$(cat .venv/.ready 2>/dev/null)" = "$wanted" ] && .venv/bin/python -c "" 2>/dev/null; then
    exit 0
fi

fit='import sys; sys.exit(sys.version_info < (3, 11))'
python=
for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if command -v "$name" >/dev/null 2>&1 && "$name" -c "$fit" >/dev/null 2>&1; then python=$name; break; fi
done
if [ -z "$python" ]; then
    found=$("${PYTHON:-python3}" --version 2>&1 | head -n 1)
    fail "the course needs Python 3.11 or newer, found '${found:-none}'; install one, or name it: make PYTHON=/path/to/python3.11 ..."
fi

# a stale environment is brought up to date where it can be; one that does not run is made anew
if ! { [ -x .venv/bin/python ] && .venv/bin/python -c "$fit" 2>/dev/null && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    rm -rf .venv
    "$python" -c "import venv, ensurepip" 2>/dev/null ||
        fail "$("$python" --version) has no venv module; on Debian or Ubuntu: sudo apt install python3-venv"
    echo "setup: making .venv with $("$python" --version) (once; a few minutes)"
    "$python" -m venv .venv || fail "could not make .venv; is the disk full or the folder read-only?"
fi
rm -f .venv/.ready
log=.venv/install.log
echo "setup: installing requirements.txt"
.venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt -e . >"$log" 2>&1 ||
    fail "installing failed: $(grep -i '^error' "$log" | tail -n 1) (all of it is in $log); run the same command again when mended"
.venv/bin/python -c "import torch, course_utils" 2>>"$log" || fail "the installed packages do not import: $(tail -n 1 "$log")"
echo "$wanted" >.venv/.ready
