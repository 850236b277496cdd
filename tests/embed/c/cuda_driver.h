// The few functions of the CUDA driver API that this program needs, loaded from the library that
// pagejit's engine uses, so that the program also runs on pagejit's CPU emulator
// (PAGEJIT_DRIVER=emulator); a program that is only for GPUs includes <cuda.h> and links libcuda
// instead of this file. What fails here ends the program with exit code 2. One thread.
#pragma once

#include <pagejit/pagejit.h>
#include <stddef.h>
#include <stdint.h>

// As in <cuda.h>.
typedef unsigned long long CUdeviceptr;
typedef void* CUstream;
typedef void* CUcontext;

// The stream of all launches and copies.
extern CUstream cuda_stream;

// Ends the program unless `status` is PAGEJIT_OK; `error` was given to the call. A library would
// return the status to its caller instead.
void require(pagejit_status status, const pagejit_error* error);

// Opens the driver, makes the primary context of device 0 current and creates the stream.
void cuda_open(const pagejit_engine_options* options);
void cuda_close(void);

void* device_alloc(size_t bytes);
void device_free(void* device);
void* pinned_alloc(size_t bytes);
void pinned_free(void* host);
// In the stream's order.
void device_upload(void* device, const void* host, size_t bytes);
void device_fill(void* device, unsigned char value, size_t bytes);
// Waits for the stream.
void device_download(void* host, const void* device, size_t bytes);
