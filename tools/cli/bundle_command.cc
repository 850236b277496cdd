// `pagejit bundle`: one file of many kernels, made from cache directories, listed, merged, verified
// and signed. Pushing them to a remote: bundle_push.h.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cache/bundle.h"
#include "cache/bundle_writer.h"
#include "runtime/metadata.h"
#include "runtime/optional/sodium.h"
#include "runtime/tuned_record.h"
#include "tools/cli/bundle_builder.h"
#include "tools/cli/bundle_push.h"
#include "tools/cli/commands.h"
#include "tools/cli/signing_key.h"
#include "tools/cli/text_table.h"
#include "tools/cli/word_checks.h"
#include "tools/cli/work_flags.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {
namespace {

struct BundleFlags {
  std::vector<std::string> from;
  std::vector<std::string> targets;
  std::vector<std::string> keys;
  std::string bundle;
  std::string output;
  std::string key_file;
  bool json = false;
};

void fail(const Status& status, CommandContext& context) {
  context.fail(status, bundle_exit_code_of(status));
}

// Opens a bundle to look at it, whoever it belongs to.
Result<std::unique_ptr<cache::Bundle>> open_to_look(const std::string& path,
                                                    std::vector<cache::PublicKey> keys = {}) {
  cache::BundleOptions options;
  options.trusted_keys = std::move(keys);
  options.verifier = make_sodium_verifier();
  options.require_private = false;
  return cache::Bundle::open_file(path, options);
}

// "5 kernels, 230,912 bytes, digest 0123...".
std::string summary(const cache::Bundle& bundle) {
  return format_kernels(bundle.num_entries()) + ", " +
         format_count(static_cast<int64_t>(bundle.size())) + " bytes, digest " +
         cache::to_hex(bundle.digest());
}

void write_bundle(const BundleBuilder& builder, const std::string& output,
                  CommandContext& context) {
  if (context.interrupted) return;
  if (const Status status = builder.write_file(output); !status) return fail(status, context);
  const auto bundle = open_to_look(output);
  if (!bundle) return fail(bundle.status(), context);
  context.out << fitted(output + ": " + summary(**bundle) + "\n", context.out_terminal);
}

void warn_of_left_out(uint64_t count, const char* why, CommandContext& context) {
  if (count > 0) context.note("left out " + format_kernels(count) + ": " + why);
}

void create(const BundleFlags& flags, CommandContext& context) {
  std::vector<std::string> targets;
  for (const std::string& text : flags.targets) {
    const Result<Target> target = parse_target(text);
    if (!target) return fail(target.status().with_context("--only-target"), context);
    targets.push_back(target->to_string());
  }
  BundleBuilder builder(std::move(targets));
  for (const std::string& path : flags.from) {
    if (context.interrupted) return;  // nothing is written
    if (const Status status = builder.add_path(path); !status) return fail(status, context);
  }
  warn_of_left_out(builder.counts().corrupt, "damaged, set aside in the cache directory", context);
  warn_of_left_out(builder.counts().unknown, "made by another version of pagejit", context);
  write_bundle(builder, flags.output, context);
}

void merge(const BundleFlags& flags, CommandContext& context) {
  BundleBuilder builder;
  for (const std::string& path : flags.from) {
    if (context.interrupted) return;
    if (const Status status = builder.add_bundle_verbatim(path); !status) {
      return fail(status, context);
    }
  }
  write_bundle(builder, flags.output, context);
}

nlohmann::ordered_json json_line(const cache::BundleItem& item) {
  nlohmann::ordered_json line;
  line["key"] = item.key.name();
  line["source"] = cache::to_hex(item.key.source);
  line["compiler"] = cache::to_hex(item.key.compiler);
  line["bytes"] = item.size;
  line["checksum"] = cache::to_hex(item.checksum);
  return line;
}

void list(const BundleFlags& flags, CommandContext& context) {
  const auto bundle = open_to_look(flags.bundle);
  if (!bundle) return fail(bundle.status(), context);
  TextTable table({{"key"}, {"target"}, {"bytes", Align::kRight}, {"spec"}});
  for (size_t i = 0; i < (*bundle)->num_entries(); ++i) {
    const cache::BundleItem item = (*bundle)->item(i);
    const cache::LookupResult found = (*bundle)->read_item(i);
    nlohmann::ordered_json line = json_line(item);
    std::string target = "-";
    std::string spec = "-";
    if (!found.entry) {
      line["error"] = found.status.message();
      fail(found.status, context);
    } else if (const auto metadata = parse_metadata(found.entry->metadata)) {
      line["target"] = metadata->target;
      target = models::printable(metadata->target);
      line["spec"] = metadata->spec;
      spec = models::printable(metadata->spec);
      line["kernel"] = metadata->symbol;
      line["image_bytes"] = found.entry->image.size();
    } else if (const auto record = parse_tuned_record(*found.entry)) {
      line["target"] = record->target;
      target = models::printable(record->target);
      line["spec"] = record->spec;
      line["tuned_on"] = record->device;
      line["tile"] = record->tile;
      spec =
          "tuned on " + models::printable(record->device) + ": " + models::printable(record->spec);
    } else {
      line["error"] = metadata.status().message();
      spec = "made by another version of pagejit";
    }
    if (flags.json) {
      context.out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
      table.add_row({item.key.name(), target, format_count(static_cast<int64_t>(item.size)), spec});
    }
  }
  if (!flags.json)
    context.out << table.to_string(context.out_terminal)
                << fitted(summary(**bundle) + "\n", context.out_terminal);
}

// What verify says of the signature, after "signed by KEY".
const char* signature_remark(cache::SignatureVerdict verdict, bool has_keys) {
  if (verdict == cache::SignatureVerdict::kTrusted) return " (good)";
  return has_keys ? " (not one of --key)" : " (not checked, --key is missing)";
}

std::string signature_text(const cache::Bundle& bundle, bool has_keys) {
  const cache::SignatureCheck& signature = bundle.signature();
  if (signature.verdict == cache::SignatureVerdict::kUnsigned) return "not signed";
  return "signed by " + cache::to_hex(signature.key) +
         signature_remark(signature.verdict, has_keys);
}

nlohmann::ordered_json json_of(const std::string& path, const cache::Bundle& bundle,
                               const Status& intact, bool has_keys) {
  nlohmann::ordered_json json;
  json["bundle"] = path;
  json["kernels"] = bundle.num_entries();
  json["bytes"] = bundle.size();
  json["digest"] = cache::to_hex(bundle.digest());
  json["intact"] = static_cast<bool>(intact);
  if (!intact) json["error"] = intact.message();
  const cache::SignatureCheck& signature = bundle.signature();
  const bool is_signed = signature.verdict != cache::SignatureVerdict::kUnsigned;
  json["signed_by"] = is_signed ? nlohmann::ordered_json(cache::to_hex(signature.key))
                                : nlohmann::ordered_json(nullptr);
  // Whether by one of --key; null where none was given.
  json["signature_good"] = nullptr;
  if (has_keys) json["signature_good"] = signature.verdict == cache::SignatureVerdict::kTrusted;
  return json;
}

void verify(const BundleFlags& flags, CommandContext& context) {
  std::vector<cache::PublicKey> keys;
  for (const std::string& text : flags.keys) {
    const Result<cache::PublicKey> key = cache::parse_public_key(text);
    if (!key) return fail(key.status().with_context("--key"), context);
    keys.push_back(*key);
  }
  const auto bundle = open_to_look(flags.bundle, keys);
  if (!bundle) return fail(bundle.status(), context);
  const Status intact = (*bundle)->verify();
  if (flags.json) {
    context.out << json_of(flags.bundle, **bundle, intact, !keys.empty())
                       .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
  } else {
    context.out << fitted(flags.bundle + ": " + summary(**bundle) + ", " +
                              signature_text(**bundle, !keys.empty()) + "\n",
                          context.out_terminal);
  }
  if (!keys.empty() && (*bundle)->signature().verdict != cache::SignatureVerdict::kTrusted) {
    context.fail(
        Status(StatusCode::kDataCorrupt, flags.bundle + ": is not signed by a key of --key"),
        ExitCode::kVerification);
  }
  if (!intact) fail(intact, context);
}

void sign(const BundleFlags& flags, CommandContext& context) {
  const auto signer = read_signing_key(flags.key_file);
  if (!signer) return fail(signer.status(), context);
  // Whoever signs says that the kernels are good, so their file must be one that can be trusted.
  const auto bundle = cache::Bundle::open_file(flags.bundle);
  if (!bundle) return fail(bundle.status(), context);
  cache::PosixFileSystem file_system;
  const std::string& output = flags.output.empty() ? flags.bundle : flags.output;
  if (const Status status = cache::sign_bundle(**bundle, output, **signer, &file_system); !status) {
    return fail(status, context);
  }
  context.out << fitted(output + ": " + summary(**bundle) + ", signed by " +
                            cache::to_hex((*signer)->public_key()) + "\n",
                        context.out_terminal);
}

void generate_key(const BundleFlags& flags, CommandContext& context) {
  const Result<cache::PublicKey> key = make_signing_key(flags.output);
  if (!key) return fail(key.status(), context);
  context.out << cache::to_hex(*key) << "\n";
}

using Action = void (*)(const BundleFlags&, CommandContext&);

CLI::App* add_action(CLI::App& bundle, CommandContext& context, const char* name,
                     const char* description, const char* examples,
                     const std::shared_ptr<BundleFlags>& flags, Action action) {
  CLI::App* command = bundle.add_subcommand(name, description);
  command->footer(std::string("Examples:\n") + examples);
  command->callback([flags, &context, action] { action(*flags, context); });
  return command;
}

void add_bundle_argument(CLI::App& command, BundleFlags* flags) {
  command.add_option("bundle", flags->bundle, "The bundle")->type_name("BUNDLE")->required();
}

void add_output(CLI::App& command, BundleFlags* flags, const char* description, bool required) {
  command.add_option("-o,--output", flags->output, description)
      ->type_name("FILE")
      ->required(required);
}

}  // namespace

void add_bundle_command(CLI::App& app, CommandContext& context) {
  CLI::App* bundle =
      app.add_subcommand("bundle", "Make, list, merge, verify, sign and push bundles of kernels");
  bundle->require_subcommand(1);
  // Before the subcommands, which take it over.
  bundle->footer(
      std::string("Examples:\n"
                  "  pagejit bundle create --from ~/.cache/pagejit -o kernels.pjb\n"
                  "  pagejit bundle merge shard1.pjb shard2.pjb -o kernels.pjb\n"
                  "  pagejit bundle keygen -o signing.key\n"
                  "  pagejit bundle sign kernels.pjb --key-file signing.key\n"
                  "  pagejit bundle verify kernels.pjb --key 0123...\n"
                  "  pagejit bundle push kernels.pjb --remote https://kernels.example/v1 "
                  "--key-file signing.key\n\n"
                  "Signatures need libsodium (Debian: libsodium23), push needs libcurl "
                  "(libcurl4).\n\n") +
      kExitCodeHelp);
  const auto flags = std::make_shared<BundleFlags>();

  CLI::App* command = add_action(
      *bundle, context, "create", "One bundle of all kernels of cache directories",
      "  pagejit bundle create --from ~/.cache/pagejit -o kernels.pjb\n"
      "  pagejit bundle create --from /srv/kernels --only-target sm_90a,host -o kernels.pjb",
      flags, create);
  command->add_option("--from", flags->from, "A cache directory or a bundle; may be repeated")
      ->type_name("PATH")
      ->required();
  command
      ->add_option("--only-target", flags->targets,
                   "Only kernels for these: sm_90a, host; separated by commas or repeated")
      ->delimiter(',')
      ->type_name("ARCH")
      ->check(target_words());
  add_output(*command, flags.get(), "The bundle to write", true);

  command = add_action(*bundle, context, "ls", "List a bundle's kernels",
                       "  pagejit bundle ls kernels.pjb\n"
                       "  pagejit bundle ls kernels.pjb --json",
                       flags, list);
  add_bundle_argument(*command, flags.get());
  command->add_flag("--json", flags->json, "One JSON object per kernel");

  command = add_action(*bundle, context, "merge", "One bundle of several",
                       "  pagejit bundle merge shard1.pjb shard2.pjb -o kernels.pjb", flags, merge);
  command->add_option("bundles", flags->from, "The bundles")->type_name("BUNDLE")->required();
  add_output(*command, flags.get(), "The bundle to write", true);

  command = add_action(*bundle, context, "verify", "Read all of a bundle and check it",
                       "  pagejit bundle verify kernels.pjb --json\n"
                       "  pagejit bundle verify kernels.pjb --key 0123...",
                       flags, verify);
  add_bundle_argument(*command, flags.get());
  command
      ->add_option("--key", flags->keys,
                   "A public key, 64 hexadecimal digits: one of these must have signed")
      ->type_name("HEX");
  command->add_flag("--json", flags->json, "One JSON object");

  command = add_action(*bundle, context, "sign", "Sign a bundle",
                       "  pagejit bundle sign kernels.pjb --key-file signing.key\n"
                       "  pagejit bundle sign kernels.pjb --key-file signing.key -o signed.pjb",
                       flags, sign);
  add_bundle_argument(*command, flags.get());
  command->add_option("--key-file", flags->key_file, "The signing key, of keygen")
      ->type_name("FILE")
      ->required();
  add_output(*command, flags.get(), "The signed bundle (default: in its place)", false);

  command = add_action(*bundle, context, "keygen", "Make a signing key; prints its public key",
                       "  pagejit bundle keygen -o signing.key", flags, generate_key);
  add_output(*command, flags.get(), "The secret key's file, which must not exist", true);

  add_bundle_push_command(*bundle, context);
}

}  // namespace pagejit::cli
