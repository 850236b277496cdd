// Image: one loaded host image, and where its code addresses come from in the source.
// Thread-safety: immutable once loaded, but for the memory of source_line.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "templates/device/host/emulator_abi.cuh"

namespace pagejit_emulator {

class Image {
 public:
  // Loads the shared object that `bytes` points to (its ELF header says how long it is) and binds
  // it to `api`. Null with *complaint where it is no image or one of another ABI; *is_elf tells the
  // two apart.
  static std::shared_ptr<Image> load(const void* bytes, const Api* api, bool* is_elf,
                                     std::string* complaint);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  const KernelEntry* kernel(const std::string& name) const;
  bool checked() const { return entry_->checked; }
  bool contains(uintptr_t address) const { return address >= begin_ && address < end_; }

  // "file:line" of the instruction at `pc`, from the image's debug information; "image+0x1234"
  // where there is none.
  std::string source_line(uintptr_t pc) const;

 private:
  Image() = default;

  int fd_ =
      -1;  // stays open: the loader tells libraries apart by path, and the path is the descriptor's
  void* handle_ = nullptr;
  const ImageEntry* entry_ = nullptr;
  uintptr_t base_ = 0;  // what addresses in the file are relative to
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  mutable std::map<uintptr_t, std::string> lines_;
};

}  // namespace pagejit_emulator
