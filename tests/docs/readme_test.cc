// The example of the README computes attention.
#include <gtest/gtest.h>

#include "tests/embed/snippets/decode.cc"  // NOLINT(bugprone-suspicious-include)
#include "tools/check/device_batch.h"

namespace {

TEST(ReadmeTest, TheExampleComputesAttention) {
  const auto options = pagejit::EngineOptions::from_environment();
  ASSERT_TRUE(options) << options.status().to_string();
  const auto session = pagejit::DeviceSession::open(*options);
  ASSERT_TRUE(session) << session.status().to_string();
  const auto engine = pagejit::Engine::create(*options);
  ASSERT_TRUE(engine) << engine.status().to_string();

  pagejit::BatchOptions batch_options;
  batch_options.spec = {.head_size = 128, .block_size = 16, .group_size = 4};
  batch_options.num_kv_heads = 2;
  batch_options.seq_lens = {3, 40, 0};
  const auto batch = pagejit::make_attention_batch(batch_options);
  ASSERT_TRUE(batch) << batch.status().to_string();
  const auto device_batch = pagejit::DeviceBatch::upload(**session, *batch, true);
  ASSERT_TRUE(device_batch) << device_batch.status().to_string();

  const pagejit::Status launched = decode(**engine, device_batch->args(), nullptr);
  ASSERT_TRUE(launched) << launched.to_string();
  ASSERT_TRUE((*session)->synchronize());
  const auto results = device_batch->download();
  ASSERT_TRUE(results) << results.status().to_string();
  const pagejit::CheckReport report =
      pagejit::compare_results(*batch, pagejit::compute_reference(*batch), *results, true, 1);
  EXPECT_TRUE(report.passed) << report.sentence;
}

}  // namespace
