#!/usr/bin/env bash
# Build Horovod's wheel for the TensorFlow of an environment, unless it was built before: horovod_wheel.sh PYTHON WHEELS
#
# Gloo only, no MPI, no GPU: our ranks give it the rendezvous that MPI would. TensorFlow 2.21 keeps some headers in include/external, and
# has moved one that a source file for GPUs includes: an empty file of that name is enough. Some 8 minutes on one core.
set -euo pipefail

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
wheels=$(mkdir -p "$2" && cd "$2" && pwd)
horovod=0.28.1
tensorflow=$("$python" -c 'from importlib.metadata import distributions as all
print(next(d.version for d in all() if d.name.replace("_", "-") in ("tensorflow", "tensorflow-cpu")))')
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
kept=$wheels/tensorflow-$tensorflow # its library is tied to TensorFlow's

built() { compgen -G "$kept/horovod-$horovod-$tag-*.whl"; } # its name, for who installs it
built && exit
command -v g++ >/dev/null || { echo 'horovod_wheel.sh: g++ is needed to build Horovod' >&2; exit 1; }

"$python" -m pip install --quiet 'setuptools<70' wheel 'cmake>=3.13,<4' cloudpickle psutil pyyaml packaging cffi >&2
include=$("$python" -c 'from importlib.util import find_spec; print(find_spec("tensorflow").submodule_search_locations[0])')/include
shim=$(mktemp -d)
trap 'rm -rf "$shim"' EXIT
mkdir -p "$shim/tensorflow/compiler/xla/client"
: >"$shim/tensorflow/compiler/xla/client/xla_builder.h"

echo "Building Horovod $horovod for TensorFlow $tensorflow: some 8 minutes on one core" >&2
export MAKEFLAGS=${MAKEFLAGS:--j$(nproc)}
PATH=$(dirname "$python"):$PATH \
HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
CXXFLAGS="-I$shim -isystem $include/external/highwayhash -isystem $include/external/farmhash_archive/src" \
    "$python" -m pip wheel --no-cache-dir --no-build-isolation --no-deps --no-binary horovod -w "$kept" "horovod==$horovod" >&2
built
