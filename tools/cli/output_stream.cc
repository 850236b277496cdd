#include "tools/cli/output_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pagejit::cli {

void reserve_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number, which is this one. Reading gives an end of file.
    (void)open("/dev/null", O_RDONLY);
  }
}

DescriptorBuffer::DescriptorBuffer(int fd) : fd_(fd), by_lines_(isatty(fd) != 0) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

DescriptorBuffer::~DescriptorBuffer() { write_out(); }

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  if (!write_out()) return traits_type::eof();
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char text = traits_type::to_char_type(c);
  return xsputn(&text, 1) == 1 ? c : traits_type::eof();
}

std::streamsize DescriptorBuffer::xsputn(const char* text, std::streamsize count) {
  for (std::streamsize done = 0; done < count;) {
    if (pptr() == epptr() && !write_out()) return done;
    const std::streamsize part = std::min<std::streamsize>(count - done, epptr() - pptr());
    std::memcpy(pptr(), text + done, static_cast<size_t>(part));
    pbump(static_cast<int>(part));
    done += part;
  }
  if (by_lines_ && std::find(text, text + count, '\n') != text + count && !write_out()) return 0;
  return count;
}

int DescriptorBuffer::sync() { return write_out() ? 0 : -1; }

bool DescriptorBuffer::write_out() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const ssize_t written = write(fd_, from, static_cast<size_t>(pptr() - from));
    if (written > 0) {
      from += written;
    } else if (written == 0 || errno != EINTR) {
      error_ = written == 0 ? EIO : errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0;
}

}  // namespace pagejit::cli
