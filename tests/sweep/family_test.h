// What the tests of the families beside attention share: device memory from vectors, kernels of any
// family, launches that are waited for. Failures fail the test. Thread-safety: the main thread of a
// test program.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sweep/test_device.h"
#include "tools/check/device_buffer.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {

// encode_float() and decode_float() in arrays of bytes.
void put_element(DataType type, std::vector<uint8_t>& bytes, int64_t index, float value);
uint32_t get_code(DataType type, const std::vector<uint8_t>& bytes, int64_t index);
float get_element(DataType type, const std::vector<uint8_t>& bytes, int64_t index);

// Device memory from a vector, and back.
template <class T>
DeviceBuffer upload_all(const DeviceSession& session, const std::vector<T>& host) {
  Result<DeviceBuffer> buffer =
      DeviceBuffer::copy_of(session, host.data(), host.size() * sizeof(T));
  EXPECT_TRUE(buffer.is_ok()) << buffer.status().to_string();
  return buffer ? std::move(buffer).value() : DeviceBuffer();
}
template <class T>
std::vector<T> download_all(const DeviceBuffer& buffer) {
  std::vector<T> host(buffer.size_bytes() / sizeof(T));
  const Status status = buffer.download(0, host.data(), host.size() * sizeof(T));
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  return host;
}

// "" where the launch has ended well, else what went wrong.
template <class Handle, class Args>
std::string launch_and_wait(const DeviceSession& session, const Handle& kernel, const Args& args) {
  Status status = kernel.launch(args, nullptr);
  if (status) status = session.synchronize();
  return status ? "" : status.to_string();
}

// The first difference; "" where there is none.
std::string compare_bytes(const char* what, const std::vector<uint8_t>& got,
                          const std::vector<uint8_t>& want);

class FamilyTest : public DeviceTest {
 protected:
  template <class T>
  DeviceBuffer upload(const std::vector<T>& host) {
    return upload_all(session(), host);
  }

  template <KernelFamily Spec>
  typename Spec::Handle prepare_family(const Spec& spec) {
    Result<typename Spec::Handle> kernel = engine().prepare(spec);
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
    return kernel ? *kernel : typename Spec::Handle();
  }

  // Launches and waits.
  template <class Handle, class Args>
  bool run(const Handle& kernel, const Args& args) {
    const std::string fault = launch_and_wait(session(), kernel, args);
    EXPECT_EQ(fault, "") << report();
    return fault.empty();
  }

  // A fault with the emulator's report; "" for none.
  std::string with_report(const std::string& fault) const {
    return fault.empty() ? fault : fault + report();
  }
};

}  // namespace pagejit
