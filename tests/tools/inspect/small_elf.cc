#include "tests/tools/inspect/small_elf.h"

#include <elf.h>

#include <cstring>

namespace pagejit::inspect {
namespace {

template <class T>
void append(std::string* to, const T& value) {
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A sized attribute of .nv.info.
void append_attribute(std::string* to, uint8_t number, const std::vector<uint32_t>& words) {
  to->push_back(4);
  to->push_back(static_cast<char>(number));
  append(to, static_cast<uint16_t>(words.size() * 4));
  for (const uint32_t word : words) append(to, word);
}

struct Part {
  std::string name;
  uint32_t type;
  std::string content;
  uint64_t size;  // where the file holds no content
  uint64_t flags = 0;
};

}  // namespace

std::string SmallElf::bytes() const {
  std::string names(1, '\0');
  std::string symbols(sizeof(Elf64_Sym), '\0');
  std::string info;
  std::vector<Part> parts = {{"", SHT_NULL, "", 0}};
  // .shstrtab, .strtab, .symtab and .nv.info come first, and are filled at the end.
  for (const char* name : {".shstrtab", ".strtab"}) parts.push_back({name, SHT_STRTAB, "", 0});
  parts.push_back({".symtab", SHT_SYMTAB, "", 0});
  parts.push_back({".nv.info", SHT_LOPROC, "", 0});
  if (!arch.empty()) {
    std::string note = "NVIDIA Corp";
    for (const std::string& text :
         {std::string("ptxas"), std::string("Cuda compilation tools, release 13.0, V13.0.88"),
          "-v  -arch " + arch + " "}) {
      note += '\0' + text;
    }
    parts.push_back({".note.nv.tkinfo", SHT_NOTE, note + '\0', 0});
  }
  if (has_reserved_shared) parts.push_back({".nv.shared.reserved.0", SHT_NOBITS, "", 0});
  for (const SmallKernel& kernel : kernels) {
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<uint32_t>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_other = 0x10;
    symbol.st_shndx = static_cast<uint16_t>(parts.size());
    const auto index = static_cast<uint32_t>(symbols.size() / sizeof symbol);
    append(&symbols, symbol);
    names += kernel.symbol + '\0';
    append_attribute(&info, 0x2f, {index, kernel.registers});
    append_attribute(&info, 0x11, {index, kernel.frame_bytes});
    parts.push_back({".text." + kernel.symbol, SHT_PROGBITS, std::string(32, '\0'), 0});
    std::string own = {2, 0x4c, static_cast<char>(kernel.barriers), 0};
    if (kernel.threads[0] > 0) {
      append_attribute(&own, 0x05, {kernel.threads[0], kernel.threads[1], kernel.threads[2]});
    }
    if (kernel.has_empty_attribute) append_attribute(&own, 0x4c, {});
    parts.push_back({".nv.info." + kernel.symbol, SHT_LOPROC, own, 0});
    if (kernel.shared_bytes > 0) {
      parts.push_back({".nv.shared." + kernel.symbol, SHT_NOBITS, "", kernel.shared_bytes});
    }
  }
  std::string section_names(1, '\0');
  std::vector<uint32_t> name_places = {0};
  for (size_t i = 1; i < parts.size(); ++i) {
    name_places.push_back(static_cast<uint32_t>(section_names.size()));
    section_names += parts[i].name + '\0';
  }
  parts[1].content = section_names;
  parts[2].content = names;
  parts[3].content = symbols;
  parts[4].content = info;

  std::string body(sizeof(Elf64_Ehdr), '\0');
  std::string headers;
  for (size_t i = 0; i < parts.size(); ++i) {
    Elf64_Shdr header = {};
    header.sh_name = name_places[i];
    header.sh_type = parts[i].type;
    header.sh_flags = parts[i].flags;
    header.sh_offset = body.size();
    header.sh_size = parts[i].content.empty() ? parts[i].size : parts[i].content.size();
    append(&headers, header);
    body += parts[i].content;
  }
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = abi;
  header.e_machine = 190;
  header.e_flags = flags;
  header.e_shoff = body.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(parts.size());
  header.e_shstrndx = 1;
  std::memcpy(body.data(), &header, sizeof header);
  return body + headers;
}

}  // namespace pagejit::inspect
