#include "tools/inspect/gpu_table.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "runtime/target_ladder.h"
#include "tools/models/config_reader.h"
#include "tools/models/near_words.h"

namespace pagejit::inspect {
namespace {

// SMs and bandwidths are of NVIDIA's data sheets or architecture papers, of what is sold and not of
// the full chip. Rates are of the same papers, without sparsity; where only the rate with sparsity
// is told, half of it.
constexpr Gpu kGpus[] = {
    {"t4", "T4 16 GB", 75, 40, 320, 65, "Tesla T4 data sheet; Turing architecture paper"},
    {"a100-80", "A100 SXM 80 GB", 80, 108, 2039, 312, "A100 80 GB data sheet (SXM)"},
    {"a100-40", "A100 40 GB", 80, 108, 1555, 312, "A100 40 GB data sheet; Ampere paper"},
    {"a30", "A30 24 GB", 80, 56, 933, 165, "A30 data sheet"},
    {"a10", "A10 24 GB", 86, 72, 600, 125, "A10 data sheet"},
    {"a40", "A40 48 GB", 86, 84, 696, 149.7, "A40 data sheet"},
    {"rtx3090", "RTX 3090", 86, 82, 936, 71, "GA102 architecture paper"},
    {"agx-orin", "Jetson AGX Orin 64 GB", 87, 16, 204.8, 0,
     "Jetson AGX Orin data sheet, which tells no rate of f16"},
    {"l40s", "L40S 48 GB", 89, 142, 864, 362.05, "L40S data sheet"},
    {"l40", "L40 48 GB", 89, 142, 864, 181.05, "L40 data sheet"},
    {"l4", "L4 24 GB", 89, 58, 300, 121, "L4 data sheet (half of the rate with sparsity)"},
    {"rtx4090", "RTX 4090", 89, 128, 1008, 165.2, "Ada architecture paper (f32 accumulation)"},
    {"h200", "H200 SXM 141 GB", 90, 132, 4800, 989.5,
     "H200 data sheet (half of the rate with sparsity); Hopper paper"},
    {"h100", "H100 SXM 80 GB", 90, 132, 3350, 989.5,
     "H100 data sheet (half of the rate with sparsity); Hopper paper"},
    {"h100-pcie", "H100 PCIe 80 GB", 90, 114, 2000, 756.5,
     "H100 data sheet (half of the rate with sparsity); Hopper paper"},
    {"gh200-96", "GH200 96 GB", 90, 132, 4000, 989.5,
     "GH200 data sheet (half of the rate with sparsity)"},
    {"b200", "B200 SXM 180 GB", 100, 148, 8000, 2250,
     "DGX B200 data sheet (an eighth; half of the rate with sparsity)"},
    {"thor-t5000", "Jetson Thor T5000", 110, 20, 273, 0,
     "Jetson Thor data sheet, which tells no rate of f16"},
    {"rtx5090", "RTX 5090", 120, 170, 1792, 209.5,
     "RTX Blackwell architecture paper (f32 accumulation)"},
    {"gb10", "GB10 (DGX Spark)", 121, 48, 273, 0,
     "DGX Spark data sheet, which tells no rate of f16"},
};

char to_lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

}  // namespace

std::span<const Gpu> known_gpus() { return kGpus; }

Result<Gpu> find_gpu(std::string_view name) {
  std::string list;
  std::vector<std::string> ids;
  for (const Gpu& gpu : kGpus) {
    if (is_same_word(name, gpu.id) || is_same_word(name, gpu.title)) return gpu;
    list += std::string(list.empty() ? "" : ", ") + gpu.id;
    ids.emplace_back(gpu.id);
  }
  std::string word(name);
  std::transform(word.begin(), word.end(), word.begin(), to_lower);
  return Status(StatusCode::kNotFound, "GPU \"" + models::printable(std::string(name)) +
                                           "\": not known; known are " + list +
                                           models::did_you_mean(word, ids));
}

std::vector<Gpu> gpus_of(const Target& target) {
  std::vector<Gpu> gpus;
  for (const Gpu& gpu : kGpus) {
    if (runs_on(target, gpu.sm)) gpus.push_back(gpu);
  }
  return gpus;
}

}  // namespace pagejit::inspect
