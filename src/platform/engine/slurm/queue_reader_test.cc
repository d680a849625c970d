#include "platform/engine/slurm/queue_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// As Slurm 22.05 prints them.
constexpr char kQueueOf22[] = R"({"meta": {}, "errors": [], "jobs": [
  {"job_id": 1, "job_state": "RUNNING", "state_reason": "None", "start_time": 1795208535,
   "nodes": "n[1-2]", "comment": "tutti:ab:job.1"},
  {"job_id": 2, "job_state": "PENDING", "state_reason": "Resources", "start_time": 1826744535,
   "nodes": "", "comment": "tutti:ab:job.2"},
  {"job_id": 3, "job_state": "RUNNING", "comment": "somebody's", "nodes": "n3"},
  {"job_id": 4, "job_state": "NODE_FAIL", "comment": "tutti:ab:job.4", "nodes": "n3"}]})";

// As from 23.02 on.
constexpr char kQueueOf23[] = R"({"jobs": [
  {"job_id": 7, "job_state": ["PENDING"], "state_reason": "Priority", "nodes": null,
   "start_time": {"set": false, "infinite": false, "number": 5}, "comment": "tutti:ab:job.7"},
  {"job_id": 8, "job_state": ["RUNNING", "COMPLETING"], "nodes": "n1", "comment": "tutti:ab:job.8",
   "start_time": {"set": true, "infinite": false, "number": 1795208535}},
  {"job_id": 9, "job_state": ["RUNNING", "CONFIGURING"], "nodes": "n1",
   "comment": "tutti:ab:job.9"}]})";

TEST(QueueReader, AJobWhoseNameIsNotUtf8IsReadAndSoAreTheOthers) {
  const auto jobs = ReadQueue(
      "{\"jobs\": [{\"job_id\": 1, \"job_state\": \"RUNNING\", \"name\": \"caf\xE9\", \"comment\": "
      "\"\"}, {\"job_id\": 2, \"job_state\": \"RUNNING\", \"name\": \"b\", \"command\": "
      "\"/\xFF/x\"}]}",
      "");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].name, "caf?");
  EXPECT_EQ((*jobs)[1].name, "b");
}

// OutputOf reads what a Slurm of that version printed, of squeue the members that may matter. Its
// three nodes had a job of each kind, tutti:ab:KIND.1.
class OutputOf : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Text(absl::string_view command, absl::string_view suffix) const {
    const auto text = base::ReadFile(
        absl::StrCat(TUTTI_SLURM_OUTPUT, "/", command, "-", GetParam(), ".", suffix), 1 << 20);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
};

INSTANTIATE_TEST_SUITE_P(Slurm, OutputOf, ::testing::Values("22.05", "24.11"), [](const auto& v) {
  return absl::StrCat(std::string(v.param).substr(0, 2), std::string(v.param).substr(3));
});

TEST_P(OutputOf, SqueueTellsWhatBecameOfEachJob) {
  const auto jobs = ReadQueue(Text("squeue", "json"), "tutti:ab:");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::multimap<std::string, SlurmJob> by_kind;
  for (const SlurmJob& job : *jobs) by_kind.emplace(job.comment.substr(9), job);
  ASSERT_EQ(by_kind.size(), 13u);
  const auto phases = [&](const std::string& kind) {
    std::vector<SlurmPhase> found;
    const auto [begin, end] = by_kind.equal_range(absl::StrCat(kind, ".1"));
    for (auto job = begin; job != end; ++job) found.push_back(job->second.phase);
    return found;
  };
  const auto the = [&](const std::string& kind) {
    return by_kind.find(absl::StrCat(kind, ".1"))->second;
  };
  for (const char* ended : {"completed", "failed", "cancelled", "preempted"}) {
    EXPECT_THAT(phases(ended), ElementsAre(SlurmPhase::kEnded)) << ended;
  }
  for (const char* running : {"running", "suspended", "completing"}) {
    EXPECT_THAT(phases(running), ElementsAre(SlurmPhase::kRunning)) << running;
  }
  for (const char* waiting : {"pending", "held"}) {
    EXPECT_THAT(phases(waiting), ElementsAre(SlurmPhase::kWaiting)) << waiting;
  }
  EXPECT_THAT(phases("array"), UnorderedElementsAre(SlurmPhase::kRunning, SlurmPhase::kWaiting));
  EXPECT_THAT(phases("het"), ElementsAre(SlurmPhase::kRunning, SlurmPhase::kRunning));
  EXPECT_EQ(the("running").nodes, "n[1-2]");  // and not its resources' nodes
  EXPECT_EQ(the("failed").state, "FAILED");
  EXPECT_EQ(the("failed").reason, "NonZeroExitCode");
  EXPECT_EQ(the("failed").exit_code, 3);
  EXPECT_EQ(the("completed").exit_code, 0);
  EXPECT_TRUE(the("preempted").preempted);
  EXPECT_FALSE(the("running").preempted);
  EXPECT_EQ(the("held").reason, "JobHeldUser");
  EXPECT_EQ(the("held").expected_start, std::nullopt);
  EXPECT_GT(the("pending").expected_start, absl::FromUnixSeconds(1795300000));
  EXPECT_EQ(the("pending").nodes, "");
}

TEST_P(OutputOf, SacctTellsHowEachJobEnded) {
  std::vector<std::pair<std::string, std::string>> ended;
  for (const SlurmRecord& record : ReadRecords(Text("sacct", "txt"))) {
    if (record.job.phase == SlurmPhase::kEnded) ended.emplace_back(record.name, record.job.state);
  }
  EXPECT_THAT(ended, ElementsAre(Pair("completed", "COMPLETED"), Pair("failed", "FAILED"),
                                 Pair("cancelled", "CANCELLED"), Pair("preempted", "PREEMPTED"),
                                 Pair("takes-its-place", "NODE_FAIL")));
}

TEST_P(OutputOf, SinfoTellsOfEachNodeOnce) {
  const std::vector<Node> nodes = ReadNodes(Text("sinfo", "txt"));
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].state, "running");
  EXPECT_EQ(nodes[0].address, "10.77.0.11");
  EXPECT_EQ(nodes[1].state, "running");  // completing
  EXPECT_EQ(nodes[2].state, "unusable");
  EXPECT_EQ(nodes[2].reason, "lost");
}

TEST(QueueReader, ReadsItsOwnJobsOnly) {
  const auto jobs = ReadQueue(kQueueOf22, "tutti:ab:");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].phase, SlurmPhase::kRunning);
  EXPECT_EQ((*jobs)[0].nodes, "n[1-2]");
  EXPECT_EQ((*jobs)[0].expected_start, std::nullopt);
  EXPECT_EQ((*jobs)[1].phase, SlurmPhase::kWaiting);
  EXPECT_EQ((*jobs)[1].expected_start, absl::FromUnixSeconds(1826744535));
  EXPECT_EQ((*jobs)[2].phase, SlurmPhase::kEnded);
}

TEST(QueueReader, ReadsLaterVersionsWithTheirListsOfStates) {
  const auto jobs = ReadQueue(kQueueOf23, "tutti:ab:");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].phase, SlurmPhase::kWaiting);
  EXPECT_EQ((*jobs)[0].expected_start, std::nullopt);
  EXPECT_EQ((*jobs)[1].phase, SlurmPhase::kRunning);
  EXPECT_EQ((*jobs)[1].start, absl::FromUnixSeconds(1795208535));
  EXPECT_FALSE((*jobs)[1].booting);
  EXPECT_EQ((*jobs)[2].phase, SlurmPhase::kWaiting);
  EXPECT_TRUE((*jobs)[2].booting);
}

TEST(QueueReader, HasEndedWhatSlurmSaysSoOfAlone) {
  const auto phase_of = [](const std::string& states) {
    const std::string text =
        R"({"jobs": [{"job_id": 1, "nodes": "n1", "job_state": )" + states + "}]}";
    const auto jobs = ReadQueue(text, "");
    return jobs.ok() ? jobs->front().phase : SlurmPhase::kEnded;
  };
  for (const char* ended :
       {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
        "DEADLINE", "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"}) {
    EXPECT_EQ(phase_of(absl::StrCat("\"", ended, "\"")), SlurmPhase::kEnded) << ended;
    EXPECT_EQ(phase_of(absl::StrCat("[\"", ended, "\"]")), SlurmPhase::kEnded) << ended;
    EXPECT_EQ(phase_of(absl::StrCat("[\"", ended, "\", \"COMPLETING\"]")), SlurmPhase::kRunning);
  }
  // As 22.05 prints a job that waits, in place of PENDING.
  for (const char* waits :
       {"RESV_DEL_HOLD", "REQUEUE_HOLD", "REQUEUED", "REQUEUE_FED", "SPECIAL_EXIT"}) {
    EXPECT_EQ(phase_of(absl::StrCat("\"", waits, "\"")), SlurmPhase::kWaiting) << waits;
    EXPECT_EQ(phase_of(absl::StrCat("[\"PENDING\", \"", waits, "\"]")), SlurmPhase::kWaiting);
  }
  EXPECT_EQ(phase_of(R"("OF_A_LATER_SLURM")"), SlurmPhase::kRunning);
  EXPECT_EQ(phase_of(R"(["PENDING", "OF_A_LATER_SLURM"])"), SlurmPhase::kWaiting);
}

TEST(QueueReader, RefusesAJobOfItsOwnWithoutAState) {
  for (const char* state : {"null", "[]", "7", "[7]"}) {
    const std::string text = std::string(R"({"jobs": [
      {"job_id": 1, "comment": "mine", "job_state": "RUNNING"},
      {"job_id": 2, "comment": "mine", "job_state": )") +
                             state + "}]}";
    EXPECT_EQ(ReadQueue(text, "mine").status().code(), absl::StatusCode::kDataLoss) << state;
    EXPECT_TRUE(ReadQueue(text, "yours").ok()) << state;
  }
}

TEST(QueueReader, RefusesWhatIsNoQueue) {
  for (const char* text : {"", "{}", "[]", "{\"jobs\": 1}", "slurm_load_jobs error"}) {
    EXPECT_EQ(ReadQueue(text, "").status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

// As 22.05 prints it without its controller, ending with 0.
TEST(QueueReader, AnEmptyListBesideAnErrorIsNoEmptyQueue) {
  const auto jobs = ReadQueue(
      R"({"meta": {"plugin": {"name": "Slurm OpenAPI v0.0.38"}}, "errors": [
           {"description": "Failed while looking for jobs", "error_number": -1,
            "error": "Unspecified error", "source": "slurm_load_jobs"}], "jobs": []})",
      "tutti:ab:");
  EXPECT_EQ(jobs.status(),
            absl::UnavailableError("Failed while looking for jobs (slurm_load_jobs)"));
  for (const char* errors : {R"([7])", R"([{}])", R"([{"description": {"deep": [1]}}])"}) {
    const std::string text = std::string(R"({"jobs": [], "errors": )") + errors + "}";
    EXPECT_EQ(ReadQueue(text, "").status().code(), absl::StatusCode::kUnavailable) << text;
  }
  for (const char* none : {"[]", "null", "{}"}) {
    const std::string text = std::string(R"({"errors": )") + none + R"(, "jobs": []})";
    EXPECT_TRUE(ReadQueue(text, "").ok()) << text;
  }
}

TEST(QueueReader, ReadsRecordsOfTheAccounting) {
  const auto records = ReadRecords(
      "7|job|NODE_FAIL\n8|other|CANCELLED by 1000\n9|third|RUNNING\n"
      "sacct: hello\n|x|FAILED\n10||FAILED\n11|x|\n12|x|FAILED|more\n");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].job.id, 7);
  EXPECT_EQ(records[0].name, "job");
  EXPECT_EQ(records[0].job.state, "NODE_FAIL");
  EXPECT_EQ(records[1].job.state, "CANCELLED");
  EXPECT_EQ(records[1].job.phase, SlurmPhase::kEnded);
  EXPECT_EQ(records[2].job.phase, SlurmPhase::kRunning);
}

TEST(QueueReader, ExpandsListsOfHosts) {
  EXPECT_THAT(*ExpandHosts("n1"), ElementsAre("n1"));
  EXPECT_THAT(*ExpandHosts("n[1-2,08-10],login"),
              ElementsAre("n1", "n2", "n08", "n09", "n10", "login"));
  EXPECT_THAT(*ExpandHosts("r[1-2]n[3-4]-ib"),
              ElementsAre("r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"));
  EXPECT_THAT(*ExpandHosts(""), IsEmpty());
  for (const char* wrong : {"n[", "n]", "n[1-", "n[2-1]", "n[a]", "n[[1]]", "a,,b", "n[1-999999]",
                            "n[1-60000]m[1-60000]"}) {
    EXPECT_FALSE(ExpandHosts(wrong).ok()) << wrong;
  }
}

TEST(MayHaveGpus, KnowsThatThereIsNoneByNodesThatTellOfOthersOnly) {
  EXPECT_FALSE(MayHaveGpus("(null)\n"));
  EXPECT_FALSE(MayHaveGpus("(null)\nnvme:1,mps:100\n"));
  EXPECT_TRUE(MayHaveGpus("(null)\nnvme:1,gpu:a100:4(S:0-1)\n"));
  EXPECT_TRUE(MayHaveGpus("gpu:2 \n"));
  EXPECT_TRUE(MayHaveGpus("\n")) << "there is no such partition";
}

TEST(ReadNodes, ReadsEachNodeOnceAndLeavesOutWhatIsNone) {
  const std::vector<Node> nodes = ReadNodes(
      "n1|mixed|4|4096|10.0.0.1|none\nn2|down*|2|1|n2|a fan | and a disk\n"
      "n1|mixed|4|4096|10.0.0.1|none\nsinfo: hello\n|idle|1|1|x|none\nn3|idle|many|1|x|none\n"
      "n4|idle|1|99999999999999999|x|none\n");
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_EQ(nodes[0].state, "running");
  EXPECT_EQ(nodes[0].reason, "");
  EXPECT_EQ(nodes[0].address, "10.0.0.1");
  EXPECT_EQ(nodes[0].cores, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(nodes[0].memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(nodes[1].state, "unusable");
  EXPECT_EQ(nodes[1].reason, "a fan | and a disk");
}

constexpr char kRoomLines[] =
    "n1|idle|0/8/0/8|main*\n"
    "n2|mixed|6/2/0/8|main*\n"
    "n2|mixed|6/2/0/8|debug\n"
    "n3|idle~|0/8/0/8|main*\n"
    "n4|allocated|8/0/0/8|main*\n"
    "g1|idle|0/64/0/64|gpu\n"
    "nonsense\n"
    "n5|idle|x|main*\n";

TEST(ReadRoom, CountsWhatCanBeGivenAwayNow) {
  const auto nodes = ReadRoom(kRoomLines, "");
  ASSERT_THAT(nodes, SizeIs(5));  // of the default partition
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_TRUE(nodes[0].is_whole);
  EXPECT_EQ(nodes[0].idle_cpus, 8);
  EXPECT_FALSE(nodes[1].is_whole);
  EXPECT_EQ(nodes[1].idle_cpus, 2);
  EXPECT_EQ(nodes[2].idle_cpus, 0) << "it is switched off";
  EXPECT_EQ(nodes[3].idle_cpus, 0);
  EXPECT_EQ(nodes[4].idle_cpus, 0);
}

TEST(ReadRoom, WithAPartitionTakesAllThatSinfoListsEachOnce) {
  EXPECT_THAT(ReadRoom(kRoomLines, "main,gpu"), SizeIs(6));
  EXPECT_THAT(ReadRoom("", "main"), IsEmpty());
}

}  // namespace
}  // namespace tutti::engine
