#include "spec/types/image_reference.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {

const std::string kDigest = absl::StrCat("@sha256:", std::string(64, 'a'));

TEST(ImageReference, IsWhatRegistriesHave) {
  for (const std::string& name :
       {std::string("python"), std::string("python:3.11"), std::string("rocker/tidyverse:latest"),
        std::string("my.azurecr.io/a/b_c/d--e:V2.0-RC_1"), std::string("localhost/mine"),
        std::string("127.0.0.1:5000/mine:1"), std::string("Registry.Example:443/team/x"),
        std::string("localhost:5000/a"), absl::StrCat("a.example/b", kDigest),
        absl::StrCat("a.example/b:1", kDigest), std::string(64, 'c')}) {
    EXPECT_TRUE(IsImageReference(name)) << name;
  }
}

TEST(ImageReference, IsNothingThatPodmanWouldRefuse) {
  for (const std::string& name :
       {std::string(""), std::string("--privileged"), std::string("a b"), std::string("a;b"),
        std::string("team/Train:1"), std::string("my.azurecr.io/Team/train"), std::string("a:"),
        std::string("a:1:2"), std::string("a//b"), std::string("a/"), std::string("a.example:/b"),
        std::string("a.example:x/b"), std::string("docker://a.example/b:1"), std::string("a:-1"),
        std::string("a/-b"), std::string("a@sha256:12"), absl::StrCat("a", kDigest, kDigest),
        absl::StrCat("a:", std::string(129, '1')), std::string(513, 'a')}) {
    EXPECT_FALSE(IsImageReference(name)) << name;
  }
}

}  // namespace
}  // namespace tutti::spec
