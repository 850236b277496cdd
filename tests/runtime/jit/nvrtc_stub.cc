// A stand-in for libnvrtc of version STUB_MAJOR.STUB_MINOR. Its "cubin" is the source; its log is
// the program's name and the options, one a line. A source that begins with "FAIL n" fails with
// nvrtcResult n; one that begins with "HANG" compiles until its flow callback says 1, which
// versions from 12.8 on ask. STUB_INCOMPLETE leaves out a function.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
struct Program {
  std::string source;
  std::string name;
  std::string log;
  int (*callback)(void*, void*) = nullptr;
  void* payload = nullptr;
};
Program* cast(void* program) { return static_cast<Program*>(program); }
constexpr int kArchs[] = {80, 90, 100, 120};
}  // namespace

EXPORT const char* nvrtcGetErrorString(int result) {
  return result == 7 ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE" : "NVRTC_ERROR_STUB";
}
EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = STUB_MAJOR;
  *minor = STUB_MINOR;
  return 0;
}
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = 4;
  return 0;
}
EXPORT int nvrtcGetSupportedArchs(int* archs) {
  std::memcpy(archs, kArchs, sizeof(kArchs));
  return 0;
}
EXPORT int nvrtcCreateProgram(void** program, const char* source, const char* name, int,
                              const char* const*, const char* const*) {
  *program = new Program{source, name, {}, nullptr, nullptr};
  return 0;
}
EXPORT int nvrtcDestroyProgram(void** program) {
  delete cast(*program);
  *program = nullptr;
  return 0;
}
#if STUB_MAJOR > 12 || STUB_MINOR >= 8
EXPORT int nvrtcSetFlowCallback(void* program, int (*callback)(void*, void*), void* payload) {
  cast(program)->callback = callback;
  cast(program)->payload = payload;
  return 0;
}
#endif
EXPORT int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  Program& p = *cast(program);
  p.log = p.name + "\n";
  for (int i = 0; i < count; ++i) p.log += std::string(options[i]) + "\n";
  if (p.source.compare(0, 4, "HANG") == 0) {
    if (p.callback == nullptr) return 11;  // it would be for ever
    while (p.callback(p.payload, nullptr) != 1) {
    }
    return 16;
  }
  return p.source.compare(0, 5, "FAIL ") == 0 ? std::atoi(p.source.c_str() + 5) : 0;
}
EXPORT int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = cast(program)->source.size();
  return 0;
}
#ifndef STUB_INCOMPLETE
EXPORT int nvrtcGetCUBIN(void* program, char* cubin) {
  const std::string& source = cast(program)->source;
  source.copy(cubin, source.size());
  return 0;
}
#endif
EXPORT int nvrtcGetPTXSize(void* program, size_t* bytes) {
  *bytes = cast(program)->source.size() + 5;  // "ptx " and the closing null
  return 0;
}
EXPORT int nvrtcGetPTX(void* program, char* ptx) {
  std::strcpy(ptx, ("ptx " + cast(program)->source).c_str());
  return 0;
}
EXPORT int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = cast(program)->log.size() + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(void* program, char* log) {
  std::strcpy(log, cast(program)->log.c_str());
  return 0;
}
