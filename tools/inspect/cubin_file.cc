#include "tools/inspect/cubin_file.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

namespace pagejit::inspect {
namespace {

constexpr uint16_t kMachineCuda = 190;  // EM_CUDA
// From this version of the ABI on (CUDA 13) the SM stands in the second byte of e_flags.
constexpr unsigned char kAbiWithSmInSecondByte = 8;
constexpr uint8_t kKernelOther = 0x10;  // STO_CUDA_ENTRY in st_other

// Attributes of .nv.info: a byte of format, one of the attribute, then two of value or of length.
constexpr uint8_t kFormatSized = 4;
constexpr uint8_t kMaxThreads = 0x05;
constexpr uint8_t kFrameSize = 0x11;
constexpr uint8_t kRegisterCount = 0x2f;
constexpr uint8_t kNumBarriers = 0x4c;
// From sm_90 on .nv.shared.<kernel> begins with what the system keeps.
constexpr uint64_t kReservedShared = 1024;
// A linked cubin of many kernels has some thousands.
constexpr size_t kMaxSections = 65535;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> read(uint64_t offset) const {
    T value;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::optional<std::string_view> slice(uint64_t offset, uint64_t count) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset) return std::nullopt;
    return bytes_.substr(offset, count);
  }

 private:
  std::string_view bytes_;
};

// Up to the closing null, which must be there.
std::optional<std::string_view> text_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return table.substr(offset, end - offset);
}

struct Section {
  std::string_view name;
  Elf64_Shdr header;
  std::string_view content;  // empty where the file holds none
};

Status corrupt(const std::string& what) {
  return Status(StatusCode::kDataCorrupt, "cubin: " + what);
}

// Far more than any GPU has of anything, and so little that sums and warps of it are still numbers.
int to_int(uint64_t value) { return static_cast<int>(std::min<uint64_t>(value, 1 << 24)); }

Result<std::vector<Section>> read_sections(const Reader& file, const Elf64_Ehdr& header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) {
    return corrupt("its section headers have " + std::to_string(header.e_shentsize) +
                   " bytes, must be 64");
  }
  std::vector<Section> sections;
  for (size_t i = 0; i < std::min<size_t>(header.e_shnum, kMaxSections); ++i) {
    uint64_t at = 0;
    if (__builtin_add_overflow(header.e_shoff, i * sizeof(Elf64_Shdr), &at)) {
      return corrupt("its section headers lie behind its end");
    }
    const auto section = file.read<Elf64_Shdr>(at);
    if (!section) return corrupt("truncated in its section headers");
    const bool is_in_file = section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL;
    const auto content =
        is_in_file ? file.slice(section->sh_offset, section->sh_size) : std::string_view();
    if (!content)
      return corrupt("truncated: section " + std::to_string(i) + " lies behind its end");
    sections.push_back({{}, *section, *content});
  }
  if (header.e_shstrndx >= sections.size()) return corrupt("it has no names of sections");
  const std::string_view names = sections[header.e_shstrndx].content;
  for (Section& section : sections) {
    const auto name = text_at(names, section.header.sh_name);
    if (!name) return corrupt("the name of a section is not in its table of names");
    section.name = *name;
  }
  return sections;
}

const Section* find(const std::vector<Section>& sections, const std::string& name) {
  for (const Section& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

// Shows `use` each attribute: its number, and its value (of the sized format its bytes, else two).
// Ends at the first that does not fit.
template <class Use>
void for_each_attribute(std::string_view info, Use use) {
  for (size_t at = 0; at + 4 <= info.size();) {
    const auto format = static_cast<uint8_t>(info[at]);
    const auto attribute = static_cast<uint8_t>(info[at + 1]);
    uint16_t value = 0;
    std::memcpy(&value, info.data() + at + 2, sizeof(value));
    if (format == kFormatSized) {
      if (value > info.size() - at - 4) return;
      use(attribute, info.substr(at + 4, value));
      at += 4 + size_t{value};
    } else {
      use(attribute, info.substr(at + 2, 2));
      at += 4;
    }
  }
}

uint32_t word(std::string_view value, size_t index) {
  uint32_t result = 0;
  if ((index + 1) * 4 <= value.size()) std::memcpy(&result, value.data() + index * 4, 4);
  return result;
}

// The text of ptxas's note: its version, and the options that it was run with.
void read_tool_note(const std::vector<Section>& sections, CubinFile* file) {
  const Section* note = find(sections, ".note.nv.tkinfo");
  if (note == nullptr) return;
  // The parts are texts that end with nulls.
  for (size_t at = 0; at < note->content.size();) {
    const size_t end = std::min(note->content.find('\0', at), note->content.size());
    const std::string_view part = note->content.substr(at, end - at);
    if (part.starts_with("Cuda compilation tools")) file->tool = part;
    constexpr std::string_view kArch = "-arch sm_";
    if (const size_t arch = part.find(kArch); arch != std::string_view::npos) {
      const std::string_view name = part.substr(arch + 6);
      const size_t length = std::min(name.find(' '), name.size());
      const bool is_word = std::all_of(name.begin(), name.begin() + static_cast<ptrdiff_t>(length),
                                       [](unsigned char c) { return std::isalnum(c) || c == '_'; });
      if (is_word && length <= 8) file->target = name.substr(0, length);
    }
    at = end + 1;
  }
}

void read_kernel(const std::vector<Section>& sections, uint32_t symbol, const Section& code,
                 CubinKernel* kernel) {
  const auto& header = code.header;
  kernel->code_bytes = header.sh_size;
  // Before ptxas wrote the attributes: bits of the section's header.
  kernel->barriers = static_cast<int>(header.sh_flags >> 20 & 0x7f);
  if (const Section* info = find(sections, ".nv.info")) {
    for_each_attribute(info->content, [&](uint8_t attribute, std::string_view value) {
      if (value.size() < 8 || word(value, 0) != symbol) return;
      if (attribute == kRegisterCount) kernel->registers = to_int(word(value, 1));
      if (attribute == kFrameSize) kernel->stack_bytes = to_int(word(value, 1));
    });
  }
  if (const Section* info = find(sections, ".nv.info." + kernel->symbol)) {
    for_each_attribute(info->content, [&](uint8_t attribute, std::string_view value) {
      if (attribute == kNumBarriers && !value.empty())
        kernel->barriers = static_cast<uint8_t>(value[0]);
      if (attribute == kMaxThreads && value.size() >= 12) {
        uint64_t threads = word(value, 0);
        // Each is at most 1,024 in a cubin that can be launched.
        for (size_t i : {1, 2}) threads = std::min<uint64_t>(threads, 65536) * word(value, i);
        kernel->max_threads = to_int(threads);
      }
    });
  }
  if (const Section* shared = find(sections, ".nv.shared." + kernel->symbol)) {
    const bool has_reserved = find(sections, ".nv.shared.reserved.0") != nullptr;
    const uint64_t bytes = shared->header.sh_size;
    kernel->static_shared_bytes =
        to_int(has_reserved && bytes >= kReservedShared ? bytes - kReservedShared : bytes);
  }
}

}  // namespace

Result<CubinFile> read_cubin(std::string_view bytes) {
  const Reader file(bytes);
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return corrupt("no ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != kMachineCuda) {
    return corrupt("an ELF file, but not one of code for a GPU (machine " +
                   std::to_string(header->e_machine) + ", must be 190)");
  }
  // Behind the sections; the driver reads them, so a file that ends before is no whole cubin.
  if (!file.slice(header->e_phoff, uint64_t{header->e_phnum} * header->e_phentsize)) {
    return corrupt("truncated in its program headers");
  }
  const Result<std::vector<Section>> sections = read_sections(file, *header);
  if (!sections) return sections.status();
  CubinFile cubin;
  const unsigned sm = header->e_ident[EI_ABIVERSION] >= kAbiWithSmInSecondByte
                          ? header->e_flags >> 8 & 0xff
                          : header->e_flags & 0xff;
  cubin.target = "sm_" + std::to_string(sm);
  read_tool_note(*sections, &cubin);
  cubin.has_lines = find(*sections, ".debug_line") != nullptr ||
                    find(*sections, ".nv_debug_line_sass") != nullptr;

  const Section* symbols = find(*sections, ".symtab");
  const Section* names = find(*sections, ".strtab");
  if (symbols == nullptr || names == nullptr) return corrupt("it has no symbols");
  const size_t count = symbols->content.size() / sizeof(Elf64_Sym);
  for (size_t i = 0; i < count; ++i) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols->content.data() + i * sizeof(symbol), sizeof(symbol));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kKernelOther) == 0 ||
        symbol.st_shndx >= sections->size()) {
      continue;
    }
    const auto name = text_at(names->content, symbol.st_name);
    if (!name || name->empty()) return corrupt("the name of a kernel is not in its table of names");
    CubinKernel kernel;
    kernel.symbol = *name;
    read_kernel(*sections, static_cast<uint32_t>(i), (*sections)[symbol.st_shndx], &kernel);
    cubin.kernels.push_back(std::move(kernel));
  }
  if (cubin.kernels.empty()) return corrupt("it has no kernel");
  return cubin;
}

}  // namespace pagejit::inspect
