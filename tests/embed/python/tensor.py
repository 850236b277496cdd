"""Tensor: contiguous memory of a GPU, or pinned memory of the host, that speaks DLPack both ways.

`Tensor.of` takes what any framework or numpy has; `numpy.from_dlpack`, `torch.from_dlpack` and the
like take a Tensor. Not for arithmetic. One thread.
"""

import math

import numpy

import dlpack

_CODES = {"f": dlpack.FLOAT, "i": dlpack.INT, "u": dlpack.UINT}


class Tensor:
    def __init__(self, cuda, shape, dtype, device=(dlpack.CUDA, 0)):
        """Memory of its own, uninitialised; `device` (CUDA, 0), or (CUDA_HOST, 0) for pinned memory."""
        self.cuda, self.shape, self.dtype, self.device = cuda, tuple(shape), numpy.dtype(dtype), device
        self._taken = None
        is_pinned = device[0] == dlpack.CUDA_HOST
        self.address = (cuda.allocate_pinned if is_pinned else cuda.allocate)(self.size_bytes)
        self._free = cuda.free_pinned if is_pinned else cuda.free

    @classmethod
    def of(cls, cuda, producer):
        """What `producer` (an object with __dlpack__) has, on the GPU: its own memory where that
        is there already, else a copy."""
        taken = dlpack.Taken(producer, stream=cuda.stream.value)
        if not taken.is_contiguous():
            raise ValueError("a tensor must be contiguous")
        code, bits = taken.dtype
        kinds = [kind for kind, known in _CODES.items() if known == code]
        if not kinds:
            raise ValueError(f"DLPack's type {code} of {bits} bits is not known here")
        dtype = numpy.dtype(f"{kinds[0]}{bits // 8}")
        if taken.device == (dlpack.CUDA, 0):
            tensor = cls.__new__(cls)
            tensor.cuda, tensor.shape, tensor.dtype = cuda, taken.shape, dtype
            tensor.device, tensor.address, tensor._taken, tensor._free = taken.device, taken.address, taken, None
            return tensor
        if taken.device[0] not in (dlpack.CPU, dlpack.CUDA_HOST):
            raise ValueError(f"memory of DLPack's device {taken.device} cannot be used on GPU 0")
        tensor = cls(cuda, taken.shape, dtype)
        cuda.upload(tensor.address, taken.address, tensor.size_bytes)
        if taken.device[0] == dlpack.CUDA_HOST:
            cuda.synchronize()  # pinned memory is read later, and may be freed when this returns
        return tensor

    def __del__(self):
        if getattr(self, "_free", None) is not None:
            self._free(self.address)  # waits for launches that use it

    @property
    def size_bytes(self):
        return math.prod(self.shape) * self.dtype.itemsize

    def to_host(self):
        """A numpy array, in pinned memory that lives as long as the array."""
        host = Tensor(self.cuda, self.shape, self.dtype, (dlpack.CUDA_HOST, 0))
        self.cuda.download(host.address, self.address, self.size_bytes)
        self.cuda.synchronize()
        return numpy.from_dlpack(host)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **_):
        # -1: the consumer takes care of the order. Else what was enqueued must be visible to its
        # stream; an event would do that without waiting.
        if stream != -1:
            self.cuda.synchronize()
        dtype = _CODES[self.dtype.kind], 8 * self.dtype.itemsize
        return dlpack.make(self, self.address, self.device, dtype, self.shape)
