#!/usr/bin/env bash
# Install Horovod for the TensorFlow of an environment; its wheel is built once, and kept in pip's cache: horovod.sh PYTHON [--if-kept]
#
# --if-kept: build nothing; without a wheel for this TensorFlow, take away a Horovod that was built for another.
# Gloo only, no MPI, no GPU: our ranks give it the rendezvous that MPI would. TensorFlow 2.21 keeps some headers in include/external, and
# has moved one that a source file for GPUs includes: an empty file of that name is enough. Some 8 minutes on one core.
set -euo pipefail

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
horovod=0.28.1
tensorflow=$("$python" -c 'from importlib.metadata import distributions as all
print(next(d.version for d in all() if d.name.replace("_", "-") in ("tensorflow", "tensorflow-cpu")))')
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
cache=$("$python" -m pip cache dir 2>/dev/null) || cache=${XDG_CACHE_HOME:-$HOME/.cache}
kept=$cache/trainsim/tensorflow-$tensorflow # pip's own cache of wheels does not tell them apart by TensorFlow, to which the library is tied
log=$kept/build.log

refuse() { echo "horovod.sh: no Horovod, its tests are skipped: $1" >&2; exit 1; }
wheel() { compgen -G "$kept/horovod-$horovod-$tag-*.whl"; }
pip() { "$python" -m pip --disable-pip-version-check "$@"; }

why() { grep -m1 -E 'CMake Error|: (fatal )?error:' "$log" | sed 's/^ *//' || tail -1 "$log"; }

build() {
    command -v g++ >/dev/null || refuse 'g++ is needed to build it'
    mkdir -p "$kept"
    scratch=$(mktemp -d "$kept/building.XXXX")
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$scratch/tensorflow/compiler/xla/client"
    : >"$scratch/tensorflow/compiler/xla/client/xla_builder.h"
    echo "Building Horovod $horovod for TensorFlow $tensorflow, some 8 minutes on one core; $log says how far it is"
    compile "$("$python" -c 'from importlib.util import find_spec; print(find_spec("tensorflow").submodule_search_locations[0])')/include" \
        >"$log" 2>&1 || refuse "$(why) ($log)"
    mv "$scratch"/horovod-*.whl "$kept"
}

compile() {
    pip install 'setuptools<70' wheel 'cmake>=3.13,<4' cloudpickle psutil pyyaml packaging cffi &&
        PATH=$(dirname "$python"):$PATH MAKEFLAGS=-j$(nproc) \
        HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
        CXXFLAGS="-I$scratch -isystem $1/external/highwayhash -isystem $1/external/farmhash_archive/src" \
            pip wheel --no-cache-dir --no-build-isolation --no-deps --no-binary horovod -w "$scratch" "horovod==$horovod"
}

if ! wheel >/dev/null; then
    [[ ${2:-} != --if-kept ]] || { pip uninstall --quiet --yes horovod 2>/dev/null; exit; }
    build
fi
pip install --quiet --force-reinstall --no-deps "$(wheel)" # one of this version may be there that another TensorFlow's headers made
pip install --quiet "$(wheel)"
