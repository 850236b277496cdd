// `pagejit bundle` as a user runs it, on cache directories that the test fills itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cache/bundle.h"
#include "cache/disk_cache.h"
#include "runtime/metadata.h"
#include "runtime/tuned_record.h"
#include "tests/tools/cli/command_runner.h"

namespace pagejit::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

cache::Entry kernel(int number, const std::string& target = "sm_90a", uint64_t compile_us = 5) {
  cache::KeyIngredients ingredients;
  ingredients.text = "kernel " + std::to_string(number);
  ingredients.target = target;
  KernelMetadata metadata;
  metadata.spec = "decode number=" + std::to_string(number);
  metadata.target = target;
  metadata.symbol = "kernel_" + std::to_string(number);
  metadata.compile_us = compile_us;
  metadata.log = "took " + std::to_string(compile_us);
  return {cache::make_key(ingredients), encode_metadata(metadata), std::string(1000, 'x')};
}

class BundleCommandTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return runner_.folder() + "/" + name; }

  // A cache directory with these kernels.
  std::string fill(const std::string& name, const std::vector<cache::Entry>& entries) const {
    cache::DiskCacheOptions options;
    options.directory = {path(name), "", "test"};
    const auto directory = cache::DiskCache::open(std::move(options));
    for (const cache::Entry& entry : entries) {
      const Status status = directory->publish(entry);
      EXPECT_TRUE(status) << status.to_string();
    }
    return path(name);
  }

  CommandResult run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "bundle");
    return runner_.run(arguments);
  }
  CommandResult run_well(const std::vector<std::string>& arguments) const {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result;
  }

  const CommandRunner runner_;
};

TEST_F(BundleCommandTest, ShardsMergeToTheBytesOfOneRun) {
  std::vector<cache::Entry> all;
  std::vector<cache::Entry> halves[2];
  for (int i = 0; i < 10; ++i) {
    all.push_back(kernel(i, "sm_90a", 100 + static_cast<uint64_t>(i)));
    halves[i % 2].push_back(kernel(i, "sm_90a", 7));  // another run takes another time
  }
  run_well({"create", "--from", fill("one", all), "-o", path("one.pjb")});
  run_well({"create", "--from", fill("a", halves[0]), "-o", path("a.pjb")});
  run_well({"create", "--from", fill("b", halves[1]), "-o", path("b.pjb")});
  const CommandResult merged =
      run_well({"merge", path("b.pjb"), path("a.pjb"), "-o", path("merged.pjb")});
  EXPECT_THAT(merged.out, HasSubstr("merged.pjb: 10 kernels, "));
  EXPECT_EQ(read_file(path("merged.pjb")), read_file(path("one.pjb")));
  // Directories and bundles may be mixed, and overlap.
  run_well({"create", "--from", path("a"), "--from", path("one.pjb"), "--from", path("one"), "-o",
            path("mixed.pjb")});
  EXPECT_EQ(read_file(path("mixed.pjb")), read_file(path("one.pjb")));
}

TEST_F(BundleCommandTest, OnlyTheTargetsAskedForAreTaken) {
  const std::string from =
      fill("cache", {kernel(1, "sm_90a"), kernel(2, "sm_80"), kernel(3, "host")});
  EXPECT_THAT(
      run_well({"create", "--from", from, "-o", path("x.pjb"), "--only-target", "sm_80,host"}).out,
      HasSubstr("2 kernels"));
  const CommandResult listed = run_well({"ls", path("x.pjb")});
  EXPECT_THAT(listed.out, HasSubstr("sm_80"));
  EXPECT_THAT(listed.out, testing::Not(HasSubstr("sm_90a")));
  const CommandResult wrong =
      run({"create", "--from", from, "-o", path("y.pjb"), "--only-target", "hopper"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("--only-target: target \"hopper\""));
  EXPECT_FALSE(fs::exists(path("y.pjb")));
}

TEST_F(BundleCommandTest, WhatCannotBeTakenIsLeftOutAndSaid) {
  cache::Entry older = kernel(1);
  older.metadata = "pagejit-kernel 1\n";
  const std::string from = fill("cache", {older, kernel(2), kernel(3)});
  const cache::Key key = kernel(2).key;
  std::ofstream(from + "/v1/objects/" + cache::to_hex(key.source).substr(0, 2) + "/" +
                key.file_name())
      << "damaged";
  const CommandResult result = run({"create", "--from", from, "-o", path("x.pjb")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("x.pjb: 1 kernel, "));
  EXPECT_THAT(result.err, HasSubstr("left out 1 kernel: damaged"));
  EXPECT_THAT(result.err, HasSubstr("left out 1 kernel: made by another version"));
}

TEST_F(BundleCommandTest, TwoKernelsOfOneKeyAreRefused) {
  cache::Entry other = kernel(1);
  other.image += 'y';
  const CommandResult result = run({"create", "--from", fill("a", {kernel(1)}), "--from",
                                    fill("b", {other}), "-o", path("x.pjb")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("two different entries"));
  EXPECT_FALSE(fs::exists(path("x.pjb")));
}

TEST_F(BundleCommandTest, ListsKernelsForProgramsToo) {
  run_well({"create", "--from", fill("cache", {kernel(1), kernel(2)}), "-o", path("x.pjb")});
  EXPECT_THAT(run_well({"ls", path("x.pjb")}).out, HasSubstr("decode number=1"));
  std::istringstream lines(run_well({"ls", path("x.pjb"), "--json"}).out);
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    const auto json = nlohmann::json::parse(line);
    const int number = json["kernel"] == "kernel_1" ? 1 : 2;
    EXPECT_EQ(json["key"], kernel(number).key.name());
    EXPECT_EQ(json["spec"], "decode number=" + std::to_string(number));
    EXPECT_EQ(json["target"], "sm_90a");
    EXPECT_EQ(json["image_bytes"], 1000);
    ++count;
  }
  EXPECT_EQ(count, 2);
}

cache::Entry tuned_record(const std::string& device, const std::string& target = "sm_90a") {
  TunedRecord record;
  record.spec = "decode number=1";
  record.target = target;
  record.device = device;
  record.tile = "token_groups=4";
  record.problems = {{.name = "batch=1", .planned_ns = 20, .tuned_ns = 10}};
  return encode_tuned_record(record);
}

TEST_F(BundleCommandTest, TunedRecordsAreTakenAlong) {
  const std::string a =
      fill("a", {kernel(1), tuned_record("GPU A"), tuned_record("GPU A", "sm_80")});
  const std::string b = fill("b", {kernel(2), tuned_record("GPU B")});
  run_well({"create", "--from", a, "--only-target", "sm_90a", "-o", path("a.pjb")});
  run_well({"create", "--from", b, "-o", path("b.pjb")});
  run_well({"merge", path("a.pjb"), path("b.pjb"), "-o", path("both.pjb")});
  run_well({"verify", path("both.pjb")});
  const auto both = cache::Bundle::open_file(path("both.pjb"));
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)->num_entries(), 4u);
  for (const std::string device : {"GPU A", "GPU B"}) {
    const cache::Entry wanted = tuned_record(device);
    const cache::LookupResult found = (*both)->lookup(wanted.key);
    ASSERT_NE(found.entry, nullptr) << device;
    EXPECT_EQ(*found.entry, wanted);
  }
  const std::string listed = run_well({"ls", path("both.pjb")}).out;
  EXPECT_THAT(listed, HasSubstr("tuned on GPU A: decode number=1"));
  EXPECT_THAT(run_well({"ls", path("both.pjb"), "--json"}).out,
              HasSubstr("\"tuned_on\":\"GPU B\""));
  const CommandResult cache_list = runner_.run({"cache", "ls", "--cache-dir", a});
  EXPECT_EQ(cache_list.exit_code, 0);
  EXPECT_THAT(cache_list.out, HasSubstr("tuned on GPU A: decode number=1"));
  // Another choice for the same GPU is not decided by the order of two names.
  cache::Entry other = tuned_record("GPU A");
  other.metadata.replace(other.metadata.find("token_groups=4"), 14, "token_groups=8");
  run_well({"create", "--from", fill("c", {other}), "-o", path("c.pjb")});
  EXPECT_EQ(run({"merge", path("a.pjb"), path("c.pjb"), "-o", path("no.pjb")}).exit_code, 1);
  EXPECT_FALSE(fs::exists(path("no.pjb")));
}

TEST_F(BundleCommandTest, DamageFailsTheVerification) {
  run_well({"create", "--from", fill("cache", {kernel(1), kernel(2)}), "-o", path("x.pjb")});
  EXPECT_THAT(run_well({"verify", path("x.pjb")}).out, HasSubstr("2 kernels"));
  std::string bytes = read_file(path("x.pjb"));
  bytes[bytes.size() - 100] ^= 1;
  runner_.write_file("entry.pjb", bytes);
  CommandResult result = run({"verify", path("entry.pjb")});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("1 of 2 entries fail"));
  EXPECT_EQ(run({"ls", path("entry.pjb")}).exit_code, 5);
  EXPECT_EQ(run({"merge", path("entry.pjb"), "-o", path("y.pjb")}).exit_code, 5);
  runner_.write_file("cut.pjb", bytes.substr(0, bytes.size() / 2));
  result = run({"verify", path("cut.pjb")});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("is truncated"));
  EXPECT_FALSE(fs::exists(path("y.pjb")));
}

TEST_F(BundleCommandTest, FilesThatAreNotThereOrCannotBeWritten) {
  const std::string from = fill("cache", {kernel(1)});
  EXPECT_EQ(run({"create", "--from", path("none"), "-o", path("x.pjb")}).exit_code, 4);
  EXPECT_EQ(run({"create", "--from", runner_.folder(), "-o", path("x.pjb")}).exit_code, 4);
  EXPECT_EQ(run({"create", "--from", from, "-o", path("none/x.pjb")}).exit_code, 4);
  EXPECT_EQ(run({"create", "--from", from, "-o", runner_.folder()}).exit_code, 4);
  EXPECT_EQ(run({"create", "--from", from}).exit_code, 1);
  EXPECT_EQ(run({"verify", path("none.pjb")}).exit_code, 4);
  EXPECT_EQ(run({"ls", path("none.pjb")}).exit_code, 4);
  EXPECT_EQ(run({"sign", path("none.pjb"), "--key-file", path("none.key")}).exit_code, 4);
  EXPECT_EQ(run({"verify", path("none.pjb"), "--key", "12"}).exit_code, 1);
  EXPECT_EQ(run({}).exit_code, 1);
}

TEST_F(BundleCommandTest, SignsAndVerifiesWithAKeyOfItsOwn) {
  run_well({"create", "--from", fill("cache", {kernel(1)}), "-o", path("x.pjb")});
  const std::string bundle = read_file(path("x.pjb"));
  std::string keys[2];
  for (int i : {0, 1}) {
    const std::string file = path("key" + std::to_string(i));
    keys[i] = run_well({"keygen", "-o", file}).out;
    ASSERT_EQ(keys[i].size(), 65u);  // 64 digits and a line feed
    keys[i].pop_back();
    struct stat info;
    ASSERT_EQ(::stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(run({"keygen", "-o", path("key0")}).exit_code, 4);  // never replaced

  EXPECT_THAT(run_well({"sign", path("x.pjb"), "--key-file", path("key0")}).out,
              HasSubstr("signed by " + keys[0]));
  EXPECT_EQ(read_file(path("x.pjb")).substr(0, bundle.size()), bundle);
  EXPECT_THAT(run_well({"verify", path("x.pjb"), "--key", keys[1], "--key", keys[0]}).out,
              HasSubstr(keys[0] + " (good)"));
  EXPECT_THAT(run_well({"verify", path("x.pjb")}).out, HasSubstr("not checked, --key is missing"));

  CommandResult result = run({"verify", path("x.pjb"), "--key", keys[1]});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("is not signed by a key of --key"));
  runner_.write_file("unsigned.pjb", bundle);
  EXPECT_EQ(run({"verify", path("unsigned.pjb"), "--key", keys[0]}).exit_code, 5);
  std::string forged = read_file(path("x.pjb"));
  forged.back() ^= 1;
  runner_.write_file("forged.pjb", forged);
  result = run({"verify", path("forged.pjb"), "--key", keys[0]});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("the signature is wrong"));

  run_well({"sign", path("x.pjb"), "--key-file", path("key1"), "-o", path("again.pjb")});
  run_well({"verify", path("again.pjb"), "--key", keys[1]});
  EXPECT_EQ(run({"sign", path("x.pjb"), "--key-file", path("x.pjb")}).exit_code, 1);
}

}  // namespace
}  // namespace pagejit::cli
