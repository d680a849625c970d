#include "spec/environment/python_version.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::spec {
namespace {

TEST(PythonVersion, OneMinorOfCondaIsThatMinor) {
  for (const char* version :
       {"=3.8", "3.8", "=3.8.13", "==3.8", "==3.8.13", "=3.8=build_0", "=3.8.*", "=3.8.**_cpython",
        "=3.8*_cpython", ">=3.8,<3.9", ">=3.8.5,<3.9.0a0", "3.8.*,>=3.8.2", "=3.8,!=3.8.1",
        "~=3.8.2", ">=3.8,<=3.8.99", ">3.8.2,<3.8.9"}) {
    EXPECT_EQ(PythonOfConda(version), "3.8") << version;
  }
  EXPECT_EQ(PythonOfConda(">=3.6,<3.7"), "3.6");
  EXPECT_EQ(PythonOfConda("=3"), "3");
}

TEST(PythonVersion, ARangeOfCondaIsOneOfPip) {
  EXPECT_EQ(PythonOfConda("<3.11"), "<3.11");
  EXPECT_EQ(PythonOfConda(">3.9"), ">3.9");
  EXPECT_EQ(PythonOfConda(">=3.8"), ">=3.8");
  EXPECT_EQ(PythonOfConda(">=3.6,<3.9"), ">=3.6,<3.9");
  EXPECT_EQ(PythonOfConda(">=3.8.*,!=3.9.*"), ">=3.8,!=3.9.*");
  EXPECT_EQ(PythonOfConda("3.*,<3.10"), "==3.*,<3.10");
  EXPECT_EQ(PythonOfConda("~=3.8"), "~=3.8");
  EXPECT_EQ(PythonOfConda(">=2.7"), ">=2.7");
}

TEST(PythonVersion, WhatLeavesAllAsksForNone) {
  for (const char* version : {"", "*", "=*", "=*=*_cpython", "3.8|*", "nonsense"}) {
    EXPECT_EQ(PythonOfConda(version), "") << version;
  }
}

TEST(PythonVersion, OfAlternativesTheNewestCounts) {
  EXPECT_EQ(PythonOfConda("3.8|3.9|3.10"), "3.10");
  EXPECT_EQ(PythonOfConda("2.7|>=3.6"), ">=3.6");
  EXPECT_EQ(PythonOfConda("2.7.*|3.9.*"), "3.9");
}

TEST(PythonVersion, WhatNoPython3SatisfiesIsPython2) {
  EXPECT_EQ(PythonOfConda("=2.7"), "2.7");
  EXPECT_EQ(PythonOfConda("<3"), "2");
  EXPECT_EQ(PythonOfConda(">=2.6,<3.0"), "2");
}

TEST(PythonVersion, RangesAllowWhatPipAllows) {
  EXPECT_TRUE(AllowsVersion(">=3.8,<3.11", "3.10.13"));
  EXPECT_FALSE(AllowsVersion(">=3.8,<3.11", "3.11.0"));
  EXPECT_TRUE(AllowsVersion("<=3.8", "3.8.0"));
  EXPECT_FALSE(AllowsVersion("<=3.8", "3.8.1"));
  EXPECT_TRUE(AllowsVersion("!=3.9.1", "3.9.2"));
  EXPECT_FALSE(AllowsVersion("!=3.9.*", "3.9.2"));
  EXPECT_TRUE(AllowsVersion("==3.9.*, >= 3.9.2", "3.9.2"));
  EXPECT_FALSE(AllowsVersion("==3.9", "3.9.2"));
  EXPECT_TRUE(AllowsVersion("~=3.8", "3.12.1"));
  EXPECT_FALSE(AllowsVersion("~=3.8.2", "3.9.0"));
  for (const char* none : {"", "3.13.0rc1", "x", "99999999999.1"}) {
    EXPECT_FALSE(AllowsVersion(">=3.8", none)) << none;
  }
  EXPECT_FALSE(AllowsVersion(">=99999999999", "3.9.2"));
  EXPECT_FALSE(AllowsVersion("~=", "3.9.2"));
}

TEST(PythonVersion, ThoseThatUvRefusesAreTooOld) {
  for (const char* old : {"3.6", "3.6.15", "2.7"}) EXPECT_TRUE(IsTooOldPython(old)) << old;
  for (const char* fit : {"3.7", "3.7.16", "3.12", "3", ">=3.6"}) {
    EXPECT_FALSE(IsTooOldPython(fit)) << fit;
  }
}

TEST(PythonVersion, HostileTextIsSafe) {
  std::string many = "<3";
  for (int i = 0; i < 100'000; ++i) many += ",<3";
  for (const std::string& text : {many, std::string(100'000, '='), std::string(200, '1'),
                                  std::string(200, '|'), std::string(200, ',') + "<3"}) {
    PythonOfConda(text);
  }
}

}  // namespace
}  // namespace tutti::spec
