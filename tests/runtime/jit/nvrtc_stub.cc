// A stand-in for libnvrtc of version STUB_MAJOR.STUB_MINOR. Its "cubin" is the source; its log is
// the program's name and the options, one a line. A source that begins with "FAIL n" fails with
// nvrtcResult n. STUB_INCOMPLETE leaves out a function.
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
  *program = new Program{source, name, {}};
  return 0;
}
EXPORT int nvrtcDestroyProgram(void** program) {
  delete cast(*program);
  *program = nullptr;
  return 0;
}
EXPORT int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  Program& p = *cast(program);
  p.log = p.name + "\n";
  for (int i = 0; i < count; ++i) p.log += std::string(options[i]) + "\n";
  return p.source.compare(0, 5, "FAIL ") == 0 ? std::atoi(p.source.c_str() + 5) : 0;
}
EXPORT int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = cast(program)->source.size();
  return 0;
}
#ifndef STUB_INCOMPLETE
EXPORT int nvrtcGetCUBIN(void* program, char* cubin) {
  const std::string& source = cast(program)->source;
  std::memcpy(cubin, source.data(), source.size());
  return 0;
}
#endif
EXPORT int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = cast(program)->log.size() + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(void* program, char* log) {
  std::strcpy(log, cast(program)->log.c_str());
  return 0;
}
