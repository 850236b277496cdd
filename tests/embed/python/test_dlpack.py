"""DLPack's protocol, as dlpack.py and tensor.py speak it, with numpy and stubs on the other side.

    python3 test_dlpack.py
"""

import ctypes
import gc
import unittest
import weakref

import numpy

import dlpack
import pagejit
from cuda_driver import CudaDriver
from tensor import Tensor


class Owner:
    """Of memory that is given away."""

    def __init__(self):
        self.numbers = (ctypes.c_float * 6)(0, 1, 2, 3, 4, 5)


class OldProducer:
    """Knows no versions; gives the capsule that it has."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return dlpack.CPU, 0

    def __dlpack__(self):
        return self.capsule


class NewProducer(OldProducer):
    def __dlpack__(self, max_version=None):
        assert max_version == (1, 0)
        return self.capsule


def make_capsule(owner):
    return dlpack.make(owner, ctypes.addressof(owner.numbers), (dlpack.CPU, 0), (dlpack.FLOAT, 32), (2, 3))


def name_of(capsule):
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    return get_name(capsule)


class CapsuleTest(unittest.TestCase):
    def tearDown(self):
        gc.collect()
        self.assertEqual(dlpack._given, {})

    def test_taking_renames_the_capsule_and_it_cannot_be_taken_again(self):
        producer = OldProducer(make_capsule(Owner()))
        self.assertEqual(name_of(producer.capsule), b"dltensor")
        taken = dlpack.Taken(producer, None)
        self.assertEqual(name_of(producer.capsule), b"used_dltensor")
        self.assertEqual((taken.shape, taken.dtype, taken.device), ((2, 3), (dlpack.FLOAT, 32), (dlpack.CPU, 0)))
        with self.assertRaisesRegex(ValueError, "taken before"):
            dlpack.Taken(producer, None)
        del taken

    def test_the_deleter_is_called_once_by_the_taker(self):
        owner = Owner()
        lives = weakref.ref(owner)
        producer = OldProducer(make_capsule(owner))
        taken = dlpack.Taken(producer, None)
        del owner, producer  # the capsule's destructor leaves what was taken
        gc.collect()
        self.assertIsNotNone(lives())
        self.assertEqual((ctypes.c_float * 6).from_address(taken.address)[5], 5)
        del taken
        gc.collect()
        self.assertIsNone(lives())

    def test_a_capsule_that_nobody_takes_deletes_its_tensor(self):
        owner = Owner()
        lives = weakref.ref(owner)
        capsule = make_capsule(owner)
        del owner
        gc.collect()
        self.assertIsNotNone(lives())
        del capsule
        gc.collect()
        self.assertIsNone(lives())

    def make_versioned(self, major):
        deleted = []
        owner = Owner()
        shape = (ctypes.c_int64 * 2)(2, 3)
        managed = dlpack.DLManagedTensorVersioned(
            major=major, minor=0, deleter=dlpack._Deleter(deleted.append),
            tensor=dlpack.DLTensor(ctypes.addressof(owner.numbers), dlpack.DLDevice(dlpack.CPU, 0), 2,
                                   dlpack.DLDataType(dlpack.FLOAT, 32, 1), shape, None, 8))
        producer = NewProducer(dlpack._capsule_new(ctypes.addressof(managed), b"dltensor_versioned", None))
        producer.memory = owner, shape, managed
        return producer, deleted

    def test_a_capsule_with_a_version_is_taken_where_there_is_one(self):
        producer, deleted = self.make_versioned(major=1)
        taken = dlpack.Taken(producer, None)
        self.assertEqual(name_of(producer.capsule), b"used_dltensor_versioned")
        self.assertEqual((ctypes.c_float * 4).from_address(taken.address)[:], [2, 3, 4, 5])  # byte_offset 8
        self.assertEqual(deleted, [])
        del taken
        self.assertEqual(deleted, [ctypes.addressof(producer.memory[2])])

    def test_a_later_version_is_refused_and_left_to_its_capsule(self):
        producer, deleted = self.make_versioned(major=2)
        with self.assertRaisesRegex(ValueError, "DLPack 2.0 is not known"):
            dlpack.Taken(producer, None)
        self.assertEqual((name_of(producer.capsule), deleted), (b"dltensor_versioned", []))


class TensorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cuda = CudaDriver(pagejit.Engine())

    def test_numpy_arrays_go_in_and_out(self):
        for dtype in numpy.float16, numpy.float32, numpy.int64, numpy.uint8:
            array = numpy.arange(24, dtype=dtype).reshape(2, 3, 4)
            tensor = Tensor.of(self.cuda, array)
            self.assertEqual(tensor.device, (dlpack.CUDA, 0))
            self.assertEqual((tensor.shape, tensor.dtype), (array.shape, array.dtype))
            result = tensor.to_host()
            self.assertEqual(result.dtype, array.dtype)
            numpy.testing.assert_array_equal(result, array)

    def test_an_array_keeps_the_memory_of_a_tensor(self):
        result = Tensor.of(self.cuda, numpy.full(1000, 7, numpy.int32)).to_host()
        gc.collect()
        Tensor(self.cuda, [1000], numpy.int32, (dlpack.CUDA_HOST, 0))  # would take freed memory
        self.assertTrue((result == 7).all())
        self.assertEqual(len(dlpack._given), 1)
        del result
        self.assertEqual(dlpack._given, {})

    def test_memory_of_the_gpu_is_used_where_it_is(self):
        first = Tensor.of(self.cuda, numpy.arange(10, dtype=numpy.float16))
        second = Tensor.of(self.cuda, first)
        self.assertEqual(second.address, first.address)
        del first
        gc.collect()
        numpy.testing.assert_array_equal(second.to_host(), numpy.arange(10))

    def test_what_is_not_contiguous_or_of_an_unknown_type_is_refused(self):
        with self.assertRaisesRegex(ValueError, "contiguous"):
            Tensor.of(self.cuda, numpy.zeros((4, 6), numpy.float32)[:, ::2])
        with self.assertRaisesRegex(ValueError, "type 5 of 64 bits"):
            Tensor.of(self.cuda, numpy.zeros(4, numpy.complex64))


if __name__ == "__main__":
    unittest.main()
