//! The few functions of the CUDA driver API that this program needs, and memory that frees itself.
//! They are loaded from the library that pagejit's engine uses, so that the program also runs on
//! pagejit's CPU emulator (PAGEJIT_DRIVER=emulator). One thread.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::rc::Rc;
use std::{fmt, mem, ptr};

use crate::pagejit::{Engine, Stream};

type DevicePointer = u64;

#[link(name = "dl")]
extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

#[derive(Debug)]
pub struct CudaError(String);

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CudaError {}

/// The functions of the driver by the names that <cuda.h> gives them by macros.
macro_rules! driver_functions {
    ($($field:ident = $name:literal: ($($argument:ty),*),)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            unsafe fn load(library: *mut c_void) -> Result<Functions, CudaError> {
                Ok(Functions {
                    $($field: {
                        let function = dlsym(library, concat!($name, "\0").as_ptr().cast());
                        if function.is_null() {
                            return Err(CudaError(concat!("the CUDA driver has no ", $name).into()));
                        }
                        mem::transmute(function)
                    },)*
                })
            }
        }
    };
}
driver_functions! {
    init = "cuInit": (u32),
    get_error_name = "cuGetErrorName": (c_int, *mut *const c_char),
    primary_ctx_retain = "cuDevicePrimaryCtxRetain": (*mut *mut c_void, c_int),
    primary_ctx_release = "cuDevicePrimaryCtxRelease_v2": (c_int),
    ctx_set_current = "cuCtxSetCurrent": (*mut c_void),
    stream_create = "cuStreamCreate": (*mut Stream, u32),
    stream_synchronize = "cuStreamSynchronize": (Stream),
    stream_destroy = "cuStreamDestroy_v2": (Stream),
    mem_alloc = "cuMemAlloc_v2": (*mut DevicePointer, usize),
    mem_free = "cuMemFree_v2": (DevicePointer),
    mem_host_alloc = "cuMemHostAlloc": (*mut *mut c_void, usize, u32),
    mem_free_host = "cuMemFreeHost": (*mut c_void),
    memcpy_htod_async = "cuMemcpyHtoDAsync_v2": (DevicePointer, *const c_void, usize, Stream),
    memcpy_dtoh_async = "cuMemcpyDtoHAsync_v2": (*mut c_void, DevicePointer, usize, Stream),
    memset_d8_async = "cuMemsetD8Async": (DevicePointer, u8, usize, Stream),
}

/// Device 0 with its primary context, which is current, and a stream.
pub struct CudaDriver {
    functions: Functions,
    stream: Stream,
}

/// The library that an engine with these options uses. The emulator lies beside libpagejit.so, in a
/// folder that the linker has noted in this program.
fn driver_file(engine: &Engine) -> &str {
    match (engine.driver.as_str(), engine.emulator_path.as_str()) {
        ("", _) => "libcuda.so.1",
        ("emulator", "") => "libpagejit-emulator.so",
        ("emulator", path) => path,
        (path, _) => path,
    }
}

impl CudaDriver {
    pub fn open(engine: &Engine) -> Result<Rc<CudaDriver>, CudaError> {
        let file = driver_file(engine);
        let c_file = CString::new(file).map_err(|error| CudaError(error.to_string()))?;
        const RTLD_NOW: c_int = 2;
        const NON_BLOCKING: u32 = 1; // CU_STREAM_NON_BLOCKING
        unsafe {
            let library = dlopen(c_file.as_ptr(), RTLD_NOW);
            if library.is_null() {
                let reason = CStr::from_ptr(dlerror()).to_string_lossy();
                return Err(CudaError(format!("{file} cannot be opened: {reason}")));
            }
            let functions = Functions::load(library)?;
            let mut driver = CudaDriver { functions, stream: ptr::null_mut() };
            let f = &driver.functions;
            let mut context = ptr::null_mut();
            let mut stream = ptr::null_mut();
            driver.check((f.init)(0), "cuInit")?;
            driver.check((f.primary_ctx_retain)(&mut context, 0), "cuDevicePrimaryCtxRetain")?;
            driver.check((f.ctx_set_current)(context), "cuCtxSetCurrent")?;
            driver.check((f.stream_create)(&mut stream, NON_BLOCKING), "cuStreamCreate")?;
            driver.stream = stream;
            Ok(Rc::new(driver))
        }
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    fn check(&self, result: c_int, call: &str) -> Result<(), CudaError> {
        if result == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        unsafe { (self.functions.get_error_name)(result, &mut name) };
        let name = if name.is_null() {
            "unknown".into()
        } else {
            unsafe { CStr::from_ptr(name) }.to_string_lossy()
        };
        Err(CudaError(format!("{call} failed: {name} ({result})")))
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // Nothing to do about errors. A stream that was not created is none.
        unsafe {
            if !self.stream.is_null() {
                (self.functions.stream_destroy)(self.stream);
                (self.functions.primary_ctx_release)(0);
            }
        }
    }
}

/// Device memory, which keeps its driver. T: plain numbers.
pub struct DeviceBuffer<T: Copy> {
    cuda: Rc<CudaDriver>,
    address: DevicePointer,
    len: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Copy> DeviceBuffer<T> {
    /// Uninitialised; `len` elements.
    pub fn new(cuda: &Rc<CudaDriver>, len: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        let result = unsafe { (cuda.functions.mem_alloc)(&mut address, len * mem::size_of::<T>()) };
        cuda.check(result, "cuMemAlloc")?;
        Ok(DeviceBuffer { cuda: cuda.clone(), address, len, element: std::marker::PhantomData })
    }

    /// A copy of `host` on the device.
    pub fn copy_of(cuda: &Rc<CudaDriver>, host: &[T]) -> Result<Self, CudaError> {
        let buffer = Self::new(cuda, host.len())?;
        let (from, bytes) = (host.as_ptr().cast(), mem::size_of_val(host));
        let upload = cuda.functions.memcpy_htod_async;
        // Memory that is not pinned has been read when this returns.
        let result = unsafe { upload(buffer.address, from, bytes, cuda.stream) };
        cuda.check(result, "cuMemcpyHtoDAsync").map(|()| buffer)
    }

    /// Waits for the stream.
    pub fn download(&self, host: &mut [T]) -> Result<(), CudaError> {
        assert_eq!(host.len(), self.len);
        let (to, bytes) = (host.as_mut_ptr().cast(), mem::size_of_val(host));
        let f = &self.cuda.functions;
        unsafe {
            let result = (f.memcpy_dtoh_async)(to, self.address, bytes, self.cuda.stream);
            self.cuda.check(result, "cuMemcpyDtoHAsync")?;
            self.cuda.check((f.stream_synchronize)(self.cuda.stream), "cuStreamSynchronize")
        }
    }

    /// Sets each byte of `count` elements from `first` on.
    pub fn fill(&self, first: usize, count: usize, value: u8) -> Result<(), CudaError> {
        assert!(first + count <= self.len);
        let size = mem::size_of::<T>();
        let address = self.address + (first * size) as u64;
        let fill = self.cuda.functions.memset_d8_async;
        let result = unsafe { fill(address, value, count * size, self.cuda.stream) };
        self.cuda.check(result, "cuMemsetD8Async")
    }

    pub fn as_ptr<U>(&self) -> *mut U {
        self.address as *mut U
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

impl<T: Copy> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        unsafe { (self.cuda.functions.mem_free)(self.address) }; // waits for launches that use it
    }
}

/// Pinned host memory, which swaps copy from and to without waiting.
pub struct PinnedBuffer {
    cuda: Rc<CudaDriver>,
    address: *mut c_void,
}

impl PinnedBuffer {
    pub fn new(cuda: &Rc<CudaDriver>, bytes: usize) -> Result<Self, CudaError> {
        let mut address = ptr::null_mut();
        let result = unsafe { (cuda.functions.mem_host_alloc)(&mut address, bytes, 0) };
        cuda.check(result, "cuMemHostAlloc")?;
        Ok(PinnedBuffer { cuda: cuda.clone(), address })
    }

    pub fn as_ptr(&self) -> *mut c_void {
        self.address
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        unsafe { (self.cuda.functions.mem_free_host)(self.address) }; // waits for copies
    }
}
