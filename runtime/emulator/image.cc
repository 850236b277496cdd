#include "runtime/emulator/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/emulator/text.h"

extern char** environ;

namespace pagejit_emulator {
namespace {

// The driver API passes no length: it follows from the ELF header, as for a cubin. 0 where this is
// no 64-bit ELF file.
size_t elf_bytes(const void* data) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64) return 0;
  ElfW(Ehdr) header;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.e_type != ET_DYN || header.e_shentsize != sizeof(ElfW(Shdr))) return 0;
  // Linkers write the table of sections last.
  size_t end = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  for (int i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section;
    std::memcpy(&section, bytes + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS) {
      end = std::max<size_t>(end, section.sh_offset + section.sh_size);
    }
  }
  return end;
}

bool write_all(int fd, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, p, bytes);
    if (written <= 0) return false;
    p += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

// First line that `argv` prints; "" where it cannot be run.
std::string output_of(const char* const* argv) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, argv[0], &actions, nullptr, const_cast<char* const*>(argv), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  std::string output;
  if (failed == 0) {
    char buffer[512];
    ssize_t got = 0;
    while ((got = read(pipe_fds[0], buffer, sizeof(buffer))) > 0) {
      output.append(buffer, static_cast<size_t>(got));
    }
    waitpid(child, nullptr, 0);
  }
  close(pipe_fds[0]);
  return output.substr(0, output.find('\n'));
}

}  // namespace

std::shared_ptr<Image> Image::load(const void* bytes, const Api* api, bool* is_elf,
                                   std::string* complaint) {
  const size_t size = elf_bytes(bytes);
  *is_elf = size != 0;
  if (size == 0) {
    *complaint = "the image is no shared object; the emulator runs kernels compiled for \"host\"";
    return nullptr;
  }
  std::shared_ptr<Image> image(new Image);
  image->fd_ = memfd_create("pagejit-kernel", MFD_CLOEXEC);
  if (image->fd_ < 0 || !write_all(image->fd_, bytes, size)) {
    *complaint = text("no memory file for an image of %zu bytes: %s", size, std::strerror(errno));
    return nullptr;
  }
  const std::string path = text("/proc/self/fd/%d", image->fd_);
  image->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (image->handle_ == nullptr) {
    const char* reason = dlerror();
    *complaint = text("the image cannot be loaded: %s", reason ? reason : "unknown reason");
    return nullptr;
  }
  image->entry_ = static_cast<const ImageEntry*>(dlsym(image->handle_, "pagejit_emulator_image"));
  if (image->entry_ == nullptr) {
    *complaint = "the shared object is no kernel image: it lacks pagejit_emulator_image";
    return nullptr;
  }
  if (image->entry_->abi != kEmulatorAbi) {
    *complaint = text("the image has emulator ABI %d, this emulator has %d: compile it anew",
                      image->entry_->abi, kEmulatorAbi);
    return nullptr;
  }
  link_map* map = nullptr;
  dlinfo(image->handle_, RTLD_DI_LINKMAP, &map);
  image->base_ = map->l_addr;
  ElfW(Ehdr) header;
  std::memcpy(&header, bytes, sizeof(header));
  image->begin_ = UINTPTR_MAX;
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    std::memcpy(&segment, static_cast<const char*>(bytes) + header.e_phoff + i * sizeof(segment),
                sizeof(segment));
    if (segment.p_type != PT_LOAD) continue;
    image->begin_ = std::min<uintptr_t>(image->begin_, image->base_ + segment.p_vaddr);
    image->end_ =
        std::max<uintptr_t>(image->end_, image->base_ + segment.p_vaddr + segment.p_memsz);
  }
  image->entry_->bind(api);
  return image;
}

Image::~Image() {
  if (handle_ != nullptr) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

const KernelEntry* Image::kernel(const std::string& name) const {
  return static_cast<const KernelEntry*>(dlsym(handle_, (name + "_emulator_entry").c_str()));
}

std::string Image::source_line(uintptr_t pc) const {
  std::string& line = lines_[pc];
  if (!line.empty()) return line;
  if (contains(pc)) {
    const std::string file = text("/proc/%d/fd/%d", static_cast<int>(getpid()), fd_);
    const std::string offset = text("0x%zx", pc - base_);
    // -s: #line names are relative, and the folder that the compiler ran in means nothing here.
    const char* argv[] = {"addr2line", "-s", "-e", file.c_str(), offset.c_str(), nullptr};
    line = output_of(argv);
    line = line.substr(0, line.find(" (discriminator"));
    if (line.starts_with("??") || line.ends_with(":?") || line.ends_with(":0")) line.clear();
  }
  if (line.empty()) line = text("image+0x%zx", pc - base_);
  return line;
}

}  // namespace pagejit_emulator
