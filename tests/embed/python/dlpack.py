"""DLPack's capsules (https://dmlc.github.io/dlpack), in and out, by ctypes.

`take` consumes one, of any producer; `make` produces one. Only what lies behind them: the memory is
the producer's. Thread-safety: under Python's lock.
"""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

CPU, CUDA, CUDA_HOST = 1, 2, 3  # DLDeviceType
INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4  # DLDataTypeCode


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


_Deleter = ctypes.PYFUNCTYPE(None, c_void_p)


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", _Deleter)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p),
                ("deleter", _Deleter), ("flags", c_uint64), ("tensor", DLTensor)]


# A capsule's name, the struct in it, and its name once it was taken.
_KINDS = {b"dltensor": (DLManagedTensor, b"used_dltensor"),
          b"dltensor_versioned": (DLManagedTensorVersioned, b"used_dltensor_versioned")}


def _capsule_function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_capsule_new = _capsule_function("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
# By address: a capsule that is being destroyed must get no new reference.
_capsule_is_valid = _capsule_function("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_capsule_get = _capsule_function("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
_capsule_set_name = _capsule_function("PyCapsule_SetName", ctypes.c_int, c_void_p, c_char_p)


class Taken:
    """A tensor out of a capsule. Its memory is valid as long as this object lives."""

    def __init__(self, producer, stream):
        """`stream`: the CUstream, as a number, that memory on a GPU will be used on."""
        self._managed = None
        arguments = {"stream": stream} if producer.__dlpack_device__()[0] == CUDA else {}
        try:
            capsule = producer.__dlpack__(max_version=(1, 0), **arguments)
        except TypeError:  # a producer that only knows DLPack before 1.0
            capsule = producer.__dlpack__(**arguments)
        for name, (struct, used_name) in _KINDS.items():
            if _capsule_is_valid(id(capsule), name):
                managed = struct.from_address(_capsule_get(id(capsule), name))
                if struct is DLManagedTensorVersioned and managed.major != 1:
                    raise ValueError(f"DLPack {managed.major}.{managed.minor} is not known here")
                # From here on the tensor is this object's, and the capsule's destructor leaves it.
                _capsule_set_name(id(capsule), used_name)
                self._managed = managed
                return
        raise ValueError("this is no capsule of DLPack, or one that was taken before")

    def __del__(self):
        if self._managed is not None and self._managed.deleter:
            self._managed.deleter(ctypes.addressof(self._managed))

    @property
    def device(self):
        return self._managed.tensor.device.device_type, self._managed.tensor.device.device_id

    @property
    def dtype(self):
        """(code, bits)"""
        return self._managed.tensor.dtype.code, self._managed.tensor.dtype.bits

    @property
    def shape(self):
        return tuple(self._managed.tensor.shape[i] for i in range(self._managed.tensor.ndim))

    @property
    def address(self):
        return (self._managed.tensor.data or 0) + self._managed.tensor.byte_offset

    def is_contiguous(self):
        expected = 1
        for i in reversed(range(len(self.shape))):
            if self._managed.tensor.strides and self.shape[i] != 1:
                if self._managed.tensor.strides[i] != expected:
                    return False
            expected *= self.shape[i]
        return True


# What was given away and not yet deleted, by address; keeps the owner of the memory alive.
_given = {}


@_Deleter
def _delete(address):
    _given.pop(address, None)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _destroy_capsule(capsule):
    """A capsule that nobody took still has its first name, and its tensor."""
    if _capsule_is_valid(capsule, b"dltensor"):
        _delete(_capsule_get(capsule, b"dltensor"))


def make(owner, address, device, dtype, shape):
    """A capsule, without a version, of a contiguous tensor in `owner`'s memory."""
    shape_array = (c_int64 * len(shape))(*shape)
    managed = DLManagedTensor(
        tensor=DLTensor(address, DLDevice(*device), len(shape), DLDataType(*dtype, 1), shape_array, None, 0),
        manager_ctx=None, deleter=_delete)
    _given[ctypes.addressof(managed)] = (managed, shape_array, owner)
    return _capsule_new(ctypes.addressof(managed), b"dltensor",
                        ctypes.cast(_destroy_capsule, c_void_p))
