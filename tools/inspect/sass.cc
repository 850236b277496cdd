#include "tools/inspect/sass.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace pagejit::inspect {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// "/*0a10*/   TEXT ;" -> address and TEXT.
std::optional<SassInstruction> parse_instruction(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with("/*")) return std::nullopt;
  const size_t end = line.find("*/");
  if (end == std::string_view::npos) return std::nullopt;
  SassInstruction instruction;
  const std::string_view digits = line.substr(2, end - 2);
  const auto parsed =
      std::from_chars(digits.data(), digits.data() + digits.size(), instruction.address, 16);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  std::string_view text = line.substr(end + 2);
  text = trimmed(text.substr(0, std::min(text.find(';'), text.size())));
  instruction.text = text;
  // Braces hold two that are issued together (Maxwell); a predicate stands before the opcode.
  while (!text.empty() && (text.front() == '{' || text.front() == ' ')) text.remove_prefix(1);
  if (text.starts_with('@')) text = trimmed(text.substr(std::min(text.find(' '), text.size())));
  instruction.opcode = text.substr(0, std::min(text.find(' '), text.size()));
  if (instruction.opcode.empty()) return std::nullopt;
  return instruction;
}

// Of `//## File "PATH", line 12 inlined at ...`.
struct SourcePlace {
  std::string_view file;
  int line = 0;
};
std::optional<SourcePlace> parse_place(std::string_view line) {
  constexpr std::string_view kFile = "//## File \"";
  constexpr std::string_view kLine = "\", line ";
  line = trimmed(line);
  if (!line.starts_with(kFile)) return std::nullopt;
  line.remove_prefix(kFile.size());
  const size_t quote = line.find(kLine);
  if (quote == std::string_view::npos) return std::nullopt;
  SourcePlace place = {line.substr(0, quote)};
  const std::string_view number = line.substr(quote + kLine.size());
  std::from_chars(number.data(), number.data() + number.size(), place.line);
  return place;
}

// ".L_x_12" of "@P0 BRA `(.L_x_12)".
std::string_view branch_target(const SassInstruction& instruction) {
  if (!instruction.opcode.starts_with("BRA")) return {};
  const std::string_view text = instruction.text;
  const size_t begin = text.find("(.L");
  const size_t end = text.find(')', std::min(begin, text.size()));
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  return text.substr(begin + 1, end - begin - 1);
}

// Weighs loops: those with products first, then those with loads.
struct LoopWeight {
  int products = 0;
  int loads = 0;
};
LoopWeight weight_of(const SassListing& listing, const SassLoop& loop) {
  LoopWeight weight;
  for (size_t i = loop.begin; i < loop.end; ++i) {
    const SassClass c = class_of(listing.instructions[i].opcode);
    weight.products += c == SassClass::kMatrixProduct;
    weight.loads += c == SassClass::kGlobalLoad || c == SassClass::kAsyncCopy ||
                    c == SassClass::kSharedLoad || c == SassClass::kMatrixLoad;
  }
  return weight;
}

class ListingParser {
 public:
  explicit ListingParser(std::string_view symbol) { listing_.symbol = symbol; }

  void read_line(std::string_view line) {
    const std::string_view words = trimmed(line);
    if (words.starts_with(".target")) {
      const std::string_view target = trimmed(words.substr(7));
      listing_.target = target.substr(0, std::min(target.find_first_of(" ,\t"), target.size()));
    } else if (words.starts_with(".section ") || words.starts_with(".section\t")) {
      // Quoted where the name has unusual letters.
      const std::string_view name = trimmed(words.substr(8));
      const std::string wanted = ".text." + listing_.symbol;
      is_inside_ =
          name.starts_with(wanted) && (name.size() == wanted.size() || name[wanted.size()] == ',');
    } else if (is_inside_) {
      read_inside(line);
    }
  }

  SassListing finish() {
    find_loops();
    return std::move(listing_);
  }

 private:
  void read_inside(std::string_view line) {
    if (const auto place = parse_place(line)) {
      // Of a call chain the innermost comes first, and only it is kept.
      if (!place_is_new_) {
        file_ = file_index(place->file);
        line_ = place->line;
      }
      place_is_new_ = true;
      return;
    }
    if (auto instruction = parse_instruction(line)) {
      instruction->file = file_;
      instruction->line = line_;
      listing_.instructions.push_back(std::move(*instruction));
      place_is_new_ = false;
      return;
    }
    const std::string_view words = trimmed(line);
    if (words.starts_with(".L") && words.ends_with(":")) {
      labels_.emplace(words.substr(0, words.size() - 1), listing_.instructions.size());
    }
  }

  int file_index(std::string_view name) {
    const auto& files = listing_.files;
    const auto found = std::find(files.begin(), files.end(), name);
    const auto index = static_cast<int>(found - files.begin());
    if (found == files.end()) listing_.files.emplace_back(name);
    return index;
  }

  void find_loops() {
    for (size_t i = 0; i < listing_.instructions.size(); ++i) {
      const std::string_view target = branch_target(listing_.instructions[i]);
      const auto label = target.empty() ? labels_.end() : labels_.find(std::string(target));
      // A branch to itself stands behind the end, as padding.
      if (label != labels_.end() && label->second < i) {
        listing_.loops.push_back({label->second, i + 1});
      }
    }
  }

  SassListing listing_;
  std::map<std::string, size_t> labels_;
  bool is_inside_ = false;
  bool place_is_new_ = false;
  int file_ = -1;
  int line_ = 0;
};

}  // namespace

SassListing parse_sass(std::string_view text, std::string_view symbol) {
  ListingParser parser(symbol);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    parser.read_line(text.substr(at, end - at));
    at = end + 1;
  }
  return parser.finish();
}

const SassLoop* main_loop(const SassListing& listing) {
  const SassLoop* best = nullptr;
  LoopWeight best_weight;
  for (const SassLoop& loop : listing.loops) {
    const LoopWeight weight = weight_of(listing, loop);
    const int more = weight.products > 0 || best_weight.products > 0
                         ? weight.products - best_weight.products
                         : weight.loads - best_weight.loads;
    if (best == nullptr || more > 0 || (more == 0 && loop.size() < best->size())) {
      best = &loop;
      best_weight = weight;
    }
  }
  return best;
}

SassMix count_mix(const SassListing& listing, SassLoop range) {
  SassMix mix;
  for (size_t i = range.begin; i < std::min(range.end, listing.instructions.size()); ++i) {
    const std::string& opcode = listing.instructions[i].opcode;
    if (opcode.starts_with("NOP")) {
      ++mix.no_operations;
      continue;
    }
    const SassClass c = class_of(opcode);
    ++mix.total;
    ++mix.by_class[static_cast<size_t>(c)];
    ++mix.by_operation[opcode.substr(0, opcode.find('.'))];
    if (const int width = width_of(opcode); width > 0) ++mix.by_width[{c, width}];
  }
  return mix;
}

SassMix count_mix(const SassListing& listing) {
  return count_mix(listing, {0, listing.instructions.size()});
}

}  // namespace pagejit::inspect
