#include "platform/service/logs/job_logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;

class JobLogsTest : public ::testing::Test {
 protected:
  std::shared_ptr<JobLogs> OpenAt(const std::filesystem::path& folder,
                                  uint64_t limit = JobLogs::kNoLimit, int attempt = 1) {
    auto logs = JobLogs::OpenLater(folder, &clock_, limit, attempt);
    EXPECT_EQ(logs->TryToOpen(), absl::OkStatus());
    return logs;
  }
  std::shared_ptr<JobLogs> OpenLogs(uint64_t limit = JobLogs::kNoLimit, int attempt = 1) {
    return OpenAt(folder_.path(), limit, attempt);
  }
  // "0out:text" per line, "~" after a partial one.
  static std::vector<std::string> Show(const std::vector<LogLine>& lines) {
    std::vector<std::string> shown;
    for (const LogLine& line : lines) {
      shown.push_back(absl::StrCat(line.rank, Name(line.stream).substr(3), ":", line.text,
                                   line.partial ? "~" : ""));
    }
    return shown;
  }
  static std::vector<std::string> All(const JobLogs& logs) {
    auto lines = logs.Read({}, size_t{1} << 30);
    EXPECT_TRUE(lines.ok()) << lines.status();
    return Show(*lines);
  }
  void Append(JobLogs& logs, int rank, LogStream stream, uint64_t offset, absl::string_view bytes,
              uint64_t expected) {
    const auto kept = logs.Append(rank, stream, offset, bytes);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(*kept, expected);
  }
  std::string FileText(const char* name) { return base::ReadFile(folder_.path() / name).value(); }

  base::TemporaryDirectory folder_;
  base::ManualClock clock_{absl::FromUnixSeconds(1'000'000)};
};

size_t OpenDescriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(all, std::filesystem::directory_iterator()));
}

TEST_F(JobLogsTest, AGangOfAThousandNeedsFewDescriptors) {
  constexpr int kRanks = 1000;
  const size_t before = OpenDescriptors();
  auto logs = OpenLogs();
  for (int rank = 0; rank < kRanks; ++rank) {
    Append(*logs, rank, LogStream::kStdout, 0, absl::StrCat("a", rank, "\n"),
           absl::StrCat("a", rank, "\n").size());
    Append(*logs, rank, LogStream::kStderr, 0, "half", 4);
  }
  EXPECT_LE(OpenDescriptors(), before + JobLogs::kMostOpen + 2);
  for (int rank = 0; rank < kRanks; ++rank) Append(*logs, rank, LogStream::kStderr, 4, " b\n", 7);
  EXPECT_EQ(All(*logs).size(), 2u * kRanks);
  logs = OpenLogs();  // as after a crash
  Append(*logs, 7, LogStream::kStdout, 3, "c\n", 5);
  ASSERT_TRUE(logs->Close().ok());
  EXPECT_LE(OpenDescriptors(), before + JobLogs::kMostOpen + 2);
  EXPECT_EQ(FileText("rank-7.stdout"), "a7\nc\n");
  EXPECT_EQ(FileText("rank-999.stderr"), "half b\n");
  const auto reader = JobLogs::OpenToRead(folder_.path()).value();
  EXPECT_EQ(All(*reader).size(), 2u * kRanks + 1);
  EXPECT_LE(OpenDescriptors(), before + 2 * (JobLogs::kMostOpen + 2));
}

TEST_F(JobLogsTest, ALaterAttemptGoesBehindWhatThereIsAndCountsFromThere) {
  const auto open = [&](int attempt) { return OpenLogs(JobLogs::kNoLimit, attempt); };
  auto first = open(1);
  Append(*first, 0, LogStream::kStdout, 0, "first\n", 6);
  ASSERT_TRUE(first->Close().ok());
  auto second = open(2);
  Append(*second, 0, LogStream::kStdout, 0, "second\n", 7);
  Append(*second, 1, LogStream::kStdout, 0, "other\n", 6);
  Append(*second, 0, LogStream::kStdout, 9, "a gap\n", 7);
  second = open(2);  // after a crash it begins where it began
  Append(*second, 0, LogStream::kStdout, 3, "ond\nmore\n", 12);
  Append(*second, 1, LogStream::kStdout, 0, "other\n", 6);
  EXPECT_EQ(FileText("rank-0.stdout"), "first\nsecond\nmore\n");
  EXPECT_THAT(All(*second), ElementsAre("0out:first", "0out:second", "1out:other", "0out:more"));
  auto third = open(3);
  Append(*third, 1, LogStream::kStdout, 0, "third\n", 6);
  EXPECT_EQ(FileText("rank-1.stdout"), "other\nthird\n");
}

TEST_F(JobLogsTest, ALaterAttemptBeginsWhereItBeganAlsoBehindOnesThatPrintedNothing) {
  const auto open = [&](int attempt) {
    return OpenAt(folder_.path() / "none yet", JobLogs::kNoLimit, attempt);
  };
  open(1);
  auto second = open(2);
  Append(*second, 0, LogStream::kStdout, 0, "second\n", 7);
  second = open(2);  // after a crash
  Append(*second, 0, LogStream::kStdout, 0, "second\nmore\n", 12);
  EXPECT_THAT(All(*second), ElementsAre("0out:second", "0out:more"));
}

TEST_F(JobLogsTest, WhatCannotBeOpenedNowIsOpenedOnceItIsRepaired) {
  Append(*OpenLogs(), 0, LogStream::kStdout, 0, "before\n", 7);
  const auto index = folder_.path() / "arrivals";
  std::filesystem::rename(index, folder_.path() / "aside");
  std::filesystem::create_directory(index);
  const auto logs = JobLogs::OpenLater(folder_.path(), &clock_);
  EXPECT_FALSE(logs->TryToOpen().ok());
  EXPECT_FALSE(logs->opened());
  EXPECT_TRUE(absl::IsUnavailable(logs->Append(0, LogStream::kStdout, 7, "x\n").status()));
  EXPECT_THAT(All(*logs), ElementsAre());
  std::filesystem::remove(index);
  std::filesystem::rename(folder_.path() / "aside", index);
  ASSERT_TRUE(logs->TryToOpen().ok());
  Append(*logs, 0, LogStream::kStdout, 7, "after\n", 13);
  EXPECT_THAT(All(*logs), ElementsAre("0out:before", "0out:after"));
}

TEST_F(JobLogsTest, MergesRanksInTheOrderOfArrival) {
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, "a\n", 2);
  clock_.Advance(absl::Seconds(1));
  Append(*logs, 1, LogStream::kStderr, 0, "b\nc\n", 4);
  Append(*logs, 0, LogStream::kStdout, 2, "d\n", 4);
  EXPECT_THAT(All(*logs), ElementsAre("0out:a", "1err:b", "1err:c", "0out:d"));
  const auto lines = logs->Read({}, 100);
  EXPECT_EQ((*lines)[1].time - (*lines)[0].time, absl::Seconds(1));
  EXPECT_EQ(FileText("rank-0.stdout"), "a\nd\n");
}

TEST_F(JobLogsTest, LinesAndWhatElseHappensStayInTheirOrderWhenTheClockIsSetBack) {
  const absl::Time right = clock_.Now();
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, "a\n", 2);
  clock_.Set(right - absl::Hours(1));
  Append(*logs, 1, LogStream::kStdout, 0, "b\n", 2);
  const absl::Time event = logs->InOrder(clock_.Now());
  Append(*logs, 0, LogStream::kStdout, 2, "c\n", 4);
  logs = OpenLogs();  // after a crash
  Append(*logs, 0, LogStream::kStdout, 4, "d\n", 6);
  const auto lines = logs->Read({}, size_t{1} << 30);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(Show(*lines), ElementsAre("0out:a", "1out:b", "0out:c", "0out:d"));
  EXPECT_EQ(lines->at(0).time, right);
  EXPECT_LT(lines->at(0).time, lines->at(1).time);
  EXPECT_LT(lines->at(1).time, event);
  EXPECT_LT(event, lines->at(2).time);
  EXPECT_LT(lines->at(2).time, lines->at(3).time);
  EXPECT_LT(lines->at(3).time, right + absl::Seconds(1));
  clock_.Set(right + absl::Hours(1));
  EXPECT_EQ(logs->InOrder(clock_.Now()), clock_.Now());
}

TEST_F(JobLogsTest, SkipsWhatItHasAndRefusesAGap) {
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, "abc\n", 4);
  Append(*logs, 0, LogStream::kStdout, 0, "abc\n", 4);
  Append(*logs, 0, LogStream::kStdout, 2, "c\nde\n", 7);
  Append(*logs, 0, LogStream::kStdout, 9, "x\n", 7);
  Append(*logs, 0, LogStream::kStdout, 7, "", 7);
  EXPECT_EQ(FileText("rank-0.stdout"), "abc\nde\n");
  EXPECT_THAT(All(*logs), ElementsAre("0out:abc", "0out:de"));
}

TEST_F(JobLogsTest, HoldsAPartialLineBackUntilItsEndOrTheLogsEnd) {
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, "ab", 2);
  EXPECT_THAT(All(*logs), ElementsAre());
  Append(*logs, 0, LogStream::kStdout, 2, "c\nde", 6);
  EXPECT_THAT(All(*logs), ElementsAre("0out:abc"));
  ASSERT_TRUE(logs->Close().ok());
  EXPECT_THAT(All(*logs), ElementsAre("0out:abc", "0out:de~"));
}

TEST_F(JobLogsTest, GivesWhatIsDrawnAnewAsItIsPrinted) {
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStderr, 0, "\r 10%", 5);
  EXPECT_THAT(All(*logs), ElementsAre("0err:\r 10%~"));
  Append(*logs, 0, LogStream::kStderr, 5, "\xE2\x96", 7);  // half of a character
  EXPECT_THAT(All(*logs), ElementsAre("0err:\r 10%~"));
  Append(*logs, 0, LogStream::kStderr, 7, "\x88\r", 9);
  EXPECT_THAT(All(*logs), ElementsAre("0err:\r 10%~", "0err:\u2588~"));
  Append(*logs, 0, LogStream::kStderr, 9, "\nnot yet", 17);
  EXPECT_THAT(All(*logs), ElementsAre("0err:\r 10%~", "0err:\u2588~", "0err:\r"));
  Append(*logs, 0, LogStream::kStderr, 17, "\r\n", 19);  // a Windows line end
  EXPECT_THAT(All(*logs), ElementsAre("0err:\r 10%~", "0err:\u2588~", "0err:\r", "0err:not yet\r"));
  EXPECT_EQ(FileText("rank-0.stderr"), "\r 10%\u2588\r\nnot yet\r\n");
}

TEST_F(JobLogsTest, GivesVeryLongLinesInPieces) {
  auto logs = OpenLogs();
  const std::string piece(JobLogs::kMaxLine, 'x');
  Append(*logs, 0, LogStream::kStdout, 0, piece + "yy\nz\n", piece.size() + 5);
  EXPECT_THAT(All(*logs), ElementsAre("0out:" + piece + "~", "0out:yy", "0out:z"));
  Append(*logs, 1, LogStream::kStdout, 0, piece, piece.size());
  Append(*logs, 1, LogStream::kStdout, piece.size(), "\n", piece.size() + 1);
  const auto lines = All(*logs);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3], "1out:" + piece + "~");
  EXPECT_EQ(lines[4], "1out:");
}

TEST_F(JobLogsTest, CutsNoCharacterWhereAVeryLongLineIsInPieces) {
  auto logs = OpenLogs();
  const std::string most(JobLogs::kMaxLine - 1, 'x');
  const std::string line = most + "\u00e9" + std::string(10, 'y');
  Append(*logs, 0, LogStream::kStdout, 0, line + "\n", line.size() + 1);
  EXPECT_THAT(All(*logs), ElementsAre("0out:" + most + "~", "0out:\u00e9yyyyyyyyyy"));
  // One that comes in two parts, of which the first ends within a character.
  Append(*logs, 1, LogStream::kStdout, 0, most + "\xe2", most.size() + 1);
  Append(*logs, 1, LogStream::kStdout, most.size() + 1, "\x88", most.size() + 2);
  Append(*logs, 1, LogStream::kStdout, most.size() + 2, "\x9e\n", most.size() + 4);
  const auto lines = All(*logs);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[2], "1out:" + most + "~");
  EXPECT_EQ(lines[3], "1out:\u221e");
}

TEST_F(JobLogsTest, ReadsBackwardsInPagesWhatItReadsForward) {
  auto logs = OpenLogs();
  const std::string piece(JobLogs::kMaxLine, 'x');
  Append(*logs, 0, LogStream::kStdout, 0, "a\nb\nc\n", 6);
  Append(*logs, 1, LogStream::kStderr, 0, "\r 10%", 5);
  Append(*logs, 1, LogStream::kStderr, 5, "\r 20%\nd\n", 13);
  Append(*logs, 0, LogStream::kStdout, 6, piece + "yy\nz\n", piece.size() + 11);
  Append(*logs, 2, LogStream::kMetrics, 0, "{}\nno end", 9);
  ASSERT_TRUE(logs->Close().ok());
  const std::vector<LogLine> forward = logs->Read({}, size_t{1} << 30).value();
  for (const size_t size : {1, 2, 3, 100}) {
    std::vector<LogLine> all;
    std::optional<LogPosition> before;
    do {
      LogPage page = logs->ReadBack(before, size, 1 << 20).value();
      ASSERT_THAT(page.lines.size(), ::testing::AllOf(::testing::Gt(0), ::testing::Le(size)));
      before = page.begin;
      all.insert(all.begin(), page.lines.begin(), page.lines.end());
    } while (before->record > 0 || before->offset > 0);
    EXPECT_EQ(Show(all), Show(forward));
    for (size_t i = 0; i < all.size() && i < forward.size(); ++i) {
      EXPECT_EQ(all[i].next.record, forward[i].next.record);
      EXPECT_EQ(all[i].next.offset, forward[i].next.offset);
    }
  }
}

TEST_F(JobLogsTest, ReadsOfALongRecordOnlyItsEnd) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&text, "line ", i, "\n");
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, text, text.size());
  LogPage page = logs->ReadBack(std::nullopt, 1'000'000, 1000).value();
  EXPECT_EQ(page.lines.back().text, "line 99999");
  EXPECT_LT(page.lines.size(), 10'000u);
  EXPECT_EQ(page.lines.front().text, absl::StrCat("line ", 100'000 - page.lines.size()));
  const std::string next = page.lines.front().text;
  page = logs->ReadBack(page.begin, 1, 1000).value();
  EXPECT_THAT(Show(logs->Read(page.begin, 12).value()),
              ElementsAre("0out:" + page.lines[0].text, "0out:" + next));
}

TEST_F(JobLogsTest, IndexesAfterACrashWhatHadReachedTheFile) {
  {
    auto logs = OpenLogs();
    Append(*logs, 0, LogStream::kStdout, 0, "a\nb", 3);
  }
  {  // As if the process had died between the file and the index, and within a record.
    auto file = base::Open(folder_.path() / "rank-0.stdout", O_WRONLY | O_APPEND);
    ASSERT_TRUE(base::WriteAll(file->get(), "c\nd\ne", "file").ok());
    auto index = base::Open(folder_.path() / "arrivals", O_WRONLY | O_APPEND);
    ASSERT_TRUE(base::WriteAll(index->get(), "torn", "index").ok());
  }
  auto logs = OpenLogs();
  EXPECT_THAT(All(*logs), ElementsAre("0out:a", "0out:bc", "0out:d"));
  Append(*logs, 0, LogStream::kStdout, 0, "a\nbc\nd\nef\n", 10);
  EXPECT_THAT(All(*logs), ElementsAre("0out:a", "0out:bc", "0out:d", "0out:ef"));
}

TEST_F(JobLogsTest, DropsRecordsOfBytesThatAPowerFailureTook) {
  {
    auto logs = OpenLogs();
    Append(*logs, 0, LogStream::kStdout, 0, "a\n", 2);
    Append(*logs, 0, LogStream::kStdout, 2, "b\n", 4);
    Append(*logs, 1, LogStream::kStdout, 0, "c\n", 2);
  }
  std::filesystem::resize_file(folder_.path() / "rank-0.stdout", 3);
  auto logs = OpenLogs();
  EXPECT_THAT(All(*logs), ElementsAre("0out:a", "1out:c"));
  Append(*logs, 0, LogStream::kStdout, 2, "b\n", 4);
  EXPECT_THAT(All(*logs), ElementsAre("0out:a", "1out:c", "0out:b"));
}

TEST_F(JobLogsTest, RefusesPositionsThatAreNoneOfItsOwn) {
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, "a\n", 2);
  EXPECT_TRUE(logs->Read({1, 0}, 100).ok());
  for (const LogPosition position : {LogPosition{2, 0}, LogPosition{1, 1}, LogPosition{0, 2}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(logs->Read(position, 100).status()));
  }
  for (const LogPosition position : {LogPosition{2, 0}, LogPosition{1, 1}, LogPosition{0, 3}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(logs->ReadBack(position, 1, 100).status()));
  }
}

TEST_F(JobLogsTest, ReadsAnEndedJobAndOneThatHasNoLogs) {
  auto logs = OpenLogs();
  Append(*logs, 3, LogStream::kMetrics, 0, "{}\n{", 4);
  ASSERT_TRUE(logs->Close().ok());
  auto reader = JobLogs::OpenToRead(folder_.path());
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(All(**reader), ElementsAre("3rics:{}", "3rics:{~"));
  auto empty = JobLogs::OpenToRead(folder_.path() / "none");
  ASSERT_TRUE(empty.ok());
  EXPECT_THAT(All(**empty), ElementsAre());
}

TEST_F(JobLogsTest, NamesItsStreams) {
  EXPECT_EQ(*LogStreamFromName("metrics"), LogStream::kMetrics);
  EXPECT_EQ(*LogStreamFromName("mpirun"), LogStream::kMpirun);
  EXPECT_FALSE(LogStreamFromName("stdin").ok());
}

// Any sizes of chunks, duplicates and gaps on the way in; any sizes of reads, crashes between: what
// comes out is what went in, line for line, once.
TEST_F(JobLogsTest, LosesAndRepeatsNothingUnderRandomOrders) {
  for (int seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    base::TemporaryDirectory folder;
    auto logs = OpenAt(folder.path());
    std::vector<std::string> sources(3);
    for (std::string& text : sources) {
      for (int i = 0; i < 200; ++i) text += std::string(below(40), 'a' + below(26)) + "\n";
      text += "end";
    }
    std::vector<uint64_t> kept(3, 0);
    std::vector<std::string> seen(3);
    LogPosition position;
    const auto read = [&](size_t bytes) {
      const auto lines = logs->Read(position, bytes);
      ASSERT_TRUE(lines.ok()) << lines.status();
      for (const LogLine& line : *lines) {
        absl::StrAppend(&seen[line.rank], line.text, line.partial ? "" : "\n");
        position = line.next;
      }
    };
    while (kept[0] < sources[0].size() || kept[1] < sources[1].size() ||
           kept[2] < sources[2].size()) {
      const int rank = below(3);
      const uint64_t from = std::max<int64_t>(0, static_cast<int64_t>(kept[rank]) + below(60) - 40);
      const std::string chunk =
          sources[rank].substr(std::min(from, sources[rank].size()), below(300));
      const auto now = logs->Append(rank, LogStream::kStdout, from, chunk);
      ASSERT_TRUE(now.ok());
      ASSERT_GE(*now, kept[rank]);
      kept[rank] = *now;
      if (below(3) == 0) read(1 + below(100));
      if (below(40) == 0) logs = OpenAt(folder.path());
    }
    ASSERT_TRUE(logs->Close().ok());
    read(size_t{1} << 30);
    EXPECT_EQ(seen, sources) << "seed " << seed;
  }
}

TEST_F(JobLogsTest, KeepsWorkingAfterADiskWasFull) {
  if (::access("/dev/full", W_OK) != 0 || ::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::filesystem::path mount = folder_.path() / "small";
  std::filesystem::create_directory(mount);
  if (std::system(absl::StrCat("mount -t tmpfs -o size=64k none ", mount.native(), " 2>/dev/null")
                      .c_str()) != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs";
  }
  {
    auto logs = OpenAt(mount);
    const std::string line = std::string(999, 'x') + "\n";
    std::string text;
    for (int i = 0; i < 100; ++i) text += line;
    ASSERT_TRUE(base::WriteFileAtomic(mount / "ballast", std::string(20000, 'b')).ok());
    const auto full = logs->Append(0, LogStream::kStdout, 0, text);
    EXPECT_TRUE(absl::IsResourceExhausted(full.status())) << full.status();
    std::filesystem::remove(mount / "ballast");
    const auto again = logs->Append(0, LogStream::kStdout, 0, text.substr(0, 45000));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_GE(*again, 45000u);  // what had fitted counts
    EXPECT_EQ(All(*logs).size(), 45u);
  }
  EXPECT_EQ(std::system(absl::StrCat("umount ", mount.native()).c_str()), 0);
}

TEST_F(JobLogsTest, KeepsTheHeadAndTheEndOfWhatIsMoreThanItsLimit) {
  auto logs = OpenLogs(12);
  EXPECT_EQ(*logs->Append(0, LogStream::kStdout, 0, "first\n"), 6u);
  EXPECT_FALSE(logs->full());
  EXPECT_EQ(*logs->Append(0, LogStream::kStdout, 6, std::string(200'000, 'x') + "\n"), 200'007u);
  EXPECT_TRUE(logs->full());
  EXPECT_EQ(*logs->Append(1, LogStream::kStderr, 0, "of another\n"), 11u);
  EXPECT_EQ(*logs->Append(0, LogStream::kStdout, 200'007, "last\n"), 200'012u);
  EXPECT_EQ(*logs->Append(0, LogStream::kStdout, 200'007, "last\n"), 200'012u);  // repeated
  ASSERT_TRUE(logs->Close().ok());
  EXPECT_THAT(All(*logs),
              ElementsAre("0out:first", "0out:xxxxxx~", "0out:",
                          ::testing::StartsWith("0out:[tutti: 199995 bytes are left out here"),
                          "0out:last", "1err:of another"));
}

TEST_F(JobLogsTest, StaysFullAfterACrashWithWhatItHadKept) {
  {
    auto logs = OpenLogs(12);
    EXPECT_EQ(*logs->Append(0, LogStream::kStdout, 0, "0123456789abcdef\n"), 17u);
  }
  auto logs = OpenLogs(1000);
  EXPECT_TRUE(logs->full());
  EXPECT_EQ(*logs->Append(0, LogStream::kStdout, 17, "last\n"), 22u);
  ASSERT_TRUE(logs->Close().ok());
  EXPECT_THAT(All(*logs),
              ElementsAre("0out:0123456789ab~",
                          "0out:", ::testing::StartsWith("0out:[tutti: 5 bytes are left out here"),
                          "0out:last"));
}

TEST_F(JobLogsTest, KeepsTheEndOfEachAttemptOfWhatIsMoreThanItsLimit) {
  const auto open = [&](int attempt) { return OpenLogs(6, attempt); };
  auto first = open(1);
  Append(*first, 0, LogStream::kStdout, 0, "first\nfirst ends\n", 17);
  ASSERT_TRUE(first->Close().ok());
  std::vector<std::string> lines = All(*first);
  EXPECT_THAT(lines, ElementsAre("0out:first", "0out:first ends"));
  auto second = open(2);
  EXPECT_TRUE(second->full());
  Append(*second, 0, LogStream::kStdout, 0, "second ends\n", 12);
  second = open(2);  // the service died
  Append(*second, 0, LogStream::kStdout, 0, "second ends\n", 12);
  ASSERT_TRUE(second->Close().ok());
  second = open(2);  // and again, before it was known that it had closed them
  Append(*second, 0, LogStream::kStdout, 0, "second ends\n", 12);
  ASSERT_TRUE(second->Close().ok());
  lines.push_back("0out:second ends");
  EXPECT_EQ(All(*second), lines);
}

TEST_F(JobLogsTest, KeepsWhatIsThereWhenItIsFoundToBeFull) {
  auto logs = OpenLogs();
  Append(*logs, 0, LogStream::kStdout, 0, "first\nse", 8);
  logs = OpenLogs(6);
  EXPECT_TRUE(logs->full());
  EXPECT_THAT(All(*logs), ElementsAre("0out:first", "0out:se~"));
}

TEST_F(JobLogsTest, SaysHowMuchIsKept) {
  auto logs = OpenLogs();
  EXPECT_EQ(logs->bytes(), 0);
  Append(*logs, 0, LogStream::kStdout, 0, "one\n", 4);
  Append(*logs, 1, LogStream::kStderr, 0, "two\n", 4);
  EXPECT_EQ(logs->bytes(), 8);
  logs = OpenLogs();  // the service died
  EXPECT_EQ(logs->bytes(), 8);
}

}  // namespace
}  // namespace tutti::service
