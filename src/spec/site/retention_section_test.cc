#include "spec/site/retention_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/site/site.h"

namespace tutti::spec {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Retention> ReadRetentionOfSite(const std::string& text) {
  Site site;
  const absl::Status status = ReadSiteText(text, "site.yml", "/", site);
  if (!status.ok()) return status;
  return site.retention;
}

TEST(RetentionTest, KeepsUsersFilesForEverAndCachesForAWhileUnlessTheSiteSaysMore) {
  const Retention is = ReadRetentionOfSite("computes: {}").value();
  EXPECT_FALSE(is.logs.age || is.logs.size || is.results.age || is.results.size);
  EXPECT_EQ(is.snapshots.age, absl::Hours(24 * 30));
  EXPECT_EQ(is.data.age, absl::Hours(24 * 30));
  EXPECT_EQ(is.environments.age, absl::Hours(24 * 90));
  EXPECT_EQ(is.images.age, absl::Hours(24 * 90));
}

TEST(RetentionTest, ReadsAgesAndSizes) {
  const Retention is = ReadRetentionOfSite(
                           "retention:\n"
                           "  snapshots: never\n"
                           "  data: {size: 1.5 GB}\n"
                           "  images: {size: 50GB}\n"
                           "  logs: {age: 8w}\n"
                           "  results: {age: 12h, size: 2TiB}\n")
                           .value();
  EXPECT_FALSE(is.snapshots.age || is.snapshots.size);
  EXPECT_FALSE(is.data.age);
  EXPECT_EQ(is.data.size, 1'500'000'000u);
  EXPECT_EQ(is.images.size, 50'000'000'000u);
  EXPECT_EQ(is.logs.age, absl::Hours(24 * 56));
  EXPECT_EQ(is.results.age, absl::Hours(12));
  EXPECT_EQ(is.results.size, uint64_t{2} << 40);
}

TEST(RetentionTest, NamesTheLineOfWhatItCannotRead) {
  const auto fault = [](const std::string& text) {
    return std::string(ReadRetentionOfSite("retention:\n  " + text).status().message());
  };
  EXPECT_THAT(fault("logs: {age: soon}"),
              HasSubstr("site.yml:2: retention.logs.age: \"soon\" is no time: write 12h, 30d"));
  EXPECT_THAT(fault("logs: {size: 30}"), HasSubstr("\"30\" is no size: write 500MB"));
  EXPECT_THAT(fault("logs: {size: 3e9GB}"), HasSubstr("is no size"));
  EXPECT_THAT(fault("logs: {age: 99999999999d}"), HasSubstr("is no time"));
  EXPECT_THAT(fault("logs: 30d"), HasSubstr("site.yml:2: retention.logs must be {age: 30d, size"));
  EXPECT_THAT(fault("log: {age: 30d}"), HasSubstr("log"));
}

}  // namespace
}  // namespace tutti::spec
