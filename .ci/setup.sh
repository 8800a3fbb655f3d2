#!/bin/sh
# Make .venv from requirements.txt if it is missing or stale; say in one line what is wrong if it cannot be made.
cd "$(dirname "$0")/.." || exit 1
. .ci/python.sh

wanted=$(cat requirements.txt pyproject.toml | cksum)
if [ -x .venv/bin/python ] && [ "$(cat .venv/.ready 2>/dev/null)" = "$wanted" ] && .venv/bin/python -c "" 2>/dev/null; then
    exit 0
fi

torch=$(grep '^torch==' requirements.txt)
if [ "$(uname -s)" = Darwin ] && [ "$(uname -m)" = x86_64 ]; then
    fail "PyTorch has no build for Macs with an Intel processor since version 2.3, and the course needs ${torch#torch==}; the
README says under 'Macs with an Intel processor' what you can do"
fi

# a stale environment is brought up to date where it can be; one that does not run is made anew
if ! { [ -x .venv/bin/python ] && .venv/bin/python -c "$fit" 2>/dev/null && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    make_environment .venv "once; a few minutes"
fi
rm -f .venv/.ready
log=.venv/install.log
: >"$log"
install() { .venv/bin/python .ci/install.py "$log" install --disable-pip-version-check "$@"; }

# On Linux the ordinary torch brings gigabytes of GPU libraries. Without a GPU the CPU build comes first, from the index that
# .ci/torch-cpu-index.txt names; where that index cannot be reached, the ordinary torch is installed below.
here=$(.venv/bin/python -c 'from importlib.metadata import version; print(version("torch").partition("+")[0])' 2>/dev/null)
if [ "$(uname -s)" = Linux ] && [ ! -e /dev/nvidiactl ] && [ ! -e /dev/kfd ] && [ "torch==$here" != "$torch" ]; then
    echo "setup: a download of about 430 MB, 1.8 GB on disk; PyTorch's build for the CPU is 190 MB of it"
    echo "setup: installing $torch for the CPU"
    install --timeout 5 --retries 0 --index-url "$(cat .ci/torch-cpu-index.txt)" "$torch" || echo "no CPU build" >>"$log"
elif [ "torch==$here" != "$torch" ]; then
    case $(uname -s) in
        Linux) echo "setup: a download of several GB, since this machine has a GPU: PyTorch's build for it is most of it" ;;
        *) echo "setup: a download of about 400 MB" ;;
    esac
fi
echo "setup: installing requirements.txt"
install -r requirements.txt -e . ||
    fail "installing failed: $(grep -i '^error' "$log" | tail -n 1) (all of it is in $log); run the same command again when mended"
.venv/bin/python -c "import torch, course_utils" 2>>"$log" || fail "the installed packages do not import: $(tail -n 1 "$log")"
echo "$wanted" >.venv/.ready
