#include "platform/service/diagnosis/left_out_note.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

std::string LeftOutAfter(std::initializer_list<const char*> events) {
  LeftOutNote note;
  for (const char* event : events) note.Add(nlohmann::json::parse(event));
  return note.Text();
}

TEST(LeftOutNote, AFolderThatANodeHasFilledIsNotEmpty) {
  const char* const filled = R"({"filled_folders": ["outputs/checkpoints"]})";
  const char* const empty = R"({"empty_folders": ["outputs/checkpoints"]})";
  EXPECT_EQ(LeftOutAfter({filled, empty}), "");
  EXPECT_EQ(LeftOutAfter({empty, filled}), "") << "whoever is first";
  EXPECT_EQ(LeftOutAfter({empty, empty, R"({"filled_folders": ["outputs/plots"]})"}),
            "left out of the results: outputs/checkpoints (an empty folder)");
  EXPECT_EQ(
      LeftOutAfter({empty, R"({"filled_folders": ["outputs/a"], "more_filled_folders": true})"}),
      "")
      << "the other node may have filled it";
}

TEST(LeftOutNote, WhatSeveralNodesLeaveOutIsToldOnce) {
  const char* const one = R"json({"left_out": ["outputs/pipe (a pipe)"],
                                  "empty_folders": ["outputs/d"]})json";
  const char* const other = R"json({"left_out": ["outputs/out (a link)", "outputs/pipe (a pipe)"],
                                    "empty_folders": ["outputs/d"]})json";
  EXPECT_EQ(LeftOutAfter({one, other}),
            "left out of the results: outputs/d (an empty folder), outputs/out (a link), "
            "outputs/pipe (a pipe)");
}

TEST(LeftOutNote, FiveAreNamed) {
  EXPECT_EQ(LeftOutAfter({R"({"left_out": ["a", "b", "c", "d", "e", "f"], "left_out_more": 2})"}),
            "left out of the results: a, b, c, d, e and 3 more");
}

TEST(LeftOutNote, OfManyNodesABoundedPartIsKept) {
  LeftOutNote note;
  for (int i = 0; i < 1500; ++i) {
    note.Add({{"left_out", {absl::StrCat("outputs/", i, std::string(5000, 'x'))}},
              {"filled_folders", {absl::StrCat("outputs/", i)}}});
  }
  note.Add({{"empty_folders", {"outputs/1499"}}});
  const std::string text = note.Text();
  EXPECT_LT(text.size(), 6000u);
  EXPECT_EQ(text.find("empty"), std::string::npos) << "a node that is not remembered has filled it";
  EXPECT_NE(text.find(" and 995 more"), std::string::npos);
}

}  // namespace
}  // namespace tutti::service
