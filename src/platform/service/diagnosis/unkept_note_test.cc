#include "platform/service/diagnosis/unkept_note.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti::service {
namespace {

std::string UnkeptAfter(std::initializer_list<const char*> events) {
  UnkeptNote note;
  for (const char* event : events) note.Add(nlohmann::json::parse(event));
  return note.Text();
}

TEST(UnkeptNote, NodesThatWriteToTheSamePlaceAreOne) {
  EXPECT_EQ(
      UnkeptAfter({R"({"kept_files": 1, "unkept": [{"path": "checkpoints", "bytes": 60000000}]})",
                   R"({"kept_files": 0, "unkept": [{"path": "checkpoints", "bytes": 60000000}]})"}),
      "not kept: 120 MB in ./checkpoints; write to ./outputs");
}

TEST(UnkeptNote, TheThreeLargestPlacesAreNamed) {
  EXPECT_EQ(UnkeptAfter({R"({"kept_files": 1, "unkept": [{"path": "a", "bytes": 1500000},
                       {"path": "b", "bytes": 2000000000}, {"path": "c/d", "bytes": 3000000},
                       {"path": "e", "bytes": 1000000}]})"}),
            "not kept: 2.0 GB in ./b, 3.0 MB in ./c/d, 1.5 MB in ./a and more; write to ./outputs");
}

TEST(UnkeptNote, SmallThingsCountOnlyIfNothingElseWasKept) {
  const char* kept = R"({"kept_files": 2, "unkept": [{"path": "model.pkl", "bytes": 4000}]})";
  const char* none = R"({"kept_files": 0, "unkept": [{"path": "model.pkl", "bytes": 4000}]})";
  EXPECT_EQ(UnkeptAfter({kept}), "");
  EXPECT_EQ(UnkeptAfter({none}), "not kept: 4.0 kB in ./model.pkl; write to ./outputs");
  EXPECT_EQ(UnkeptAfter({none, kept}), "");
}

TEST(UnkeptNote, TheSmallestThingsCountIfTheyAreAllThereIs) {
  const char* many = R"({"kept_files": 0, "unkept_small": {"path": "", "bytes": 50000}})";
  const char* one = R"({"kept_files": 0, "unkept_small": {"path": "a.txt", "bytes": 900}})";
  EXPECT_EQ(UnkeptAfter({many}), "not kept: 50 kB in the working folder; write to ./outputs");
  EXPECT_EQ(UnkeptAfter({R"({"kept_files": 0, "unkept_small": {"path": "a", "bytes": 1}})"}),
            "not kept: 1 byte in ./a; write to ./outputs");
  EXPECT_EQ(UnkeptAfter({one}), "not kept: 900 bytes in ./a.txt; write to ./outputs");
  EXPECT_EQ(UnkeptAfter({one, R"({"kept_files": 1})"}), "");
  EXPECT_EQ(UnkeptAfter({one, R"({"unkept": [{"path": "b", "bytes": 2000}]})"}),
            "not kept: 2.0 kB in ./b; write to ./outputs");
}

TEST(UnkeptNote, ResultsAreNamedFirstAndWhateverTheirSize) {
  EXPECT_EQ(UnkeptAfter({R"({"kept_files": 2, "unkept": [{"path": "data", "bytes": 2000000},
                       {"path": "cache", "bytes": 500000, "result": false},
                       {"path": "runs", "bytes": 20000, "result": true},
                       {"path": "metrics.json", "bytes": 42, "result": true}]})"}),
            "not kept: 20 kB in ./runs, 42 bytes in ./metrics.json, 2.0 MB in ./data; write to "
            "./outputs");
}

TEST(UnkeptNote, ASearchThatWasCutOffSaysAtLeast) {
  EXPECT_EQ(
      UnkeptAfter({R"({"unkept_more": true, "unkept": [{"path": "a\nb", "bytes": 9000000}]})"}),
      "not kept: at least 9.0 MB in ./a?b; write to ./outputs");
}

TEST(UnkeptNote, WhatIsNoSuchFactChangesNothing) {
  EXPECT_EQ(UnkeptAfter({R"({"kept_files": "x", "unkept": [3, {"path": 1, "bytes": 2},
                       {"path": "a", "bytes": -1}], "unkept_more": 1})",
                         R"({"unkept": {}})", R"({})"}),
            "");
}

}  // namespace
}  // namespace tutti::service
