// Writes the seeds of the fuzzers that read a format of ours: make_fuzz_seeds FOLDER.
#include <filesystem>
#include <fstream>
#include <string>

#include "cache/bundle_writer.h"
#include "cache/entry.h"
#include "runtime/metadata.h"
#include "tests/fuzz/digest_signer.h"

namespace {

namespace fs = std::filesystem;

bool write(const fs::path& folder, const char* name, const std::string& bytes) {
  fs::create_directories(folder);
  std::ofstream file(folder / name, std::ios::binary | std::ios::trunc);
  file << bytes << std::flush;
  return file.good();
}

std::string metadata_blob(const std::string& log) {
  pagejit::KernelMetadata metadata;
  metadata.spec = "decode head_size=128 block_size=16 group_size=4";
  metadata.target = "sm_90a";
  metadata.symbol = "pagejit_decode_1";
  metadata.abi = "1";
  metadata.threads_per_cta = 128;
  metadata.dynamic_shared_bytes = 65536;
  metadata.registers = 96;
  metadata.compile_us = 350'000;
  metadata.log = log;
  return pagejit::encode_metadata(metadata);
}

std::string bundle_bytes(int num_entries) {
  pagejit::cache::BundleWriter writer;
  for (int i = 0; i < num_entries; ++i) {
    pagejit::cache::KeyIngredients ingredients;
    ingredients.text = "kernel " + std::to_string(i / 2);
    ingredients.compiler_identity = "compiler " + std::to_string(i);
    const auto status =
        writer.add({pagejit::cache::make_key(ingredients), "", "image " + std::to_string(i)});
    if (!status.is_ok()) return "";
  }
  std::string bytes;
  const auto status = writer.write_to([&](std::string_view piece) {
    bytes += piece;
    return pagejit::Status::ok();
  });
  return status.is_ok() ? bytes : "";
}

std::string entry_bytes(const std::string& metadata, const std::string& image) {
  pagejit::cache::KeyIngredients ingredients;
  ingredients.text = "kernel";
  ingredients.target = "sm_90a";
  ingredients.compiler_identity = "compiler";
  const auto bytes =
      pagejit::cache::encode_entry({pagejit::cache::make_key(ingredients), metadata, image});
  return bytes.is_ok() ? *bytes : "";
}

// With the block of the key that the fuzzer trusts, or of another one.
std::string signed_entry_bytes(uint8_t key) {
  const std::string entry = entry_bytes("metadata", "image");
  const auto block = pagejit::cache::sign_entry(entry, pagejit::cache::DigestSigner(key));
  return block.is_ok() ? entry + *block : "";
}

bool write_names(const fs::path& folder) {
  const pagejit::cache::Key key = pagejit::cache::make_key({});
  return write(folder, "entry", key.file_name()) &&
         write(folder, "temporary", "0123456789abcdef0123456789abcdef.tmp") &&
         write(folder, "shard", "0f") && write(folder, "url", "https://host:8080/pagejit") &&
         write(folder, "url_with_password", "http://name:password@[::1]:80/a/b//") &&
         write(folder, "public_key", pagejit::cache::to_hex(key.source));
}

bool write_traces(const fs::path& folder) {
  const std::string top_k = R"({"spec":"top_k","target":"sm_90a"})";
  return write(folder, "two",
               top_k + "\r\n\n" + R"({"spec":"copy_blocks alignment=8",)" +
                   R"("target":"host_80","count":3})" + "\n") &&
         write(folder, "cascade",
               R"({"spec":"cascade few head_size=128 group_size=4 causal=1","target":"sm_80"})"
               "\n") &&
         write(folder, "damaged",
               "{\"spec\":\"top_\n" + top_k + "\n[]\n" + top_k.substr(0, top_k.size() / 2));
}

bool write_manifests(const fs::path& folder) {
  return write(folder, "product", R"({"pagejit_manifest": 1, "targets": ["sm_90a", "sm_80"],
"kernels": [{"family": "attention", "head_size": [64, 128], "group_size": [1, 4], "dtype": "bf16",
 "kv_dtype": ["bf16", "fp8_e4m3"]},
 {"family": "cache_write", "kv": "fp8", "scale": "tensor", "targets": "sm_90a"}],
"exclude": [{"head_size": 64, "kv_dtype": "fp8_e4m3"}, {"target": "sm_80", "group_size": 4}]})") &&
         write(folder, "spec", R"({"pagejit_manifest": 1, "kernels":
[{"spec": ["cascade few head_size=128 group_size=4 causal=1", "top_k"], "skip_illegal": true}]})") &&
         write(folder, "composition", R"({"pagejit_manifest": 1, "kernels": [{"family":
"sparse_attention", "head_size": 576, "head_size_v": 512, "latent": true, "table": "positions",
"group_size": 64, "block_size": 64, "index_num_heads": [32, 64]}]})") &&
         write(folder, "model", R"({"pagejit_manifest": 1, "models": [{"config":
["llama-3.1-8b.json"], "tp": [1, 3, 8], "queries": ["one", "many"], "dtype": "f16",
"skip_illegal": true}], "exclude": [{"spec": "top_k"}, {"family": "merge_states"}]})") &&
         write(folder, "skipped", R"({"pagejit_manifest": 1, "kernels": [{"family": "attention",
"head_size": [100, 128], "skip_illegal": true}, {"family": "index_logits"}]})");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const fs::path root = argv[1];
  const std::string blob = metadata_blob("ptxas info    : Used 96 registers\n");
  const bool is_written =
      write(root / "metadata", "plain", blob) &&
      write(root / "metadata", "no_log", metadata_blob("")) &&
      write(root / "metadata", "cut", blob.substr(0, blob.size() / 2)) &&
      write(root / "entry", "empty", entry_bytes("", "")) &&
      write(root / "entry", "plain",
            entry_bytes(blob,
                        "\x7f"
                        "ELF image")) &&
      write(root / "entry", "no_metadata", entry_bytes("", "image")) &&
      write(root / "entry", "cut", entry_bytes(blob, "image").substr(0, 100)) &&
      write(root / "bundle", "empty", bundle_bytes(0)) &&
      write(root / "bundle", "one", bundle_bytes(1)) &&
      write(root / "bundle", "three", bundle_bytes(3)) &&
      write(root / "bundle", "cut", bundle_bytes(3).substr(0, 200)) &&
      write(root / "signed_entry", "trusted", signed_entry_bytes(pagejit::cache::kTrustedKey)) &&
      write(root / "signed_entry", "unknown_key", signed_entry_bytes(1)) &&
      write(root / "signed_entry", "unsigned", entry_bytes(blob, "image")) &&
      write(root / "signed_entry", "cut",
            signed_entry_bytes(pagejit::cache::kTrustedKey).substr(0, 240)) &&
      write_names(root / "names") && write_traces(root / "trace") &&
      write_manifests(root / "manifest") &&
      write(root / "spec_text", "decode", "decode head_size=128 block_size=16 group_size=4") &&
      write(root / "spec_text", "many", "many head_size=128 block_size=16 group_size=8 causal=1") &&
      write(root / "spec_text", "few",
            "few q=f16 kv=fp8_e4m3 out=f16 head_size=96 block_size=24 group_size=5 "
            "causal=sequence window=1 soft_cap=1 alibi=1 sinks=1") &&
      write(root / "spec_text", "latent",
            "decode q=bf16 kv=fp8_e4m3 out=bf16 head_size=576 head_size_v=512 block_size=64 "
            "group_size=128 table=slots layout=ds_mla latent=1");
  return is_written ? 0 : 1;
}
