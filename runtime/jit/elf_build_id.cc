#include "runtime/jit/elf_build_id.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/jit/file_io.h"

namespace pagejit::jit {
namespace {

// Bounds for files that are no ELF files of a compiler at all: a shared library has some 10 program
// headers, some 40 sections, and notes of less than 1 KiB.
constexpr size_t kMaxHeaders = 512;
constexpr uint64_t kMaxNoteBytes = uint64_t{64} * 1024;
// 20 (SHA-1) is usual, 16 (MD5) and 32 exist.
constexpr uint32_t kMinIdBytes = 8;
constexpr uint32_t kMaxIdBytes = 64;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;  // any: the loader decides
#endif

constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

std::string to_hex(const char* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (size_t i = 0; i < count; ++i) {
    const unsigned char byte = static_cast<unsigned char>(bytes[i]);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

size_t align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Walks notes; whatever does not fit ends the walk. `alignment` is 4 or 8.
std::optional<std::string> find_in_notes(const std::string& notes, size_t alignment) {
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const size_t name_at = at + sizeof(note);
    // Both sizes are at most kMaxNoteBytes here, so that nothing below overflows.
    if (note.n_namesz > notes.size() || note.n_descsz > notes.size()) return std::nullopt;
    const size_t desc_at = align_up(name_at + note.n_namesz, alignment);
    if (desc_at + note.n_descsz > notes.size()) return std::nullopt;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(notes.data() + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
        note.n_descsz >= kMinIdBytes && note.n_descsz <= kMaxIdBytes) {
      return to_hex(notes.data() + desc_at, note.n_descsz);
    }
    at = align_up(desc_at + note.n_descsz, alignment);
  }
  return std::nullopt;
}

class ElfFile {
 public:
  ElfFile(int fd, uint64_t size_bytes) : fd_(fd), size_bytes_(size_bytes) {}

  // Empty on success, else what is wrong.
  std::string read_header() {
    if (!read(0, &header_, sizeof(header_)) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      return "not an ELF file";
    }
    if (header_.e_ident[EI_CLASS] != ELFCLASS64) return "not a 64-bit ELF file";
    return {};
  }

  bool is_for_this_processor() const {
    return header_.e_ident[EI_DATA] == kByteOrder &&
           (kMachine == EM_NONE || header_.e_machine == kMachine);
  }

  std::optional<std::string> build_id() const {
    for (const Elf64_Phdr& segment :
         read_table<Elf64_Phdr>(header_.e_phoff, header_.e_phnum, header_.e_phentsize)) {
      if (segment.p_type != PT_NOTE) continue;
      if (auto id = find_at(segment.p_offset, segment.p_filesz, segment.p_align)) return id;
    }
    for (const Elf64_Shdr& section :
         read_table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum, header_.e_shentsize)) {
      if (section.sh_type != SHT_NOTE) continue;
      if (auto id = find_at(section.sh_offset, section.sh_size, section.sh_addralign)) return id;
    }
    return std::nullopt;
  }

 private:
  bool read(uint64_t offset, void* buffer, uint64_t count) const {
    if (offset > size_bytes_ || count > size_bytes_ - offset) return false;
    return read_exactly(fd_, offset, buffer, count);
  }

  template <class Entry>
  std::vector<Entry> read_table(uint64_t offset, size_t count, size_t entry_bytes) const {
    if (entry_bytes != sizeof(Entry)) return {};
    std::vector<Entry> table(std::min(count, kMaxHeaders));
    if (!read(offset, table.data(), table.size() * sizeof(Entry))) return {};
    return table;
  }

  std::optional<std::string> find_at(uint64_t offset, uint64_t size, uint64_t alignment) const {
    if (size > kMaxNoteBytes) return std::nullopt;
    std::string notes(size, '\0');
    if (!read(offset, notes.data(), size)) return std::nullopt;
    // A build-id note looks the same for both alignments (12 + 4 bytes lie before its content), but
    // the note before it need not, and packagers' tools leave a wrong alignment behind.
    const size_t first = alignment == 8 ? 8 : 4;
    if (auto id = find_in_notes(notes, first)) return id;
    return find_in_notes(notes, 12 - first);
  }

  int fd_;
  uint64_t size_bytes_;
  Elf64_Ehdr header_{};
};

}  // namespace

Result<std::string> read_elf_build_id(const std::string& path) {
  uint64_t size_bytes = 0;
  Result<UniqueFd> fd = open_regular_file(path, size_bytes);
  if (!fd) return fd.status();
  ElfFile file(fd->get(), size_bytes);
  if (std::string wrong = file.read_header(); !wrong.empty()) {
    return Status(StatusCode::kDataCorrupt, path + ": " + wrong);
  }
  if (!file.is_for_this_processor()) {
    return Status(StatusCode::kUnsupported, path + ": built for another processor");
  }
  if (std::optional<std::string> id = file.build_id()) return std::move(*id);
  return Status(StatusCode::kDataCorrupt,
                path + ": has no GNU build-id, or is truncated before it");
}

}  // namespace pagejit::jit
