#include "tools/cli/bundle_push.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cache/bundle.h"
#include "cache/remote_store.h"
#include "runtime/optional/curl_transport.h"
#include "tools/cli/signing_key.h"
#include "tools/cli/text_table.h"
#include "tools/cli/word_checks.h"

namespace pagejit::cli {
namespace {

// Longer than an engine waits (remote_store.h): nobody's first token depends on it, and the server
// may be far away.
constexpr std::chrono::milliseconds kConnectTimeout{5'000};
constexpr std::chrono::milliseconds kTotalTimeout{60'000};
// How often an upload that runs is left to look for an interrupt.
constexpr std::chrono::milliseconds kLookForInterrupt{100};

const std::map<std::string, cache::RemoteLayout> kLayouts = {
    {"flat", cache::RemoteLayout::kFlat},
    {"subdirs", cache::RemoteLayout::kSubdirectories},
    {"bazel", cache::RemoteLayout::kBazel}};

struct PushFlags {
  std::vector<std::string> bundles;
  std::string remote;
  std::string layout = "subdirs";
  std::string key_file;
  bool replace = false;
  bool json = false;
};

// Keeps the last answer of another transport, which says why an upload failed: a store counts only.
// Not thread-safe but for this: read it only while no request is on its way.
class LastAnswer : public cache::HttpTransport {
 public:
  cache::HttpAnswer send(const cache::HttpRequest& request) override {
    cache::HttpAnswer answer = curl_.send(request);
    failure_ = answer.failure;
    reason_ =
        answer.failure == cache::HttpFailure::kNone
            ? "the server answers with status " + std::to_string(answer.status)
            : std::string(cache::http_failure_name(answer.failure)) + " (" + answer.reason + ")";
    return answer;
  }
  bool is_unavailable() const { return failure_ == cache::HttpFailure::kUnavailable; }
  const std::string& reason() const { return reason_; }

 private:
  CurlTransport curl_;
  cache::HttpFailure failure_ = cache::HttpFailure::kNone;
  std::string reason_;
};

// A kernel of one of the bundles.
struct Source {
  const cache::Bundle* bundle;
  size_t index;
};

// What is to be pushed: everything in the bundles, each key once.
struct Kernels {
  std::vector<std::unique_ptr<cache::Bundle>> bundles;
  std::map<cache::Key, Source> sources;
};

// Opens the bundles and reads all of them, so that nothing is uploaded where one is damaged.
Result<Kernels> open_bundles(const std::vector<std::string>& paths) {
  Kernels kernels;
  for (const std::string& path : paths) {
    // What is pushed will be run by others, so the file must be one that can be trusted.
    Result<std::unique_ptr<cache::Bundle>> opened = cache::Bundle::open_file(path);
    if (!opened) return opened.status();
    const cache::Bundle& bundle = **opened;
    if (const Status status = bundle.verify(); !status) return status;
    for (size_t i = 0; i < bundle.num_entries(); ++i) {
      const cache::BundleItem item = bundle.item(i);
      const auto [place, is_new] = kernels.sources.insert({item.key, {&bundle, i}});
      const Source& first = place->second;
      if (!is_new && first.bundle->item(first.index).checksum != item.checksum) {
        return Status(StatusCode::kInvalidArgument, path + ": has another entry of the key " +
                                                        item.key.name() + " than " +
                                                        first.bundle->description());
      }
    }
    kernels.bundles.push_back(std::move(opened).value());
  }
  return kernels;
}

// The entry as the server is to have it. signer: may be null.
Result<std::string> bytes_of(const Source& source, const cache::Signer* signer) {
  const cache::LookupResult found = source.bundle->read_item(source.index);
  if (!found.entry) {
    if (!found.status) return found.status;
    return Status(StatusCode::kDataCorrupt,
                  source.bundle->description() + ": an entry is gone from it");
  }
  Result<std::string> bytes = cache::encode_entry(*found.entry);
  if (!bytes || signer == nullptr) return bytes;
  const Result<std::string> block = cache::sign_entry(*bytes, *signer);
  if (!block) return block.status();
  return *bytes + *block;
}

class Push {
 public:
  Push(cache::RemoteUrl url, const PushFlags& flags, CommandContext& context)
      : flags_(flags), context_(context) {
    cache::RemoteStoreOptions options;
    options.url = std::move(url);
    options.layout = kLayouts.at(flags.layout);
    options.transport = transport_;
    options.write = true;
    options.replace = flags.replace;
    options.connect_timeout = kConnectTimeout;
    options.total_timeout = kTotalTimeout;
    store_ = std::make_unique<cache::RemoteStore>(std::move(options));
  }

  void run(const Kernels& kernels, const cache::Signer* signer) {
    for (const auto& [key, source] : kernels.sources) {
      if (context_.interrupted) break;
      if (is_given_up_) {
        tell(key, 0, "failed", "not tried: " + transport_->reason());
        continue;
      }
      Result<std::string> bytes = bytes_of(source, signer);
      if (!bytes) {
        tell(key, 0, "failed", bytes.status().message());
        context_.exit_code = worse(context_.exit_code, bundle_exit_code_of(bytes.status()));
        continue;
      }
      push(key, std::move(bytes).value());
    }
    summarize(kernels.sources.size());
  }

 private:
  // One after the other: so nothing is ever dropped from the store's queue, and the counts before
  // and after say what became of this one.
  void push(const cache::Key& key, std::string bytes) {
    const size_t size = bytes.size();
    const cache::RemoteStoreStats before = store_->stats();
    store_->upload(key, std::move(bytes));
    while (!store_->flush(kLookForInterrupt)) {
      if (context_.interrupted) return;
    }
    const cache::RemoteStoreStats after = store_->stats();
    if (after.uploads > before.uploads) return tell(key, size, "uploaded", "");
    if (after.uploads_present > before.uploads_present) return tell(key, size, "present", "");
    const bool is_dropped = after.upload_drops > before.upload_drops;  // no memory, no thread
    tell(key, size, "failed", is_dropped ? "it could not be sent" : transport_->reason());
    context_.exit_code = worse(
        context_.exit_code, transport_->is_unavailable() ? ExitCode::kEnvironment : ExitCode::kIo);
    is_given_up_ = after.upload_breaker.is_open || transport_->is_unavailable();
  }

  void tell(const cache::Key& key, size_t size, const std::string& result,
            const std::string& error) {
    ++counts_[result];
    if (!error.empty()) ++errors_[error];
    if (!flags_.json) return;
    nlohmann::ordered_json line;
    line["key"] = key.name();
    line["result"] = result;
    if (size > 0) line["bytes"] = size;
    if (!error.empty()) line["error"] = error;
    context_.out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }

  void summarize(size_t num_kernels) {
    const size_t num_told = counts_["uploaded"] + counts_["present"] + counts_["failed"];
    if (num_told < num_kernels) {
      context_.fail(Status(StatusCode::kCancelled,
                           "interrupted, " + format_kernels(num_kernels - num_told) + " left"));
    }
    for (const auto& [error, count] : errors_) {
      context_.note(store_->description() + ": " + format_kernels(count) + ": " + error);
    }
    if (!flags_.key_file.empty() && counts_["present"] > 0) {
      context_.note(
          "whether what was there already is signed was not looked at; --replace replaces it");
    }
    if (flags_.json) return;
    context_.out << format_kernels(num_kernels) << ": " << text_of("uploaded") << " uploaded, "
                 << text_of("present") << " were there already, " << text_of("failed")
                 << " failed\n";
  }

  std::string text_of(const std::string& result) {
    return format_count(static_cast<int64_t>(counts_[result]));
  }

  const PushFlags& flags_;
  CommandContext& context_;
  const std::shared_ptr<LastAnswer> transport_ = std::make_shared<LastAnswer>();
  std::unique_ptr<cache::RemoteStore> store_;
  bool is_given_up_ = false;
  std::map<std::string, size_t> counts_;  // kernels by result
  std::map<std::string, size_t> errors_;  // kernels by why they failed
};

void push(const PushFlags& flags, CommandContext& context) {
  const auto fail = [&](const Status& status) {
    context.fail(status, bundle_exit_code_of(status));
  };
  Result<cache::RemoteUrl> url = cache::parse_remote_url(flags.remote);
  if (!url) return fail(url.status().with_context("--remote"));
  std::unique_ptr<cache::Signer> signer;
  if (!flags.key_file.empty()) {
    Result<std::unique_ptr<cache::Signer>> read = read_signing_key(flags.key_file);
    if (!read) return fail(read.status());
    signer = std::move(read).value();
  }
  const Result<Kernels> kernels = open_bundles(flags.bundles);
  if (!kernels) return fail(kernels.status());
  Push(std::move(url).value(), flags, context).run(*kernels, signer.get());
}

}  // namespace

void add_bundle_push_command(CLI::App& bundle, CommandContext& context) {
  const auto flags = std::make_shared<PushFlags>();
  CLI::App* command = bundle.add_subcommand("push", "Upload the kernels of bundles to a remote");
  command->add_option("bundles", flags->bundles, "The bundles")->type_name("BUNDLE")->required();
  command->add_option("--remote", flags->remote, "The server, as in PAGEJIT_REMOTE: http or https")
      ->type_name("URL")
      ->required();
  command
      ->add_option("--layout", flags->layout,
                   "How kernels are named there, as in PAGEJIT_REMOTE_LAYOUT: flat, subdirs, bazel "
                   "(default: subdirs)")
      ->check(one_of({"flat", "subdirs", "bazel"}))
      ->type_name("LAYOUT");
  command->add_option("--key-file", flags->key_file, "Sign each kernel with this key, of keygen")
      ->type_name("FILE");
  command->add_flag("--replace", flags->replace,
                    "Replace what is there, e.g. unsigned kernels by signed ones");
  command->add_flag("--json", flags->json, "One JSON object per kernel");
  command->footer(
      "Examples:\n"
      "  pagejit bundle push kernels.pjb --remote https://kernels.example/v1 --key-file "
      "signing.key\n"
      "  pagejit bundle push kernels.pjb --remote https://cache.example --layout bazel --json");
  command->callback([flags, &context] { push(*flags, context); });
}

}  // namespace pagejit::cli
