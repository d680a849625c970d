// Covers: next_step.cc, job_placement.cc.
#include "platform/service/attempt/gang.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "platform/service/attempt/next_step.h"
#include "platform/service/diagnosis/faulty_node.h"

namespace tutti::service {
namespace {

using store::JobState;

class GangTest : public ::testing::Test {
 protected:
  static Placement TwoByTwo() {
    return {.allocation = "j.1",
            .nodes = {{.name = "n1", .first_rank = 0, .process_count = 2},
                      {.name = "n2", .first_rank = 2, .process_count = 2}}};
  }
  // The node says it, which is heard at once by a clock like its own.
  void Say(int node, absl::string_view line) {
    const auto event = nlohmann::json::parse(line);
    SayAt(absl::Seconds(event.value("time", 0.0)), node, line);
  }
  void SayAt(absl::Duration heard, int node, absl::string_view line) {
    ASSERT_TRUE(gang_.Check(node, line).ok()) << gang_.Check(node, line);
    gang_.Apply(node, line, heard);
  }
  std::optional<Step> Next(JobState state, Cause cause = Cause::kNone) const {
    return NextStep({.state = state, .cause = cause, .world_size = 4, .node_count = 2}, gang_,
                    absl::Seconds(100));
  }

  Gang gang_{TwoByTwo()};
};

TEST_F(GangTest, SaysWhatItsNodesAreStillPuttingIntoStores) {
  const auto next = [&](Cause cause, const std::string& reason) {
    return NextStep({.state = JobState::kFinalizing,
                     .cause = cause,
                     .world_size = 4,
                     .node_count = 2,
                     .reason = reason},
                    gang_, absl::Seconds(100));
  };
  EXPECT_FALSE(next(Cause::kEnded, "collecting").has_value());
  Say(1, R"({"kind":"storing","reason":"the store is away"})");
  const auto step = next(Cause::kEnded, "collecting");
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->state, JobState::kFinalizing);
  EXPECT_EQ(step->reason, "the store is away");
  EXPECT_EQ(step->cause, Cause::kEnded);
  EXPECT_FALSE(next(Cause::kEnded, step->reason).has_value()) << "it is told once";
  EXPECT_FALSE(next(Cause::kCanceled, "cancel was asked for").has_value()) << "which is why";
  Say(0, R"({"kind":"storing","note":"output \"m\" is not there"})");
  EXPECT_EQ(gang_.end_notes().count("output \"m\" is not there"), 1u);
  Say(1, R"({"kind":"finished","ok":true})");
  EXPECT_EQ(gang_.storing(), "");
}

TEST_F(GangTest, SaysOfEachRankHowItStands) {
  using enum RankState::Kind;
  const auto kinds = [&](bool is_over) {
    std::vector<RankState::Kind> all;
    for (const RankState& rank : gang_.Ranks(is_over)) all.push_back(rank.kind);
    return all;
  };
  EXPECT_EQ(kinds(false), std::vector(4, kNotStarted));
  Say(0, R"({"kind":"started","rank":0,"pid":7,"time":10})");
  Say(0, R"({"kind":"started","rank":1,"pid":8,"time":11})");
  Say(1, R"({"kind":"started","rank":2,"pid":9,"time":12})");
  Say(0, R"({"kind":"exited","rank":1,"code":3,"time":20})");
  const std::vector<RankState> ranks = gang_.Ranks(false);
  EXPECT_EQ(kinds(false), (std::vector{kRunning, kEnded, kRunning, kNotStarted}));
  EXPECT_EQ(ranks[0].since, absl::FromUnixSeconds(10));
  EXPECT_EQ(ranks[1].since, absl::FromUnixSeconds(20));
  EXPECT_EQ(ranks[1].code, 3);
  EXPECT_EQ(ranks[2].node, "n2");
  EXPECT_EQ(ranks[3].since, std::nullopt);

  gang_.NoteSilence(1, "it is silent", absl::FromUnixSeconds(30));
  EXPECT_EQ(kinds(false), (std::vector{kRunning, kEnded, kUnknown, kNotStarted}));
  EXPECT_EQ(gang_.Ranks(false)[2].since, std::nullopt);
  EXPECT_EQ(kinds(true), (std::vector{kUnknown, kEnded, kUnknown, kNotStarted}));
  Say(1, R"({"kind":"exited","rank":2,"code":0,"signal":9,"time":25})");
  EXPECT_EQ(gang_.Ranks(false)[2].kind, kEnded) << "it is told after all";
  EXPECT_EQ(gang_.Ranks(false)[2].signal, 9);
}

TEST_F(GangTest, SaysWhatHoldsItsNodesUpAsLongAsItDoes) {
  Say(0, R"({"kind":"held","note":"the disk of node n1 is full"})");
  Say(1, R"({"kind":"held","note":"the disk of node n2 is full"})");
  EXPECT_EQ(gang_.held(), "the disk of node n1 is full; the disk of node n2 is full");
  Say(0, R"({"kind":"held","note":""})");
  EXPECT_EQ(gang_.held(), "the disk of node n2 is full");
  Say(1, R"({"kind":"finished","ok":true})");
  EXPECT_EQ(gang_.held(), "");
}

TEST(Gang, OfManyNodesThatStoreOrWaitAFewAreNamed) {
  Placement placement{.allocation = "j.1"};
  for (int i = 0; i < 500; ++i) {
    placement.nodes.push_back({.name = absl::StrCat("n", i), .first_rank = i, .process_count = 1});
  }
  Gang gang(placement);
  for (int i = 0; i < 500; ++i) {
    const auto say = [&](const char* what) {
      const nlohmann::json event = {{"kind", "storing"},
                                    {what, absl::StrCat("node ", i, std::string(5000, 'x'))}};
      gang.Apply(i, event.dump(), absl::ZeroDuration());
    };
    say("note");
    say("reason");
    const nlohmann::json held = {{"kind", "held"},
                                 {"note", absl::StrCat("node ", i, std::string(5000, 'x'))}};
    gang.Apply(i, held.dump(), absl::ZeroDuration());
  }
  EXPECT_LT(gang.held().size(), 4000u);
  EXPECT_NE(gang.held().find("and 497 more nodes likewise"), std::string::npos);
  EXPECT_LT(gang.storing().size(), 4000u);
  EXPECT_NE(gang.storing().find("and 497 more nodes likewise"), std::string::npos);
  size_t bytes = 0;
  for (const std::string& note : gang.end_notes()) bytes += note.size();
  EXPECT_LT(bytes, 4000u);
  EXPECT_EQ(gang.end_notes().count("497 more nodes have not stored all of their outputs"), 1u);
}

TEST_F(GangTest, TakesOneStepAtATimeHoweverManyReportsCame) {
  EXPECT_FALSE(Next(JobState::kProvisioning).has_value());
  for (int node = 0; node < 2; ++node) {
    Say(node, R"({"kind":"preparing","time":1})");
    Say(node, R"({"kind":"prepared","time":2})");
    Say(node, node == 0 ? R"({"kind":"started","rank":0,"time":3})"
                        : R"({"kind":"started","rank":2,"time":3})");
  }
  EXPECT_EQ(Next(JobState::kProvisioning)->state, JobState::kPreparing);
  EXPECT_EQ(Next(JobState::kPreparing)->state, JobState::kStarting);
  EXPECT_FALSE(Next(JobState::kStarting).has_value());
  Say(0, R"({"kind":"exited","rank":1,"time":4})");  // an exit without a start is both
  Say(1, R"({"kind":"started","rank":3,"time":4})");
  EXPECT_EQ(Next(JobState::kStarting)->state, JobState::kRunning);
  EXPECT_FALSE(Next(JobState::kRunning).has_value());
  Say(0, R"({"kind":"exited","rank":0,"time":5})");
  Say(1, R"({"kind":"exited","rank":2,"time":5})");
  Say(1, R"({"kind":"exited","rank":3,"time":5})");
  EXPECT_EQ(Next(JobState::kRunning)->cause, Cause::kEnded);
  EXPECT_FALSE(Next(JobState::kFinalizing, Cause::kEnded).has_value());
  Say(0, R"({"kind":"finished","ok":true,"time":6})");
  Say(1, R"({"kind":"finished","ok":true,"time":6})");
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kEnded)->state, JobState::kCompleted);
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kCanceled)->state, JobState::kCanceled);
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kTimedOut)->state, JobState::kFailed);
}

TEST_F(GangTest, KnowsWhetherAnythingHasEnded) {
  for (const int node : {0, 1}) {
    Say(node, R"({"kind":"preparing","time":1})");
    Say(node, R"({"kind":"prepared","time":2})");
    Say(node, absl::StrCat(R"({"kind":"started","time":3,"rank":)", 2 * node, "}"));
    Say(node, absl::StrCat(R"({"kind":"started","time":3,"rank":)", 2 * node + 1, "}"));
  }
  EXPECT_FALSE(gang_.AnyEnd());
  for (const std::string event :
       {R"({"kind":"exited","rank":2,"time":4})", R"({"kind":"mpi_failure","rank":2,"error":"e"})",
        R"({"kind":"unlaunched"})", R"({"kind":"lost","time":4})",
        R"({"kind":"finished","ok":true,"time":4})",
        R"({"kind":"finished","ok":false,"time":4})"}) {
    gang_ = Gang(TwoByTwo());
    Say(1, event);
    EXPECT_TRUE(gang_.AnyEnd()) << event;
  }
  gang_ = Gang(TwoByTwo());
  gang_.NoteSilence(1, "it has not reported", absl::UnixEpoch());
  EXPECT_TRUE(gang_.AnyEnd());
  gang_ = Gang(TwoByTwo());
  gang_.GiveUp(1, "nothing more will come", absl::UnixEpoch());
  EXPECT_TRUE(gang_.AnyEnd());
}

TEST_F(GangTest, KnowsWhichLaunchersPromiseSignsOfLife) {
  Say(0, R"({"kind":"preparing","time":1,"beat":60})");
  Say(1, R"({"kind":"preparing","time":1})");
  EXPECT_EQ(gang_.beat(0), absl::Minutes(1));
  EXPECT_EQ(gang_.beat(1), absl::ZeroDuration());
  for (const char* wrong : {"0", "-1", "1e9", "\"soon\"", "null"}) {
    Say(1, absl::StrCat(R"({"kind":"preparing","time":1,"beat":)", wrong, "}"));
    EXPECT_EQ(gang_.beat(1), absl::ZeroDuration()) << wrong;
  }
}

TEST_F(GangTest, OfOneThatFellSilentItsDeathTellsNoMoreUnlessItIsExplained) {
  gang_.NoteSilence(1, "not heard of", absl::UnixEpoch());
  Say(1, R"({"kind":"lost","time":9,"reason":"the launcher of node n2 died","explained":false})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "node n2: not heard of");
  Say(1, R"({"kind":"lost","time":9,"reason":"it could not go on: bad_alloc","explained":true})");
  const Diagnosis explained = Diagnose(gang_.End());
  EXPECT_EQ(explained.line, "launcher on node n2 died (it could not go on: bad_alloc)");
  EXPECT_TRUE(explained.lost_node);
}

TEST_F(GangTest, TellsOnceWhatTheNodesHaveToSayOfTheirPreparation) {
  Say(0, R"({"kind":"prepared","time":2,"note":"Python 3.11 is taken"})");
  Say(1, R"({"kind":"prepared","time":2,"note":"Python 3.11 is taken"})");
  EXPECT_EQ(Next(JobState::kPreparing)->reason,
            "every node is prepared; starting 4 processes; note: Python 3.11 is taken");
}

TEST_F(GangTest, KeepsWhatALauncherFoundWrongWithItsNode) {
  Say(0, R"({"kind":"prepared","time":2})");
  Say(0, R"({"kind":"finalizing","time":3,"ill":"gpu: GPU 0 is gone"})");
  Say(1,
      R"({"kind":"finished","time":4,"ok":false,"reason":"it is ill: disk: full","ill":"disk: full"})");
  const GangEnd end = gang_.End();
  const auto of = [&](const std::string& name) {
    return *std::find_if(end.nodes.begin(), end.nodes.end(),
                         [&](const NodeEnd& node) { return node.node == name; });
  };
  EXPECT_EQ(of("n1").ill, "gpu: GPU 0 is gone");
  EXPECT_FALSE(of("n1").refused);
  EXPECT_EQ(of("n2").ill, "disk: full");
  EXPECT_TRUE(of("n2").refused);
}

TEST_F(GangTest, AFullDiskThatAllNodesShareIsNoFaultOfOne) {
  Say(1,
      R"({"kind":"finished","time":4,"ok":false,"reason":"the disk that all nodes share is full: )"
      R"(write /shared/x: No space left on device","shared_disk_full":true})");
  Say(0, R"({"kind":"finished","time":5,"ok":false,"reason":"told to end","told":true})");
  const GangEnd end = gang_.End();
  EXPECT_TRUE(NodesToAvoid(end).empty());
  EXPECT_TRUE(NodeFaultsOf(end).empty());
  const Diagnosis diagnosis = Diagnose(end);
  EXPECT_EQ(
      diagnosis.line,
      "node n2: the disk that all nodes share is full: write /shared/x: No space left on device");
  EXPECT_TRUE(diagnosis.lost_node);
  EXPECT_TRUE(diagnosis.ran_nothing);
}

TEST_F(GangTest, KnowsOfASharedDiskThatItIsTheJobsOwnFilesThatFilledIt) {
  Say(1, R"({"kind":"finished","time":4,"ok":false,"reason":"full","shared_disk_full":true})");
  Say(0, R"({"kind":"finished","time":5,"ok":false,"reason":"full","shared_disk_full":true})");
  EXPECT_TRUE(Diagnose(gang_.End()).disk_full);
  EXPECT_FALSE(Diagnose(gang_.End()).filled_by_job);
  GangEnd end = gang_.End();
  end.nodes[1].filled_by_job = true;
  EXPECT_TRUE(Diagnose(end).filled_by_job) << "of whichever node it is told";
}

TEST_F(GangTest, ASharedDiskThatFillsBeforeAnyRankHasBegunCostsNothing) {
  const char* const full =
      R"({"kind":"finished","time":4,"ok":false,"reason":"the disk that all nodes share is full: )"
      R"(link /shared/x: No space left on device","shared_disk_full":true})";
  Say(1, R"({"kind":"prepared","time":2})");
  Say(1, full);
  EXPECT_TRUE(Diagnose(gang_.End()).ran_nothing);
  Say(0, R"({"kind":"prepared","time":2})");
  Say(0, R"({"kind":"started","rank":0,"time":3})");
  Say(0, full);
  const GangEnd end = gang_.End();
  const auto began = [](const NodeEnd& node) { return node.node == "n1"; };
  EXPECT_FALSE(std::find_if(end.nodes.begin(), end.nodes.end(), began)->refused)
      << "a rank of its own has begun";
}

TEST_F(GangTest, TellsAtTheEndWhatTheNodesHaveLeftOut) {
  for (const int node : {0, 1}) {
    for (const int rank : {2 * node, 2 * node + 1}) {
      Say(node, absl::StrCat(R"({"kind":"exited","rank":)", rank, R"(,"time":4})"));
    }
    Say(node, R"json({"kind":"finalizing","time":5,"left_out":["outputs/pipe (a pipe)"],)json"
              R"("note":"of a launcher of before"})");
    Say(node, R"({"kind":"finished","ok":true,"time":6})");
  }
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kEnded)->reason,
            "all 4 processes ended with exit code 0; note: left out of the results: outputs/pipe "
            "(a pipe); of a launcher of before");
}

TEST_F(GangTest, TellsAtEveryEndWhatWasNotKept) {
  for (const int node : {0, 1}) {
    for (const int rank : {2 * node, 2 * node + 1}) {
      Say(node, absl::StrCat(R"({"kind":"exited","rank":)", rank, R"(,"time":4})"));
    }
    Say(node, R"({"kind":"finalizing","time":5,"kept_files":1,"unkept_more":false,)"
              R"("unkept":[{"path":"checkpoints","bytes":60000000}]})");
    Say(node, R"({"kind":"finished","ok":true,"time":6})");
  }
  const std::string note = "; note: not kept: 120 MB in ./checkpoints; write to ./outputs";
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kEnded)->reason,
            "all 4 processes ended with exit code 0" + note);
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kCanceled)->reason, "canceled" + note);
}

TEST_F(GangTest, TellsOfAWriteToWhatIsReadOnlyAlsoOfAJobThatEndedWell) {
  for (const int node : {0, 1}) {
    for (const int rank : {2 * node, 2 * node + 1}) {
      Say(node, absl::StrCat(R"({"kind":"exited","time":4,"read_only":"OSError: [Errno 30] )"
                             R"(Read-only file system: '/data/m'","rank":)",
                             rank, "}"));
    }
    Say(node, R"({"kind":"finalizing","time":5,"kept_files":1})");
    Say(node, R"({"kind":"finished","ok":true,"time":6})");
  }
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kEnded)->reason,
            "all 4 processes ended with exit code 0; note: rank 0 printed: OSError: [Errno 30] "
            "Read-only file system: '/data/m' (its folder is mounted read-only, as inputs and "
            "volumes with :ro are: write "
            "to ./outputs or ${{outputs.NAME}})");
}

TEST_F(GangTest, TellsWhatTheClusterDidNotBegin) {
  Say(1, R"({"kind":"unlaunched","time":4})");
  Say(1, R"({"kind":"finished","ok":false,"reason":"srun has ended","time":5})");
  const GangEnd end = gang_.End();
  EXPECT_TRUE(end.nodes.back().unlaunched);
  EXPECT_FALSE(end.nodes.back().lost);
  EXPECT_EQ(end.nodes.back().reason, "srun has ended");
  EXPECT_FALSE(end.nodes.front().unlaunched);
  EXPECT_FALSE(end.nodes.back().told);
  Say(0, R"({"kind":"finished","ok":false,"reason":"it was cancelled","told":true,"time":6})");
  EXPECT_TRUE(gang_.End().nodes.back().told);
}

TEST_F(GangTest, WaitsForTheSlowestNode) {
  Say(0, R"({"kind":"prepared","time":2})");
  EXPECT_FALSE(gang_.AllPrepared());
  EXPECT_TRUE(gang_.AnyPreparing());
  Say(1, R"({"kind":"prepared","time":2})");
  EXPECT_TRUE(gang_.AllPrepared());
}

TEST_F(GangTest, FailsInAnyStateWhenANodeFails) {
  Say(1, R"({"kind":"finished","ok":false,"reason":"input data: no such file","time":2})");
  for (const JobState state :
       {JobState::kProvisioning, JobState::kPreparing, JobState::kStarting, JobState::kRunning}) {
    const auto step = Next(state);
    ASSERT_TRUE(step.has_value());
    EXPECT_EQ(step->state, JobState::kFinalizing);
    EXPECT_EQ(step->cause, Cause::kFailure);
    EXPECT_EQ(step->reason, "node n2: input data: no such file; ending the other processes");
  }
}

TEST_F(GangTest, BlamesTheFirstNodeThatFailedNotTheOneThatWasStoppedForIt) {
  Say(1, R"({"kind":"finished","ok":false,"reason":"no space left","time":2})");
  Say(0, R"({"kind":"finished","ok":false,"reason":"stopped before its start","time":3})");
  EXPECT_EQ(Next(JobState::kFinalizing, Cause::kFailure)->reason, "node n2: no space left");
}

TEST_F(GangTest, CountsWhatComesAfterTheEndAndBelievesNoneOfIt) {
  Say(0, R"({"kind":"exited","rank":0,"time":1})");
  Say(0, R"({"kind":"exited","rank":0,"signal":9,"time":2})");
  Say(0, R"({"kind":"finished","ok":true,"time":3})");
  Say(0, R"({"kind":"lost","reason":"x","time":4})");
  Say(0, R"({"kind":"unheard of","time":4})");
  EXPECT_EQ(gang_.count(0), 5);
  EXPECT_FALSE(Diagnose(gang_.End()).failed());
}

TEST_F(GangTest, TakesADeathForALossOnlyWhenTheSecondLauncherSaysSo) {
  gang_.NoteDeath(0, absl::FromUnixSeconds(5));
  EXPECT_FALSE(Diagnose(gang_.End()).failed());
  Say(0, R"({"kind":"lost","reason":"killed","time":9})");
  EXPECT_EQ(gang_.End().nodes.back().time, absl::FromUnixSeconds(5));
  EXPECT_EQ(Diagnose(gang_.End()).line, "launcher on node n1 died (killed)");
}

TEST_F(GangTest, ALauncherThatDiedWithoutAWordYieldsToOneThatSaidWhy) {
  gang_.NoteDeath(0, absl::FromUnixSeconds(5));
  gang_.NoteDeath(1, absl::FromUnixSeconds(5));
  Say(1, R"({"kind":"lost","reason":"out of threads","explained":true,"time":9})");
  gang_.GiveUp(0, "what it had not yet sent is lost", absl::FromUnixSeconds(8));
  EXPECT_EQ(Diagnose(gang_.End()).line, "launcher on node n2 died (out of threads)");
}

TEST_F(GangTest, DoesNotSayTwiceThatALauncherDied) {
  Say(0, R"({"kind":"lost","reason":"the launcher of node n1 died","explained":false,"time":9})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "launcher on node n1 died");
}

TEST_F(GangTest, EndsAJobThatIsOverdue) {
  const JobNow now{.state = JobState::kRunning, .overdue = absl::Seconds(50)};
  EXPECT_FALSE(NextStep(now, gang_, absl::Seconds(50)).has_value());
  EXPECT_EQ(NextStep(now, gang_, absl::Seconds(51))->cause, Cause::kTimedOut);
}

TEST_F(GangTest, WaitsAMomentForTheRankThatTheOthersLost) {
  const auto next = [&](int second) {
    return NextStep({.state = JobState::kRunning, .world_size = 4, .node_count = 2}, gang_,
                    absl::Seconds(second));
  };
  Say(0,
      R"({"kind":"exited","rank":0,"code":1,"last_error":"Connection closed by peer","time":10})");
  Say(0, R"({"kind":"exited","rank":1,"code":1,"last_error":"Broken pipe","time":10.5})");
  EXPECT_FALSE(next(11).has_value());
  EXPECT_EQ(next(12)->cause, Cause::kFailure) << "it has had its time";
  Say(1, R"({"kind":"exited","rank":2,"code":1,"last_error":"KeyError: 'x'","time":10.9})");
  const auto step = next(11);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->reason,
            "rank 2 on n2 failed with exit code 1: KeyError: 'x'; ending the other processes");
}

TEST_F(GangTest, WaitsThatMomentWhateverTheClockOfANodeSays) {
  const auto next = [&](int second) {
    return NextStep({.state = JobState::kRunning, .world_size = 4, .node_count = 2}, gang_,
                    absl::Seconds(second));
  };
  SayAt(absl::Seconds(10), 0,
        R"({"kind":"exited","rank":0,"code":1,"last_error":"Broken pipe","time":3610})");
  EXPECT_FALSE(next(11).has_value());
  EXPECT_EQ(next(12)->cause, Cause::kFailure);
}

TEST_F(GangTest, WaitsForNoOtherCauseWhenAllHaveEndedOrOneLeftEarly) {
  Say(0, R"({"kind":"exited","rank":0,"code":1,"last_error":"Broken pipe","time":10})");
  const JobNow now{.state = JobState::kRunning, .world_size = 4, .node_count = 2};
  EXPECT_FALSE(NextStep(now, gang_, absl::Seconds(10)).has_value());
  Say(0, R"({"kind":"exited","rank":1,"time":9})");
  EXPECT_EQ(NextStep(now, gang_, absl::Seconds(10))->cause, Cause::kFailure);
}

TEST_F(GangTest, TakesAsARanksWordsWhatMpirunTellsOfIt) {
  Say(1, R"({"kind":"exited","rank":2,"code":6,"last_error":"epoch 3","time":10})");
  Say(1, R"({"kind":"exited","rank":3,"code":7,"last_error":"no label","time":10})");
  Say(0, R"({"kind":"exited","rank":1,"code":7,"time":10})");
  Say(0, R"({"kind":"mpi_failure","rank":2,"error":"MPI_ERR_RANK","abort":false,"time":11})");
  Say(0, R"({"kind":"mpi_failure","rank":3,"error":"MPI_ABORT","abort":true,"time":11})");
  Say(0, R"({"kind":"mpi_failure","rank":1,"error":"MPI_ABORT","abort":true,"time":11})");
  std::map<int, std::string> errors;
  for (const RankExit& exit : gang_.End().exits) errors[exit.rank] = exit.last_error;
  EXPECT_EQ(errors,
            (std::map<int, std::string>{{1, "MPI_ABORT"}, {2, "MPI_ERR_RANK"}, {3, "no label"}}));
}

TEST_F(GangTest, WhomMpirunEndedForOneThatLeftHasNotFailedByItself) {
  Say(1, R"({"kind":"exited","rank":2,"signal":15,"time":10})");
  Say(0, R"({"kind":"exited","rank":0,"code":1,"last_error":"no","time":10})");
  EXPECT_FALSE(gang_.End().exits[0].stopped);
  Say(0, R"({"kind":"mpi_failure","rank":1,"error":"left","left":true,"time":11})");
  for (const RankExit& exit : gang_.End().exits) EXPECT_EQ(exit.stopped, exit.signal == 15);
  ASSERT_TRUE(gang_.End().left);
  EXPECT_EQ(gang_.End().left->rank, 1);
  EXPECT_EQ(gang_.End().left->node, "n1");
}

TEST_F(GangTest, NamesTheNodeOfARankThatLeftAndNotOfWhoTellsOfIt) {
  Say(1, R"({"kind":"exited","rank":2,"code":0,"time":8})");
  Say(0, R"({"kind":"mpi_failure","rank":2,"error":"left MPI","left":true,"time":9})");
  Say(0, R"({"kind":"exited","rank":0,"signal":15,"stopped":true,"time":10})");
  Say(0, R"({"kind":"finished","ok":false,"reason":"rank 2 left MPI","time":11})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "rank 2 on n2 left MPI");
}

TEST_F(GangTest, WhatALauncherTellsOfAnotherNodesRankIsOfThatNode) {
  Say(0, R"({"kind":"finished","ok":false,"reason":"left MPI","rank":2,"time":11})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "rank 2 on n2 left MPI");
}

TEST_F(GangTest, KnowsTheTimeLimitByItsFieldOrFromAnEarlierLauncherByItsWords) {
  Say(0, R"({"kind":"finished","ok":false,"reason":"over","timed_out":true,"time":11})");
  Say(1, R"({"kind":"finished","ok":false,"reason":"wall time limit of 60 s reached","time":11})");
  EXPECT_TRUE(gang_.End().nodes.at(0).timed_out);
  EXPECT_TRUE(gang_.End().nodes.at(1).timed_out);
}

TEST_F(GangTest, DoesNotTakeAnotherTimeLimitForTheJobs) {
  Say(0, R"({"kind":"finished","ok":false,"reason":"an input took longer than its time limit",
             "timed_out":false,"time":11})");
  EXPECT_FALSE(gang_.End().nodes.at(0).timed_out);
}

TEST_F(GangTest, OfARankThatWaitedToBeEndedAfterItsAbortItsWordsAreTold) {
  Say(0, R"({"kind":"mpi_failure","rank":2,"error":"aborted","abort":true,"left":true,"time":9})");
  Say(1, R"({"kind":"exited","rank":2,"signal":15,"stopped":true,"last_error":"no x","time":9})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "rank 2 on n2 aborted: no x");
}

TEST_F(GangTest, NamesARankThatWasKilledBeforeItsLauncherKnewIt) {
  Say(0, R"({"kind":"exited","rank":0,"signal":15,"stopped":true,"time":10})");
  Say(0, R"({"kind":"mpi_failure","rank":2,"error":"was killed","left":true,"time":10})");
  Say(0, R"({"kind":"finished","ok":true,"time":11})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "rank 2 on n2 was killed");
}

TEST_F(GangTest, OfARankThatLeftAndFailedItsOwnWordsCount) {
  Say(1, R"({"kind":"exited","rank":2,"code":1,"last_error":"ValueError: x","time":8})");
  Say(0, R"({"kind":"mpi_failure","rank":2,"error":"left MPI","left":true,"time":9})");
  Say(0, R"({"kind":"exited","rank":0,"signal":15,"stopped":true,"time":10})");
  Say(0, R"({"kind":"finished","ok":false,"reason":"rank 2 left MPI","time":11})");
  EXPECT_EQ(Diagnose(gang_.End()).line, "rank 2 on n2 failed with exit code 1: ValueError: x");
}

TEST_F(GangTest, WaitsForTheVerdictOfAClusterThatHasToldItsLaunchersToEnd) {
  JobNow now{.state = JobState::kFinalizing,
             .cause = Cause::kFailure,
             .world_size = 4,
             .node_count = 2,
             .verdict_may_come = true};
  const auto next = [&] { return NextStep(now, gang_, absl::Seconds(100)); };
  Say(0, R"({"kind":"exited","rank":0,"signal":15,"stopped":true,"time":10})");
  Say(1, R"({"kind":"exited","rank":2,"signal":15,"time":10})");
  Say(0, R"({"kind":"finished","ok":true,"time":11})");
  Say(1, R"({"kind":"finished","ok":false,"reason":"mpirun ended","time":11})");
  EXPECT_FALSE(next().has_value());
  now.verdict = "a node of it failed";
  now.lost = true;
  now.verdict_may_come = false;
  EXPECT_EQ(next()->reason, "a node of it failed");
  EXPECT_TRUE(next()->lost_node);
  now.verdict.clear();  // it has none
  now.lost = false;
  EXPECT_EQ(next()->state, JobState::kFailed);
  EXPECT_FALSE(next()->lost_node);
}

TEST_F(GangTest, WaitsForNoVerdictOnARankThatFailedByItself) {
  Say(0, R"({"kind":"exited","rank":0,"code":3,"time":10})");
  Say(1, R"({"kind":"exited","rank":2,"signal":15,"stopped":true,"time":11})");
  for (const int node : {0, 1}) Say(node, R"({"kind":"finished","ok":true,"time":12})");
  const JobNow now{.state = JobState::kFinalizing,
                   .cause = Cause::kFailure,
                   .world_size = 4,
                   .node_count = 2,
                   .verdict_may_come = true};
  EXPECT_EQ(NextStep(now, gang_, absl::Seconds(100))->state, JobState::kFailed);
}

class ServedGangTest : public GangTest {
 protected:
  // Ranks 0 to 2 are workers, rank 3 is a parameter server.
  std::optional<Step> NextAt(int second, JobState state = JobState::kRunning,
                             Cause cause = Cause::kNone) const {
    return NextStep({.state = state,
                     .cause = cause,
                     .world_size = 4,
                     .servers = 1,
                     .server_words = spec::DriverOf({.type = "tensorflow"}).server_words,
                     .node_count = 2},
                    gang_, absl::Seconds(second));
  }
};

TEST_F(ServedGangTest, EndsParameterServersOnceTheChiefAndTheWorkersHaveEnded) {
  Say(0, R"({"kind":"exited","rank":1,"time":9})");
  Say(1, R"({"kind":"exited","rank":2,"time":9})");
  EXPECT_FALSE(NextAt(10).has_value());
  Say(0, R"({"kind":"exited","rank":0,"time":10})");
  EXPECT_EQ(NextAt(10)->cause, Cause::kServed);
  EXPECT_TRUE(MustStop(Cause::kServed));
  Say(1, R"({"kind":"exited","rank":3,"signal":15,"stopped":true,"time":11})");
  for (const int node : {0, 1}) Say(node, R"({"kind":"finished","ok":true,"time":12})");
  EXPECT_EQ(NextAt(12, JobState::kFinalizing, Cause::kServed)->state, JobState::kCompleted);
}

TEST_F(ServedGangTest, GivesWorkersAMomentAfterTheChiefAndIgnoresHowTheyEnd) {
  Say(0, R"({"kind":"exited","rank":0,"time":10})");
  EXPECT_FALSE(NextAt(12).has_value());
  Say(0, R"({"kind":"exited","rank":1,"code":1,"last_error":"UnavailableError","time":13})");
  EXPECT_FALSE(NextAt(14).has_value());
  EXPECT_EQ(NextAt(16)->cause, Cause::kServed);
}

TEST_F(ServedGangTest, GivesWorkersThatMomentWhateverTheClockOfANodeSays) {
  SayAt(absl::Seconds(10), 0, R"({"kind":"exited","rank":0,"time":3610})");
  EXPECT_FALSE(NextAt(14).has_value());
  EXPECT_EQ(NextAt(16)->cause, Cause::kServed);
}

TEST_F(ServedGangTest, FailsWhenAnyOfThemFailsBeforeTheChiefHasEnded) {
  Say(1, R"({"kind":"exited","rank":3,"code":1,"last_error":"boom","time":9})");
  EXPECT_EQ(NextAt(10)->cause, Cause::kFailure);
  Say(0, R"({"kind":"exited","rank":0,"time":10})");
  EXPECT_EQ(NextAt(10)->cause, Cause::kFailure);
}

// A gang of Ray's: rank 0 runs the command, and ranks 1 to 3 serve it.
class RayGangTest : public GangTest {
 protected:
  std::optional<Step> Next(JobState state = JobState::kRunning, Cause cause = Cause::kNone) const {
    return NextStep({.state = state,
                     .cause = cause,
                     .world_size = 4,
                     .servers = 3,
                     .server_words = spec::DriverOf({.type = "ray"}).server_words,
                     .node_count = 2},
                    gang_, absl::Seconds(20));
  }
};

TEST_F(RayGangTest, EndsWithItsCommandAndNotBefore) {
  EXPECT_FALSE(Next().has_value());
  Say(0, R"({"kind":"exited","rank":0,"time":10})");
  EXPECT_EQ(Next()->cause, Cause::kServed);
  EXPECT_EQ(Next()->reason, "its command has ended; ending Ray on the other nodes");
  // A worker that sees the head go.
  Say(1, R"({"kind":"exited","rank":2,"code":1,"last_error":"Ray has ended","time":11})");
  EXPECT_EQ(Next()->cause, Cause::kServed);
  for (const int node : {0, 1}) Say(node, R"({"kind":"finished","ok":true,"time":12})");
  const auto end = Next(JobState::kFinalizing, Cause::kServed);
  EXPECT_EQ(end->state, JobState::kCompleted);
  EXPECT_EQ(end->reason, "its command ended with exit code 0");
}

TEST_F(RayGangTest, FailsWithItsCommandOrWithAWorkerThatDoesNotStay) {
  Say(1, R"({"kind":"exited","rank":2,"code":127,"last_error":"no program ray","time":9})");
  EXPECT_EQ(Next()->cause, Cause::kFailure);
  EXPECT_NE(Next()->reason.find("no program ray"), std::string::npos) << Next()->reason;
}

TEST(Place, SpreadsTensorFlowsTasksEvenly) {
  spec::JobSpec spec;
  spec.distribution = {.type = "tensorflow", .worker_count = 2, .parameter_server_count = 1};
  spec.instance_count = 2;
  const std::vector<engine::Node> nodes = {{.name = "a", .address = "127.0.0.2"},
                                           {.name = "b", .address = "127.0.0.3"}};
  const Placement placement = Place(spec, "j.1", nodes, 6105);
  EXPECT_EQ(placement.nodes[0].process_count, 2);
  EXPECT_EQ(placement.nodes[1].process_count, 1);
  EXPECT_EQ(placement.nodes[1].first_rank, 2);
}

TEST(Place, ComesBackFromItsJson) {
  Placement placement{.allocation = "a-b.7",
                      .nodes = {{.name = "n\"1",
                                 .address = "127.0.0.2",
                                 .directory = "/x y",
                                 .memory_bytes = int64_t{5} << 32,
                                 .first_rank = 3,
                                 .process_count = 2}},
                      .master_port = 6105};
  const auto back = PlacementFromJson(ToJson(placement));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(placement));
  for (const char* damaged : {"", "{}", "[]", "{\"id\": 1}", "{\"id\": \"x\", \"nodes\": 1}"}) {
    EXPECT_FALSE(PlacementFromJson(damaged).ok()) << damaged;
  }
}

TEST(JobOfAllocation, IsWhatStandsBeforeTheNumber) {
  EXPECT_EQ(JobOfAllocation("hello-1a2b.17"), "hello-1a2b");
  for (const char* id : {"", "x", ".1", "x.", "x.y", "x.1y"}) EXPECT_EQ(JobOfAllocation(id), "");
}

TEST(PlacementText, IsJsonWhateverBytesAFolderIsNamedWith) {
  const Placement placement = {.allocation = "j.1",
                               .nodes = {{.name = "n1", .directory = "/tmp/x\xff"}}};
  const auto read = PlacementFromJson(ToJson(placement));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->nodes.at(0).directory, "/tmp/x\xEF\xBF\xBD");
}

}  // namespace
}  // namespace tutti::service
