#include "runtime/tuned_record.h"

#include <algorithm>
#include <cmath>

#include "runtime/format.h"
#include "runtime/text_reader.h"

namespace pagejit {
namespace {

constexpr std::string_view kMagic = "pagejit-tuned ";
constexpr std::string_view kFirstLine = "pagejit-tuned 1\n";

// Applies `visit(name, field)` to every text of a record, in the order of the grammar; used to
// write and to read, so that the two cannot differ.
template <class Record, class Visitor>
void for_each_text(Record& record, Visitor&& visit) {
  visit("spec", record.spec);
  visit("target", record.target);
  visit("device", record.device);
  visit("tile", record.tile);
  visit("planned_tile", record.planned_tile);
  visit("image", record.image);
  visit("version", record.version);
}

// A launch takes less: 1,000 s.
constexpr uint64_t kMaxNanoseconds = 1'000'000'000'000;

}  // namespace

double TunedRecord::speedup() const {
  double sum = 0;
  size_t count = 0;
  for (const Problem& problem : problems) {
    if (problem.planned_ns == 0 || problem.tuned_ns == 0) continue;
    sum +=
        std::log(static_cast<double>(problem.planned_ns) / static_cast<double>(problem.tuned_ns));
    ++count;
  }
  return count == 0 ? 1 : std::exp(sum / static_cast<double>(count));
}

cache::Key tuned_record_key(std::string_view spec, std::string_view target,
                            std::string_view device) {
  cache::KeyIngredients ingredients;
  // No rendered source reads like this, so no kernel has such a key.
  ingredients.text = format("{}1\n{}", kMagic, spec);
  ingredients.target = target;
  ingredients.parameter_abi = "tuned-1";
  ingredients.compiler_identity = format("measured on {}", device);
  return cache::make_key(ingredients);
}

cache::Entry encode_tuned_record(const TunedRecord& record) {
  std::string text(kFirstLine);
  for_each_text(record, [&](const char* name, const std::string& value) {
    text += format("{}={}\n", name, one_line(value));
  });
  const size_t count = std::min(record.problems.size(), kMaxTunedProblems);
  text += format("problems={}\n", count);
  for (size_t i = 0; i < count; ++i) {
    const TunedRecord::Problem& problem = record.problems[i];
    text += format("problem={} {} {}\n", std::min(problem.planned_ns, kMaxNanoseconds),
                   std::min(problem.tuned_ns, kMaxNanoseconds), one_line(problem.name));
  }
  text += "end\n";
  return {.key = tuned_record_key(one_line(record.spec), one_line(record.target),
                                  one_line(record.device)),
          .metadata = std::move(text),
          .image = {}};
}

bool is_tuned_record(std::string_view metadata) { return metadata.starts_with(kMagic); }

Result<TunedRecord> parse_tuned_record(std::string_view metadata) {
  TunedRecord record;
  TextReader reader("tuned record", metadata);
  reader.expect(kFirstLine);
  for_each_text(record, [&](const char* name, std::string& value) {
    reader.expect(format("{}=", name));
    value = reader.read_until('\n');
  });
  reader.expect("problems=");
  const uint64_t count = reader.read_number<uint64_t>('\n', kMaxTunedProblems);
  for (uint64_t i = 0; i < count && !reader.failed(); ++i) {
    TunedRecord::Problem& problem = record.problems.emplace_back();
    reader.expect("problem=");
    problem.planned_ns = reader.read_number<uint64_t>(' ', kMaxNanoseconds);
    problem.tuned_ns = reader.read_number<uint64_t>(' ', kMaxNanoseconds);
    problem.name = reader.read_until('\n');
  }
  reader.expect("end\n");
  reader.expect_end();
  if (reader.failed()) return reader.status();
  return record;
}

Result<TunedRecord> parse_tuned_record(const cache::Entry& entry) {
  Result<TunedRecord> record = parse_tuned_record(entry.metadata);
  if (!record) return record;
  if (!entry.image.empty()) {
    return Status(StatusCode::kDataCorrupt,
                  format("tuned record: {} bytes of image, has none", entry.image.size()));
  }
  if (tuned_record_key(record->spec, record->target, record->device) != entry.key) {
    return Status(StatusCode::kDataCorrupt,
                  format("tuned record of \"{}\" for {} on {}: lies under the key of another",
                         record->spec, record->target, record->device));
  }
  return record;
}

}  // namespace pagejit
