#include "runtime/jit/elf_build_id.h"

#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <random>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// An ELF file by hand: header, one program header, one section header, a note.
struct TinyElf {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  Elf64_Shdr section{};
  Elf64_Nhdr note{4, 20, NT_GNU_BUILD_ID};
  char name[4] = {'G', 'N', 'U', '\0'};
  unsigned char id[20] = {0xab, 0xcd, 1, 2, 3};

  TinyElf() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
#if defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#else
    header.e_machine = EM_X86_64;
#endif
    header.e_phoff = offsetof(TinyElf, segment);
    header.e_phnum = 1;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shoff = offsetof(TinyElf, section);
    header.e_shnum = 1;
    header.e_shentsize = sizeof(Elf64_Shdr);
    segment.p_type = PT_NOTE;
    segment.p_offset = offsetof(TinyElf, note);
    segment.p_filesz = 36;
    segment.p_align = 4;
    section.sh_type = SHT_NULL;
  }
  std::string bytes() const { return {reinterpret_cast<const char*>(this), sizeof(*this)}; }
};

constexpr char kTinyId[] = "abcd010203000000000000000000000000000000";

class ElfBuildIdTest : public ::testing::Test {
 protected:
  Result<std::string> read(const std::string& bytes) {
    return read_elf_build_id(folder_.write("file", bytes));
  }
  TempFolder folder_;
};

TEST_F(ElfBuildIdTest, ReadsTheNoteOfTheProgramHeader) {
  Result<std::string> id = read(TinyElf().bytes());
  ASSERT_TRUE(id) << id.status().to_string();
  EXPECT_EQ(*id, kTinyId);
}

TEST_F(ElfBuildIdTest, ReadsTheSectionWhereThePackagerBrokeTheProgramHeader) {
  TinyElf elf;
  elf.segment.p_offset = 8;  // now covers bytes that are no note
  elf.section.sh_type = SHT_NOTE;
  elf.section.sh_offset = offsetof(TinyElf, note);
  elf.section.sh_size = 36;
  elf.section.sh_addralign = 8;
  Result<std::string> id = read(elf.bytes());
  ASSERT_TRUE(id) << id.status().to_string();
  EXPECT_EQ(*id, kTinyId);
}

TEST_F(ElfBuildIdTest, SkipsOtherNotes) {
  TinyElf elf;
  const char other[] = "\x04\0\0\0\x03\0\0\0\x01\0\0\0GNU\0abc";  // 3 bytes and the padding below
  std::string notes(other, sizeof(other) - 1);
  notes += '\0';
  elf.segment.p_offset = sizeof(TinyElf);
  elf.segment.p_filesz = notes.size() + 36;
  Result<std::string> id =
      read(elf.bytes() + notes + elf.bytes().substr(offsetof(TinyElf, note), 36));
  ASSERT_TRUE(id) << id.status().to_string();
  EXPECT_EQ(*id, kTinyId);
}

TEST_F(ElfBuildIdTest, ReadsWhatTheLinkerWrites) {
  Result<std::string> id = read_elf_build_id(Stubs::builtins());
  ASSERT_TRUE(id) << id.status().to_string();
  EXPECT_THAT(*id, MatchesRegex("[0-9a-f]{32,64}"));
}

TEST_F(ElfBuildIdTest, FileWithoutBuildIdIsAnError) {
  Result<std::string> id = read_elf_build_id(Stubs::without_build_id());
  ASSERT_FALSE(id);
  EXPECT_EQ(id.status().code(), StatusCode::kDataCorrupt);
  EXPECT_THAT(id.status().message(), HasSubstr("no GNU build-id"));
}

TEST_F(ElfBuildIdTest, NamesWhatIsWrong) {
  EXPECT_THAT(read("").status().message(), HasSubstr("not an ELF file"));
  EXPECT_THAT(read("GROUP ( libnvrtc.so.13 )").status().message(), HasSubstr("not an ELF file"));
  TinyElf narrow;
  narrow.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(read(narrow.bytes()).status().message(), HasSubstr("not a 64-bit"));
  TinyElf foreign;
  foreign.header.e_machine = EM_PPC64;
  EXPECT_EQ(read(foreign.bytes()).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(read_elf_build_id(folder_ / "absent").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(read_elf_build_id(folder_.path()).status().message(), HasSubstr("not a regular"));
}

TEST_F(ElfBuildIdTest, TruncationAtEveryByteGivesTheIdOrAnError) {
  for (const std::string& bytes : {TinyElf().bytes(), read_all(Stubs::builtins())}) {
    const std::string path = folder_.write("truncated", bytes);
    Result<std::string> whole = read_elf_build_id(path);
    ASSERT_TRUE(whole);
    int num_read = 0;
    for (size_t size = bytes.size(); size-- > 0;) {
      ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(size)), 0);
      Result<std::string> id = read_elf_build_id(path);
      if (id) {
        ++num_read;
        ASSERT_EQ(*id, *whole) << "cut to " << size << " bytes";
      }
    }
    EXPECT_LT(num_read, static_cast<int>(bytes.size()));
  }
}

TEST_F(ElfBuildIdTest, OversizedNumbersInEveryFieldDoNoHarm) {
  const std::string good = TinyElf().bytes();
  const std::string path = folder_.write("patched", good);
  for (const unsigned char fill : std::initializer_list<unsigned char>{0x00, 0x7f, 0x80, 0xff}) {
    for (const size_t width : {1, 2, 4, 8}) {
      for (size_t at = SELFMAG; at + width <= good.size(); ++at) {
        std::string bytes = good;
        std::memset(bytes.data() + at, fill, width);
        folder_.write("patched", bytes);
        Result<std::string> id = read_elf_build_id(path);  // any answer, but no crash
        if (id) {
          ASSERT_GE(id->size(), 16u);
        }
      }
    }
  }
}

TEST_F(ElfBuildIdTest, RandomGarbageBehindTheMagicDoesNoHarm) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = TinyElf().bytes();
    for (int i = 0; i < 12; ++i) bytes[5 + random() % (bytes.size() - 5)] = char(random());
    (void)read(bytes).is_ok();
  }
}

TEST_F(ElfBuildIdTest, LeaksNoDescriptor) {
  const int before = num_open_fds();
  for (int i = 0; i < 10; ++i) {
    (void)read_elf_build_id(Stubs::builtins()).is_ok();
    (void)read("garbage").is_ok();
  }
  EXPECT_EQ(num_open_fds(), before);
}

}  // namespace
}  // namespace pagejit::jit
