#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUstream cuda_stream;

static struct {
  int (*init)(unsigned);
  int (*get_error_name)(int, const char**);
  int (*primary_ctx_retain)(CUcontext*, int);
  int (*primary_ctx_release)(int);
  int (*ctx_set_current)(CUcontext);
  int (*stream_create)(CUstream*, unsigned);
  int (*stream_synchronize)(CUstream);
  int (*stream_destroy)(CUstream);
  int (*mem_alloc)(CUdeviceptr*, size_t);
  int (*mem_free)(CUdeviceptr);
  int (*mem_host_alloc)(void**, size_t, unsigned);
  int (*mem_free_host)(void*);
  int (*memcpy_htod_async)(CUdeviceptr, const void*, size_t, CUstream);
  int (*memcpy_dtoh_async)(void*, CUdeviceptr, size_t, CUstream);
  int (*memset_d8_async)(CUdeviceptr, unsigned char, size_t, CUstream);
} cuda;

void require(pagejit_status status, const pagejit_error* error) {
  if (status == PAGEJIT_OK) return;
  fprintf(stderr, "error: %s: %s\n", pagejit_status_name(status), pagejit_error_message(error));
  exit(2);
}

static void check(int result, const char* call) {
  if (result == 0) return;
  const char* name = NULL;
  cuda.get_error_name(result, &name);
  fprintf(stderr, "error: %s failed: %s (%d)\n", call, name != NULL ? name : "unknown", result);
  exit(2);
}

static CUdeviceptr address(const void* device) { return (CUdeviceptr)(uintptr_t)device; }

// The library that an engine with these options uses. The emulator lies beside libpagejit.so, in a
// folder that the linker has noted in this program.
static const char* driver_file(const pagejit_engine_options* options) {
  if (options->driver == NULL || options->driver[0] == '\0') return "libcuda.so.1";
  if (strcmp(options->driver, "emulator") != 0) return options->driver;
  const char* file = options->emulator_path;
  return file == NULL || file[0] == '\0' ? "libpagejit-emulator.so" : file;
}

void cuda_open(const pagejit_engine_options* options) {
  const char* file = driver_file(options);
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "error: %s cannot be opened: %s\n", file, dlerror());
    exit(2);
  }
  // The names that <cuda.h> gives these functions by macros.
  const struct {
    const char* name;
    void* function;  // a pointer to one
  } functions[] = {
      {"cuInit", &cuda.init},
      {"cuGetErrorName", &cuda.get_error_name},
      {"cuDevicePrimaryCtxRetain", &cuda.primary_ctx_retain},
      {"cuDevicePrimaryCtxRelease_v2", &cuda.primary_ctx_release},
      {"cuCtxSetCurrent", &cuda.ctx_set_current},
      {"cuStreamCreate", &cuda.stream_create},
      {"cuStreamSynchronize", &cuda.stream_synchronize},
      {"cuStreamDestroy_v2", &cuda.stream_destroy},
      {"cuMemAlloc_v2", &cuda.mem_alloc},
      {"cuMemFree_v2", &cuda.mem_free},
      {"cuMemHostAlloc", &cuda.mem_host_alloc},
      {"cuMemFreeHost", &cuda.mem_free_host},
      {"cuMemcpyHtoDAsync_v2", &cuda.memcpy_htod_async},
      {"cuMemcpyDtoHAsync_v2", &cuda.memcpy_dtoh_async},
      {"cuMemsetD8Async", &cuda.memset_d8_async},
  };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    void* function = dlsym(library, functions[i].name);
    if (function == NULL) {
      fprintf(stderr, "error: %s has no %s\n", file, functions[i].name);
      exit(2);
    }
    memcpy(functions[i].function, &function, sizeof function);
  }

  CUcontext context = NULL;
  const unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING
  check(cuda.init(0), "cuInit");
  check(cuda.primary_ctx_retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuda.ctx_set_current(context), "cuCtxSetCurrent");
  check(cuda.stream_create(&cuda_stream, non_blocking), "cuStreamCreate");
}

void cuda_close(void) {
  check(cuda.stream_destroy(cuda_stream), "cuStreamDestroy");
  check(cuda.primary_ctx_release(0), "cuDevicePrimaryCtxRelease");
}

void* device_alloc(size_t bytes) {
  CUdeviceptr device = 0;
  check(cuda.mem_alloc(&device, bytes), "cuMemAlloc");
  return (void*)(uintptr_t)device;
}

void device_free(void* device) { check(cuda.mem_free(address(device)), "cuMemFree"); }

void* pinned_alloc(size_t bytes) {
  void* host = NULL;
  check(cuda.mem_host_alloc(&host, bytes, 0), "cuMemHostAlloc");
  return host;
}

void pinned_free(void* host) { check(cuda.mem_free_host(host), "cuMemFreeHost"); }

void device_upload(void* device, const void* host, size_t bytes) {
  check(cuda.memcpy_htod_async(address(device), host, bytes, cuda_stream), "cuMemcpyHtoDAsync");
}

void device_fill(void* device, unsigned char value, size_t bytes) {
  check(cuda.memset_d8_async(address(device), value, bytes, cuda_stream), "cuMemsetD8Async");
}

void device_download(void* host, const void* device, size_t bytes) {
  check(cuda.memcpy_dtoh_async(host, address(device), bytes, cuda_stream), "cuMemcpyDtoHAsync");
  check(cuda.stream_synchronize(cuda_stream), "cuStreamSynchronize");
}
