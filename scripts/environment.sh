# Sourced by the other scripts: makes .venv once and installs pinned requirements into it.
# Use another Python with PYTHON=python3.12, another place with ANOMPROF_VENV=/somewhere.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${ANOMPROF_VENV:-$root/.venv}

# prepare FILE: installs what FILE lists, unless exactly that is installed already.
prepare() {
    local requirements=$1
    local stamp="$venv/.installed-${requirements%.txt}"
    local wanted
    wanted=$(cat "$root/requirements.txt" "$root/$requirements" "$root/pyproject.toml" | cksum)
    if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    local python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'; then
        echo "anomprof needs Python 3.10 to 3.13, and $python is $("$python" -V 2>&1); name another with PYTHON=..." >&2
        exit 2
    fi
    echo "setting up $venv (once; downloads torch unless pip has it already)" >&2
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" || exit 3
    # torch alone and first: whatever comes later finds it and looks for no other build.
    "$venv/bin/python" -m pip install -q -q --disable-pip-version-check \
        "$(grep '^torch==' "$root/requirements.txt")" >&2 || exit 3
    "$venv/bin/python" -m pip install -q -q --disable-pip-version-check \
        -r "$root/$requirements" >&2 || exit 3
    "$venv/bin/python" -m pip install -q -q --disable-pip-version-check --no-deps --editable "$root" >&2 || exit 3
    echo "$wanted" > "$stamp"
}
