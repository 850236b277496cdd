// A remote under an engine: what it has is not compiled, what was compiled is offered to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "cache/http_transport.h"
#include "cache/signature.h"
#include "runtime/metadata.h"
#include "runtime/optional/sodium.h"
#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

// A server in memory.
class FakeServer final : public cache::HttpTransport {
 public:
  cache::HttpAnswer send(const cache::HttpRequest& request) override {
    const std::lock_guard lock(mutex);
    ++requests;
    cache::HttpAnswer answer;
    if (is_down) {
      answer.failure = cache::HttpFailure::kConnect;
      answer.reason = "connection refused";
      return answer;
    }
    if (request.method == cache::HttpMethod::kPut) {
      files[request.url] = request.body;
      answer.status = 201;
      return answer;
    }
    const auto found = files.find(request.url);
    answer.status = found == files.end() ? 404 : 200;
    if (found != files.end() && request.method == cache::HttpMethod::kGet) {
      answer.body = found->second;
    }
    return answer;
  }

  std::mutex mutex;
  std::map<std::string, std::string> files;
  bool is_down = false;
  int requests = 0;
};

class StoreRemoteTest : public JitPolicyTest {
 protected:
  std::shared_ptr<Engine> engine_on(const std::string& name, EngineOptions with) {
    with.cache_dir = directory.path() + "/" + name;
    with.remote = "http://kernels.example/v1";
    EngineDependencies parts = dependencies();
    parts.http = server;
    Result<std::shared_ptr<Engine>> engine = create_engine(std::move(with), std::move(parts));
    EXPECT_TRUE(engine) << engine.status().to_string();
    return engine ? *engine : nullptr;
  }
  std::shared_ptr<Engine> writer(const std::string& name) {
    EngineOptions with = options();
    with.remote_write = true;
    return engine_on(name, with);
  }
  // An entry that some machine has uploaded.
  void fill() {
    ASSERT_EQ(prepare(*writer("first"), kSpec).info().origin, ImageOrigin::kCompiled);
    ASSERT_EQ(server->files.size(), 1u) << "an engine's end waits for its uploads";
    nvrtc->compiles = nvrtc->openings = 0;
  }

  std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
};

TEST_F(StoreRemoteTest, ASecondMachineCompilesNothingAndKeepsWhatItGot) {
  fill();
  {
    const auto engine = engine_on("second", options_with(JitPolicy::kError));
    EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kRemote);
    EXPECT_EQ(engine->stats().remote_hits, 1u);
    EXPECT_EQ(nvrtc->openings, 0);
  }
  const int asked = server->requests;
  EXPECT_EQ(prepare(*engine_on("second", options()), kSpec).info().origin, ImageOrigin::kDisk);
  EXPECT_EQ(server->requests, asked);
}

TEST_F(StoreRemoteTest, AHitOpensNoCompiler) {
  fill();
  EXPECT_EQ(prepare(*engine_on("second", options()), kSpec).info().origin, ImageOrigin::kRemote);
  EXPECT_EQ(nvrtc->compiles, 0);
  EXPECT_EQ(nvrtc->target_checks, 1) << "by the first machine's compile";
}

TEST_F(StoreRemoteTest, WhatIsUploadedTellsNoTimesSoThatAllMachinesUploadTheSame) {
  fill();
  const Result<cache::Entry> entry = cache::decode_entry(server->files.begin()->second);
  ASSERT_TRUE(entry) << entry.status().to_string();
  EXPECT_EQ(entry->metadata, *reproducible_metadata(entry->metadata));
}

TEST_F(StoreRemoteTest, ShardsPrecompiledIntoOneRemoteEqualOneRun) {
  constexpr int kSpecs = 7;  // in shards with 3, 2 and 2
  constexpr int kShards = 3;
  const Target target = *parse_target("sm_90a");
  const auto precompile = [&](const std::string& machine, int first, int step) {
    const auto engine = writer(machine);
    for (int i = first; i < kSpecs; i += step) {
      const Result<KernelInfo> info = engine->precompile(KernelSpec{.group_size = i + 1}, target);
      ASSERT_TRUE(info) << info.status().to_string();
      EXPECT_EQ(info->origin, ImageOrigin::kCompiled);
    }
  };
  precompile("alone", 0, 1);
  const std::map<std::string, std::string> expected = std::exchange(server->files, {});
  ASSERT_EQ(expected.size(), size_t{kSpecs});
  for (int shard = 0; shard < kShards; ++shard) {
    nvrtc->compile_ms = 100.25 * (shard + 1);
    nvrtc->log = "log of machine " + std::to_string(shard);
    precompile("shard" + std::to_string(shard), shard, kShards);
  }
  EXPECT_EQ(server->files, expected) << "to the byte";
  EXPECT_EQ(nvrtc->compiles, 2 * kSpecs);
}

TEST_F(StoreRemoteTest, NothingIsUploadedUnlessItIsAskedFor) {
  prepare(*engine_on("first", options()), kSpec);
  EXPECT_TRUE(server->files.empty());
}

TEST_F(StoreRemoteTest, AServerThatIsDownCostsACompileAndIsLeftAlone) {
  server->is_down = true;
  const auto engine = engine_on("first", options());
  for (int group_size = 1; group_size <= 6; ++group_size) {
    EXPECT_EQ(prepare(*engine, {.group_size = group_size}).info().origin, ImageOrigin::kCompiled);
  }
  EXPECT_EQ(server->requests, 3) << "then its breaker opens";
  EXPECT_EQ(engine->stats().remote_failures, 3u);
  EXPECT_EQ(engine->stats().remote_breaker_opens, 1u);
}

TEST_F(StoreRemoteTest, ALyingServerCostsACompile) {
  fill();
  for (auto& [url, body] : server->files) body[body.size() / 2] ^= 1;
  const auto engine = engine_on("second", options());
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kCompiled);
  EXPECT_EQ(engine->stats().remote_hits, 0u);
  EXPECT_EQ(engine->stats().remote_failures, 1u);
}

TEST_F(StoreRemoteTest, RequireSignedTakesOnlySignedEntries) {
  fill();
  const auto signer = make_sodium_signer(SigningSeed{7});
  ASSERT_TRUE(signer) << signer.status().to_string();
  EngineOptions with = options();
  with.trusted_keys = {cache::to_hex((*signer)->public_key())};
  with.require_signed = true;
  EXPECT_EQ(prepare(*engine_on("second", with), kSpec).info().origin, ImageOrigin::kCompiled);

  for (auto& [url, body] : server->files) {
    const Result<std::string> block = cache::sign_entry(body, **signer);
    ASSERT_TRUE(block) << block.status().to_string();
    body += *block;
  }
  EXPECT_EQ(prepare(*engine_on("third", with), kSpec).info().origin, ImageOrigin::kRemote);
  for (auto& [url, body] : server->files) body.back() ^= 1;
  EXPECT_EQ(prepare(*engine_on("fourth", with), kSpec).info().origin, ImageOrigin::kCompiled);
}

TEST_F(StoreRemoteTest, ObjectsForTheHostCrossTheNetworkOnlySigned) {
  const Target target = *parse_target("host");
  ASSERT_TRUE(writer("first")->precompile(kSpec, target));
  EXPECT_TRUE(server->files.empty()) << "nobody should take it, so nobody offers it";
  EXPECT_EQ(server->requests, 0);

  EngineOptions with = options();
  with.trusted_keys = {std::string(64, '0')};
  with.require_signed = true;
  ASSERT_TRUE(engine_on("second", with)->precompile(kSpec, target));
  EXPECT_EQ(server->requests, 1) << "where signatures are required it is asked for";
}

TEST_F(StoreRemoteTest, UploadsThatNoReaderWouldTakeAreRefused) {
  EngineOptions with = options();
  with.remote_write = true;
  with.trusted_keys = {std::string(64, '0')};
  with.require_signed = true;
  prepare(*engine_on("first", with), kSpec);
  EXPECT_EQ(server->requests, 0);
  EXPECT_TRUE(logged(LogLevel::kWarning, "bundle push --key-file"));
}

TEST_F(StoreRemoteTest, AUrlThatCannotBeOneIsSaidOnce) {
  EngineOptions with = options();
  with.remote = "ftp://kernels.example";
  const auto engine = make_engine(with);
  prepare(*engine, kSpec);
  prepare(*engine, {.group_size = 8});
  EXPECT_EQ(log_lines(LogLevel::kWarning), 1u);
  EXPECT_TRUE(logged(LogLevel::kWarning, "the remote is not used"));
}

}  // namespace
}  // namespace pagejit
