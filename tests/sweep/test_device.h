// The device that the sweeps run on: the emulator where PAGEJIT_DRIVER says so, else a GPU, else
// the tests skip. One engine and one session for all tests of a program, opened at the first need
// and closed after the last test. Thread-safety: the main thread of a test program.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "runtime/emulator/emulator.h"
#include "tools/check/check.h"
#include "tools/check/device_batch.h"

namespace pagejit {

// The emulator's own controls, found in the driver's library.
class EmulatorControls {
 public:
  explicit EmulatorControls(const Driver& driver);

  PagejitEmulatorOptions options() const;
  void configure(const PagejitEmulatorOptions& options) const;
  void set_schedule(PagejitEmulatorOrder order, PagejitEmulatorCompletion completion,
                    uint64_t seed) const;
  // Calls body() under every order of threads with every completion of copies; in random order five
  // CTAs are resident at a time. The schedule goes back afterwards.
  void for_each_schedule(const std::function<void()>& body) const;
  void reset_counters() const { reset_counters_(); }
  PagejitEmulatorCounters counters() const;
  // Of global memory, by each CTA of the last launch.
  std::vector<uint64_t> cta_bytes_read() const;
  std::string last_report() const { return last_report_(); }

 private:
  decltype(&pagejit_emulator_options) options_;
  decltype(&pagejit_emulator_configure) configure_;
  decltype(&pagejit_emulator_counters) counters_;
  decltype(&pagejit_emulator_reset_counters) reset_counters_;
  decltype(&pagejit_emulator_cta_bytes_read) cta_bytes_read_;
  decltype(&pagejit_emulator_last_report) last_report_;
};

struct TestDevice {
  EngineOptions options;
  std::unique_ptr<DeviceSession> session;
  std::shared_ptr<Engine> engine;
  std::shared_ptr<Engine> checked_engine;      // of HostBuild::kChecked; made at the first need
  std::unique_ptr<EmulatorControls> emulator;  // null on a GPU
};

// One launch, captured in a graph on a stream of its own, to be replayed. Failures fail the test.
class CapturedLaunch {
 public:
  CapturedLaunch(const Driver& driver, const Kernel& kernel, const AttentionArgs& args);
  ~CapturedLaunch();
  CapturedLaunch(const CapturedLaunch&) = delete;
  CapturedLaunch& operator=(const CapturedLaunch&) = delete;

  // Launches the graph and waits for it. False where a call of the driver failed.
  bool replay();

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

// A test that runs kernels. Without a device it skips with the reason; but where PAGEJIT_DRIVER
// asks for one it fails.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override;
  // The emulator's schedule goes back to what the environment says.
  void TearDown() override;

  TestDevice& device() { return *device_; }
  const DeviceSession& session() { return *device_->session; }
  Engine& engine() { return *device_->engine; }
  // HostBuild::kChecked; fails the test on a GPU.
  Engine& checked_engine();

  // Prepares a kernel; fails the test where that fails.
  Kernel prepare(const KernelSpec& spec);
  // Launches, waits, downloads and compares.
  CheckReport launch_and_compare(const Kernel& kernel, DeviceBatch& device_batch,
                                 const AttentionArgs& args, const AttentionBatch& batch,
                                 const ReferenceResults& reference);
  // One check on random data; fails the test where it does not run or does not pass.
  void expect_passes(const KernelSpec& spec, const CheckOptions& options);
  // Whether a GPU is too small for a test that needs much memory; the emulator never is.
  bool lacks_memory(const Status& status) const;
  // What to add to a failure: the emulator's last report.
  std::string report() const;

 private:
  TestDevice* device_ = nullptr;
  PagejitEmulatorOptions saved_ = {};
};

// Tests of the fixture `Base`, a DeviceTest, that look into the emulator: they skip on a GPU.
template <class Base>
class OnEmulator : public Base {
 protected:
  void SetUp() override {
    Base::SetUp();
    if (this->IsSkipped() || this->HasFatalFailure()) return;
    if (this->device().emulator == nullptr) {
      GTEST_SKIP() << "the test looks into the emulator, and this is a GPU";
    }
  }
  const EmulatorControls& emulator() { return *this->device().emulator; }
};

using EmulatorTest = OnEmulator<DeviceTest>;

// "one", "few", "many" or "shared".
const char* name_of(QueryLengths queries);

KernelSpec make_spec(DataType type, int head_size, int block_size, int group_size,
                     bool debug = false);

// Of blocks of 16 tokens, for several query tokens per sequence.
KernelSpec make_ragged_spec(QueryLengths queries, Causality causality, DataType type, int head_size,
                            int group_size);

// A batch that must be valid; fails the test where it is not.
AttentionBatch make_batch(const BatchOptions& options);

}  // namespace pagejit
