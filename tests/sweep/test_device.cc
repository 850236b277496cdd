#include "tests/sweep/test_device.h"

#include <cstdlib>
#include <utility>

#include "tests/sweep/error_summary.h"

namespace pagejit {
namespace {

Result<std::unique_ptr<TestDevice>> open_device() {
  Result<EngineOptions> options = EngineOptions::from_environment();
  if (!options) return options.status();
  auto device = std::make_unique<TestDevice>();
  device->options = *options;
  Result<std::unique_ptr<DeviceSession>> session = DeviceSession::open(*options);
  if (!session) return session.status();
  device->session = std::move(session).value();
  Result<std::shared_ptr<Engine>> engine = Engine::create(*options);
  if (!engine) return engine.status();
  device->engine = std::move(engine).value();
  if (device->session->is_emulator()) {
    device->emulator = std::make_unique<EmulatorControls>(device->session->driver());
  }
  return device;
}

// Opens the device at the first need, and closes it while the driver's library is still alive.
class DeviceEnvironment : public testing::Environment {
 public:
  TestDevice* get() {
    if (!opened_) {
      opened_ = true;
      Result<std::unique_ptr<TestDevice>> device = open_device();
      if (device) {
        device_ = std::move(device).value();
      } else {
        status_ = device.status();
      }
    }
    return device_.get();
  }
  const Status& status() const { return status_; }
  void TearDown() override {
    if (device_ != nullptr) {
      device_->checked_engine.reset();
      device_->engine.reset();
      device_.reset();
    }
    opened_ = false;
  }

 private:
  bool opened_ = false;
  std::unique_ptr<TestDevice> device_;
  Status status_;
};

// GoogleTest owns it.
DeviceEnvironment* const environment =
    static_cast<DeviceEnvironment*>(testing::AddGlobalTestEnvironment(new DeviceEnvironment));

template <class Function>
Function find(const Driver& driver, const char* name) {
  void* symbol = driver.symbol(name);
  EXPECT_NE(symbol, nullptr) << "the emulator does not export " << name;
  return reinterpret_cast<Function>(symbol);
}

}  // namespace

EmulatorControls::EmulatorControls(const Driver& driver)
    : options_(find<decltype(options_)>(driver, "pagejit_emulator_options")),
      configure_(find<decltype(configure_)>(driver, "pagejit_emulator_configure")),
      counters_(find<decltype(counters_)>(driver, "pagejit_emulator_counters")),
      reset_counters_(find<decltype(reset_counters_)>(driver, "pagejit_emulator_reset_counters")),
      cta_bytes_read_(find<decltype(cta_bytes_read_)>(driver, "pagejit_emulator_cta_bytes_read")),
      last_report_(find<decltype(last_report_)>(driver, "pagejit_emulator_last_report")) {}

PagejitEmulatorOptions EmulatorControls::options() const {
  PagejitEmulatorOptions options = {};
  options.struct_size = sizeof options;
  options_(&options);
  return options;
}

void EmulatorControls::configure(const PagejitEmulatorOptions& options) const {
  EXPECT_EQ(configure_(&options), 0) << "the emulator refused its options";
}

void EmulatorControls::set_schedule(PagejitEmulatorOrder order,
                                    PagejitEmulatorCompletion completion, uint64_t seed) const {
  PagejitEmulatorOptions options = this->options();
  options.order = order;
  options.completion = completion;
  options.seed = seed;
  configure(options);
}

void EmulatorControls::for_each_schedule(const std::function<void()>& body) const {
  const PagejitEmulatorOptions saved = options();
  for (PagejitEmulatorOrder order :
       {kPagejitEmulatorFifo, kPagejitEmulatorLifo, kPagejitEmulatorRandom}) {
    for (PagejitEmulatorCompletion completion :
         {kPagejitEmulatorLate, kPagejitEmulatorEarly, kPagejitEmulatorRandomCompletion}) {
      SCOPED_TRACE("order " + std::to_string(order) + ", completion " + std::to_string(completion));
      PagejitEmulatorOptions schedule = saved;
      schedule.order = order;
      schedule.completion = completion;
      schedule.resident = order == kPagejitEmulatorRandom ? 5 : 1;
      configure(schedule);
      body();
    }
  }
  configure(saved);
}

PagejitEmulatorCounters EmulatorControls::counters() const {
  PagejitEmulatorCounters counters = {};
  counters.struct_size = sizeof counters;
  counters_(&counters);
  return counters;
}

std::vector<uint64_t> EmulatorControls::cta_bytes_read() const {
  std::vector<uint64_t> bytes(cta_bytes_read_(nullptr, 0));
  cta_bytes_read_(bytes.data(), bytes.size());
  return bytes;
}

CapturedLaunch::CapturedLaunch(const Driver& driver, const Kernel& kernel,
                               const AttentionArgs& args)
    : driver_(driver) {
  EXPECT_EQ(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const Status captured = kernel.launch(args, stream_);
  EXPECT_EQ(driver.cuStreamEndCapture(stream_, &graph_), CUDA_SUCCESS);
  EXPECT_TRUE(captured.is_ok()) << captured.to_string();
  EXPECT_EQ(driver.cuGraphInstantiateWithFlags(&executable_, graph_, 0), CUDA_SUCCESS);
}

CapturedLaunch::~CapturedLaunch() {
  EXPECT_EQ(driver_.cuGraphExecDestroy(executable_), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuGraphDestroy(graph_), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuStreamDestroy(stream_), CUDA_SUCCESS);
}

bool CapturedLaunch::replay() {
  return driver_.cuGraphLaunch(executable_, stream_) == CUDA_SUCCESS &&
         driver_.cuStreamSynchronize(stream_) == CUDA_SUCCESS;
}

void DeviceTest::SetUp() {
  device_ = environment->get();
  if (device_ == nullptr) {
    const char* asked = std::getenv("PAGEJIT_DRIVER");
    if (asked != nullptr && *asked != '\0') {
      FAIL() << "PAGEJIT_DRIVER=" << asked << ": " << environment->status().to_string();
    }
    GTEST_SKIP() << "no GPU to run on: " << environment->status().message();
  }
  if (device_->emulator != nullptr) saved_ = device_->emulator->options();
}

void DeviceTest::TearDown() {
  if (device_ != nullptr && device_->emulator != nullptr) device_->emulator->configure(saved_);
}

Engine& DeviceTest::checked_engine() {
  EXPECT_NE(device_->emulator, nullptr) << "only the emulator has checked builds";
  if (device_->checked_engine == nullptr) {
    EngineOptions options = device_->options;
    options.host_build = HostBuild::kChecked;
    Result<std::shared_ptr<Engine>> made = Engine::create(options);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    device_->checked_engine = std::move(made).value();
  }
  return *device_->checked_engine;
}

Kernel DeviceTest::prepare(const KernelSpec& spec) {
  Result<Kernel> kernel = engine().prepare(spec);
  EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
  return kernel ? *kernel : Kernel();
}

CheckReport DeviceTest::launch_and_compare(const Kernel& kernel, DeviceBatch& device_batch,
                                           const AttentionArgs& args, const AttentionBatch& batch,
                                           const ReferenceResults& reference) {
  Status status = device_batch.reset_results();
  if (status) status = kernel.launch(args, nullptr);
  if (status) status = session().synchronize();
  EXPECT_TRUE(status.is_ok()) << status.to_string() << report();
  const Result<AttentionResults> results = device_batch.download();
  EXPECT_TRUE(results.is_ok()) << results.status().to_string();
  if (!status || !results) return {};
  return compare_results(batch, reference, *results, args.lse != nullptr, args.num_splits);
}

void DeviceTest::expect_passes(const KernelSpec& spec, const CheckOptions& options) {
  const Result<CheckReport> result = run_check(engine(), session(), spec, options);
  ASSERT_TRUE(result.is_ok()) << canonical_text(spec) << ": " << result.status().to_string()
                              << result.status().detail() << report();
  expect_passed(*result, canonical_text(spec));
}

bool DeviceTest::lacks_memory(const Status& status) const {
  return device_->emulator == nullptr &&
         status.message().find("OUT_OF_MEMORY") != std::string::npos;
}

std::string DeviceTest::report() const {
  return device_->emulator == nullptr ? "" : "\n" + device_->emulator->last_report();
}

const char* name_of(QueryLengths queries) {
  switch (queries) {
    case QueryLengths::kOne:
      return "one";
    case QueryLengths::kFew:
      return "few";
    case QueryLengths::kMany:
      return "many";
    case QueryLengths::kShared:
      return "shared";
  }
  return "unknown";
}

KernelSpec make_spec(DataType type, int head_size, int block_size, int group_size, bool debug) {
  return {.q_dtype = type,
          .kv_dtype = type,
          .out_dtype = type,
          .head_size = head_size,
          .block_size = block_size,
          .group_size = group_size,
          .debug = debug};
}

KernelSpec make_ragged_spec(QueryLengths queries, Causality causality, DataType type, int head_size,
                            int group_size) {
  KernelSpec spec = make_spec(type, head_size, 16, group_size);
  spec.queries = queries;
  spec.causality = causality;
  return spec;
}

AttentionBatch make_batch(const BatchOptions& options) {
  Result<AttentionBatch> batch = make_attention_batch(options);
  EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
  return batch ? std::move(batch).value() : AttentionBatch();
}

}  // namespace pagejit
