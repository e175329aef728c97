# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A kernel in Python
#
# A notebook in the "percent" format: VS Code, Spyder and Jupyter with Jupytext open it as cells; `python kernel.py` runs it as a
# program. It offers a function in Python on a software device in this process, calls it by RDMA as any other, and plots
# the result and what the calls cost.

# %%
from __future__ import annotations

import sys
import time

import matplotlib

if "ipykernel" not in sys.modules:
    matplotlib.use("Agg")
import matplotlib.pyplot as plt
import nacelle
import numpy as np

# %% [markdown]
# The kernel gets the memory of the call: `parameters` as the caller has sent it, and `image`, which goes back. NumPy works on
# both in place.


# %%
@nacelle.kernel(
    code=100,
    regions=[("parameters", "in", "4 doubles: centre x, centre y, width, limit"), ("image", "out", "int32, a square")],
    errors={0x10: "the image is no square, or there are not 4 parameters"},
)
def mandelbrot(parameters: memoryview, image: memoryview, call: nacelle.KernelCall) -> None:
    """Counts for each pixel how long z = z^2 + c stays bounded."""
    pixels = np.frombuffer(image, np.int32)
    side = int(len(pixels) ** 0.5)
    if side * side != len(pixels) or parameters.nbytes != 32:
        raise nacelle.KernelFailure(0x10)
    x, y, width, limit = np.frombuffer(parameters)
    axis = np.linspace(-width / 2, width / 2, side)
    c = (x + axis)[np.newaxis, :] + 1j * (y + axis)[:, np.newaxis]
    z = np.zeros_like(c)
    counts = pixels.reshape(side, side)
    counts[:] = 0
    for _ in range(int(limit)):
        call.check()
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        counts += inside


# %% [markdown]
# The device is on the virtual wire of this machine; a `with` block would do as well.

# %%
soft = nacelle.SoftDevice([mandelbrot]).start()
device = nacelle.connect(soft.address)
print(device.functions["mandelbrot"])

# %%
image = np.empty((200, 200), np.int32)
device.mandelbrot(np.array([-0.75, 0.0, 3.0, 40]), out=image, timeout=60)

# %% [markdown]
# What does a call cost? A small one takes a round trip; a long one moves at the speed of the transport.

# %%
sizes = [1 << power for power in range(6, 21, 2)]
times = []
for size in sizes:
    with device.create("increment", np.zeros(size, np.uint8)) as call:
        each = []
        for _ in range(20):
            begin = time.perf_counter()
            call.invoke()
            call.wait()
            each.append(time.perf_counter() - begin)
        times.append(float(np.median(each)) * 1e6)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.imshow(image, extent=(-2.25, 0.75, -1.5, 1.5), cmap="magma")
left.set_title("mandelbrot: a kernel in Python")
right.loglog(sizes, times, "o-")
right.set_xlabel("bytes in and out")
right.set_ylabel("µs a call")
right.set_title("increment, invoke to end")
figure.tight_layout()
figure.savefig("kernel.png")
print(f"kernel.png; the smallest call takes {times[0]:.0f} µs")

# %%
device.close()
soft.close()
