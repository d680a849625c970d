#include "spec/site/requirement.h"

#include <gtest/gtest.h>

#include <utility>

namespace tutti::spec {
namespace {

TEST(Requirement, NamesAreComparedAsIndexesDo) {
  EXPECT_EQ(PackageName("Foo_Bar.x[y]>=1"), "foo-bar-x");
  EXPECT_EQ(PackageName("tensorflow[and-cuda]==2.16.2"), "tensorflow");
  EXPECT_EQ(PackageName("a @ https://e.org/a.whl"), "a");
}

TEST(Requirement, ItsVersionsAreFound) {
  EXPECT_EQ(VersionsOf("A[x,y] >=1,<2 ; python_version<'3.9' --hash=sha256:1"),
            ">=1,<2 ; python_version<'3.9'");
  for (const char* without : {"a", "a; python_version<'3.9'", "a @ https://h/a-1==2.whl",
                              "/wheels/a==1.whl", "git+https://h/a.git@v1==2"}) {
    EXPECT_EQ(VersionsOf(without), "") << without;
  }
  EXPECT_EQ(PinnedVersion("a[x]==1.2 ; python_version=='3.8'"), "1.2");
  EXPECT_EQ(PinnedVersion("a===1.2+cu113"), "1.2+cu113");
  EXPECT_EQ(PinnedVersion("a==1.2.*"), "1.2.*");
  for (const char* open : {"a", "a>=1", "a~=1.2", "a==1.*,<1.5"}) {
    EXPECT_EQ(PinnedVersion(open), "") << open;
  }
}

TEST(Requirement, PinsBecomeTheLeast) {
  EXPECT_EQ(WithoutPins("a==1.2"), "a>=1.2");
  EXPECT_EQ(WithoutPins("a~=1.2.0"), "a>=1.2.0");
  EXPECT_EQ(WithoutPins("a==1.2.*"), "a>=1.2");
  EXPECT_EQ(WithoutPins("a===1.2"), "a>=1.2");
  EXPECT_EQ(WithoutPins("a>=1,<2"), "a>=1,<2");
  EXPECT_EQ(WithoutPins("a==1; python_version=='3.8'"), "a>=1; python_version=='3.8'");
}

TEST(Requirement, ThePythonOfANameIsFound) {
  const std::pair<const char*, const char*> kNames[] = {
      {"python:3.9", "3.9"},
      {"python:3.9.18-slim-bookworm", "3.9"},
      {"python:3", "3"},
      {"python:latest", ""},
      {"python", ""},
      {"docker.io/library/python:3.12-slim@sha256:0123", "3.12"},
      {"mcr.microsoft.com/devcontainers/python:1-3.11-bullseye", "3.11"},
      {"mcr.microsoft.com/devcontainers/python:3-3.12", "3.12"},
      {"minimal-ubuntu20.04-py38-cuda11.6.2-gpu-inference", "3.8"},
      {"minimal-py311-inference", "3.11"},
      {"acpt-pytorch-2.1-cuda12.1-py3.10", "3.10"},
      {"sklearn-1.5", ""},
      {"tensorflow-2.16-cuda12", ""}};
  for (const auto& [name, python] : kNames) EXPECT_EQ(PythonInName(name), python) << name;
}

}  // namespace
}  // namespace tutti::spec
