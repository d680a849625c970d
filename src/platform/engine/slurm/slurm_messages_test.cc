#include "platform/engine/slurm/slurm_messages.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::engine {
namespace {

TEST(SlurmMessages, SayWhyAJobWaitsAndHowItEnded) {
  SlurmJob job{.state = "PENDING", .reason = "Resources"};
  EXPECT_EQ(WhyItWaits(job), "waits for nodes to become free (Slurm: Resources)");
  job.reason = "QOSMaxJobsPerUserLimit";
  EXPECT_EQ(WhyItWaits(job), "waits: its QOS is at a limit (Slurm: QOSMaxJobsPerUserLimit)");
  job.reason = "PartitionTimeLimit";
  EXPECT_THAT(WhyItWaits(job), testing::HasSubstr("ten minutes: give less, or say slurm: {time"));
  job.reason = "SomethingNew";
  EXPECT_EQ(WhyItWaits(job), "waits (Slurm: SomethingNew)");
  EXPECT_EQ(WhyItWaits({.state = "RESV_DEL_HOLD", .reason = "None"}),
            "asks for a reservation that was deleted (Slurm: RESV_DEL_HOLD)");
  EXPECT_EQ(WhyItWaits({.state = "OF_A_LATER_SLURM"}), "waits (Slurm: OF_A_LATER_SLURM)");
  EXPECT_EQ(HowItEnded({.state = "NODE_FAIL"}), "a node of it failed (Slurm: NODE_FAIL)");
  EXPECT_EQ(HowItEnded({.state = "COMPLETED"}), "");
  EXPECT_EQ(HowItEnded({.state = "FAILED", .reason = "JobLaunchFailure"}),
            "Slurm could not launch it (Slurm: JobLaunchFailure)");
  EXPECT_EQ(HowItEnded({.state = "FAILED", .reason = "RaisedSignal"}),
            "its batch step was ended by a signal (Slurm: RaisedSignal)");
  EXPECT_EQ(HowItEnded({.state = "FAILED", .preempted = true}),
            "it was preempted by another job (Slurm: FAILED)");
}

// In the words of Slurm 22.05 to 25.05.
TEST(SlurmMessages, TellARefusalFromAnOutage) {
  const auto error = [](absl::string_view words) {
    return ErrorIn(absl::StrCat("sbatch: error: Batch job submission failed: ", words, "\n"));
  };
  for (const char* passing : {"Unable to contact slurm controller (connect failure)",
                              "Unable to contact slurm controller (send failure)",
                              "Unable to contact slurm controller (receive failure)",
                              "Socket timed out on send/recv operation",
                              "Zero Bytes were transmitted or received",
                              "Slurm backup controller in standby mode",
                              "Controller is in standby mode, try a different controller",
                              "Resource temporarily unavailable",
                              "Slurm temporarily unable to accept job",
                              "Communication connection failure",
                              "Message send failure",
                              "Message receive failure",
                              "Communication shutdown failure",
                              "Connection refused",
                              "Connection timed out",
                              "Connection reset by peer",
                              "Broken pipe",
                              "No route to host",
                              "Transport endpoint is not connected",
                              "Unexpected missing socket error",
                              "Unable to create job record, try again",
                              "Protocol authentication error",
                              "Invalid authentication credential",
                              "I/O error writing script/environment to file"}) {
    EXPECT_TRUE(MayPass(error(passing))) << passing;
  }
  for (const char* line : {"sbatch: fatal: Could not establish a configuration source",
                           "sbatch: error: Munge encode failed: Failed to access "
                           "\"/run/munge/munge.socket.2\": No such file or directory"}) {
    EXPECT_TRUE(MayPass(ErrorIn(line))) << line;
  }
  for (const char* final :
       {"Invalid partition name specified", "Invalid feature specification", "Invalid qos",
        "Invalid account or account/partition combination specified",
        "Requested node configuration is not available", "Node count specification invalid",
        "More processors requested than permitted", "Access/permission denied",
        "Requested time limit is invalid (missing or exceeds some limit)",
        "Invalid generic resource (gres) specification", "Memory required by task is not available",
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"}) {
    EXPECT_FALSE(MayPass(error(final))) << final;
  }
}

TEST(SlurmMessages, AnErrorKeepsWhatASiteSaysOfItsRules) {
  EXPECT_EQ(ErrorIn("sbatch: error: Batch job submission failed: Invalid partition name\n"),
            "Invalid partition name");
  EXPECT_EQ(ErrorIn("sbatch: a word of welcome\n"
                    "sbatch: error: Name a project by --account;\nsbatch: error: \n"
                    "sbatch: error: see the site's pages\n"
                    "sbatch: error: Batch job submission failed: Unspecified error\n"),
            "Name a project by --account;; see the site's pages (Unspecified error)");
  EXPECT_FALSE(
      MayPass("sbatch: error: no authentication by a second factor\n"
              "sbatch: error: Batch job submission failed: Unspecified error\n"));
}

TEST(SlurmMessages, AnErrorIsBoundedAndOfUtf8) {
  std::string words = "x";
  for (int i = 0; i < 400; ++i) words += "é";
  const std::string error = ErrorIn("sbatch: error: " + words);
  EXPECT_EQ(error.size(), 1 + 298 * 2 + 3) << "300 characters, the last of them \"…\"";
  EXPECT_EQ(ErrorIn("sbatch: error: caf\xE9"), "caf?");
}

TEST(SlurmMessages, WhyALauncherCouldNotBeginIsInTheBatchStepsOutput) {
  const auto why = [](absl::string_view log) { return WhyItCouldNotBegin(log, "/shared/tutti"); };
  EXPECT_EQ(why("/shared/tutti: /lib/libc.so.6: version `GLIBC_2.38' not found\n"
                "srun: error: n1: task 0: Exited with exit code 1\n"),
            "its launcher could not begin: /shared/tutti: /lib/libc.so.6: version `GLIBC_2.38' not "
            "found; its nodes have to see /shared/tutti and the libraries that it is linked to");
  EXPECT_THAT(
      why("slurmstepd: error: execve(): tutti\xE9: No such file or directory"),
      ::testing::HasSubstr("begin: execve(): tutti?: No such file or directory; its nodes"));
  EXPECT_EQ(why("tutti: node n2 has no address\n"),
            "its launcher could not begin: tutti: node n2 has no address");
  // As while slurmctld is away, which names no nodes then.
  EXPECT_EQ(why("tutti: the job has got 0 nodes, and its plan is for 2\n"), "");
  EXPECT_EQ(why("srun: error: n1: task 0: Killed\nslurmstepd: error: *** STEP 7.0 ON n1 CANCELLED "
                "AT 2026-11-22T04:00:00 ***\n"),
            "");
  EXPECT_EQ(why("slurmstepd-n1: error: rmdir(/var/spool/slurmd/job00025): No such file or "
                "directory\n"),
            "");
}

TEST(SlurmMessages, NameALimitOfSubmittedJobsAndNoOther) {
  for (const char* limit :
       {"AssocMaxSubmitJobLimit", "AssocGrpSubmitJobsLimit", "QOSGrpSubmitJobsLimit",
        "QOSMaxSubmitJobPerUserLimit", "MaxSubmitJobsPerAccount"}) {
    EXPECT_EQ(SubmitLimit(absl::StrCat("sbatch: error: ", limit,
                                       "\nsbatch: error: Batch job "
                                       "submission failed: Job violates accounting/QOS policy\n")),
              limit);
  }
  EXPECT_EQ(SubmitLimit("sbatch: error: QOSMaxCpuPerUserLimit\nsbatch: error: Job violates "
                        "accounting/QOS policy (job submit limit, user's size)\n"),
            "");
}

TEST(SlurmMessages, WhatSlurmCouldNotLaunchMayRunWellOnOtherNodes) {
  EXPECT_TRUE(HasLostANode({.state = "FAILED", .reason = "JobLaunchFailure"}));
  EXPECT_TRUE(HasLostANode({.state = "LAUNCH_FAILED"}));
  EXPECT_FALSE(HasLostANode({.state = "FAILED", .reason = "NonZeroExitCode"}));
}

TEST(SlurmMessages, AJobThatEndedWhileItWasPreemptedHasLostItsNodesUnlessItWasCancelled) {
  const auto jobs = ReadQueue(
      R"({"jobs": [{"job_id": 1, "job_state": "FAILED", "preempt_time": 1795246045},
                   {"job_id": 2, "job_state": "FAILED", "preempt_time": 0},
                   {"job_id": 3, "job_state": ["FAILED"],
                    "preempt_time": {"set": true, "infinite": false, "number": 5}},
                   {"job_id": 4, "job_state": "CANCELLED", "preempt_time": 5}]})",
      "");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::vector<bool> lost;
  for (const SlurmJob& job : *jobs) lost.push_back(HasLostANode(job));
  EXPECT_EQ(lost, (std::vector<bool>{true, false, true, false}));
}

}  // namespace
}  // namespace tutti::engine
