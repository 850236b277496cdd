#include "cache/key.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace pagejit::cache {
namespace {

using std::string_literals::operator""s;  // NOLINT(misc-unused-using-decls): of literals

KeyIngredients example() {
  return {.format_version = 1,
          .text = "extern \"C\" __global__ void k() {}\n",
          .options = {"--gpu-architecture=sm_90a", "-std=c++20"},
          .target = "sm_90a",
          .parameter_abi = "decode/1",
          .compiler_identity = "nvrtc 13.0 build-id 00ff"};
}

// The digests were computed by another program (Python's hashlib) from the grammar in key.h. They
// may change only with a new version of the directory.
TEST(KeyTest, GoldenKeys) {
  const Key key = make_key(example());
  EXPECT_EQ(to_hex(key.source), "f0189286df37e71491f868b0b8d15a77df80a9de7207fe5a866e4d09291035cb");
  EXPECT_EQ(to_hex(key.compiler),
            "6cf52e91ddcdcc4a61a94015f3a8d43a0100a6d326bb222cb5284c4c0367aa8d");
  EXPECT_EQ(key.file_name(),
            "f0189286df37e71491f868b0b8d15a77df80a9de7207fe5a866e4d09291035cb.6cf52e91.pjk");

  const Key empty = make_key({});
  EXPECT_EQ(to_hex(empty.source),
            "b68f593141969cfeddf2011667ccdca92d2d22b414194bdf4ccbaa2833c85be2");
  EXPECT_EQ(to_hex(empty.compiler),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

  const Key odd = make_key({.format_version = 7,
                            .text = "a\0b"s,
                            .options = {"", "\xff"},
                            .target = "host",
                            .parameter_abi = "x",
                            .compiler_identity = "g++ 12.2.0"});
  EXPECT_EQ(to_hex(odd.source), "1c84aec06746e04485053b2ae4c0305a17b91e4289af7b5cc1988b493af1cef8");
  EXPECT_EQ(to_hex(odd.compiler),
            "43d5cb5d5e9e680efb8448ee5cf149a29c158d556ebf8ffce4b19ed7ceba351d");
}

TEST(KeyTest, EveryIngredientChangesTheKey) {
  std::set<Key> keys = {make_key(example())};
  const auto differs = [&](const std::function<void(KeyIngredients&)>& change) {
    KeyIngredients ingredients = example();
    change(ingredients);
    return keys.insert(make_key(ingredients)).second;
  };
  EXPECT_TRUE(differs([](auto& i) { i.format_version = 2; }));
  EXPECT_TRUE(differs([](auto& i) { i.text += ' '; }));
  EXPECT_TRUE(differs([](auto& i) { i.text += '\0'; }));
  EXPECT_TRUE(differs([](auto& i) { i.options.pop_back(); }));
  EXPECT_TRUE(differs([](auto& i) { i.options.emplace_back(); }));
  EXPECT_TRUE(differs([](auto& i) { std::swap(i.options[0], i.options[1]); }));
  EXPECT_TRUE(differs([](auto& i) { i.target = "sm_90"; }));
  EXPECT_TRUE(differs([](auto& i) { i.parameter_abi = "decode/2"; }));
  EXPECT_TRUE(differs([](auto& i) { i.compiler_identity += "0"; }));
}

TEST(KeyTest, TheCompilerChangesOnlyC) {
  KeyIngredients other = example();
  other.compiler_identity = "another";
  EXPECT_EQ(make_key(example()).source, make_key(other).source);
  EXPECT_NE(make_key(example()).compiler, make_key(other).compiler);
}

// All ways to cut every string of up to 5 characters over {a, NUL} into text, options, target and
// ABI: where the cuts are must show in the key.
TEST(KeyTest, NoTwoWaysToCutTheSameBytesShareAKey) {
  std::map<Digest, KeyIngredients> seen;
  size_t num_keys = 0;
  for (size_t size = 0; size <= 5; ++size) {
    for (unsigned bits = 0; bits < (1u << size); ++bits) {
      std::string all;
      for (size_t i = 0; i < size; ++i) all += (bits >> i & 1) != 0 ? 'a' : '\0';
      for (size_t a = 0; a <= size; ++a) {
        for (size_t b = a; b <= size; ++b) {
          for (size_t c = b; c <= size; ++c) {
            for (int form = 0; form < 3; ++form) {
              KeyIngredients ingredients;
              ingredients.text = all.substr(0, a);
              const std::string option = all.substr(a, b - a);
              if (form == 1) ingredients.options = {option};
              if (form == 2) ingredients.options = {option, ""};
              if (form == 0 && !option.empty()) continue;
              ingredients.target = all.substr(b, c - b);
              ingredients.parameter_abi = all.substr(c);
              ++num_keys;
              const auto [place, is_new] = seen.emplace(make_key(ingredients).source, ingredients);
              ASSERT_TRUE(is_new) << explain(ingredients) << "and\n" << explain(place->second);
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), num_keys);
  EXPECT_GT(num_keys, 3000u);
}

// A string that imitates the encoding of what could follow it must still differ from what it
// imitates.
TEST(KeyTest, AnOptionThatLooksLikeTwoIsNotTwo) {
  KeyIngredients two;
  two.options = {"x", "y"};
  KeyIngredients imitation;
  imitation.options = {"x\x01\0\0\0\0\0\0\0y"s};
  EXPECT_NE(make_key(two).source, make_key(imitation).source);
}

TEST(KeyTest, ExplainNamesEveryIngredientOnALineOfItsOwn) {
  KeyIngredients ingredients = example();
  ingredients.options.push_back("-DX=\"a\nb\"");
  EXPECT_EQ(
      explain(ingredients),
      "format version     1\n"
      "text               34 bytes, sha256 "
      "e57c1ca38c24008c4e675d052640d5238a8218b754bf60b60b7fd52744578289\n"
      "options            3\n"
      "  option 0         \"--gpu-architecture=sm_90a\"\n"
      "  option 1         \"-std=c++20\"\n"
      "  option 2         \"-DX=\\\"a\\x0ab\\\"\"\n"
      "target             \"sm_90a\"\n"
      "parameter ABI      \"decode/1\"\n"
      "compiler identity  \"nvrtc 13.0 build-id 00ff\"\n"
      "S                  " +
          to_hex(make_key(ingredients).source) +
          "\n"
          "C                  6cf52e91ddcdcc4a61a94015f3a8d43a0100a6d326bb222cb5284c4c0367aa8d\n"
          "entry              " +
          make_key(ingredients).file_name() + "\n");
}

}  // namespace
}  // namespace pagejit::cache
