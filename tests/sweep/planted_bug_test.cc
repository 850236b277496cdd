// Bugs planted in the templates must be found by what the sweeps and `pagejit check` do: proof that
// they can fail. Each bug is one replacement in one template file; an engine renders from the
// changed set, all else is as in the other tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "tests/sweep/edited_engine.h"
#include "tests/sweep/planted_bugs.h"
#include "tests/sweep/planted_problems.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr PlantedBug::Kernels kAllKernels[] = {
    PlantedBug::kDecode, PlantedBug::kRagged,      PlantedBug::kElements, PlantedBug::kF32Caches,
    PlantedBug::kPdl,    PlantedBug::kBlockSparse, PlantedBug::kMasks,    PlantedBug::kLatent};

std::vector<PlantedBug> all_bugs() {
  std::vector<PlantedBug> bugs = planted_bugs();
  bugs.insert(bugs.end(), planted_latent_bugs().begin(), planted_latent_bugs().end());
  return bugs;
}

class PlantedBugTest : public EmulatorTest {
 protected:
  // An engine whose kernels are rendered with `bug`; null for none.
  std::shared_ptr<Engine> make_engine(const PlantedBug* bug, HostBuild build) {
    EngineOptions options = device().options;
    options.host_build = build;
    if (bug == nullptr) return make_edited_engine(options, {});
    return make_edited_engine(options, {bug->file, bug->from, bug->to});
  }

  // What is wrong with the engine's kernels; empty if nothing was found. A kernel that does not
  // compile shows nothing; it fails the test.
  std::string find_bug(Engine& bugged, PlantedBug::Kernels kernels) {
    for (const PlantedProblem& problem : planted_problems(kernels)) {
      const Result<Kernel> kernel = bugged.prepare(problem.spec);
      EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string() << kernel.status().detail();
      if (!kernel) return "";
      const std::string found =
          problem.kind == PlantedProblem::kLaterLaunches ? find_in_later_launches(*kernel)
          : problem.kind == PlantedProblem::kEndOfMask   ? find_beside_mask(*kernel)
                                                         : find_by_check(bugged, problem);
      if (!found.empty()) return found;
    }
    return "";
  }

 private:
  std::string find_by_check(Engine& bugged, const PlantedProblem& problem) {
    const Result<CheckReport> result = run_check(bugged, session(), problem.spec, problem.options);
    if (!result) return result.status().to_string() + report();
    return result->passed ? "" : result->sentence;
  }

  // What a launch reads behind its custom mask, with whose last byte the allocation ends; the mask
  // begins behind a byte of another.
  std::string find_beside_mask(const Kernel& kernel) {
    BatchOptions options;
    options.spec = kernel.spec();
    options.seq_lens = {43};
    options.query_lens = {31};  // 167 bytes
    AttentionBatch batch = make_batch(options);
    batch.custom_mask.back() = batch.custom_mask.front();
    std::rotate(batch.custom_mask.begin(), batch.custom_mask.end() - 1, batch.custom_mask.end());
    batch.custom_mask_indptr = {1, static_cast<int32_t>(batch.custom_mask.size())};
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    EXPECT_TRUE(device_batch.is_ok());
    AttentionArgs args = device_batch->args();
    args.num_splits = 1;
    Status status = kernel.launch(args, nullptr);
    if (status) status = session().synchronize();
    if (!status) return status.to_string() + report();
    const Result<AttentionResults> results = device_batch->download();
    if (!results) return results.status().to_string();
    const CheckReport result = compare_results(batch, compute_reference(batch), *results, true, 1);
    return result.passed ? "" : result.sentence;
  }

  // Launches over a workspace that others before have used, each with splits that finish in another
  // order: the results must be right, and the same to the bit.
  std::string find_in_later_launches(const Kernel& kernel) {
    BatchOptions options;
    options.spec = kernel.spec();
    options.seq_lens = {300};
    const AttentionBatch batch = make_batch(options);
    Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
    Result<Workspace> workspace =
        Workspace::create(session(), kernel, kernel.workspace_bytes(1, 1, 300, 3));
    EXPECT_TRUE(device_batch.is_ok() && workspace.is_ok());
    AttentionArgs args = device_batch->args();
    args.num_splits = 3;
    workspace->put_into(args);
    const ReferenceResults reference = compute_reference(batch);
    const PagejitEmulatorOptions usual = emulator().options();
    AttentionResults first;
    std::string found;
    for (uint64_t launch = 0; launch < 5 && found.empty(); ++launch) {
      PagejitEmulatorOptions schedule = usual;
      if (launch > 0) schedule.order = kPagejitEmulatorRandom;
      if (launch > 0) schedule.resident = 3;
      schedule.seed = launch;
      emulator().configure(schedule);
      Status status = device_batch->reset_results();
      if (status) status = kernel.launch(args, nullptr);
      if (status) status = session().synchronize();
      if (!status) return status.to_string() + report();
      const Result<AttentionResults> results = device_batch->download();
      if (!results) return results.status().to_string();
      const CheckReport result = compare_results(batch, reference, *results, true, 3);
      if (!result.passed) found = result.sentence;
      if (launch == 0) first = *results;
      const bool same_lse =
          std::equal(first.lse.begin(), first.lse.end(), results->lse.begin(), results->lse.end(),
                     [](float a, float b) {
                       return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
                     });
      if (found.empty() && !(results->out == first.out && same_lse)) {
        found = "launch " + std::to_string(launch) + " gives other bits than the first";
      }
    }
    emulator().configure(usual);
    return found;
  }
};

TEST_F(PlantedBugTest, NothingIsFoundInTheRealTemplates) {
  for (HostBuild build : {HostBuild::kPlain, HostBuild::kChecked}) {
    const std::shared_ptr<Engine> engine = make_engine(nullptr, build);
    for (const PlantedBug::Kernels kernels : kAllKernels) {
      EXPECT_EQ(find_bug(*engine, kernels), "") << "kernels " << kernels;
    }
  }
}

class EachPlantedBugTest : public PlantedBugTest, public testing::WithParamInterface<PlantedBug> {};

TEST_P(EachPlantedBugTest, IsFound) {
  const PlantedBug& bug = GetParam();
  const HostBuild build = bug.only_checked ? HostBuild::kChecked : HostBuild::kPlain;
  const std::shared_ptr<Engine> engine = make_engine(&bug, build);
  ASSERT_NE(engine, nullptr);
  const std::string found = find_bug(*engine, bug.kernels);
  EXPECT_NE(found, "");
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(Bugs, EachPlantedBugTest, testing::ValuesIn(all_bugs()),
                         [](const testing::TestParamInfo<PlantedBug>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace pagejit
