// The workspace's functions: making one ready and reading its debug report.
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/runtime/launch_fixture.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WorkspaceTest : public LaunchTest {
 protected:
  WorkspaceTest() : words((pagejit_shared::kPartialsOffset + 256) / 4 + 64, 0xCDCDCDCD) {
    start = reinterpret_cast<unsigned*>((reinterpret_cast<uintptr_t>(words.data()) + 255) &
                                        ~uintptr_t{255});
    header = reinterpret_cast<pagejit_shared::WorkspaceHeader*>(start);
  }
  std::vector<unsigned> words;
  unsigned* start;
  pagejit_shared::WorkspaceHeader* header;
};

TEST_F(WorkspaceTest, InitZeroesHeaderAndCountersAndWritesTheMagicWord) {
  constexpr size_t kBytes = pagejit_shared::kPartialsOffset;
  ASSERT_TRUE(kernel.workspace_init(start, kBytes, nullptr));
  EXPECT_EQ(start[0], pagejit_shared::kWorkspaceMagic);
  for (size_t i = 1; i < kBytes / 4; ++i) ASSERT_EQ(start[i], 0u) << i;
  EXPECT_EQ(start[kBytes / 4], 0xCDCDCDCD) << "nothing beyond is touched";
}

TEST_F(WorkspaceTest, InitRefusesWhatIsNoWorkspace) {
  constexpr size_t kBytes = pagejit_shared::kPartialsOffset;
  EXPECT_THAT(kernel.workspace_init(nullptr, kBytes, nullptr).message(), HasSubstr("null"));
  EXPECT_THAT(kernel.workspace_init(start + 1, kBytes, nullptr).message(), HasSubstr("aligned"));
  EXPECT_THAT(kernel.workspace_init(start, kBytes - 1, nullptr).message(), HasSubstr("too small"));
  script->fail("cuMemsetD32Async", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(kernel.workspace_init(start, kBytes, nullptr).message(),
              HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(WorkspaceTest, ReportIsReadOnceAndCleared) {
  ASSERT_TRUE(kernel.workspace_init(start, pagejit_shared::kPartialsOffset, nullptr));
  EXPECT_TRUE(kernel.read_debug_report(start, nullptr));
  header->debug_code = pagejit_shared::kDebugBadBlockId;
  header->debug_seq_idx = 3;
  header->debug_position = 7;
  header->debug_value = 12345678901;
  const Status status = kernel.read_debug_report(start, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kDeviceCheckFailed);
  EXPECT_EQ(status.message(),
            "sequence 3: entry 7 of its block table is 12345678901, must be in [0, num_blocks)");
  EXPECT_TRUE(kernel.read_debug_report(start, nullptr)) << "cleared";
  EXPECT_EQ(header->magic, pagejit_shared::kWorkspaceMagic);
}

TEST_F(WorkspaceTest, EveryReportHasItsSentence) {
  const std::pair<int, const char*> reports[] = {
      {pagejit_shared::kDebugBadSeqLen, "seq_len is -4"},
      {pagejit_shared::kDebugBadKvIndptr, "kv_indptr[7] is -4"},
      {pagejit_shared::kDebugBadKvStartLoc, "kv_start_loc[7] is -4"},
      {pagejit_shared::kDebugBadLastBlockLen, "kv_last_block_len is -4"},
      {pagejit_shared::kDebugBadWorkspace, "call workspace_init"},
      {pagejit_shared::kDebugBadCounter, "the counter of merge unit 7 is -4"},
      {99, "unknown report 99"}};
  for (auto [code, part] : reports) {
    ASSERT_TRUE(kernel.workspace_init(start, pagejit_shared::kPartialsOffset, nullptr));
    header->debug_code = code;
    header->debug_position = 7;
    header->debug_value = -4;
    EXPECT_THAT(kernel.read_debug_report(start, nullptr).message(), HasSubstr(part));
  }
}

TEST_F(WorkspaceTest, ReportOfAnUninitialisedWorkspaceIsAWorkspaceError) {
  std::fill(words.begin(), words.end(), 0u);
  EXPECT_EQ(kernel.read_debug_report(start, nullptr).code(), StatusCode::kWorkspace);
  for (const char* function : {"cuMemcpyDtoHAsync", "cuStreamSynchronize"}) {
    script->fail(function, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_THAT(kernel.read_debug_report(start, nullptr).message(),
                AllOf(HasSubstr(function), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)")));
    script->fail(function, CUDA_SUCCESS, 0);
  }
}

}  // namespace
}  // namespace pagejit
