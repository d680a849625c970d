// What else is converted goes through a server in api_test.cc.
#include "platform/api/json/status_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::api {
namespace {

using nlohmann::json;

TEST(FollowLinesTest, ReadBackAsTheyWere) {
  const std::vector<std::string> texts = {"",
                                          "plain",
                                          R"(a "quote" and a \ and C:\new)",
                                          "tab\there",
                                          "bell \x07",
                                          "Ünïcode 日本",
                                          "not \xff UTF-8"};
  const absl::Time first = absl::FromUnixMicros(1'700'000'000'000'001);
  std::vector<service::FollowItem> items;
  for (size_t i = 0; i < texts.size(); ++i) {
    items.push_back({.cursor = absl::StrCat("1-0-", i),
                     .time = first + absl::Microseconds(i / 2),
                     .rank = static_cast<int>(i),
                     .stream = service::LogStream::kStderr,
                     .text = texts[i],
                     .partial = i == 1});
  }
  store::Event event{.time = first, .state = store::JobState::kFailed, .reason = "it \"said\" so"};
  items.push_back({.cursor = "2-0-9", .time = first, .event = event});
  const std::vector<std::string> lines = absl::StrSplit(FollowLines(items), '\n');
  ASSERT_EQ(lines.size(), items.size() + 1);
  EXPECT_EQ(lines.back(), "");
  for (size_t i = 0; i < texts.size(); ++i) {
    const json line = json::parse(lines[i]);
    EXPECT_EQ(line["type"], "output");
    EXPECT_EQ(line["cursor"], items[i].cursor);
    EXPECT_EQ(line["time"], absl::StrCat("2023-11-14T22:13:20.00000", 1 + i / 2, "Z"));
    EXPECT_EQ(line["rank"], i);
    EXPECT_EQ(line["stream"], "stderr");
    EXPECT_EQ(line["text"], i == 6 ? "not \xEF\xBF\xBD UTF-8" : texts[i]);
    EXPECT_EQ(line.contains("partial"), i == 1);
  }
  const json state = json::parse(lines[texts.size()]);
  EXPECT_EQ(state["type"], "state");
  EXPECT_EQ(state["time"], "2023-11-14T22:13:20.000001Z");
  EXPECT_EQ(state["state"], "Failed");
  EXPECT_EQ(state["reason"], "it \"said\" so");
  EXPECT_TRUE(FollowLines({}).empty());
}

TEST(AwayJsonTest, NamesTheServicesOwnFoldersAndNoMount) {
  const absl::Time since = absl::FromUnixSeconds(1'700'000'000);
  const std::string text =
      AwayJson({{{"jobs", "data"}, "/secret/mount", since}, {{}, "/of/a/user", since}});
  EXPECT_EQ(json::parse(text), json::parse(R"([
      {"folder": "jobs", "since": "2023-11-14T22:13:20.000000Z"},
      {"folder": "data", "since": "2023-11-14T22:13:20.000000Z"}])"));
  EXPECT_EQ(AwayJson({}), "[]");
}

}  // namespace
}  // namespace tutti::api
