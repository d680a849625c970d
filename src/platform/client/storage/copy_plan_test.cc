#include "platform/client/storage/copy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "base/file.h"

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StorageAddress Bucket(const std::string& name, const std::string& path) {
  StorageAddress address{"s3://" + name + "/" + path};
  address.path = path;
  address.ends_with_slash = absl::EndsWith(path, "/");
  if (address.ends_with_slash) address.path.pop_back();
  address.place = {.kind = spec::StoreKind::kS3, .container = name, .path = address.path};
  return address;
}

Listing File(const std::string& base, const std::string& name) {
  return {true, base, {{.path = name, .bytes = 3}}};
}
Listing Folder(const std::string& base) {
  return {false, base, {{.path = "a", .bytes = 1}, {.path = "b/c", .bytes = 2}}};
}

std::string TargetOf(const absl::StatusOr<CopyPlan>& plan) {
  if (!plan.ok()) return std::string(plan.status().message());
  std::string text;
  for (const CopyItem& item : plan->items) text += plan->to_base + ":" + item.to + " ";
  return text;
}

TEST(PlanCopy, AFileGoesToThePathOrIntoTheFolder) {
  const StorageAddress from = Bucket("x", "d/f");
  const Listing file = File("d", "f");
  const auto to = [&](const std::string& path, TargetKind kind) {
    return TargetOf(PlanCopy(from, file, Bucket("y", path), kind, {}));
  };
  EXPECT_EQ(to("e/g", TargetKind::kNothing), "e:g ");
  EXPECT_EQ(to("e/g", TargetKind::kFile), "e:g ");
  EXPECT_EQ(to("e/g", TargetKind::kFolder), "e/g:f ");
  EXPECT_EQ(to("e/g/", TargetKind::kNothing), "e/g:f ");
  EXPECT_EQ(to("", TargetKind::kFolder), ":f ");
  EXPECT_THAT(to("e/g/", TargetKind::kFile), HasSubstr("is a file"));
}

TEST(PlanCopy, WhatNoDiskCanHoldIsLeftOutByNameAndStaysAtTheTargetOfASync) {
  Listing listing{false, "d", {}};
  for (const char* path : {"../up", "a//b", "f", "f/1", "fine"}) {
    listing.objects.push_back({.path = path, .bytes = 1});
  }
  listing.left_out.push_back({.path = "pipe", .left_out = "a pipe"});
  const auto plan = PlanCopy(Bucket("x", "d"), listing, Bucket("y", "e"), TargetKind::kFolder,
                             {.recursive = true});
  EXPECT_EQ(TargetOf(plan), "e:f/1 e:fine ");
  std::vector<std::string> left_out;
  for (const LeftOut& one : plan->left_out) left_out.push_back(one.from + ": " + one.why);
  EXPECT_THAT(left_out, ElementsAre("pipe: a pipe", HasSubstr("../up: "), HasSubstr("a//b: "),
                                    HasSubstr("f: it is a folder as well")));
  EXPECT_THAT(NotInPlan(ByPath({{.path = "f"}, {.path = "other"}}), *plan), ElementsAre("other"));
}

TEST(PlanCopy, WhatIsInAFolderGoesIntoTheTargetWhetherThatIsThereOrNot) {
  const StorageAddress from = Bucket("x", "d");
  const auto to = [&](TargetKind kind, const CopyShape& shape) {
    return TargetOf(PlanCopy(from, Folder("d"), Bucket("y", "e"), kind, shape));
  };
  EXPECT_EQ(to(TargetKind::kNothing, {.recursive = true}), "e:a e:b/c ");
  EXPECT_EQ(to(TargetKind::kFolder, {.recursive = true}), "e:a e:b/c ");
  EXPECT_EQ(to(TargetKind::kFolder, {.recursive = true, .several_sources = true}),
            "e:d/a e:d/b/c ");
  EXPECT_THAT(to(TargetKind::kNothing, {}), HasSubstr("say -r"));
  EXPECT_THAT(to(TargetKind::kFile, {.recursive = true}), HasSubstr("must be a folder"));
}

TEST(PlanCopy, RefusesToCopyAPlaceOntoOrIntoItself) {
  const CopyShape all{.recursive = true};
  const StorageAddress from = Bucket("x", "d");
  EXPECT_THAT(TargetOf(PlanCopy(from, Folder("d"), Bucket("x", "d"), TargetKind::kFolder, all)),
              HasSubstr("are the same"));
  EXPECT_THAT(TargetOf(PlanCopy(from, Folder("d"), Bucket("x", "d/e"), TargetKind::kNothing, all)),
              HasSubstr("into itself"));
  EXPECT_EQ(TargetOf(PlanCopy(from, Folder("d"), Bucket("x", "de"), TargetKind::kNothing, all)),
            "de:a de:b/c ");
}

TEST(PlanCopy, LeavesOutWhatTuttiKeepsBesideFilesAndNamesWhatElseIsCalledSo) {
  Listing listing = Folder("d");
  for (const char* path : {".tutti-objects", ".tutti-download", ".tutti-copy-01/a", ".tutti-x"}) {
    listing.objects.push_back({.path = path});
  }
  const auto plan = PlanCopy(Bucket("x", "d"), listing, Bucket("y", "e"), TargetKind::kNothing,
                             {.recursive = true});
  EXPECT_EQ(TargetOf(plan), "e:a e:b/c ");
  EXPECT_EQ(plan->left_out,
            (std::vector<LeftOut>{
                {".tutti-x", ".tutti-x", "names that begin with .tutti- are tutti's own"}}));
}

TEST(CheckTargets, KnowsABucketAndAnAccountByTheirOtherNames) {
  const CopyPlan plan{"d", "d", {{"f", "f", 1}}};
  const auto check = [&](const spec::DataPlace& from, const spec::DataPlace& to) {
    StorageAddress a, b;
    a.place = from;
    b.place = to;
    return CheckTargets({{&a, &plan}}, b);
  };
  const auto place = [](spec::StoreKind kind, const std::string& endpoint) {
    spec::DataPlace place{.kind = kind, .container = "c"};
    place.account = kind == spec::StoreKind::kS3 || kind == spec::StoreKind::kGcs ? "" : "account";
    place.endpoint = endpoint;
    return place;
  };
  using enum spec::StoreKind;
  EXPECT_TRUE(absl::IsInvalidArgument(check(place(kAzureBlob, ""), place(kAzureDataLake, ""))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      check(place(kS3, ""), place(kS3, "https://s3.eu-west-1.amazonaws.com"))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      check(place(kGcs, ""), place(kS3, "https://storage.googleapis.com"))));
  EXPECT_TRUE(check(place(kS3, ""), place(kS3, "http://minio:9000")).ok());
  EXPECT_TRUE(check(place(kS3, ""), place(kGcs, "")).ok());
}

TEST(CheckTargets, ALinkThatIsTheTargetIsReplacedAndOneThatIsTheSourceFollowed) {
  const base::TemporaryDirectory folder;
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(base::MakeDirectories(folder.path() / name).ok());
    ASSERT_TRUE(base::WriteFileAtomic(folder.path() / name / "f", name).ok());
  }
  std::filesystem::create_symlink("f", folder.path() / "b/g");
  const StorageAddress here;  // of this machine, as its place is by default
  ASSERT_TRUE(here.is_local());
  const std::string a = folder.path() / "a", b = folder.path() / "b";
  const CopyPlan both{a, b, {{"f", "f", 1}, {"f2", "g", 1}}};
  EXPECT_TRUE(CheckTargets({{&here, &both}}, here).ok()) << "b/g becomes a file of its own";
  const CopyPlan first{a, b, {{"f", "f", 1}}}, link{b, a, {{"g", "g", 1}}};
  EXPECT_THAT(CheckTargets({{&here, &first}, {&here, &link}}, here).message(),
              HasSubstr("is to be copied itself"))
      << "b/g is read when b/f is another";
}

TEST(CheckOthers, RefusesToRemoveWhatIsCopied) {
  const StorageAddress from = Bucket("x", "d"), to = Bucket("x", "");
  const CopyPlan plan{"d", "", {{"a", "a", 1}}};
  EXPECT_THAT(CheckOthers({&from, &plan}, to, {"b", "d/a"}).message(), HasSubstr("lies in"));
  EXPECT_TRUE(CheckOthers({&from, &plan}, to, {"b", "da"}).ok());
  EXPECT_TRUE(CheckOthers({&from, &plan}, Bucket("y", ""), {"d/a"}).ok());
}

TEST(LeaveOutSame, ByTheSizeAndTheTimeOfTheLastChange) {
  CopyPlan plan{"",
                "",
                {{"old", "old", 1, 100},
                 {"new", "new", 1, 200},
                 {"size", "size", 2, 100},
                 {"missing", "missing", 1, 100}}};
  const ObjectsByPath there = ByPath({{.path = "old", .bytes = 1, .modified = 100.5},
                                      {.path = "new", .bytes = 1, .modified = 150},
                                      {.path = "size", .bytes = 1, .modified = 150},
                                      {.path = "extra", .bytes = 1},
                                      {.path = ".tutti-objects"}});
  EXPECT_THAT(NotInPlan(there, plan), ElementsAre("extra"));
  LeaveOutSame(there, plan);
  ASSERT_EQ(plan.items.size(), 3u);
  EXPECT_EQ(plan.items[0].to, "new");
  EXPECT_EQ(plan.items[1].to, "size");
  EXPECT_EQ(plan.items[2].to, "missing");
}

TEST(EndOfBatch, BoundsFilesAndBytes) {
  const std::vector<CopyItem> items = {{"a", "a", 6}, {"b", "b", 3}, {"c", "c", 3}, {"d", "d", 90}};
  const BatchLimits limits{.files = 2, .bytes = 10};
  EXPECT_EQ(EndOfBatch(items, 0, limits), 2u);
  EXPECT_EQ(EndOfBatch(items, 2, limits), 3u) << "the next one is too large to come along";
  EXPECT_EQ(EndOfBatch(items, 3, limits), 4u) << "and goes alone";
  EXPECT_THAT(std::vector<CopyItem>(), IsEmpty());
}

}  // namespace
}  // namespace tutti::client
