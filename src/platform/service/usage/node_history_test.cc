// Covers: usage_table.cc.
#include "platform/service/usage/node_history.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"

namespace tutti::service {
namespace {

const absl::Time kBegin = absl::FromUnixSeconds(1'800'000'000);  // a multiple of 30 s

spec::UsageSample At(absl::Duration when, float cpu, float memory = 0) {
  spec::UsageSample sample{.time = kBegin + when};
  sample.cpu = cpu;
  sample.memory = memory;
  sample.memory_left = 100 - memory;
  sample.ranks = {{.rank = 2, .cpu = cpu / 2, .memory = memory}, {.rank = 3}};
  return sample;
}

TEST(NodeHistoryTest, KeepsTheLastTenMinutesAsTheyCame) {
  NodeHistory history(2, 2);
  for (int second = 0; second < 1000; ++second) {
    history.Add(At(absl::Seconds(second), static_cast<float>(second)));
  }
  EXPECT_EQ(history.recent().size(), NodeHistory::kMostRecent);
  EXPECT_EQ(history.recent().at(NodeHistory::kMostRecent - 1, kCpuColumn), 999);
  history.Add(At(absl::Seconds(999), 7));
  EXPECT_EQ(history.recent().at(NodeHistory::kMostRecent - 1, kCpuColumn), 999) << "no repeat";
  history.Add(At(absl::Seconds(5000), 1));
  EXPECT_EQ(history.recent().size(), 1) << "what is old goes, also after a gap";
}

TEST(NodeHistoryTest, KeepsSpansOfMeansAndExtremes) {
  NodeHistory history(2, 2);
  history.Add(At(absl::Seconds(0), 1, 10));
  history.Add(At(absl::Seconds(10), 3, 30));
  history.Add(At(absl::Seconds(31), 8, 20));
  const UsageTable whole = history.Whole();
  ASSERT_EQ(whole.size(), 2);
  EXPECT_EQ(whole.time(0), absl::ToUnixMillis(kBegin));
  EXPECT_EQ(whole.at(0, kCpuColumn), 2);
  EXPECT_EQ(whole.at(0, kMemoryColumn), 30);
  EXPECT_EQ(whole.at(0, kMemoryLeftColumn), 70);
  EXPECT_EQ(whole.at(0, kNodeWidth), 1) << "of rank 2";
  EXPECT_TRUE(std::isnan(whole.at(0, kNodeWidth + kRankWidth))) << "of rank 3";
  EXPECT_EQ(whole.at(1, kCpuColumn), 8);
  EXPECT_EQ(history.PeakRankMemory(), 30) << "of rank 2, in a span that is over";
  history.Add(At(absl::Seconds(32), 1, 40));
  EXPECT_EQ(history.PeakRankMemory(), 40) << "in the one that is not";
  EXPECT_TRUE(std::isnan(NodeHistory(2, 2).PeakRankMemory()));
}

TEST(NodeHistoryTest, WeighsSpansByTheirSamples) {
  NodeHistory history(2, 2);
  for (int second = 0; second < 30; ++second) history.Add(At(absl::Seconds(second), 1));
  history.Add(At(absl::Seconds(30), 32));
  EXPECT_EQ(history.Whole().at(0, kSamplesColumn), 30);
  const UsageTable one = history.Whole().MergedTo(1);
  EXPECT_EQ(one.at(0, kSamplesColumn), 31);
  EXPECT_EQ(one.at(0, kCpuColumn), 2);
}

TEST(NodeHistoryTest, NeverHasMoreSpansHoweverLongTheJobRuns) {
  NodeHistory history(2, 2);
  constexpr int kDays = 40;
  for (int half_minute = 0; half_minute < kDays * 2880; ++half_minute) {
    history.Add(At(absl::Seconds(30 * half_minute), 1));
    ASSERT_LE(history.Whole().size(), NodeHistory::kMostSpans);
  }
  EXPECT_EQ(history.Whole().time(0), absl::ToUnixMillis(kBegin) /
                                         absl::ToInt64Milliseconds(history.span()) *
                                         absl::ToInt64Milliseconds(history.span()));
  EXPECT_GE(history.span() * static_cast<int>(NodeHistory::kMostSpans), absl::Hours(24 * kDays));
  EXPECT_EQ(history.Whole().at(0, kCpuColumn), 1);
}

TEST(NodeHistoryTest, IsTheSameAfterItWasWrittenPieceByPiece) {
  const base::TemporaryDirectory folder;
  const std::string name = folder.path() / "node-0";
  NodeHistory history(2, 2);
  const auto save = [&](bool end) {
    EXPECT_TRUE(NodeHistory::Write(name + ".whole", history.TakeUnsaved(end)).ok());
  };
  for (int second = 0; second < 100; ++second) {
    history.Add(At(absl::Seconds(second), static_cast<float>(second), 5));
    if (second % 40 == 39) save(false);
  }
  save(true);
  EXPECT_TRUE(NodeHistory::Write(name + ".recent", history.RecentToSave()).ok());
  const auto read = NodeHistory::Read(name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->first_rank(), 2);
  EXPECT_EQ(read->ranks(), 2);
  EXPECT_EQ(read->Whole().Bytes(0), history.Whole().Bytes(0));
  EXPECT_EQ(read->recent().Bytes(0), history.recent().Bytes(0));
  EXPECT_EQ(read->Whole().size(), 4);
  EXPECT_TRUE(absl::IsNotFound(NodeHistory::Read(name, 0, 2, {}).status())) << "of other ranks";
}

spec::UsageSample WithGpus(int second, std::vector<spec::GpuUsage> gpus) {
  spec::UsageSample sample = At(absl::Seconds(second), 1);
  sample.gpus = std::move(gpus);
  return sample;
}

TEST(NodeHistoryTest, AddsTheGpusOfANodeUpAndNamesTheHottest) {
  NodeHistory history(2, 2);
  history.Add(WithGpus(0, {{.gpu = "0",
                            .use = 0.5,
                            .memory = 3e9,
                            .memory_total = 8e10,
                            .power = 300,
                            .temperature = 61},
                           {.gpu = "1",
                            .use = 1,
                            .memory = 1e9,
                            .memory_total = 8e10,
                            .power = 100,
                            .temperature = 72}}));
  history.Add(WithGpus(1, {{.gpu = "0", .use = 0.5}, {.gpu = "1"}}));
  history.Add(WithGpus(2, {}));
  const auto seen = [](const UsageTable& table, size_t row, size_t column) {
    return table.at(row, kFirstGpuColumn + column);
  };
  const UsageTable& recent = history.recent();
  ASSERT_EQ(recent.size(), 3);
  EXPECT_EQ(seen(recent, 0, 0), 1.5);
  EXPECT_EQ(seen(recent, 0, 1), 4e9F);
  EXPECT_EQ(seen(recent, 0, 2), 16e10F);
  EXPECT_EQ(seen(recent, 0, 3), 400);
  EXPECT_EQ(seen(recent, 0, 4), 72);
  EXPECT_EQ(seen(recent, 1, 0), 0.5) << "of the one that tells it";
  EXPECT_TRUE(std::isnan(seen(recent, 1, 1)));
  EXPECT_TRUE(std::isnan(seen(recent, 2, 0)));
  EXPECT_EQ(recent.at(0, kNodeWidth), 0.5) << "of rank 2";
  const UsageTable whole = history.Whole();
  ASSERT_EQ(whole.size(), 1);
  EXPECT_EQ(seen(whole, 0, 0), 1) << "the mean";
  EXPECT_EQ(seen(whole, 0, 1), 4e9F);
  EXPECT_EQ(seen(whole, 0, 3), 400);
  EXPECT_EQ(seen(whole, 0, 4), 72);
}

// A row had the node's nine columns and then those of each rank.
TEST(NodeHistoryTest, ReadsFilesOfTheVersionWithoutGpus) {
  const base::TemporaryDirectory folder;
  const std::string name = folder.path() / "node-0";
  std::string bytes;
  for (int row = 0; row < 2; ++row) {
    const int64_t time = absl::ToUnixMillis(kBegin + row * absl::Seconds(30));
    bytes.append(reinterpret_cast<const char*>(&time), sizeof time);
    for (int column = 0; column < 9 + 2 * 5; ++column) {
      const auto value = static_cast<float>(100 * row + column);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  const std::string header = R"({"version": 1, "first_rank": 2, "ranks": 2, "span": 30000})";
  for (const char* const file : {".whole", ".recent"}) {
    ASSERT_TRUE(base::WriteFileAtomic(name + file, header + "\n" + bytes).ok());
  }
  auto read = NodeHistory::Read(name, 2, 2, {});
  ASSERT_TRUE(read.ok()) << read.status();
  for (const UsageTable& table : {read->Whole(), read->recent()}) {
    ASSERT_EQ(table.size(), 2);
    EXPECT_EQ(table.time(1), absl::ToUnixMillis(kBegin) + 30'000);
    EXPECT_EQ(table.at(1, kCpuColumn), 100);
    EXPECT_EQ(table.at(1, kSamplesColumn), 108);
    EXPECT_TRUE(std::isnan(table.at(1, kGpuUseColumn)));
    EXPECT_TRUE(std::isnan(table.at(1, kNodeWidth - 1)));
    EXPECT_EQ(table.at(1, kNodeWidth), 109) << "of rank 2";
    EXPECT_EQ(table.at(1, kNodeWidth + kRankWidth + 4), 118) << "of rank 3";
  }
  read->Add(WithGpus(90, {{.gpu = "0", .use = 0.25}}));
  ASSERT_TRUE(NodeHistory::Write(name + ".whole", read->TakeUnsaved(true)).ok());
  const UsageTable anew = NodeHistory::Read(name)->Whole();
  ASSERT_EQ(anew.size(), 3) << "the file is of this version now";
  EXPECT_EQ(anew.at(1, kNodeWidth), 109);
  EXPECT_EQ(anew.at(2, kGpuUseColumn), 0.25);
}

TEST(NodeHistoryTest, ReadsWhatIsThereOfADamagedFile) {
  const base::TemporaryDirectory folder;
  const std::string name = folder.path() / "node-0";
  NodeHistory history(0, 1);
  for (int i = 0; i < 3; ++i) history.Add(At(absl::Seconds(30 * i), 1));
  NodeHistory::Unsaved unsaved = history.TakeUnsaved(true);
  unsaved.rows.resize(unsaved.rows.size() - 1);
  ASSERT_TRUE(NodeHistory::Write(name + ".whole", unsaved).ok());
  EXPECT_EQ(NodeHistory::Read(name)->Whole().size(), 2);
  for (const char* text : {"", "{}\n", "no JSON\n", R"({"version": 1, "first_rank": -1})",
                           R"({"version": 0, "first_rank": 0, "ranks": 1, "span": 1})"
                           "\n"}) {
    ASSERT_TRUE(base::WriteFileAtomic(name + ".whole", text).ok());
    EXPECT_TRUE(absl::IsNotFound(NodeHistory::Read(name).status())) << text;
  }
}

TEST(NodeHistoryTest, MergesToSoManyPoints) {
  NodeHistory history(0, 0);
  for (int i = 0; i < 10; ++i) history.Add(At(absl::Seconds(i), static_cast<float>(i)));
  const UsageTable merged = history.recent().MergedTo(4);
  ASSERT_EQ(merged.size(), 4);
  EXPECT_EQ(merged.at(0, kCpuColumn), 1);
  EXPECT_EQ(merged.at(3, kCpuColumn), 9);
  EXPECT_EQ(history.recent().Newest(2).at(0, kCpuColumn), 8);
}

}  // namespace
}  // namespace tutti::service
