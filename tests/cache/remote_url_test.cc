#include "cache/remote_url.h"

#include <gmock/gmock.h>

#include "tests/cache/cache_test_util.h"

namespace pagejit::cache {
namespace {

using testing::HasSubstr;
using testing::Not;

Key key_of_ones() {
  Key key;
  key.source.fill(0x11);
  key.compiler.fill(0x22);
  return key;
}

TEST(RemoteUrlTest, EachLayoutNamesTheEntryInItsWay) {
  const Result<RemoteUrl> url = parse_remote_url("http://cache.example:8080/kernels/");
  ASSERT_TRUE(url) << url.status().to_string();
  const std::string s(64, '1');
  EXPECT_EQ(url->of_entry(key_of_ones(), RemoteLayout::kFlat),
            "http://cache.example:8080/kernels/" + s + ".22222222.pjk");
  EXPECT_EQ(url->of_entry(key_of_ones(), RemoteLayout::kSubdirectories),
            "http://cache.example:8080/kernels/11/" + s + ".22222222.pjk");
  // printf %s.22222222 $(printf '1%.0s' $(seq 64)) | sha256sum
  EXPECT_EQ(url->of_entry(key_of_ones(), RemoteLayout::kBazel),
            "http://cache.example:8080/kernels/ac/"
            "a1444d3268c0670b1d48b7f45bf7cefceeaee87af7a569769985e7bf5bf7dac0");
}

TEST(RemoteUrlTest, AcceptsHostsPortsAddressesAndPaths) {
  for (const char* text : {"http://h", "https://h/", "http://127.0.0.1:1", "http://[::1]:65535/a/b",
                           "https://name:p%40ss@h.example/x", "http://h///"}) {
    EXPECT_TRUE(parse_remote_url(text)) << text;
  }
  EXPECT_EQ(parse_remote_url("http://h///")->base, "http://h");
}

TEST(RemoteUrlTest, RefusesWhatIsNoPlainHttpUrl) {
  for (const char* text : {"",
                           "h",
                           "ftp://h/",
                           "file:///etc/passwd",
                           "http:/h",
                           "http://",
                           "http:///path",
                           "http://h:0/",
                           "http://h:65536",
                           "http://h:",
                           "http://h:8o/",
                           "http://[::1",
                           "http://h/a b",
                           "http://h/?q=1",
                           "http://h/#f",
                           "http://h/\n",
                           "http://h/\x80",
                           "http://h/a@b",
                           "http://u:p/w@h/x",
                           "http://@"}) {
    const Result<RemoteUrl> url = parse_remote_url(text);
    EXPECT_EQ(url.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(url.status().message(), HasSubstr("must be http://host/path")) << text;
  }
}

TEST(RemoteUrlTest, NamesAndPasswordsAreInNoMessage) {
  const Result<RemoteUrl> url = parse_remote_url("https://user:secret@h/p");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->base, "https://user:secret@h/p");
  EXPECT_EQ(url->visible, "https://h/p");
  for (const char* text : {"user:secret@h/p", "http:/user:secret@h/p", "http://user:secret@h:x/",
                           "http://user:sec/ret@h/", "http://user:secret@@h/?", "http://u:secret@",
                           "http://user:p@sec@h/?"}) {
    const Result<RemoteUrl> refused = parse_remote_url(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.status().message(), Not(HasSubstr("sec"))) << text;
  }
}

TEST(RemoteUrlTest, ControlCharactersAreNotRepeatedInMessages) {
  EXPECT_THAT(parse_remote_url("http://h/\x1b[2J").status().message(), HasSubstr("http://h/?[2J"));
}

}  // namespace
}  // namespace pagejit::cache
