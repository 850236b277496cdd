// Standard output and standard error as streams that remember why writing failed: a full disk, a
// closed descriptor, a pipe that nobody reads any more. Thread-safety: as std::streambuf, one
// thread at a time.
#pragma once

#include <array>
#include <streambuf>

namespace pagejit::cli {

// Opens /dev/null in the place of standard descriptors that are closed, so that no file that is
// opened later becomes standard output. Writing to it fails, as to a closed one.
void reserve_standard_descriptors();

// A stream's buffer over a descriptor, which it does not own. On a terminal each line is written at
// once.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int fd);
  ~DescriptorBuffer() override;
  DescriptorBuffer(const DescriptorBuffer&) = delete;
  DescriptorBuffer& operator=(const DescriptorBuffer&) = delete;

  // errno of the first write that failed, 0 where none did. Nothing is written after it.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool write_out();

  const int fd_;
  const bool by_lines_;
  int error_ = 0;
  std::array<char, 16384> buffer_;  // a page of text in few calls
};

}  // namespace pagejit::cli
