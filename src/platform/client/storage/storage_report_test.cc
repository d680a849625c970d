#include "platform/client/storage/storage_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

StorageAddress Sets(const std::string& path) {
  StorageAddress address{"s3://sets/" + path};
  address.of_store = address.text;
  address.path = path;
  address.place = {.kind = spec::StoreKind::kS3, .container = "sets", .path = path};
  return address;
}

StorageAddress Here(const std::string& path) {
  StorageAddress address{path};
  address.path = address.place.path = path;
  return address;
}

TEST(CopyReport, HasEachFileByItsAddressOnBothSides) {
  CopyReport report{.command = "mv", .target = "s3://sets/up"};
  const CopyPlan plan{"/data", "up", {{"a", "a", 3}, {"b/c", "b/c", 4}, {"d", "d", 5}}};
  report.Add(Here("/data"), plan, {plan.items[0], plan.items[1]}, Sets("up"));
  report.removed = {"/data/a"};
  EXPECT_EQ(report.Json(),
            R"({"command":"mv","dry_run":false,"sources":["/data"],"target":"s3://sets/up",)"
            R"("files":[{"from":"/data/a","to":"s3://sets/up/a","bytes":3},)"
            R"({"from":"/data/b/c","to":"s3://sets/up/b/c","bytes":4}],)"
            R"("bytes":7,"copied":2,"left_out":1,"not_copied":[],"removed":["/data/a"]})");
}

TEST(CopyReport, SaysByEmptyListsThatNothingWasDone) {
  CopyReport report{.command = "sync", .dry_run = true, .target = "/to"};
  report.Add(Sets("d"), {"d", "/to", {}}, {}, Here("/to"));
  const json document = json::parse(report.Json());
  EXPECT_EQ(document["files"], json::array());
  EXPECT_EQ(document["removed"], json::array());
  EXPECT_EQ(document["bytes"], 0);
  EXPECT_EQ(document["dry_run"], true);
}

TEST(CopyReport, AListIsCompleteHoweverLong) {
  CopyReport report{.command = "cp", .target = "s3://sets/up"};
  CopyPlan plan{"/data", "up", {}};
  for (int i = 0; i < 10'001; ++i) plan.items.push_back({std::to_string(i), std::to_string(i), 1});
  report.Add(Here("/data"), plan, plan.items, Sets("up"));
  const json document = json::parse(report.Json());
  EXPECT_EQ(document["files"].size(), 10'001u);
  EXPECT_EQ(document["bytes"], 10'001);
}

TEST(CopyReport, DoesNotSayThatFilesBehindALinkAreGone) {
  const base::TemporaryDirectory folder;
  std::filesystem::create_symlink("/tmp", folder.path() / "link");
  ASSERT_TRUE(base::MakeDirectories(folder.path() / "d").ok());
  std::filesystem::create_symlink("/tmp", folder.path() / "d/link");
  const std::string here = folder.path();
  CopyReport report{.command = "mv", .target = "s3://sets/up"};
  report.AddRemoved(Here(here), here, {"a", "d/b", "d/link/c", "d/link/d/e", "d/z", "link/f"});
  EXPECT_THAT(report.removed, ElementsAre(here + "/a", here + "/d/b", here + "/d/z"));
  RemovalReport removal;
  removal.Add(Here(here),
              {false, here, {{.path = "a", .bytes = 1}, {.path = "link/f", .bytes = 2}}});
  removal.Add(Here(here + "/link"), {false, here + "/link", {{.path = "f", .bytes = 2}}});
  EXPECT_THAT(removal.removed, ElementsAre(here + "/a"));
  EXPECT_EQ(removal.bytes, 1);
}

TEST(RemovalReport, CountsAsDuDoes) {
  RemovalReport report{.dry_run = true};
  report.Add(Sets("d/f"), {true, "d", {{.path = "f", .bytes = 3}}});
  report.Add(Here("/none/data"), {false, "/none/data", {{.path = "a\xff", .bytes = 1}}});
  EXPECT_EQ(report.Json(),
            R"({"command":"rm","dry_run":true,"sources":["s3://sets/d/f","/none/data"],)"
            R"("removed":["s3://sets/d/f","/none/data/a�"],"objects":2,"bytes":4})");
}

}  // namespace
}  // namespace tutti::client
