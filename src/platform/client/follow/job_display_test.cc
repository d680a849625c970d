#include "platform/client/follow/job_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;
using testing::Not;

const absl::Time kStart = absl::FromUnixSeconds(1000);

// Shows recorded stream lines, one every `apart`.
std::string Show(const std::vector<std::string>& lines, Screen screen = {},
                 DisplayOptions options = {}, absl::Duration apart = absl::Seconds(1)) {
  std::ostringstream out;
  LiveText text(out, screen);
  options.time_zone = absl::UTCTimeZone();
  JobDisplay display(&text, options);
  absl::Time now = kStart;
  for (const std::string& line : lines) {
    const auto parsed = ParseFollowLine(line);
    EXPECT_TRUE(parsed.ok() && parsed->has_value()) << line;
    display.Line(**parsed, now);
    display.Refresh(now);
    now += apart;
  }
  display.End();
  return out.str();
}

std::string State(const std::string& state, const std::string& reason) {
  return absl::StrCat(R"({"type": "state", "cursor": "1", "time": "1970-01-01T01:02:03Z", )",
                      R"("state": ")", state, R"(", "reason": ")", reason, R"("})");
}

std::string Output(int rank, const std::string& stream, const std::string& text) {
  return absl::StrCat(R"({"type": "output", "cursor": "1", "rank": )", rank, R"(, "stream": ")",
                      stream, R"(", "text": ")", text, R"("})");
}

// Returns a piece of a line, whose newline has not come.
std::string Piece(int rank, const std::string& text) {
  std::string line = Output(rank, "stderr", text);
  line.insert(line.size() - 1, R"(, "partial": true)");
  return line;
}

std::string Step(int step) {
  return Output(0, "metrics",
                absl::StrCat(R"({\"event\": \"step\", \"step\": )", step,
                             R"(, \"steps\": 100, \"seconds_left\": 60})"));
}

TEST(JobDisplay, ShowsStatesAndOutputByRank) {
  EXPECT_EQ(Show({State("Queued", "waits for 2 nodes"), State("Queued", "waits for 1 node"),
                  State("Running", ""), Output(1, "stdout", "hello"), Output(0, "stderr", "oh")}),
            "01:02:03 Queued       waits for 2 nodes\n"
            "01:02:03              waits for 1 node\n"
            "01:02:03 Running\n"
            "[1] hello\n"
            "[0!] oh\n");
}

TEST(JobDisplay, AFileGetsAProgressLineEveryFewSeconds) {
  const std::string shown =
      Show({Step(1), Step(2), Step(3), Step(4), Step(5), Step(6), Step(7), Step(100)});
  EXPECT_THAT(shown, HasSubstr("    step 1/100"));
  EXPECT_THAT(shown, Not(HasSubstr("step 2/100")));
  EXPECT_THAT(shown, HasSubstr("step 6/100"));
  EXPECT_THAT(shown, Not(HasSubstr("step 7/100")));
  EXPECT_THAT(shown, HasSubstr("step 100/100"));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
  EXPECT_EQ(Show({Step(1), Step(100)}, {}, {.progress = false}), "");
}

TEST(JobDisplay, MetricsAreNotPutIntoWordsWhileTheJobSpeaksForItself) {
  const std::string evaluation =
      Output(0, "metrics", R"({\"event\": \"evaluation\", \"epoch\": 1, \"top1\": 0.5})");
  EXPECT_EQ(Show({Output(0, "stdout", "my own words"), Step(1), evaluation}), "[0] my own words\n");
  EXPECT_EQ(Show({Output(0, "stdout", "my own words"), evaluation}, {}, {}, absl::Seconds(5)),
            "[0] my own words\n    epoch 1: top-1 50.00 %\n");
}

TEST(JobDisplay, ATerminalGetsABarThatIsTakenAwayAtTheEnd) {
  const std::string shown =
      Show({Step(1), Output(0, "stdout", "line")}, {.is_terminal = true, .width = 80});
  EXPECT_THAT(shown, HasSubstr("step 1/100"));
  EXPECT_THAT(shown, HasSubstr("\r\x1b[K[0] line\n"));
  EXPECT_THAT(shown, HasSubstr("0:59 left"));
  EXPECT_TRUE(shown.ends_with("\r\x1b[K"));
}

TEST(JobDisplay, SaysWhatAQueuedJobWaitsForUntilItStarts) {
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    LiveText text(out, {.is_terminal = terminal, .width = 80});
    JobDisplay display(&text, {});
    display.Line(**ParseFollowLine(State("Queued", "submitted")), kStart);
    EXPECT_TRUE(display.queued());
    spec::BriefJobView job;
    job.reason = "waits for 2 nodes";
    job.expected_start = "1970-01-01T00:20:00Z";
    job.expected_start_is = "estimate";
    display.Waiting(job, kStart);
    display.Refresh(kStart);
    display.Waiting(job, kStart + absl::Minutes(2));
    display.Refresh(kStart + absl::Minutes(2));
    job.expected_start_is = "latest";
    job.reason = "waits for 1 node";
    display.Waiting(job, kStart);
    display.Refresh(kStart);
    const std::string shown = out.str();
    EXPECT_THAT(shown, HasSubstr("waits for 1 node · starts in 3 min at the latest"));
    EXPECT_THAT(shown, HasSubstr("waits for 2 nodes · starts in about 3 min"));
    // In place on a terminal; a log hears of it once.
    EXPECT_EQ(shown.find("starts in about 1 min") != std::string::npos, terminal);
    display.Line(**ParseFollowLine(State("Running", "")), kStart);
    EXPECT_FALSE(display.queued());
    display.Refresh(kStart);
    EXPECT_TRUE(out.str().ends_with("Running\n")) << out.str();
  }
}

TEST(JobDisplay, APipeGetsARedrawnLineOnceASecondAndItsLastState) {
  const std::vector<std::string> bar = {
      Piece(0, "\\r 10%"),        Piece(0, "\\r 2"),   Piece(0, "0%"),
      Piece(0, "\\r 30%"),        Piece(0, "\\r100%"), Output(0, "stderr", ""),
      Output(0, "stderr", "done")};
  EXPECT_EQ(Show(bar, {}, {}, absl::Milliseconds(10)), "[0!]  10%\n[0!] 100%\n[0!] done\n");
  EXPECT_EQ(Show(bar, {}, {}, absl::Milliseconds(400)),
            "[0!]  10%\n[0!]  30%\n[0!] 100%\n[0!] done\n");
}

TEST(JobDisplay, APipeGetsWhatARedrawnLineHadCometoWhenTheJobEnded) {
  EXPECT_EQ(Show({Piece(0, "10%"), Piece(0, "\\r20%"), Piece(0, "\\r30%")}, {}, {},
                 absl::Milliseconds(10)),
            "[0!] 10%\n[0!] 30%\n");
  EXPECT_EQ(Show({Piece(0, "\\r10%"), Piece(0, "\\r50%"), State("Queued", "node lost"),
                  Output(0, "stderr", "again")},
                 {}, {}, absl::Milliseconds(10)),
            "[0!] 10%\n[0!] 50%\n01:02:03 Queued       node lost\n[0!] again\n");
  EXPECT_EQ(Show({Piece(0, "a prompt? ")}), "[0!] a prompt? \n");
}

TEST(JobDisplay, PrintsEachPieceOfALongLineOnce) {
  // The service's pieces have 64 KiB, less a character that did not fit; the last may be short.
  std::string most = "x";
  while (most.size() < (64 << 10) - 1) most += "é";
  for (const std::string& first : {most, std::string((64 << 10) - 3, 'x')}) {
    for (const std::string& next : {std::string(3392, 'y'), first}) {
      EXPECT_EQ(Show({Piece(0, first), Piece(0, next), Piece(0, first), Output(0, "stderr", "end")},
                     {}, {.prefix = false}),
                absl::StrCat(first, "\n", next, "\n", first, "\nend\n"));
    }
  }
  // The line after it is drawn anew again.
  EXPECT_EQ(Show({Piece(0, most), Output(0, "stderr", "end"), Piece(0, "\\r10%"),
                  Piece(0, "\\r20%"), Output(0, "stderr", "\\r30%")},
                 {}, {.prefix = false}, absl::Milliseconds(10)),
            absl::StrCat(most, "\nend\n10%\n30%\n"));
}

TEST(JobDisplay, OfARedrawnLineThatComesWholeTheLastStateIsShown) {
  EXPECT_EQ(Show({Output(0, "stderr", "\\r 10%\\r100%"), Output(0, "stdout", "\\r"),
                  Output(0, "stdout", "of Windows\\r")}),
            "[0!] 100%\n[0] \n[0] of Windows\n");
}

TEST(JobDisplay, ATerminalRedrawsTheLineOfEachRank) {
  const std::string shown = Show({Piece(0, "\\r 10%"), Piece(1, "\\r 15%"),
                                  Piece(0, "\\r\\u001b[32m 20%"), Output(1, "stderr", "\\r100%")},
                                 {.is_terminal = true, .width = 80});
  EXPECT_EQ(shown,
            "[0!]  10%"
            "\r\x1b[K[0!]  10%\n[1!]  15%"
            "\x1b[1A\r\x1b[J[0!]  20%\n[1!]  15%"
            "\x1b[1A\r\x1b[J[1!] 100%\n[0!]  20%"
            "\r\x1b[K[0!] \x1b[32m 20%\x1b[0m\n");
}

TEST(JobDisplay, KeepsTheResult) {
  std::ostringstream out;
  LiveText text(out, {});
  JobDisplay display(&text, {});
  EXPECT_FALSE(display.result().has_value());
  const auto line =
      ParseFollowLine(Output(0, "metrics", R"({\"event\": \"result\", \"top1\": 0.5})"));
  display.Line(**line, kStart);
  ASSERT_TRUE(display.result().has_value());
  ASSERT_EQ(display.result()->scores.size(), 1u);
  EXPECT_EQ(display.result()->scores[0].second, 0.5);
}

TEST(JobDisplay, ShowsWhatMpirunSaysAsNoRanks) {
  const std::vector<std::string> lines = {Output(0, "mpirun", "1 more process"),
                                          Output(0, "stderr", "a")};
  EXPECT_EQ(Show(lines, {}), "[mpirun] 1 more process\n[0!] a\n");
  EXPECT_EQ(Show(lines, {}, {.only_rank = 0}), "[0!] a\n");
  EXPECT_EQ(Show(lines, {}, {.only_stderr = true}), "[mpirun] 1 more process\n[0!] a\n");
  EXPECT_EQ(Show(lines, {}, {.only_stdout = true}), "");
}

TEST(JobDisplay, ShowsOneRankOrOnlyErrors) {
  const std::vector<std::string> lines = {Output(0, "stdout", "a"), Output(1, "stdout", "b"),
                                          Output(1, "stderr", "c")};
  EXPECT_EQ(Show(lines, {}, {.only_rank = 1}), "[1] b\n[1!] c\n");
  EXPECT_EQ(Show(lines, {}, {.only_rank = 1, .only_stderr = true, .prefix = false}), "c\n");
  EXPECT_EQ(Show(lines, {}, {.only_stdout = true}), "[0] a\n[1] b\n");
}

TEST(JobDisplay, OutputCannotSteerTheTerminal) {
  const std::string shown =
      Show({Output(0, "stdout", "50%\\r\\u001b[2Jdone")}, {.is_terminal = true, .width = 80});
  EXPECT_EQ(shown, "[0] done\n");
}

}  // namespace
}  // namespace tutti::client
