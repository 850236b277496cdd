// What a launch through C gives the driver: the bytes that one of C++ gives.
#include "runtime/c_api/families.h"
#include "templates/shared/cache_write_params.h"
#include "tests/c_api/launch_fixture.h"

namespace pagejit {
namespace {

class LaunchParamsTest : public CApiLaunchTest {
 protected:
  // `bytes` of parameters; the rest of what was recorded is 0.
  static void expect_equal(const pagejit_stub::LaunchRecord& of_c,
                           const pagejit_stub::LaunchRecord& of_cpp, size_t bytes) {
    const auto* bytes_of_c = reinterpret_cast<const char*>(&of_c.params);
    const auto* bytes_of_cpp = reinterpret_cast<const char*>(&of_cpp.params);
    for (size_t i = 0; i < bytes; ++i) {
      EXPECT_EQ(bytes_of_c[i], bytes_of_cpp[i]) << "byte " << i;
    }
    EXPECT_EQ(of_c.kernel, of_cpp.kernel);
    EXPECT_EQ(of_c.config.gridDimX, of_cpp.config.gridDimX);
    EXPECT_EQ(of_c.config.gridDimY, of_cpp.config.gridDimY);
    EXPECT_EQ(of_c.config.gridDimZ, of_cpp.config.gridDimZ);
    EXPECT_EQ(of_c.config.hStream, of_cpp.config.hStream);
  }

  template <class Handle>
  const Handle& cpp_handle(c_api::Kind kind, const void* handle) {
    // The object lives as long as the handle.
    return *static_cast<const Handle*>(c_api::Pin(kind, handle).object());
  }

  const pagejit_stream stream = reinterpret_cast<pagejit_stream>(0xc000);
};

TEST_F(LaunchParamsTest, OfAttentionAreThoseOfCpp) {
  script->record_params(sizeof(pagejit_shared::AttentionParams));
  pagejit_attention_args args = legal_c_args();
  args.kv_scale_stride = 3;
  args.window_left = 17;
  args.max_seq_len = 999;
  args.lse = reinterpret_cast<float*>(0x7000);
  args.workspace = reinterpret_cast<void*>(0x100000);
  args.workspace_bytes = size_t{1} << 40;
  args.num_splits = 2;
  ASSERT_EQ(outcome(pagejit_kernel_launch(handles.kernel, &args, stream, error)), "");
  const pagejit_stub::LaunchRecord of_c = script->last_launch();

  AttentionArgs same = legal_args();
  same.kv_scale_stride = 3;
  same.window_left = 17;
  same.max_seq_len = 999;
  same.lse = args.lse;
  same.workspace = args.workspace;
  same.workspace_bytes = args.workspace_bytes;
  same.num_splits = 2;
  const auto& kernel = cpp_handle<Kernel>(c_api::Kind::kKernel, handles.kernel);
  ASSERT_TRUE(kernel.launch(same, static_cast<Stream>(stream)));
  expect_equal(of_c, script->last_launch(), sizeof of_c.params);
}

TEST_F(LaunchParamsTest, OfMergesWithoutAListLeaveItsPointerAlone) {
  pagejit_merge_states_args args;
  pagejit_merge_states_args_init(&args, sizeof args);
  args.states = reinterpret_cast<const pagejit_merge_state*>(16);  // nothing to be read there
  args.num_states = 8;
  args.v = reinterpret_cast<const void*>(0x1000);
  args.lse = reinterpret_cast<const float*>(0x2000);
  args.v_stride_state = 1024;
  args.v_stride_token = args.out_stride_token = 128;
  args.v_stride_head = args.out_stride_head = 128;
  args.out = reinterpret_cast<void*>(0x3000);
  args.num_tokens = 2;
  args.num_heads = 1;
  EXPECT_EQ(outcome(pagejit_merge_states_kernel_launch(handles.merge_states, &args, stream, error)),
            "");
}

TEST_F(LaunchParamsTest, OfCacheWritesAreThoseOfCpp) {
  using pagejit_shared::CacheWriteParams;
  static_assert(sizeof(CacheWriteParams) <= sizeof(pagejit_shared::AttentionParams));
  script->record_params(sizeof(CacheWriteParams));
  CacheWriteSpec spec;
  spec.kv_dtype = DataType::kFloat8E4m3;
  spec.scale = KvScale::kHead;
  spec.rope = RopeStyle::kNeox;
  spec.rotary_dim = 64;
  pagejit_cache_write_spec c_spec = c_api::CacheWriteFamily::to_c(spec);
  for (const bool debug : {false, true}) {  // a debug kernel takes more of them
    c_spec.debug = debug ? 1 : 0;
    pagejit_cache_write_kernel* kernel = nullptr;
    ASSERT_EQ(outcome(pagejit_cache_write_kernel_prepare(handles.engine, &c_spec, 0, nullptr,
                                                         &kernel, error)),
              "");
    const pagejit_cache_write_args args = legal_c_write_args();
    ASSERT_EQ(outcome(pagejit_cache_write_kernel_launch(kernel, &args, stream, error)), "");
    const pagejit_stub::LaunchRecord of_c = script->last_launch();
    const auto& same = cpp_handle<CacheWriteKernel>(c_api::Kind::kCacheWriteKernel, kernel);
    const Status launched = same.launch(legal_write_args(), static_cast<Stream>(stream));
    ASSERT_TRUE(launched) << launched.to_string();
    expect_equal(of_c, script->last_launch(), sizeof(CacheWriteParams));
    CacheWriteParams params;
    std::memcpy(static_cast<void*>(&params), &of_c.params, sizeof params);
    EXPECT_EQ(params.v_stride_head, 152) << "the right bytes were compared";
    EXPECT_EQ(params.num_q_heads, 32);
    EXPECT_EQ(outcome(pagejit_cache_write_kernel_destroy(kernel, error)), "");
  }
}

}  // namespace
}  // namespace pagejit
