#include "tools/cli/progress.h"

#include <algorithm>

namespace pagejit::cli {
namespace {

constexpr size_t kBarWidth = 24;  // leaves 50 columns of an 80-column terminal for the line
constexpr size_t kLineWidth = 44;

}  // namespace

Progress::Progress(std::ostream& stream, const Terminal& terminal, size_t total)
    : stream_(stream), terminal_(terminal), total_(total) {
  draw("");
}

Progress::~Progress() { erase(); }

void Progress::step(const std::string& line) {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (terminal_.is_terminal) {
    draw(line);
    return;
  }
  const std::string total = std::to_string(total_);
  std::string done = std::to_string(done_);
  done.insert(0, total.size() - std::min(total.size(), done.size()), ' ');
  stream_ << "[" << done << "/" << total << "] " << line << "\n" << std::flush;
}

void Progress::message(const std::string& line) {
  const std::lock_guard lock(mutex_);
  erase();
  stream_ << line << "\n" << std::flush;
  draw(last_);
}

void Progress::draw(const std::string& line) {
  if (!terminal_.is_terminal || total_ == 0) return;
  last_ = line.substr(0, kLineWidth);
  const size_t filled = kBarWidth * done_ / total_;
  stream_ << "\r\x1b[K[" << std::string(filled, '#') << std::string(kBarWidth - filled, '.') << "] "
          << done_ << "/" << total_ << " " << last_ << std::flush;
}

void Progress::erase() {
  if (terminal_.is_terminal && total_ != 0) stream_ << "\r\x1b[K" << std::flush;
}

}  // namespace pagejit::cli
