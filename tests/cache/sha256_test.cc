#include "cache/sha256.h"

#include <gtest/gtest.h>

namespace pagejit::cache {
namespace {

TEST(Sha256Test, PublishedExamples) {  // FIPS 180-4 examples
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256({"abc"})),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256({std::string(1000000, 'a')})),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PartsAreOneString) {
  EXPECT_EQ(sha256({"ab", "", "c"}), sha256({"abc"}));
  EXPECT_EQ(sha256({std::string_view()}), sha256({}));
}

TEST(Sha256Test, PiecesAreOneString) {
  Sha256 hash;
  for (std::string_view piece : {std::string_view("a"), std::string_view(), {"bc"}}) {
    hash.update(piece);
  }
  EXPECT_EQ(hash.finish(), sha256({"abc"}));
}

TEST(Sha256Test, HexIsLowerCaseAndWhole) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x0f\xf0\xff", 4)), "000ff0ff");
}

TEST(Sha256Test, HexIsReadBackAndNothingElseIs) {
  const std::string hex = to_hex(sha256({"abc"}));
  EXPECT_EQ(digest_from_hex(hex), sha256({"abc"}));
  for (const std::string& bad : {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1),
                                 hex.substr(1) + " ", hex.substr(1) + "\xff"}) {
    EXPECT_FALSE(digest_from_hex(bad)) << bad;
  }
}

}  // namespace
}  // namespace pagejit::cache
