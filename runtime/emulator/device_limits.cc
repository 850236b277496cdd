#include "runtime/emulator/device_limits.h"

namespace pagejit_emulator {
namespace {

constexpr int kKiB = 1024;
constexpr int kMiB = 1024 * 1024;

constexpr DeviceLimits kDevices[] = {
    {75, 40, 64 * kKiB, 64 * kKiB, 1024, 16, 4 * kMiB},        // T4
    {80, 108, 164 * kKiB, 163 * kKiB, 2048, 32, 40 * kMiB},    // A100
    {86, 72, 100 * kKiB, 99 * kKiB, 1536, 16, 6 * kMiB},       // A10
    {87, 16, 164 * kKiB, 163 * kKiB, 1536, 16, 4 * kMiB},      // Orin
    {88, 16, 100 * kKiB, 99 * kKiB, 1536, 16, 4 * kMiB},       // none public: generator/arch.cc
    {89, 58, 100 * kKiB, 99 * kKiB, 1536, 24, 48 * kMiB},      // L4
    {90, 132, 228 * kKiB, 227 * kKiB, 2048, 32, 50 * kMiB},    // H100, H200
    {100, 148, 228 * kKiB, 227 * kKiB, 2048, 32, 126 * kMiB},  // B200
    {103, 148, 228 * kKiB, 227 * kKiB, 2048, 32, 126 * kMiB},  // B300
    {110, 20, 228 * kKiB, 227 * kKiB, 1536, 24, 32 * kMiB},    // Thor
    {120, 170, 100 * kKiB, 99 * kKiB, 1536, 24, 96 * kMiB},    // RTX 5090
    {121, 48, 100 * kKiB, 99 * kKiB, 1536, 24, 24 * kMiB},     // GB10
};

}  // namespace

const DeviceLimits* find_device_limits(int sm) {
  for (const DeviceLimits& device : kDevices) {
    if (device.sm == sm) return &device;
  }
  return nullptr;
}

std::string known_compute_capabilities() {
  std::string text;
  for (const DeviceLimits& device : kDevices) {
    text += (text.empty() ? "" : ", ") + std::to_string(device.sm);
  }
  return text;
}

}  // namespace pagejit_emulator
