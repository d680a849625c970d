#include "platform/service/diagnosis/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <random>

namespace tutti::service {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RankExit Ended(int rank, int at, int code = 0, int signal = 0, std::string last_error = "") {
  return {.rank = rank,
          .node = rank == 0 ? "n1" : "n2",
          .time = absl::FromUnixSeconds(at),
          .code = code,
          .signal = signal,
          .last_error = std::move(last_error)};
}

RankExit Stopped(int rank, int at) {
  RankExit exit = Ended(rank, at, 0, 15);
  exit.stopped = true;
  return exit;
}

GangEnd GangOf(std::vector<RankExit> exits) {
  return {.exits = std::move(exits), .nodes = {{.node = "n1"}, {.node = "n2"}}};
}

TEST(Diagnosis, IsEmptyWhenEveryRankEndedWell) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 1), Ended(1, 2)}));
  EXPECT_FALSE(d.failed());
  EXPECT_TRUE(d.failures.empty());
}

TEST(Diagnosis, ANodeThatRefusedForItsIllnessIsTheCauseAndNothingRan) {
  GangEnd end = GangOf({});
  end.nodes[0].ok = end.nodes[1].ok = false;
  end.nodes[0].reason = "its connection to the launcher of node n2 was lost";
  end.nodes[1] = {.node = "n2",
                  .ok = false,
                  .reason = "it is ill: disk: full",
                  .ill = "disk: full",
                  .refused = true};
  const Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line, "node n2: it is ill: disk: full");
  EXPECT_TRUE(d.lost_node);
  EXPECT_TRUE(d.ran_nothing);
}

TEST(Diagnosis, ARankOnANodeThatIsIllCountsAsTheNodesLoss) {
  GangEnd end = GangOf({Ended(0, 1, 1), Stopped(1, 2)});
  end.nodes[0].ill = "gpu: GPU 0 had XID 79";
  Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line, "rank 0 on n1 failed with exit code 1; node n1 is ill: gpu: GPU 0 had XID 79");
  EXPECT_TRUE(d.lost_node);
  EXPECT_FALSE(d.ran_nothing);
  end.nodes[0].ill = "";
  end.nodes[1].ill = "disk: full";
  d = Diagnose(end);
  EXPECT_EQ(d.line, "rank 0 on n1 failed with exit code 1");
  EXPECT_FALSE(d.lost_node) << "it failed elsewhere";
}

TEST(Diagnosis, OfARankThatHadRaisedAndWaitedForTheOthersUntilTheTimeLimit) {
  RankExit raised = Stopped(2, 41);
  raised.error_before_stop = "ValueError: bad rank";
  raised.error_was_last = true;
  GangEnd end = GangOf({Stopped(0, 40), Stopped(1, 40), raised});
  end.timed_out = true;
  end.time_limit = absl::Seconds(40);
  end.mpi = true;
  Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line,
            "rank 2 on n2 had failed: ValueError: bad rank; it and the others waited for each "
            "other until the time limit of 40s (limits.timeout); `python -m mpi4py SCRIPT` ends "
            "all ranks at once when one fails");
  EXPECT_EQ(d.failures.front().rank, 2);
  const std::string limit = "the job reached its time limit of 40s (limits.timeout) and was ended";
  const std::string hint =
      "; a rank of mpi4py that raises or calls sys.exit waits for the others, which `python -m "
      "mpi4py SCRIPT` ends at once";
  end.exits.back().error_was_last = false;
  EXPECT_EQ(Diagnose(end).line, limit + hint);
  end.exits = {raised, raised};
  EXPECT_EQ(Diagnose(end).line, limit + hint) << "all had, and went on";
  end.exits = {raised};
  EXPECT_EQ(Diagnose(end).line, limit);
  end.exits = {Stopped(0, 40), raised};
  end.mpi = false;
  EXPECT_EQ(Diagnose(end).line, limit) << "nothing waits for others there";
}

TEST(Diagnosis, NamesRankNodeAndSignal) {
  const Diagnosis d = Diagnose(GangOf({Stopped(0, 6), Ended(1, 5, 0, 9, "epoch 3")}));
  EXPECT_EQ(d.line, "rank 1 on n2 was killed by signal 9 (SIGKILL)");
  ASSERT_EQ(d.failures.size(), 2u);
  EXPECT_EQ(d.failures[0].rank, 1);
  EXPECT_FALSE(d.failures[0].consequence);
  EXPECT_EQ(d.failures[1].rank, 0);
  EXPECT_TRUE(d.failures[1].consequence);
  EXPECT_EQ(d.failures[1].what, "was stopped by signal 15 (SIGTERM)");
}

TEST(Diagnosis, QuotesTheLastException) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 5, 1, 0, "ValueError: boom"), Stopped(1, 6)}));
  EXPECT_EQ(d.line, "rank 0 on n1 failed with exit code 1: ValueError: boom");
}

TEST(Diagnosis, PutsTheLastExceptionOnOneLine) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 5, 1, 0, "Error: a\nb\r\nc\n")}));
  EXPECT_EQ(d.line, "rank 0 on n1 failed with exit code 1: Error: a b c");
}

TEST(Diagnosis, PrefersTheCauseOverAnEarlierReportOfALostPeer) {
  // Clocks of two nodes: the consequence may carry the earlier time.
  const Diagnosis d = Diagnose(
      GangOf({Ended(0, 4, 1, 0, "UNAVAILABLE: rank 1 left the group"), Ended(1, 5, 0, 11)}));
  EXPECT_THAT(d.line, HasSubstr("rank 1 on n2 was killed by signal 11 (SIGSEGV)"));
  ASSERT_EQ(d.failures.size(), 2u);
  EXPECT_TRUE(d.failures[1].consequence);
}

TEST(Diagnosis, KeepsTwoIndependentFailuresApart) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 6, 1, 0, "KeyError: 'a'"),
                                       Ended(1, 5, 2, 0, "error: unrecognized arguments: --lr")}));
  EXPECT_EQ(d.line, "rank 1 on n2 failed with exit code 2: error: unrecognized arguments: --lr");
  ASSERT_EQ(d.failures.size(), 2u);
  EXPECT_FALSE(d.failures[1].consequence);
}

TEST(Diagnosis, CatchesARankThatLeftEarlyWithSuccess) {
  const Diagnosis d = Diagnose(
      GangOf({Ended(0, 9, 1, 0, "DistBackendError: Connection closed by peer"), Ended(1, 5)}));
  EXPECT_EQ(d.line,
            "rank 1 on n2 exited early (exit code 0) while others waited for it: rank 0 on n1 "
            "failed with exit code 1: DistBackendError: Connection closed by peer");
  ASSERT_EQ(d.failures.size(), 2u);
  EXPECT_EQ(d.failures[0].rank, 1);
  EXPECT_FALSE(d.failures[0].consequence);
  EXPECT_TRUE(d.failures[1].consequence);
}

TEST(Diagnosis, BelievesTheBlameAmongSeveralThatLeftEarly) {
  const Diagnosis d = Diagnose(GangOf(
      {Ended(0, 9, 1, 0, "rank 2 left the group"), Ended(1, 3), Ended(2, 5), Stopped(3, 10)}));
  EXPECT_THAT(d.line, HasSubstr("rank 2 on n2 exited early"));
}

TEST(Diagnosis, TakesTheFirstWhenEveryRankBlamesAnother) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 6, 1, 0, "rank 1 did not answer within 5s"),
                                       Ended(1, 7, 1, 0, "rank 0 left the group")}));
  EXPECT_EQ(d.line, "rank 0 on n1 failed with exit code 1: rank 1 did not answer within 5s");
  EXPECT_FALSE(d.failures[0].consequence);
  EXPECT_TRUE(d.failures[1].consequence);
}

TEST(Diagnosis, SaysOutOfMemoryWithTheShare) {
  RankExit exit = Ended(1, 5, 0, 9);
  exit.out_of_memory = true;
  GangEnd end = GangOf({Stopped(0, 6), exit});
  end.nodes[1].memory_bytes = int64_t{3} << 29;
  EXPECT_EQ(Diagnose(end).line,
            "rank 1 on n2 ran out of memory (the node's share is 1.5 GiB) and was killed by "
            "signal 9 (SIGKILL)");
}

TEST(Diagnosis, SaysWhatTheJobHadOfTheNodeWhereOthersHaveTheRest) {
  RankExit exit = Ended(1, 5, 0, 9);
  exit.out_of_memory = true;
  GangEnd end = GangOf({Stopped(0, 6), exit});
  end.nodes[1].memory_bytes = int64_t{1} << 29;
  end.nodes[1].is_part = true;
  EXPECT_EQ(Diagnose(end).line,
            "rank 1 on n2 ran out of memory (the job has 512 MiB of the node: raise "
            "resources.properties.tutti.memory) and was killed by signal 9 (SIGKILL)");
}

TEST(Diagnosis, SaysThatAKillWasNotForMemoryWhereThatIsKnown) {
  RankExit exit = Ended(1, 5, 0, 9);
  exit.not_for_memory = true;
  EXPECT_EQ(Diagnose(GangOf({Stopped(0, 6), exit})).line,
            "rank 1 on n2 was killed by signal 9 (SIGKILL), not for want of memory but by a "
            "program, a person or ulimit -t");
  exit.signal = 0;
  exit.code = 137;
  exit.last_error = "train.sh: line 3: 71 Killed";
  GangEnd end = GangOf({Stopped(0, 6), exit});
  EXPECT_EQ(Diagnose(end).line,
            "rank 1 on n2 failed with exit code 137, its shell's word for signal 9 (SIGKILL), not "
            "for want of memory but by a program, a person or ulimit -t: train.sh: line 3: 71 "
            "Killed");
  end.verdict = "Slurm ended it for its memory";
  EXPECT_THAT(Diagnose(end).line, Not(HasSubstr("not for want of memory")));
}

TEST(Diagnosis, OfARankThatHadEndedAndWaitedForTheOthersUntilTheTimeLimit) {
  RankExit ended = Stopped(2, 41);
  ended.python_ended = true;
  GangEnd end = GangOf({Stopped(0, 40), Stopped(1, 40), ended});
  end.timed_out = true;
  end.time_limit = absl::Seconds(40);
  end.mpi = true;
  const Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line,
            "rank 2 on n2 had come to the end of its Python program (by sys.exit, an exception or "
            "its last line) and waited for the others, as mpi4py does, until the time limit of 40s "
            "(limits.timeout); `python -m mpi4py SCRIPT` ends all ranks at once when one fails");
  EXPECT_EQ(d.failures.front().rank, 2);
  end.exits = {ended, ended};
  EXPECT_THAT(Diagnose(end).line, StartsWith("the job reached its time limit"));
}

TEST(Diagnosis, TranslatesTheShellsCodeForASignal) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 5, 139, 0, "epoch 3")}));
  EXPECT_EQ(d.line,
            "rank 0 on n1 failed with exit code 139, its shell's word for signal 11 (SIGSEGV): "
            "epoch 3 (native code failed; PYTHONFAULTHANDLER=1 in environment_variables tells "
            "where)");
}

TEST(Diagnosis, DoesNotTakeMpirunsOwnCodesForSignals) {
  EXPECT_EQ(Diagnose(GangOf({Ended(0, 5, 132, 0,
                                   "mpirun was unable to launch the specified application as it "
                                   "could not access or execute an executable: ./x")}))
                .line,
            "rank 0 on n1 failed with exit code 132: mpirun was unable to launch the specified "
            "application as it could not access or execute an executable: ./x (what is to be "
            "started is neither in the job's environment nor in its code)");
}

TEST(Diagnosis, SaysWhatAnEndWithoutWordsMeans) {
  EXPECT_EQ(Diagnose(GangOf({Ended(0, 5, 124)})).line,
            "rank 0 on n1 failed with exit code 124: this is how `timeout` ends what has used up "
            "its time");
}

TEST(Diagnosis, QuotesWhatAnAbortedProcessSaid) {
  EXPECT_EQ(Diagnose(GangOf({Ended(0, 5, 0, 6, "terminate called: std::bad_alloc")})).line,
            "rank 0 on n1 was killed by signal 6 (SIGABRT): terminate called: std::bad_alloc (the "
            "memory is full; take a smaller batch per process)");
}

TEST(Diagnosis, NamesTheTimeLimit) {
  GangEnd end = GangOf({Stopped(0, 6), Ended(1, 7, 1, 0, "Connection reset by peer")});
  end.time_limit = absl::Minutes(90);
  end.nodes[0] = {.node = "n1", .ok = false, .reason = "5400 s are over", .timed_out = true};
  const Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line, "the job reached its time limit of 1h30m (limits.timeout) and was ended");
  ASSERT_EQ(d.failures.size(), 3u);
  EXPECT_EQ(d.failures[0].rank, -1);
  EXPECT_TRUE(d.failures[1].consequence);
  EXPECT_TRUE(d.failures[2].consequence);
}

TEST(Diagnosis, NamesTheTimeLimitThatTheServiceEnforced) {
  GangEnd end = GangOf({Stopped(0, 6), Stopped(1, 6)});
  end.timed_out = true;
  end.time_limit = absl::Seconds(60);
  EXPECT_EQ(Diagnose(end).line,
            "the job reached its time limit of 1m (limits.timeout) and was ended");
}

TEST(Diagnosis, NamesTheNodeWhoseStagingFailed) {
  GangEnd end = GangOf({});
  end.nodes[1] = {
      .node = "n2", .ok = false, .reason = "input data: /data: No such file or directory"};
  EXPECT_EQ(Diagnose(end).line, "node n2: input data: /data: No such file or directory");
}

TEST(Diagnosis, WhatALauncherSaysOfARankIsSaidWithTheRanksOwnNode) {
  RankExit left = Ended(2, 3);
  left.node = "n4";
  GangEnd end = GangOf({left});
  end.nodes[0] = {.node = "n1",
                  .ok = false,
                  .reason = "left MPI without MPI_Finalize",
                  .rank = 2,
                  .rank_node = "n4"};
  const Diagnosis diagnosis = Diagnose(end);
  EXPECT_EQ(diagnosis.line, "rank 2 on n4 left MPI without MPI_Finalize");
  EXPECT_EQ(diagnosis.failures.at(0).rank, 2);
  EXPECT_EQ(diagnosis.failures.at(0).node, "n4");
  end.nodes[0] = {.node = "n1", .ok = false, .reason = "rank 2 left MPI"};
  EXPECT_EQ(Diagnose(end).line, "node n1: rank 2 left MPI") << "as an older launcher tells it";
}

TEST(Diagnosis, ARankThatAClusterEndsForAnotherNodesFailureIsNotTheCause) {
  GangEnd end = GangOf({Ended(0, 20, 0, SIGTERM)});
  end.nodes[1] = {.node = "n2",
                  .ok = false,
                  .reason = "read logs: No such file or directory",
                  .time = absl::FromUnixSeconds(19)};
  EXPECT_EQ(Diagnose(end).line, "node n2: read logs: No such file or directory");
  end.nodes[1].time = absl::FromUnixSeconds(25);
  EXPECT_EQ(Diagnose(end).line, "rank 0 on n1 was killed by signal 15 (SIGTERM)")
      << "which may be why the other failed";
  end.nodes[1].time = absl::FromUnixSeconds(19);
  end.nodes[1].told = true;
  EXPECT_EQ(Diagnose(end).line, "rank 0 on n1 was killed by signal 15 (SIGTERM)");
}

TEST(Diagnosis, NamesTheNodeOfARankThatNeverBegan) {
  GangEnd end = GangOf({Stopped(1, 6)});
  end.nodes[0] = {.node = "n1", .ok = false, .reason = "rank 0 could not be started: no /bin/sh"};
  EXPECT_EQ(Diagnose(end).line, "node n1: rank 0 could not be started: no /bin/sh");
  end.exits.push_back(Stopped(0, 6));
  EXPECT_EQ(Diagnose(end).line, "node n1: rank 0 could not be started: no /bin/sh")
      << "whom mpirun was to start has an end all the same";
}

TEST(Diagnosis, PutsALostLauncherBeforeTheRanksThatMissedIt) {
  GangEnd end = GangOf({Ended(0, 10, 1, 0, "RuntimeError: something unheard of")});
  end.nodes[1] = {.node = "n2",
                  .ok = false,
                  .reason = "killed",
                  .lost = true,
                  .time = absl::FromUnixSeconds(10) + absl::Milliseconds(200)};
  const Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line, "launcher on node n2 died (killed)");
  EXPECT_EQ(d.failures[0].node, "n2");
}

// srun kills the others, of which nothing is known then but that they are gone.
TEST(Diagnosis, PutsTheLauncherOfWhichIsKnownWhyItDiedBeforeOneThatAClusterEndedForIt) {
  GangEnd end = GangOf({});
  end.nodes[0] = {.node = "n1",
                  .ok = false,
                  .reason = "what it had not yet sent is lost",
                  .lost = true,
                  .unexplained = true,
                  .time = absl::FromUnixSeconds(10)};
  end.nodes[1] = {.node = "n2",
                  .ok = false,
                  .reason = "it could not go on: no threads",
                  .lost = true,
                  .time = absl::FromUnixSeconds(12)};
  EXPECT_EQ(Diagnose(end).line, "launcher on node n2 died (it could not go on: no threads)");
  end.nodes[1].time = absl::FromUnixSeconds(200);
  EXPECT_EQ(Diagnose(end).line, "launcher on node n1 died (what it had not yet sent is lost)");
  end.nodes[1] = {.node = "n2",  // its launcher has ended in order, with a failure
                  .ok = false,
                  .reason = "sync spool/events: No space left on device",
                  .time = absl::FromUnixSeconds(12)};
  EXPECT_EQ(Diagnose(end).line, "node n2: sync spool/events: No space left on device");
  end.nodes[1].told = true;
  EXPECT_EQ(Diagnose(end).line, "launcher on node n1 died (what it had not yet sent is lost)");
}

// The launchers of an MPI job meet before they start ranks.
TEST(Diagnosis, PutsALauncherThatDiedBeforeMpirunThatEndedForItsRanks) {
  GangEnd end = GangOf({});
  end.nodes[0] = {.node = "n1",
                  .ok = false,
                  .reason = "mpirun ended with exit code 137: a non-zero exit code.",
                  .time = absl::FromUnixSeconds(12)};
  end.nodes[1] = {.node = "n2",
                  .ok = false,
                  .reason = "what it had not yet sent is lost",
                  .lost = true,
                  .unexplained = true,
                  .time = absl::FromUnixSeconds(10)};
  const Diagnosis d = Diagnose(end);
  EXPECT_EQ(d.line, "launcher on node n2 died (what it had not yet sent is lost)");
  EXPECT_TRUE(d.lost_node);
  end.nodes[0].time = absl::FromUnixSeconds(9);
  EXPECT_EQ(Diagnose(end).line, "node n1: mpirun ended with exit code 137: a non-zero exit code.");
}

TEST(Diagnosis, PutsALauncherThatDiedBeforeANodeThatLostTheConnectionToIt) {
  GangEnd end = GangOf({});
  end.nodes[0] = {.node = "n1",
                  .ok = false,
                  .lost = true,
                  .unexplained = true,
                  .time = absl::FromUnixSeconds(11)};
  end.nodes[1] = {.node = "n2",
                  .ok = false,
                  .reason = "lost connection to the launcher of node n1 before the ranks",
                  .time = absl::FromUnixSeconds(10)};
  EXPECT_EQ(Diagnose(end).line, "launcher on node n1 died");
  EXPECT_TRUE(Diagnose(end).lost_node);
  end.nodes[0].lost = false;
  end.nodes[0].reason = "no threads";
  std::swap(end.nodes[0], end.nodes[1]);
  EXPECT_EQ(Diagnose(end).line, "node n1: no threads");
}

TEST(Diagnosis, PutsARankThatFailedLongBeforeALauncherDiedFirst) {
  GangEnd end = GangOf({Ended(0, 10, 3, 0, "OSError: full")});
  end.nodes[1] = {.node = "n2", .ok = false, .lost = true, .time = absl::FromUnixSeconds(20)};
  EXPECT_EQ(Diagnose(end).line, "rank 0 on n1 failed with exit code 3: OSError: full");
}

// srun sees first that one of its tasks, a launcher, is gone, and ends the others.
TEST(Diagnosis, PutsALostLauncherBeforeARankThatAClusterEndedForIt) {
  GangEnd end = GangOf({Ended(0, 10, 0, SIGTERM)});
  end.nodes[1] = {.node = "n2", .ok = false, .lost = true, .time = absl::FromUnixSeconds(100)};
  EXPECT_EQ(Diagnose(end).line, "launcher on node n2 died");
  end.nodes[1].time = absl::FromUnixSeconds(200);
  EXPECT_EQ(Diagnose(end).line, "rank 0 on n1 was killed by signal 15 (SIGTERM)");
}

TEST(Diagnosis, ReportsAStopWithoutAKnownCause) {
  EXPECT_EQ(Diagnose(GangOf({Stopped(0, 6), Ended(1, 7)})).line,
            "rank 0 on n1 was stopped by signal 15 (SIGTERM)");
}

TEST(Diagnosis, BelievesThatSigkillIsACauseWhateverWasSaidBefore) {
  const Diagnosis d = Diagnose(GangOf({Ended(0, 9, 1, 0, "rank 1 left the group"),
                                       Ended(1, 10, 0, 9, "warning: connection reset, retrying")}));
  EXPECT_EQ(d.line, "rank 1 on n2 was killed by signal 9 (SIGKILL)");
}

TEST(Diagnosis, WhatANodeSaysOfItselfYieldsToALostNodeOnly) {
  GangEnd end = GangOf({});
  end.nodes = {{.node = "n1", .ok = false, .reason = "an input is not there"}};
  EXPECT_TRUE(Diagnose(end).verdict_counts);
  end.verdict = "Slurm no longer knows its job 7";
  EXPECT_EQ(Diagnose(end).line, "node n1: an input is not there");
  end.verdict = "a node of it failed";
  end.lost = true;
  EXPECT_EQ(Diagnose(end).line, "a node of it failed");
  EXPECT_TRUE(Diagnose(end).lost_node);
}

TEST(Diagnosis, ANodeThatTheClusterDidNotBeginCountsAsLostUnlessARankFailed) {
  GangEnd end = GangOf({Stopped(0, 12)});
  end.nodes[1] = {.node = "n2", .ok = false, .reason = "srun has ended early", .unlaunched = true};
  EXPECT_EQ(Diagnose(end).line, "node n2: srun has ended early");
  EXPECT_TRUE(Diagnose(end).lost_node);
  end.exits = {Ended(0, 11, 3, 0, "KeyError")};
  EXPECT_EQ(Diagnose(end).line, "rank 0 on n1 failed with exit code 3: KeyError");
  EXPECT_FALSE(Diagnose(end).lost_node);
}

TEST(Diagnosis, ANodeThatTheClusterDidNotBeginYieldsToAnotherNodesFailureAndToTheClustersWord) {
  GangEnd end = GangOf({});
  end.nodes = {{.node = "n2", .ok = false, .reason = "n1 has ended", .unlaunched = true},
               {.node = "n1", .ok = false, .reason = "the disk is full"}};
  EXPECT_EQ(Diagnose(end).line, "node n1: the disk is full");
  EXPECT_FALSE(Diagnose(end).lost_node);
  end.nodes.pop_back();
  EXPECT_TRUE(Diagnose(end).lost_node);
  end.verdict = "it was cancelled in Slurm";
  EXPECT_EQ(Diagnose(end).line, "it was cancelled in Slurm");
  EXPECT_FALSE(Diagnose(end).lost_node);
}

TEST(Diagnosis, ANodeThatWasToldToEndKnowsLessThanOneThatTheClusterDidNotBegin) {
  const NodeEnd told = {.node = "n2", .ok = false, .reason = "it was cancelled", .told = true};
  NodeEnd early = told;
  early.node = "n3";
  early.unlaunched = true;
  GangEnd end = GangOf({});
  end.nodes = {early, told};
  EXPECT_EQ(Diagnose(end).line, "node n2: it was cancelled");
  EXPECT_FALSE(Diagnose(end).lost_node);
  end.nodes.push_back({.node = "n1", .ok = false, .reason = "taken back", .unlaunched = true});
  EXPECT_EQ(Diagnose(end).line, "node n1: taken back");
  EXPECT_TRUE(Diagnose(end).lost_node);
  end.verdict = "it was cancelled in Slurm";
  EXPECT_FALSE(Diagnose(end).lost_node);
}

// Its daemons end what a controller does not know any more, as a user's cancelling does.
TEST(Diagnosis, WhatAClusterEndedWithoutAWordOfACancelWasTakenFromIt) {
  GangEnd end = GangOf({Stopped(0, 12)});
  end.nodes[1] = {.node = "n2", .ok = false, .reason = "it was cancelled", .told = true};
  EXPECT_FALSE(Diagnose(end).lost_node) << "before the cluster has said anything";
  end.judged = true;
  EXPECT_EQ(Diagnose(end).line, "node n2: it was cancelled");
  EXPECT_TRUE(Diagnose(end).lost_node);
  EXPECT_TRUE(Diagnose(end).verdict_counts);
  end.verdict = "it was cancelled in Slurm";
  EXPECT_FALSE(Diagnose(end).lost_node);
}

TEST(Diagnosis, DoesNotDependOnTheOrderOfTheReports) {
  GangEnd end =
      GangOf({Ended(0, 4, 1, 0, "rank 2 left"), Ended(1, 7), Ended(2, 5, 1, 0, "KeyError"),
              Stopped(3, 8), Ended(4, 5, 1, 0, "KeyError")});
  const Diagnosis expected = Diagnose(end);
  EXPECT_THAT(expected.line, HasSubstr("rank 2 on n2 failed"));
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(end.exits.begin(), end.exits.end(), random);
    const Diagnosis d = Diagnose(end);
    EXPECT_EQ(d.line, expected.line);
    ASSERT_EQ(d.failures.size(), expected.failures.size());
    for (size_t k = 0; k < d.failures.size(); ++k) {
      EXPECT_EQ(d.failures[k].rank, expected.failures[k].rank);
    }
  }
}

// A rank that fails closes its connections first and then takes its time to end; it is stopped
// meanwhile, since its peers have failed for want of it.
TEST(Diagnosis, NamesTheRankThatWasFailingWhenItWasStoppedForItsPeers) {
  RankExit failing = Stopped(1, 8);
  failing.error_before_stop = failing.last_error = "ModuleNotFoundError: No module named 'x'";
  const RankExit peer =
      Ended(0, 5, 1, 0,
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed "
            "by peer [127.0.0.3]:4711");
  const Diagnosis d = Diagnose(GangOf({peer, failing}));
  EXPECT_EQ(d.line,
            "rank 1 on n2 was failing when it was stopped: ModuleNotFoundError: No module named "
            "'x' (add the package to the job's environment)");
  ASSERT_EQ(d.failures.size(), 2u);
  EXPECT_EQ(d.failures[0].rank, 1);
  EXPECT_FALSE(d.failures[0].consequence);
  EXPECT_TRUE(d.failures[1].consequence);

  failing.error_before_stop = "ConnectionResetError: [Errno 104] Connection reset by peer";
  EXPECT_THAT(Diagnose(GangOf({peer, failing})).line, HasSubstr("rank 0 on n1 failed"));
  failing.error_before_stop = "ValueError: caught, and shown";
  EXPECT_THAT(Diagnose(GangOf({Ended(0, 5, 1, 0, "KeyError: 'a'"), failing})).line,
              HasSubstr("rank 0 on n1 failed with exit code 1: KeyError"))
      << "another has failed by itself";
}

// Frameworks print these words, which decide which of two ranks that fail is named: rank 1 fails
// two seconds after rank 0 has said them.
TEST(Diagnosis, TellsCauseFromConsequenceByTheWordsOfTheFrameworks) {
  struct Case {
    const char* words;
    bool consequence;
  };
  const Case kCases[] = {
      {"torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving "
       "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: "
       "Connection reset by peer",
       true},
      {"torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.", true},
      {"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
       "OpType=ALLREDUCE, NumelIn=25, Timeout(ms)=600000) ran for 600032 milliseconds",
       true},
      {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
       "waiting 1800000ms for recv operation to complete",
       true},
      {"RuntimeError: [pair.cc:598] Application timeout caused pair closure", true},
      {"RuntimeError: Gloo connectFullMesh failed with [../pair.cc:144] no error", true},
      {"torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the "
       "C10d store has failed.",
       true},
      {"torch.distributed.DistNetworkError: The client socket has failed to connect to any network "
       "address of (n1, 6105).",
       true},
      {"tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: "
       "failed to connect to all addresses",
       true},
      {"ORTE has lost communication with a remote daemon.", true},
      {"OSError: [Errno 113] No route to host", true},
      {"ModuleNotFoundError: No module named 'torch'", false},
      {"ImportError: libcudart.so.12: cannot open shared object file: No such file", false},
      {"OSError: [Errno 98] Address already in use", false},
      {"torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
       "network address. port: 6105, useIpv6: false, code: -98, name: EADDRINUSE, message: address "
       "already in use",
       false},
      {"socket.gaierror: [Errno -2] Name or service not known", false},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", false},
      {"torch.distributed.DistBackendError: NCCL error: unhandled cuda error (run with "
       "NCCL_DEBUG=INFO for details), NCCL version 2.21.5",
       false},
      {"std::bad_alloc", false},
      {"train.py: error: the following arguments are required: --data", false},
  };
  for (const Case& example : kCases) {
    const Diagnosis d =
        Diagnose(GangOf({Ended(0, 5, 1, 0, example.words), Ended(1, 7, 3, 0, "ValueError: boom")}));
    EXPECT_EQ(d.failures.front().rank, example.consequence ? 1 : 0) << example.words;
    EXPECT_EQ(d.failures.back().consequence, example.consequence) << example.words;
  }
}

}  // namespace
}  // namespace tutti::service
