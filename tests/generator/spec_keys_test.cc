// Keys of real kernels: equal for specs that mean the same, different where the source differs, and
// pinned: PAGEJIT_UPDATE_GOLDEN=1 writes golden/keys.txt anew. A change of any of them makes every
// stored kernel of that spec a miss, and is made on purpose.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "cache/key.h"
#include "generator/families.h"
#include "generator/renderer.h"
#include "runtime/metadata.h"
#include "tests/generator/spec_space.h"

namespace pagejit {
namespace {

constexpr const char* kTargets[] = {"sm_80", "sm_90a"};

// What of a key does not depend on the compiler. "" where the target cannot have the kernel.
std::string source_key(const KernelSpec& spec, const Target& target, std::string* text) {
  const Result<AnyConfig> config = plan_any(spec, target);
  if (!config) return "";
  const auto source = render(*config);
  EXPECT_TRUE(source) << source.status().to_string();
  *text = source->text;
  cache::KeyIngredients ingredients;
  ingredients.text = source->text;
  ingredients.target = target.to_string();
  ingredients.parameter_abi = parameter_abi(*config);
  return cache::to_hex(cache::make_key(ingredients).source);
}

TEST(SpecKeysTest, EqualSpecsShareAKeyAndDifferentSourcesDoNot) {
  SplitMix64 rng(1);
  std::map<std::string, std::string> source_of_key;
  std::map<std::string, std::string> key_of_spec;
  for (int i = 0; i < 300; ++i) {
    const KernelSpec spec = i % 3 == 0 ? draw_legal_latent_spec(rng) : draw_legal_spec(rng);
    for (const char* name : kTargets) {
      const Target target = *parse_target(name);
      std::string text;
      const std::string key = source_key(spec, target, &text);
      if (key.empty()) continue;
      // The target is in the key, beside the source.
      const auto [source, is_new_source] = source_of_key.emplace(key, name + text);
      EXPECT_EQ(source->second, name + text) << canonical_text(spec);
      const auto [known, is_new_spec] = key_of_spec.emplace(name + canonical_text(spec), key);
      EXPECT_EQ(known->second, key) << canonical_text(spec);
      EXPECT_EQ(is_new_source, is_new_spec)
          << "two specs have one source: " << canonical_text(spec);
      std::string again;
      EXPECT_EQ(source_key(*parse_spec(canonical_text(spec)), target, &again), key);
    }
  }
  EXPECT_GT(source_of_key.size(), 300u);
}

// Lines "key target spec", of specs drawn at random.
std::string draw_golden_keys() {
  SplitMix64 rng(2);
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    const KernelSpec spec = i % 4 == 0 ? draw_legal_latent_spec(rng) : draw_legal_spec(rng);
    const char* name = kTargets[i % 2];
    std::string text;
    const std::string key = source_key(spec, *parse_target(name), &text);
    if (!key.empty()) lines += key + " " + name + " " + canonical_text(spec) + "\n";
  }
  return lines;
}

TEST(SpecKeysTest, GoldenKeys) {
  const std::string path = std::string(PAGEJIT_TEST_GOLDEN_DIR) + "/keys.txt";
  if (std::getenv("PAGEJIT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << draw_golden_keys();
  std::ifstream file(path);
  std::string line;
  int num_keys = 0;
  for (; std::getline(file, line); ++num_keys) {
    std::istringstream words(line);
    std::string key;
    std::string target;
    std::string spec;
    words >> key >> target >> std::ws;
    std::getline(words, spec);
    std::string text;
    EXPECT_EQ(source_key(*parse_spec(spec), *parse_target(target), &text), key)
        << target << " " << spec << "; if that is meant, PAGEJIT_UPDATE_GOLDEN=1 writes it anew";
  }
  EXPECT_GT(num_keys, 50) << path << " is missing; PAGEJIT_UPDATE_GOLDEN=1 writes it";
}

}  // namespace
}  // namespace pagejit
