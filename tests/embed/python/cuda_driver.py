"""The few functions of the CUDA driver API that this program needs, from the library that pagejit's
engine uses: libcuda, or pagejit's CPU emulator (PAGEJIT_DRIVER=emulator). One thread.

A program with a framework of tensors takes memory and streams from that instead.
"""

import ctypes
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

import pagejit


class CudaError(Exception):
    pass


def _driver_file(engine):
    if engine.driver == "":
        return "libcuda.so.1"
    if engine.driver != "emulator":
        return engine.driver
    beside = os.path.join(os.path.dirname(pagejit.LIBRARY_PATH), "libpagejit-emulator.so")
    return engine.emulator_path or beside


class CudaDriver:
    """Device 0 with its primary context, which is current, and a stream."""

    # The names that <cuda.h> gives these functions by macros, and what they take.
    _FUNCTIONS = {
        "cuInit": [c_uint],
        "cuGetErrorName": [c_int, c_void_p],
        "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
        "cuCtxSetCurrent": [c_void_p],
        "cuStreamCreate": [c_void_p, c_uint],
        "cuStreamSynchronize": [c_void_p],
        "cuMemAlloc_v2": [c_void_p, c_size_t],
        "cuMemFree_v2": [c_uint64],
        "cuMemHostAlloc": [c_void_p, c_size_t, c_uint],
        "cuMemFreeHost": [c_void_p],
        "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
        "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
        "cuMemsetD8Async": [c_uint64, c_ubyte, c_size_t, c_void_p],
    }

    def __init__(self, engine):
        file = _driver_file(engine)
        try:
            self._library = ctypes.CDLL(file)
        except OSError as error:
            raise CudaError(f"{file} cannot be opened: {error}") from error
        for name, argtypes in self._FUNCTIONS.items():
            getattr(self._library, name).argtypes = argtypes
        context = c_void_p()
        self.stream = c_void_p()
        non_blocking = 1  # CU_STREAM_NON_BLOCKING
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", byref(context), 0)
        self._call("cuCtxSetCurrent", context)
        self._call("cuStreamCreate", byref(self.stream), non_blocking)

    def _call(self, name, *arguments):
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            text = c_char_p()
            self._library.cuGetErrorName(result, byref(text))
            raise CudaError(f"{name} failed: {(text.value or b'unknown').decode()} ({result})")

    def allocate(self, size):
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), size)
        return address.value

    def free(self, address):
        self._call("cuMemFree_v2", address)

    def allocate_pinned(self, size):
        address = c_void_p()
        self._call("cuMemHostAlloc", byref(address), size, 0)
        return address.value

    def free_pinned(self, address):
        self._call("cuMemFreeHost", address)

    def upload(self, device, host, size):
        self._call("cuMemcpyHtoDAsync_v2", device, host, size, self.stream)

    def download(self, host, device, size):
        self._call("cuMemcpyDtoHAsync_v2", host, device, size, self.stream)

    def fill(self, device, value, size):
        self._call("cuMemsetD8Async", device, value, size, self.stream)

    def synchronize(self):
        self._call("cuStreamSynchronize", self.stream)
