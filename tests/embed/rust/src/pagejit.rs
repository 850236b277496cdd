//! pagejit for safe Rust: objects that destroy themselves, and errors with the library's message.
//! A handle may be used from any number of threads at once; each thread has an error object.

use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::{fmt, mem, ptr};

pub use crate::sys::{
    AttentionArgs, CacheWriteArgs, CacheWriteSpec, CopyBlocksArgs, CopyBlocksSpec, KernelSpec,
    KvStrides, Stream, SwapBlocksArgs,
};
use crate::{layout, sys};

/// A call that failed: one of enum pagejit_status_code, and what went wrong in one sentence.
#[derive(Debug)]
pub struct Error {
    pub status: sys::Status,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = unsafe { CStr::from_ptr(sys::pagejit_status_name(self.status)) };
        write!(f, "{}: {}", name.to_string_lossy(), self.message)
    }
}

impl std::error::Error for Error {}

/// An object of the library and the function that destroys it.
struct Owned {
    handle: sys::Handle,
    destroy: unsafe extern "C" fn(sys::Handle, sys::Handle) -> sys::Status,
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.destroy)(self.handle, ptr::null_mut()) };
    }
}

// What the library says of its handles.
unsafe impl Send for Owned {}
unsafe impl Sync for Owned {}

/// Of one thread.
struct ErrorObject(sys::Handle);

impl Drop for ErrorObject {
    fn drop(&mut self) {
        unsafe { sys::pagejit_error_destroy(self.0) };
    }
}

thread_local! {
    static ERROR: ErrorObject = {
        let mut handle = ptr::null_mut();
        unsafe { sys::pagejit_error_create(&mut handle) };
        ErrorObject(handle)
    };
}

/// Makes a call with this thread's error object.
fn call(function: impl FnOnce(sys::Handle) -> sys::Status) -> Result<(), Error> {
    ERROR.with(|error| {
        let status = function(error.0);
        if status == sys::OK {
            return Ok(());
        }
        let message = unsafe { text(sys::pagejit_error_message(error.0)) };
        Err(Error { status, message })
    })
}

/// A call that makes an object.
fn make(
    destroy: unsafe extern "C" fn(sys::Handle, sys::Handle) -> sys::Status,
    function: impl FnOnce(*mut sys::Handle, sys::Handle) -> sys::Status,
) -> Result<Owned, Error> {
    let mut handle = ptr::null_mut();
    call(|error| function(&mut handle, error))?;
    Ok(Owned { handle, destroy })
}

/// "" for null.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    CStr::from_ptr(pointer).to_string_lossy().into_owned()
}

macro_rules! impl_default {
    ($($type:ty: $init:ident,)*) => {
        $(impl Default for $type {
            /// The library's defaults.
            fn default() -> Self {
                let mut value = mem::MaybeUninit::<Self>::uninit();
                unsafe {
                    let status = sys::$init(value.as_mut_ptr(), mem::size_of::<Self>());
                    assert_eq!(status, sys::OK, "this libpagejit.so has other structs");
                    value.assume_init()
                }
            }
        })*
    };
}
impl_default! {
    sys::EngineOptions: pagejit_engine_options_init,
    KernelSpec: pagejit_kernel_spec_init,
    AttentionArgs: pagejit_attention_args_init,
    CacheWriteSpec: pagejit_cache_write_spec_init,
    CacheWriteArgs: pagejit_cache_write_args_init,
    CopyBlocksSpec: pagejit_copy_blocks_spec_init,
    CopyBlocksArgs: pagejit_copy_blocks_args_init,
    SwapBlocksArgs: pagejit_swap_blocks_args_init,
}

/// Makes kernels for the device of the current context.
pub struct Engine {
    owned: Owned,
    /// The options `driver` and `emulator_path`.
    pub driver: String,
    pub emulator_path: String,
}

impl Engine {
    /// Options come from the environment (PAGEJIT_*).
    pub fn from_environment() -> Result<Engine, Error> {
        layout::check();
        let mut options = sys::EngineOptions::default();
        let _environment = make(sys::pagejit_environment_destroy, |environment, error| unsafe {
            sys::pagejit_engine_options_from_environment(&mut options, environment, error)
        })?; // owns the texts of the options, which the engine copies
        let owned = make(sys::pagejit_engine_destroy, |engine, error| unsafe {
            sys::pagejit_engine_create(&options, engine, error)
        })?;
        let (driver, emulator_path) =
            unsafe { (text(options.driver), text(options.emulator_path)) };
        Ok(Engine { owned, driver, emulator_path })
    }

    /// Enqueues copies of blocks between host and device.
    ///
    /// # Safety
    /// The memory that `args` names must be there until the stream has done the copies.
    pub unsafe fn swap_blocks(&self, args: &SwapBlocksArgs, stream: Stream) -> Result<(), Error> {
        call(|error| sys::pagejit_engine_swap_blocks(self.owned.handle, args, stream, error))
    }
}

macro_rules! kernel_family {
    ($name:ident, $pending:ident, $spec:ty, $args:ty, $prepare_async:ident, $wait:ident,
     $launch:ident, $destroy:ident) => {
        /// A kernel that can be launched; it may outlive its engine.
        pub struct $name(Owned);

        /// A kernel that is being prepared.
        pub struct $pending(Owned);

        impl $name {
            /// Returns at once; threads of the engine prepare the kernel.
            pub fn prepare_async(engine: &Engine, spec: &$spec) -> Result<$pending, Error> {
                let current_device = -1;
                let pending = make(sys::pagejit_pending_destroy, |pending, error| unsafe {
                    let engine = engine.owned.handle;
                    sys::$prepare_async(engine, spec, current_device, ptr::null(), pending, error)
                })?;
                Ok($pending(pending))
            }

            /// Enqueues a launch.
            ///
            /// # Safety
            /// The device memory that `args` names must be as the library's header says, until the
            /// stream has done the launch.
            pub unsafe fn launch(&self, args: &$args, stream: Stream) -> Result<(), Error> {
                call(|error| sys::$launch(self.0.handle, args, stream, error))
            }
        }

        impl $pending {
            pub fn wait(&self) -> Result<$name, Error> {
                let kernel = make(sys::$destroy, |kernel, error| unsafe {
                    sys::$wait(self.0.handle, kernel, error)
                })?;
                Ok($name(kernel))
            }
        }
    };
}
kernel_family!(
    Kernel,
    PendingKernel,
    KernelSpec,
    AttentionArgs,
    pagejit_kernel_prepare_async,
    pagejit_kernel_wait,
    pagejit_kernel_launch,
    pagejit_kernel_destroy
);
kernel_family!(
    CacheWriteKernel,
    PendingCacheWriteKernel,
    CacheWriteSpec,
    CacheWriteArgs,
    pagejit_cache_write_kernel_prepare_async,
    pagejit_cache_write_kernel_wait,
    pagejit_cache_write_kernel_launch,
    pagejit_cache_write_kernel_destroy
);
kernel_family!(
    CopyBlocksKernel,
    PendingCopyBlocksKernel,
    CopyBlocksSpec,
    CopyBlocksArgs,
    pagejit_copy_blocks_kernel_prepare_async,
    pagejit_copy_blocks_kernel_wait,
    pagejit_copy_blocks_kernel_launch,
    pagejit_copy_blocks_kernel_destroy
);

impl Kernel {
    /// Bytes of workspace that are enough for every launch.
    pub fn max_workspace_bytes(&self) -> Result<usize, Error> {
        let mut bytes = 0;
        call(|error| unsafe {
            sys::pagejit_kernel_max_workspace_bytes(self.0.handle, &mut bytes, error)
        })?;
        Ok(bytes)
    }

    /// Enqueues the initialisation of a workspace, needed once.
    ///
    /// # Safety
    /// `workspace` must be device memory of so many bytes.
    pub unsafe fn workspace_init(
        &self,
        workspace: *mut c_void,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        call(|error| {
            sys::pagejit_kernel_workspace_init(self.0.handle, workspace, bytes, stream, error)
        })
    }
}
