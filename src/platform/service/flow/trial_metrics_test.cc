#include "platform/service/flow/trial_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TrialMetricsTest : public ::testing::Test {
 protected:
  void Add(const std::string& text, int rank = 0) {
    std::filesystem::create_directories(folder_.path() / "logs");
    std::ofstream(File(rank), std::ios::app) << text;
  }
  std::filesystem::path File(int rank) const {
    return folder_.path() / "logs" / absl::StrCat("rank-", rank, ".metrics");
  }
  base::TemporaryDirectory folder_;
  TrialMetrics metrics_{folder_.path(), "loss"};
};

TEST_F(TrialMetricsTest, ReadsOnFromWhereItWas) {
  EXPECT_FALSE(*metrics_.ReadOn(false));
  Add("{\"loss\": 3}\n{\"lo");
  EXPECT_TRUE(*metrics_.ReadOn(false));
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3));
  EXPECT_THAT(metrics_.reports().odd_line, IsEmpty()) << "half a line is none";
  EXPECT_FALSE(*metrics_.ReadOn(false));
  Add("ss\": 2}\n{\"loss\": 1}");
  EXPECT_TRUE(*metrics_.ReadOn(false));
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3, 2));
  EXPECT_TRUE(metrics_.ReadOn(true).ok());
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3, 2, 1));
}

TEST_F(TrialMetricsTest, ReadsAFileOfMoreThan64MiB) {
  Add("{\"loss\": 3}\n");
  std::filesystem::resize_file(File(0), uint64_t{65} << 20);  // a line of zeros, and too long
  Add("\n{\"loss\": 2}\n");
  EXPECT_TRUE(metrics_.ReadOn(true).ok());
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3, 2));
}

TEST_F(TrialMetricsTest, KeepsWhatItHasWhenAFileCannotBeRead) {
  Add("{\"loss\": 3}\n");
  EXPECT_TRUE(metrics_.ReadOn(false).ok());
  std::filesystem::remove(File(0));
  EXPECT_TRUE(metrics_.ReadOn(true).ok());
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3));
}

TEST_F(TrialMetricsTest, ReadsAFileOfMlflowsOfMoreThan64MiB) {
  const std::filesystem::path file = folder_.path() / "outputs/mlruns/0/run/metrics/loss";
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file.parent_path().parent_path() / "meta.yaml") << "run_id: run\n";
  std::ofstream(file) << "1700000000000 3 0\n";
  std::filesystem::resize_file(file, uint64_t{65} << 20);
  std::ofstream(file, std::ios::app) << "\n1700000000001 2 1\n";
  EXPECT_TRUE(*metrics_.ReadOn(true));
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3, 2));
}

TEST_F(TrialMetricsTest, SaysThatAFileCannotBeReadAndReadsItLater) {
  std::filesystem::create_directories(File(0));  // which no read reads
  Add("{\"loss\": 4}\n", 1);
  EXPECT_FALSE(metrics_.ReadOn(true).ok());
  EXPECT_THAT(metrics_.reports().values, ElementsAre(4)) << "of what can be read";
  std::filesystem::remove(File(0));
  Add("{\"loss\": 3}\n", 0);
  EXPECT_TRUE(metrics_.ReadOn(true).ok());
  EXPECT_THAT(metrics_.reports().values, ElementsAre(3));
}

TEST_F(TrialMetricsTest, TellsWhatIsNewUnlessALowerRankHasBegunToReport) {
  bool anew = false;
  Add("{\"loss\": 3}\n{\"loss\": 2}\n", 1);
  EXPECT_TRUE(metrics_.ReadOn(false).ok());
  EXPECT_THAT(metrics_.NewReports(anew).values, ElementsAre(3, 2));
  Add("{\"loss\": 1}\n", 1);
  EXPECT_TRUE(metrics_.ReadOn(false).ok());
  EXPECT_THAT(metrics_.NewReports(anew).values, ElementsAre(1));
  EXPECT_FALSE(anew);
  EXPECT_THAT(metrics_.NewReports(anew).values, IsEmpty());
  EXPECT_FALSE(anew);
  Add("{\"loss\": 5}\n", 0);
  EXPECT_TRUE(metrics_.ReadOn(false).ok());
  EXPECT_THAT(metrics_.NewReports(anew).values, ElementsAre(5));
  EXPECT_TRUE(anew);
  EXPECT_THAT(metrics_.reports().values, ElementsAre(5));
}

TEST_F(TrialMetricsTest, TakesTheLowestRankThatHasReportedTheMetric) {
  Add("{\"accuracy\": 1}\n", 0);
  Add("{\"loss\": 5}\n", 2);
  Add("{\"loss\": 4}\n", 1);
  EXPECT_TRUE(metrics_.ReadOn(false).ok());
  EXPECT_THAT(metrics_.reports().values, ElementsAre(4));
  EXPECT_THAT(metrics_.reports().other_names, ElementsAre("accuracy"));
}

TEST_F(TrialMetricsTest, TrackingThatCannotBeReadIsDoneWithoutWhereFilesHaveTheMetric) {
  TrialMetrics metrics(folder_.path(), "loss", [] { return absl::UnavailableError("busy"); });
  EXPECT_TRUE(absl::IsUnavailable(metrics.ReadOn(true).status())) << "it is asked again";
  const auto file = folder_.path() / "outputs/mlruns/0/run/metrics/loss";
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "1 0.5 0\n";
  EXPECT_TRUE(metrics.ReadOn(true).ok());
  EXPECT_THAT(metrics.reports().values, ElementsAre(0.5));
}

TEST_F(TrialMetricsTest, ATrialEndsThoughTrackingStaysUnreadable) {
  int tries = 0;
  TrialMetrics metrics(folder_.path(), "loss", [&] {
    ++tries;
    return absl::UnavailableError("busy");
  });
  while (!metrics.ReadOn(true).ok() && tries < 1000) {
  }
  EXPECT_LT(tries, 1000);
  EXPECT_GT(tries, 10);
  TrialMetrics damaged(folder_.path(), "loss", [] { return absl::DataLossError("damaged"); });
  EXPECT_TRUE(damaged.ReadOn(true).ok()) << "which no time mends";
}

}  // namespace
}  // namespace tutti::service
