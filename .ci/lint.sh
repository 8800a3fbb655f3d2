#!/bin/sh
# Run ruff: that of .venv if there is one, else one of its own in .venv-lint, which takes seconds and needs no torch.
cd "$(dirname "$0")/.." || exit 1
. .ci/python.sh

python=.venv/bin/python
if ! "$python" -m ruff --version >/dev/null 2>&1; then
    python=.venv-lint/bin/python
    if ! "$python" -m ruff --version >/dev/null 2>&1; then
        make_environment .venv-lint "once; a few seconds"
        python=.venv-lint/bin/python
        "$python" -m pip install --disable-pip-version-check --quiet --retries 1 --timeout 10 "$(grep '^ruff' requirements.txt)" \
            >.venv-lint/install.log 2>&1 ||
            fail "ruff cannot be installed; is there a network? (pip's words are in .venv-lint/install.log)"
    fi
fi
exec "$python" -m ruff check "${@:-.}"
