// LaunchTest: an engine and a kernel ready to launch on the stub driver, and what it means that a
// launch is refused. Thread-safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tests/runtime/engine_fixture.h"

namespace pagejit {

class LaunchTest : public EngineTest {
 protected:
  static constexpr KernelSpec kSpec{.group_size = 4};

  LaunchTest() : engine(make_engine()), kernel(prepare(*engine, kSpec)) {}

  void expect_refused(StatusCode code, const AttentionArgs& args, const std::string& part) {
    const Status status = kernel.launch(args, nullptr);
    EXPECT_EQ(status.code(), code) << part;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(part));
    EXPECT_EQ(script->calls("cuLaunchKernelEx"), 0u) << part;
  }

  // Changes one field of legal arguments.
  void expect_invalid(const std::function<void(AttentionArgs&)>& change, const std::string& part) {
    AttentionArgs args = legal_args();
    change(args);
    expect_refused(StatusCode::kInvalidArgument, args, part);
  }

  std::shared_ptr<Engine> engine;
  Kernel kernel;
};

}  // namespace pagejit
