// The functions of the CUDA driver API that the library exports, under the names of their binary
// interface (cuMemAlloc_v2 is what cuda.h calls cuMemAlloc). What each does is in NVIDIA's "CUDA
// Driver API"; where the emulator differs, the definition says so. Thread-safety: all may be called
// from several threads at once; each call excludes the others.
#pragma once

#include "runtime/emulator/cuda_abi.h"

// Of the functions that the library shows.
#define PAGEJIT_EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace pagejit_emulator {

// ---- driver_device.cc ----

PAGEJIT_EMULATOR_API CUresult cuInit(unsigned flags);
PAGEJIT_EMULATOR_API CUresult cuDriverGetVersion(int* version);
PAGEJIT_EMULATOR_API CUresult cuGetErrorName(CUresult code, const char** name);
PAGEJIT_EMULATOR_API CUresult cuGetErrorString(CUresult code, const char** meaning);
PAGEJIT_EMULATOR_API CUresult cuDeviceGetCount(int* count);
PAGEJIT_EMULATOR_API CUresult cuDeviceGet(CUdevice* device, int ordinal);
PAGEJIT_EMULATOR_API CUresult cuDeviceGetName(char* name, int length, CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);

// ---- driver_context.cc ----

PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags,
                                                         int* active);
PAGEJIT_EMULATOR_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);
PAGEJIT_EMULATOR_API CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuCtxCreate_v4(CUcontext* context, void*, unsigned flags,
                                             CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuCtxDestroy_v2(CUcontext context);
PAGEJIT_EMULATOR_API CUresult cuCtxGetCurrent(CUcontext* context);
PAGEJIT_EMULATOR_API CUresult cuCtxSetCurrent(CUcontext context);
PAGEJIT_EMULATOR_API CUresult cuCtxPushCurrent_v2(CUcontext context);
PAGEJIT_EMULATOR_API CUresult cuCtxPopCurrent_v2(CUcontext* context);
PAGEJIT_EMULATOR_API CUresult cuCtxGetDevice(CUdevice* device);
PAGEJIT_EMULATOR_API CUresult cuCtxGetId(CUcontext context, unsigned long long* id);
PAGEJIT_EMULATOR_API CUresult cuCtxSynchronize();

// ---- driver_library.cc ----

PAGEJIT_EMULATOR_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, void*, void**,
                                                unsigned, void*, void**, unsigned);
PAGEJIT_EMULATOR_API CUresult cuLibraryUnload(CUlibrary library);
PAGEJIT_EMULATOR_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library,
                                                 const char* name);
PAGEJIT_EMULATOR_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel);
PAGEJIT_EMULATOR_API CUresult cuKernelGetAttribute(int* value, int attribute, CUkernel kernel,
                                                   CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel,
                                                   CUdevice device);
PAGEJIT_EMULATOR_API CUresult cuKernelGetName(const char** name, CUkernel kernel);
PAGEJIT_EMULATOR_API CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function);
PAGEJIT_EMULATOR_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
PAGEJIT_EMULATOR_API CUresult cuFuncGetName(const char** name, CUfunction function);
PAGEJIT_EMULATOR_API CUresult cuFuncLoad(CUfunction function);
PAGEJIT_EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_ctas,
                                                                          CUfunction function,
                                                                          int num_threads,
                                                                          size_t dynamic_shared);
PAGEJIT_EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* num_ctas, CUfunction function, int num_threads, size_t dynamic_shared, unsigned);

// ---- driver_launch.cc ----

PAGEJIT_EMULATOR_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                               void** params, void** extra);
PAGEJIT_EMULATOR_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                             unsigned grid_z, unsigned threads_x,
                                             unsigned threads_y, unsigned threads_z,
                                             unsigned shared_bytes, CUstream stream, void** params,
                                             void** extra);

// ---- driver_memory.cc ----

PAGEJIT_EMULATOR_API CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
PAGEJIT_EMULATOR_API CUresult cuMemFree_v2(CUdeviceptr address);
PAGEJIT_EMULATOR_API CUresult cuMemHostAlloc(void** p, size_t bytes, unsigned);
PAGEJIT_EMULATOR_API CUresult cuMemAllocHost_v2(void** p, size_t bytes);
PAGEJIT_EMULATOR_API CUresult cuMemFreeHost(void* p);
PAGEJIT_EMULATOR_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total);
PAGEJIT_EMULATOR_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                                   CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                                   CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                                   CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes);
PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes);
PAGEJIT_EMULATOR_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
PAGEJIT_EMULATOR_API CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value,
                                              size_t count, CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count,
                                               CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);
PAGEJIT_EMULATOR_API CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count);
PAGEJIT_EMULATOR_API CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr address);

// ---- driver_stream.cc ----

PAGEJIT_EMULATOR_API CUresult cuStreamCreate(CUstream* stream, unsigned flags);
PAGEJIT_EMULATOR_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int);
PAGEJIT_EMULATOR_API CUresult cuStreamDestroy_v2(CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuStreamSynchronize(CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuStreamQuery(CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);
PAGEJIT_EMULATOR_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
PAGEJIT_EMULATOR_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
PAGEJIT_EMULATOR_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);
PAGEJIT_EMULATOR_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode);

// ---- driver_graph.cc ----

PAGEJIT_EMULATOR_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                                          unsigned long long);
PAGEJIT_EMULATOR_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuGraphGetNodes(CUgraph graph, void* nodes, size_t* count);
PAGEJIT_EMULATOR_API CUresult cuGraphExecDestroy(CUgraphExec exec);
PAGEJIT_EMULATOR_API CUresult cuGraphDestroy(CUgraph graph);

// ---- driver_event.cc ----

PAGEJIT_EMULATOR_API CUresult cuEventCreate(CUevent* event, unsigned flags);
PAGEJIT_EMULATOR_API CUresult cuEventDestroy_v2(CUevent event);
PAGEJIT_EMULATOR_API CUresult cuEventRecord(CUevent event, CUstream stream);
PAGEJIT_EMULATOR_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned);
PAGEJIT_EMULATOR_API CUresult cuEventSynchronize(CUevent event);
PAGEJIT_EMULATOR_API CUresult cuEventQuery(CUevent event);
PAGEJIT_EMULATOR_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start,
                                                    CUevent end);
PAGEJIT_EMULATOR_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
PAGEJIT_EMULATOR_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned);

// ---- driver_symbols.cc ----

PAGEJIT_EMULATOR_API CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                                  uint64_t flags,
                                                  CUdriverProcAddressQueryResult* status);
PAGEJIT_EMULATOR_API CUresult cuGetProcAddress(const char* name, void** function, int version,
                                               uint64_t flags);

}  // namespace pagejit_emulator
