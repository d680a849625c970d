#include "platform/client/top/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);  // 22:13:20

NodeUsageView PlaceOfRanks(const std::string& name, double cores, double age = 1, int ranks = 0) {
  NodeUsageView node;
  node.name = name;
  node.age = age;
  node.recent = {.cpu = {cores / 2, cores},
                 .memory = {1e9, 2e9},
                 .memory_left = {5e9, 4e9},
                 .disk_read = {0, 3e6},
                 .net_send = {0, 5e6}};
  node.whole = node.recent;
  for (int rank = 0; rank < ranks; ++rank) {
    node.ranks.push_back({.rank = rank, .recent = {.cpu = {cores / ranks}, .memory = {1e9}}});
  }
  return node;
}

JobView ShownJob(const std::string& id, const std::string& state, const std::string& reason = "") {
  JobView job;
  job.id = id;
  job.state = state;
  job.reason = reason;
  job.node_count = 1;
  job.world_size = 2;
  job.created = absl::FormatTime(absl::RFC3339_full, kNow - absl::Minutes(9), absl::UTCTimeZone());
  if (state == "Running") {
    job.started =
        absl::FormatTime(absl::RFC3339_full, kNow - absl::Minutes(3), absl::UTCTimeZone());
  }
  return job;
}

NodeView ShownNode(const std::string& name, std::vector<std::string> jobs) {
  NodeView node;
  node.name = name;
  node.compute = "local";
  node.state = jobs.empty() ? "idle" : "running";
  node.cores = {0, 1, 2, 3};
  node.memory_bytes = 8'000'000'000;
  node.used.cores = jobs.empty() ? 0 : 2;
  node.jobs = std::move(jobs);
  return node;
}

LiveView AllShown() {
  LiveView all{.time = kNow};
  all.nodes.nodes = {ShownNode("n1", {"train-größe"}), ShownNode("n2", {})};
  all.jobs = {ShownJob("train-größe", "Running"),
              ShownJob("wait", "Queued", "waits for 3 nodes of 2")};
  all.usage["train-größe"] = {kNow, {.live = true, .nodes = {PlaceOfRanks("n1", 1.5)}}};
  return all;
}

LiveView OneShown(double age = 1) {
  LiveView one{.time = kNow, .open = "a"};
  one.job = ShownJob("a", "Running");
  one.usage["a"] = {
      kNow,
      {.live = true, .nodes = {PlaceOfRanks("n1", 1.5, age, 2), PlaceOfRanks("n2", 3, 1, 2)}}};
  return one;
}

Contact AnswersWell(absl::Duration ago = absl::ZeroDuration()) {
  return {.now = kNow + ago, .time_zone = absl::UTCTimeZone()};
}

std::string FrameText(const LiveView& view, FrameSize size, Look look = {},
                      const Contact& contact = AnswersWell()) {
  look.open = view.open;
  return absl::StrJoin(FrameLines(view, look, contact, size), "\n");
}

TEST(FrameTest, ShowsNodesAndJobs) {
  EXPECT_EQ(FrameText(AllShown(), {.width = 100, .height = 14}),
            "22:13:20  2 jobs: 1 queued, 1 running  2 nodes: 1 idle, 1 running\n"
            "1.50 of 8 cores busy, 2.00 GB of 16.0 GB used by jobs\n"
            "\n"
            "  NODE  STATE    GIVEN  CORES   MEMORY     LEFT       SENT  COMPUTE  JOBS\n"
            "  n1    running    2/4   1.50  2.00 GB  4.00 GB  5.00 MB/s  local    train-größe\n"
            "  n2    idle       0/4                                      local\n"
            "\n"
            "  JOB          STATE    NODES  CORES   MEMORY     LEFT   RAN    AGE  REASON\n"
            "> train-größe  Running      1   1.50  2.00 GB  4.00 GB  3:00  9 min\n"
            "  wait         Queued       1                                 9 min  waits for 3 "
            "nodes of 2\n"
            "\n"
            "\n"
            "\n"
            "s order: state  q quit  ↑↓ move  Enter ranks  ~ old, or not all");
}

TEST(FrameTest, ShowsHowManyGpusAreBusyOfThoseThatANodeHas) {
  LiveView all = AllShown();
  all.nodes.nodes[0].gpus = {"0", "1"};
  all.nodes.nodes[0].used.gpus = 2;
  EXPECT_THAT(FrameText(all, {.width = 120, .height = 14}), Not(HasSubstr("GPU USE")));
  all.usage["train-größe"].usage.nodes[0].recent.gpu_use = {2, 1.5};
  EXPECT_THAT(FrameText(all, {.width = 120, .height = 14}),
              AllOf(HasSubstr(" used by jobs, 1.50 of 2 GPUs busy\n"),
                    HasSubstr("LEFT    GPU USE       SENT  COMPUTE"),
                    HasSubstr("4.00 GB  1.50 of 2  5.00 MB/s  local"),
                    HasSubstr("4.00 GB     1.50  3.00 MB/s")));
}

TEST(FrameTest, ShowsRanks) {
  const std::string text = FrameText(OneShown(), {.width = 120, .height = 12}, {.row = 1});
  EXPECT_THAT(text,
              AllOf(StartsWith("22:13:20  a: Running for 3:00, 1 node, 2 processes\n"),
                    HasSubstr("\n  n1 "), HasSubstr("\n>   rank 0"), HasSubstr("\n    rank 1"),
                    HasSubstr("0.75"), HasSubstr("█"), HasSubstr("Esc back")));
}

TEST(FrameTest, HasAllRowsAndNoCursorWhereNobodyChooses) {
  LiveView all = AllShown();
  for (int i = 0; i < 100; ++i) all.jobs.push_back(ShownJob(absl::StrCat("job", i), "Queued"));
  const std::string text = FrameText(all, {});
  EXPECT_THAT(text, AllOf(HasSubstr("\njob99 "), HasSubstr("\nn1 "), Not(HasSubstr("> ")),
                          Not(HasSubstr("quit")), HasSubstr("waits for 3 nodes of 2"),
                          Not(HasSubstr("\x1b"))));
}

TEST(FrameTest, FitsEveryTerminal) {
  LiveView all = AllShown(), one = OneShown();
  for (int i = 0; i < 12; ++i) {
    all.jobs.push_back(
        ShownJob(absl::StrCat("日本語の名前-with-a-long-name-", i), "Provisioning", "why not"));
    all.nodes.nodes.push_back(ShownNode(absl::StrCat("node-of-a-cluster-", i), {}));
    one.usage["a"].usage.nodes.push_back(
        PlaceOfRanks(absl::StrCat("名前名前名前名前", i), 64, 30, 8));
    one.usage["a"].usage.problems.push_back(
        "rank 3 on n1 is slower than the others: it lacks a processor");
  }
  for (LiveView* const view : {&all, &one}) {
    UsageSeries& recent = view->usage.begin()->second.usage.nodes[0].recent;
    recent.gpu_use = {1.5};
    recent.gpu_memory = {6e10};
    recent.gpu_memory_total = {16e10};
    recent.gpu_power = {700};
    recent.gpu_temperature = {61};
  }
  for (const LiveView& view : {all, one}) {
    for (const bool answers : {true, false}) {
      Contact contact = AnswersWell();
      if (!answers)
        contact.error = absl::UnavailableError("the service at https://x is not reachable");
      for (int width = 20; width <= 200; width += width < 60 ? 1 : 20) {
        for (int height = 3; height <= 60; height += height < 16 ? 1 : 7) {
          const FrameSize size = {.width = width, .height = height};
          const auto lines = FrameLines(view, {.open = view.open}, contact, size);
          ASSERT_LE(lines.size(), height) << width;
          ASSERT_GE(lines.size(), 3) << width;
          for (const std::string& line : lines) {
            ASSERT_LE(Columns(line), width) << height << ": " << line;
          }
          ASSERT_THAT(absl::StrJoin(lines, "\n"),
                      HasSubstr(view.open.empty() ? "> train-g" : "> n1"))
              << width << " x " << height;
        }
      }
    }
  }
}

TEST(FrameTest, LeavesOutColumnsInTheirOrder) {
  LiveView all = AllShown();
  all.usage["train-größe"].usage.nodes[0].recent.disk_write = {1, 1e6};
  const std::vector<std::string> order = {"READ", "AGE",    "LEFT",   "NODES",
                                          "RAN",  "REASON", "MEMORY", "CORES"};
  size_t gone = 0;
  for (int width = 140; width >= 20; --width) {
    const std::string text = FrameText(all, {.width = width, .height = 6});
    while (gone < order.size() && !absl::StrContains(text, order[gone])) ++gone;
    for (size_t i = gone; i < order.size(); ++i) {
      EXPECT_THAT(text, HasSubstr(order[i]))
          << width << " although " << (gone ? order[gone - 1] : "") << " is gone";
    }
    EXPECT_THAT(text, AllOf(HasSubstr("JOB"), HasSubstr("STATE"))) << width;
  }
  EXPECT_EQ(gone, order.size());
}

TEST(FrameTest, ScrollsToTheJobThatIsSelected) {
  LiveView all = AllShown();
  for (int i = 100; i < 200; ++i) all.jobs.push_back(ShownJob(absl::StrCat("job", i), "Queued"));
  for (const int height : {3, 6, 12, 24}) {
    for (const char* selected : {"job100", "job150", "job199"}) {
      EXPECT_THAT(FrameText(all, {.width = 80, .height = height}, {.selected = selected}),
                  HasSubstr(absl::StrCat("> ", selected)))
          << height;
    }
  }
}

TEST(FrameTest, GivesJobsTwoThirdsAndCountsNodesBeyond) {
  LiveView all = AllShown();
  for (int i = 0; i < 60; ++i) all.nodes.nodes.push_back(ShownNode(absl::StrCat("m", i), {}));
  for (int i = 0; i < 60; ++i) all.jobs.push_back(ShownJob(absl::StrCat("job", i), "Queued"));
  const std::string text = FrameText(all, {.width = 80, .height = 24});
  EXPECT_THAT(
      text, AllOf(HasSubstr("  m1 "), Not(HasSubstr("  m9 ")), HasSubstr("… and 58 nodes: 58 idle"),
                  HasSubstr("job8 "), Not(HasSubstr("job19"))));
}

TEST(FrameTest, MarksWhatIsOldAndHidesWhatIsTooOld) {
  LiveView all = AllShown();
  all.usage["train-größe"].usage.nodes[0].age = 11;
  EXPECT_THAT(FrameText(all, {.width = 100, .height = 20}),
              AllOf(HasSubstr("~1.50"), HasSubstr("~2.00 GB")));
  all.usage["train-größe"].usage.nodes[0].age = 46;
  EXPECT_THAT(FrameText(all, {.width = 100, .height = 20}), Not(HasSubstr("1.50")));
  EXPECT_THAT(FrameText(OneShown(12), {.width = 100, .height = 20}), HasSubstr("~0.75"));
  EXPECT_THAT(
      FrameText(OneShown(60), {.width = 100, .height = 20}),
      AllOf(Not(HasSubstr("0.75")), HasSubstr("n1 has told nothing for 60 s"), HasSubstr("3.00")));
}

TEST(FrameTest, SaysSinceWhenThereIsNoAnswerAndKeepsTheLast) {
  Contact contact = AnswersWell(absl::Minutes(1));
  contact.error = absl::UnavailableError("the service at https://x is not reachable");
  EXPECT_THAT(
      FrameText(AllShown(), {.width = 100, .height = 20}, {}, contact),
      AllOf(
          StartsWith(
              "last answer at 22:13:20; asking again: the service at https://x is not reachable\n"),
          HasSubstr("1.50"), HasSubstr("train-größe")));
  contact.error = absl::OkStatus();
  EXPECT_THAT(FrameText(AllShown(), {.width = 100, .height = 20}, {}, contact),
              StartsWith("last answer at 22:13:20; waiting for the next\n"));
  EXPECT_THAT(
      FrameText(AllShown(), {.width = 100, .height = 20}, {}, AnswersWell(absl::Seconds(5))),
      StartsWith("22:13:20  2 jobs"));
  EXPECT_THAT(FrameText(AllShown(), {.width = 100, .height = 20}, {}, AnswersWell(absl::Hours(30))),
              StartsWith("last answer at 2023-11-14 22:13:20"));
  EXPECT_THAT(FrameText(OneShown(), {.width = 100, .height = 20}, {}, AnswersWell(absl::Hours(1))),
              HasSubstr("a: Running"));
  EXPECT_EQ(FrameText({}, {.width = 100, .height = 20}), "asking the service …");
  EXPECT_EQ(FrameText({.open = "a"}, {.width = 100, .height = 20}), "asking the service …");
}

TEST(FrameTest, NamesCannotSteerTheTerminal) {
  LiveView all = AllShown();
  all.jobs.push_back(ShownJob("evil\x1b[2J\n\a\tname", "Queued\x1b[31m",
                              "\x1b]0;title\a\xC2\x9B"
                              "2J"));
  all.nodes.nodes.push_back(ShownNode("node\x1b[2J\r", {}));
  all.nodes.nodes.back().state = "idle\x1b[2J";
  all.nodes.warnings = {"warning\x1b[2J"};
  all.usage["train-größe"].usage.problems = {"problem\x1b[2J"};
  LiveView one = OneShown();
  one.job->reason = "reason\x1b[2J";
  one.job->state = "Running\x1b[2J";
  one.usage["a"].usage.nodes[0].name = "n\x1b[2J\t";
  one.usage["a"].usage.problems = {"problem\x1b[2J"};
  Contact contact = AnswersWell();
  contact.error = absl::UnavailableError("error\x1b[2J");
  for (const LiveView& view : {all, one}) {
    for (const Contact& each : {AnswersWell(), contact}) {
      for (const std::string& line :
           FrameLines(view, {.open = view.open}, each, {.width = 160, .height = 40})) {
        for (const char c : line)
          EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) << line;
        EXPECT_THAT(line, Not(HasSubstr("\xC2\x9B")));
      }
    }
  }
}

TEST(FrameTest, ColoursOnlyWhenAskedAndMarksTheRowThroughout) {
  EXPECT_THAT(FrameText(AllShown(), {.width = 80, .height = 24}), Not(HasSubstr("\x1b")));
  const std::string text = FrameText(AllShown(), {.width = 80, .height = 24, .colour = true});
  EXPECT_THAT(text, AllOf(HasSubstr("\x1b[7m> "), HasSubstr("\x1b[0;7m")));
}

TEST(FrameTest, SaysWhatIsMissing) {
  LiveView all = AllShown();
  all.jobs.clear();
  all.usage.clear();
  EXPECT_THAT(FrameText(all, {.width = 80, .height = 24}),
              AllOf(HasSubstr("no job runs or waits"), HasSubstr("0 jobs")));
  all.has_more_jobs = true;
  EXPECT_THAT(FrameText(all, {.width = 80, .height = 24}), HasSubstr("and more"));
  LiveView one = OneShown();
  one.usage.clear();
  EXPECT_THAT(FrameText(one, {.width = 80, .height = 24}),
              HasSubstr("its processes have not begun"));
  one.job->type = "pipeline";
  EXPECT_THAT(FrameText(one, {.width = 80, .height = 24}),
              HasSubstr("a pipeline has no ranks of its own"));
  one.job = ShownJob("a", "Completed");
  EXPECT_THAT(FrameText(one, {.width = 80, .height = 24}),
              HasSubstr("nothing is known: the job ran"));
  one = OneShown();
  one.usage["a"].usage.problems = {"p1", "p2", "p3", "p4", "p5"};
  EXPECT_THAT(FrameText(one, {.width = 80, .height = 24}),
              AllOf(HasSubstr("p2\n"), HasSubstr("… and 3 more"), Not(HasSubstr("p3"))));
  EXPECT_THAT(FrameText(one, {}), HasSubstr("p5\n"));
}

}  // namespace
}  // namespace tutti::client
