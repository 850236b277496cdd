// Planted mistakes that the checked build must find in every order, each with the line.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "tests/runtime/emulator/emulator_fixture.h"

namespace pagejit_emulator {
namespace {

using pagejit::HostBuild;
using ::testing::HasSubstr;

// The line on which `marker` stands, as reports name it. Kernel texts here begin with a newline, as
// raw strings do.
std::string line_of(const std::string& text, const std::string& marker) {
  const size_t at = text.find(marker);
  EXPECT_NE(at, std::string::npos) << marker;
  return "kernel.cu:" +
         std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

struct Params {
  uint32_t* out;
  const uint32_t* in;
  uint32_t* counter;
};

constexpr const char* kParams = R"(
struct Params { uint32_t* out; const uint32_t* in; uint32_t* counter; };
)";

constexpr const char* kClearShared = R"(
  for (int i = t; i < 1024; i += 64) reinterpret_cast<uint32_t*>(dev::dynamic_shared())[i] = 0;
  dev::sync_cta();
)";

// A kernel of 64 threads per CTA called "k": its body, and what its report must say.
struct Mistake {
  const char* name;
  const char* body;
  std::vector<std::string> findings;
  unsigned grid_x = 1;
  bool clears_shared =
      true;  // writes all of it first, so that a race is not taken for a read of unwritten bytes
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

const Mistake kMistakes[] = {
    {"SharedRaceWithoutBarrier",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = t;                                      // LINE1
  dev::store_global(params.out + t, s[t ^ 32]);  // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"SharedRaceAcrossLanesWithoutSyncWarp",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = t;                                     // LINE1
  const float unused = dev::shuffle_xor(1.0f, 1);  // no barrier
  dev::store_global(params.out + t, s[t ^ 1] + static_cast<uint32_t>(unused));  // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"SyncWarpDoesNotOrderOtherWarps",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = t;                                      // LINE1
  dev::sync_warp();
  dev::store_global(params.out + t, s[t ^ 32]);  // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"NamedBarrierOfOneWarpDoesNotOrderTheOther",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = t;                                      // LINE1
  dev::sync_named(1 + t / 32, 32);
  dev::store_global(params.out + t, s[t ^ 32]);  // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"WriteAfterReadWithoutBarrier",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = t;
  dev::sync_cta();
  const uint32_t other = s[t ^ 32];              // LINE1
  s[t] = other;                                  // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"TwoThreadsWriteOneWord",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t % 32] = 1;                                 // LINE1
)",
     {"race in shared memory", "LINE1"}},
    {"ReadBesideAnAtomic",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::atomic_add_shared(reinterpret_cast<int*>(s), 1);  // LINE1
  dev::sync_warp();
  dev::store_global(params.out + t, s[0]);               // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"WriteBesideAnAtomic",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  if (t == 40) s[0] = 1;                                           // LINE1
  if (t < 3) dev::atomic_add_shared(reinterpret_cast<int*>(s), 1); // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"AtomicBehindARead",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::store_global(params.out + t, s[0]);               // LINE1
  dev::sync_warp();
  dev::atomic_add_shared(reinterpret_cast<int*>(s), 1);  // LINE2
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"AtomicPastSharedMemory",
     R"(
  int* s = reinterpret_cast<int*>(dev::dynamic_shared());
  dev::atomic_add_shared(s + 961 + t, 1);                // LINE1
)",
     {"outside of shared memory", "shared+4096", "LINE1"}},
    {"LdmatrixOfRowsThatAnotherWarpWrites",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  for (int i = 0; i < 4; ++i) s[t * 4 + i] = 0;  // LINE1
  uint32_t r[4];
  dev::ldmatrix_x4(r, s + (t ^ 32) * 4);         // LINE2
  dev::store_global(params.out + t, r[0]);
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"ReadOfUnwrittenSharedMemory",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  if (t != 7) s[t] = t;
  dev::sync_cta();
  dev::store_global(params.out + t, s[t]);       // LINE1
)",
     {"uninitialised shared memory", "LINE1"},
     1,
     false},
    {"ReadPastSharedMemory",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  s[t] = t;
  dev::sync_cta();
  dev::store_global(params.out + t, s[t + 961]); // LINE1
)",
     {"outside of all memory", "shared+4096", "LINE1"}},
    {"CopyReadWithoutWait",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);  // LINE1
  dev::cp_async_commit();
  dev::sync_cta();
  dev::store_global(params.out + t, s[t * 4]);   // LINE2
)",
     {"copy in flight", "LINE1", "LINE2"}},
    {"CopyReadByOthersWithoutBarrierAfterTheWait",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);  // LINE1
  dev::cp_async_commit();
  dev::cp_async_wait<0>();
  dev::store_global(params.out + t, s[(t ^ 1) * 4]);     // LINE2
)",
     {"LINE1", "LINE2"}},
    {"WaitThatLeavesTheNeededGroupPending",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  for (int stage = 0; stage < 2; ++stage) {
    dev::cp_async_16(s + stage * 256 + t * 4, params.in + t * 4, true);  // LINE1
    dev::cp_async_commit();
  }
  dev::cp_async_wait<1>();
  dev::store_global(params.out + t, s[256 + t * 4]);     // LINE2
)",
     {"copy in flight", "LINE1", "LINE2"}},
    {"BufferRefilledWhileStillRead",
     R"(
  uint32_t* s = reinterpret_cast<uint32_t*>(dev::dynamic_shared());
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);
  dev::cp_async_commit();
  dev::cp_async_wait<0>();
  dev::sync_cta();
  uint32_t sum = s[(t ^ 32) * 4];                        // LINE1
  dev::cp_async_16(s + t * 4, params.in + t * 4, true);  // LINE2
  dev::cp_async_commit();
  dev::cp_async_wait<0>();
  dev::store_global(params.out + t, sum);
)",
     {"race in shared memory", "LINE1", "LINE2"}},
    {"TwoCtasWriteOneWord",
     R"(
  dev::store_global(params.out + t, static_cast<uint32_t>(dev::block_idx_x()));  // LINE1
)",
     {"race in global memory", "LINE1"},
     2},
    {"CtaReadsWhatAnotherWroteWithoutAcquire",
     R"(
  dev::store_global(params.out + 64 * dev::block_idx_x() + t, 1u);               // LINE1
  if (dev::load_global(params.out + 64 * (1 - dev::block_idx_x()) + t) == 5) {   // LINE2
    dev::store_global(params.counter + 64 * dev::block_idx_x() + t, 1u);
  }
)",
     {"race in global memory", "LINE1", "LINE2"},
     2},
    {"ReleaseByOneThreadWithoutBarrierBefore",
     R"(
  dev::store_global(params.out + 64 * dev::block_idx_x() + t, 1u);               // LINE1
  bool last = false;
  if (t == 0) last = dev::atomic_inc_acq_rel(params.counter, 1) == 1;
  if (last) {
    uint32_t sum = 0;
    for (int i = 0; i < 128; ++i) sum += dev::load_global(params.out + i);       // LINE2
    dev::store_global(params.counter + 1, sum);
  }
)",
     {"race in global memory", "LINE1", "LINE2"},
     2},
    {"ThreadsOfACtaMeetInGlobalMemoryWithoutBarrier",
     R"(
  dev::store_global(params.out + t, 1u);                                         // LINE1
  const uint32_t other = dev::load_global(params.out + (t ^ 32));                // LINE2
  if (other == 5) dev::store_global(params.counter + t, other);
)",
     {"race in global memory", "LINE1", "LINE2"}},
    {"PlainStorePastAnAllocation",
     R"(
  params.out[t + 1024] = 1;                                                      // LINE1
)",
     {"outside of all memory", "past the end of the allocation of 4096 bytes", "LINE1"}},
    {"MisalignedPointer",
     R"(
  const auto* p = reinterpret_cast<const uint32_t*>(reinterpret_cast<const unsigned char*>(params.in) + 2);
  params.out[t] = *p;                                                            // LINE1
)",
     {"undefined behaviour: misaligned pointer", "LINE1"}},
    {"RegisterArrayOverrun",
     R"(
  uint32_t r[4] = {1, 2, 3, 4};
  const int index = static_cast<int>(dev::load_global(params.in)) + 4;
  params.out[t] = r[index];                                                      // LINE1
)",
     {"undefined behaviour: array index", "LINE1"}},
    {"ShiftTooFar",
     R"(
  const uint32_t amount = dev::load_global(params.in) + 32;
  params.out[t] = 1u << amount;                                                  // LINE1
)",
     {"undefined behaviour: shift", "LINE1"}},
    {"SignedOverflow",
     R"(
  const int big = 2147483647 - static_cast<int>(dev::load_global(params.in));
  params.out[t] = static_cast<uint32_t>(big + 1);                                // LINE1
)",
     {"undefined behaviour: signed integer overflow", "LINE1"}},
};

class MistakeTest : public EmulatorTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(MistakeTest, IsFoundInEveryOrder) {
  const Mistake& mistake = GetParam();
  const std::string text = std::string(kParams) +
                           "PAGEJIT_KERNEL(64, 1) k(const __grid_constant__ Params params) {\n"
                           "  const int t = dev::thread_idx();\n" +
                           (mistake.clears_shared ? kClearShared : "") + mistake.body +
                           "}\nPAGEJIT_ENTRY(k, Params)\n";
  const CUfunction k = kernel(text, "k", HostBuild::kChecked);
  for (const Schedule& order : all_schedules()) {
    schedule(order);
    const Params params = {upload(std::vector<uint32_t>(1024)), upload(std::vector<uint32_t>(1024)),
                           upload(std::vector<uint32_t>(1024))};
    const LaunchShape shape = {.grid_x = mistake.grid_x, .num_threads = 64, .shared_bytes = 4096};
    EXPECT_NE(launch(k, shape, params), CUDA_SUCCESS)
        << "order " << order.order << ", completion " << order.completion;
    for (const std::string& finding : mistake.findings) {
      EXPECT_THAT(report(),
                  HasSubstr(finding.starts_with("LINE") ? line_of(text, finding) : finding));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MistakeTest, ::testing::ValuesIn(kMistakes),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace pagejit_emulator
