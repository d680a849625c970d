#include "platform/api/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::api {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Matches, NamesTheParts) {
  std::map<std::string, std::string> parts;
  EXPECT_TRUE(Matches("/v1/jobs/{job}", "/v1/jobs/a b", parts));
  EXPECT_THAT(parts, ElementsAre(Pair("job", "a b")));
  EXPECT_TRUE(Matches("/v1/jobs/{job}/files/{path...}", "/v1/jobs/j/files/a/b/c", parts));
  EXPECT_THAT(parts, ElementsAre(Pair("job", "j"), Pair("path", "a/b/c")));
  EXPECT_TRUE(Matches("/v1/jobs", "/v1/jobs", parts));
  EXPECT_TRUE(parts.empty());
}

TEST(Matches, WantsTheWholePath) {
  std::map<std::string, std::string> parts;
  for (const char* path : {"", "/", "/v1/jobs", "/v1/jobs/", "/v1/jobs/j/", "/v1/jobs/j/x",
                           "/v2/jobs/j", "//v1/jobs/j"}) {
    EXPECT_FALSE(Matches("/v1/jobs/{job}", path, parts)) << path;
  }
  EXPECT_FALSE(Matches("/v1/jobs/{job}/files/{path...}", "/v1/jobs/j/files", parts));
}

}  // namespace
}  // namespace tutti::api
