#include "platform/container/base_images.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::container {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Found(absl::string_view text) {
  std::vector<std::string> found;
  for (const BaseImage& image : BaseImagesOf(text)) {
    found.push_back(absl::StrCat(image.line, " ", image.reference));
  }
  return found;
}

TEST(BaseImages, AreThoseOfFromAndOfCopy) {
  EXPECT_THAT(Found("# syntax=docker/dockerfile:1\nFROM --platform=linux/amd64 a.example/b:1\n"
                    "RUN true\nCOPY --chown=1:1 --from=c.example/tools /x /y\nfrom \\\n  d\n"),
              ElementsAre("2 a.example/b:1", "4 c.example/tools", "5 d"));
}

TEST(BaseImages, StagesAndScratchAreNone) {
  EXPECT_THAT(Found("FROM a AS First\nFROM scratch as second\nCOPY --from=first /x /\n"
                    "COPY --from=0 /y /\nCOPY --from=1 /y /\nFROM first\nFROM a\n"),
              ElementsAre("1 a"));
}

TEST(BaseImages, ArgumentsHaveTheirDefaultsAndNamesWithoutOneAreLeftOut) {
  EXPECT_THAT(
      Found("ARG TAG=3 NAME=\"hub\"\nARG FULL=$NAME/x\nFROM ${FULL}:$TAG\n"
            "FROM ${GIVEN}/y\nFROM $GIVEN\nFROM z:${GIVEN:-latest}\nARG TAG=9\nFROM q:$TAG\n"),
      ElementsAre("3 hub/x:3", "6 z:latest", "8 q:3"));
}

TEST(BaseImages, AnyTextIsSafe) {
  for (const char* text :
       {"", "FROM", "FROM \\", "FROM ${", "FROM ${A", "COPY --from=", "FROM $"}) {
    EXPECT_THAT(Found(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace tutti::container
