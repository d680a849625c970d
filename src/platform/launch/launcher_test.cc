// Covers: environment/mlflow_stores.cc, environment/node_facts.cc, hooks/code_hook.cc,
// hooks/former_outputs_hook.cc, hooks/inputs_hook.cc, hooks/packages_hook.cc,
// hooks/results_hook.cc,
// limits/memory_limit.cc, node/memory_watch.cc, node/signals.cc, node/output_pipe.cc,
// staging/folders.cc, staging/copy.cc, delivery/service_delivery.cc,
// delivery/results.cc, delivery/delivery.cc, node_processes.cc, output_forwarder.cc,
// usage/usage_watch.cc, usage/mlflow_watch.cc.
#include "platform/launch/launcher.h"

#include <cstdlib>
#include <fstream>

#include "base/test_patience.h"
#include "platform/code/code_archive_for_tests.h"
#include "platform/launch/launch_programs.h"
#include "platform/launch/launcher_fixture.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/node/memory_watch.h"
#include "platform/launch/node/program_names.h"
#include "platform/launch/process/python_state.h"

namespace tutti::launch {
namespace {

using code::TestArchive;
using code::TestEntry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// When the test program is told to be a launcher it is one, and runs no test.
class BeLauncher : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* plan = std::getenv(kPlanVariable);
    if (plan == nullptr) return;
    if (std::getenv(kLauncherSocketVariable) != nullptr) {  // a task of srun's
      const char* const arguments[] = {"tutti", kPmixTaskProgram};
      ::_exit(*RunLaunchProgram(2, arguments));
    }
    LauncherOptions options;
    options.spool_patience = absl::Milliseconds(300);
    options.full_disk_told_after = absl::Milliseconds(100);
    options.leftover_grace = absl::Milliseconds(200);
    options.alone_limit = base::PatientTimeout(absl::Milliseconds(300));
    uint64_t limit = 0;
    const char* text = std::getenv(kSpoolLimitVariable);
    if (text != nullptr && absl::SimpleAtoi(text, &limit)) options.spool_limit = limit;
    if (const char* most = std::getenv(kMostProcessesVariable)) {
      options.most_processes = std::atoi(most);
    }
    if (const char* limit = std::getenv(kRankStartLimitVariable)) {
      options.rank_start_limit = absl::Milliseconds(std::atoi(limit));
    }
    if (const char* limit = std::getenv(kDeliveryLimitVariable)) {
      options.delivery_limit = absl::Milliseconds(std::atoi(limit));
    }
    const absl::Status status = RunLauncher(plan, options);
    ::_exit(status.ok() ? 0 : absl::IsFailedPrecondition(status) ? 7 : 1);
  }
};
const ::testing::Environment* const be_launcher =
    ::testing::AddGlobalTestEnvironment(new BeLauncher);

class Launcher : public LauncherFixture {};

TEST_F(Launcher, RunsTheCommandAndReportsEveryStepInOrder) {
  EXPECT_TRUE(Run(Plan("echo hello; echo oops >&2")).ok());
  EXPECT_THAT(Kinds(),
              ElementsAre("preparing", "prepared", "started", "exited", "finalizing", "finished"));
  EXPECT_EQ(service.Output(0, "stdout"), "hello\n");
  EXPECT_EQ(service.Output(0, "stderr"), "oops\n");
  const auto exited = service.Events("exited").at(0);
  EXPECT_EQ(exited["code"], 0);
  EXPECT_EQ(exited["signal"], 0);
  EXPECT_EQ(exited["stopped"], false);
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "allocation/done"));
}

TEST_F(Launcher, SaysWhatItsRanksUseWhileTheyRun) {
  service.TakeUsage();
  spec::LaunchPlan plan = Plan("while :; do :; done", 2);
  plan.measures_usage = true;
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(service.Await([&] {
    for (const std::string& line : service.Usage()) {
      const auto sample = nlohmann::json::parse(line, nullptr, false);
      if (!sample.is_object() || sample["ranks"].size() != 2) continue;
      if (sample["ranks"][1]["rank"] == 1 && sample["ranks"][1].value("cpu", 0.0) > 0.05 &&
          sample.value("memory_left", 0.0) > 0 && sample.contains("machine_cpu")) {
        return true;
      }
    }
    return false;
  }));
  ASSERT_TRUE(launcher.SignalGroup(SIGTERM).ok());
  WaitFor(launcher);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(Launcher, AsksAServiceThatDoesNotKnowUsageOnceAndGoesOn) {
  const std::string gate = (folder.path() / "gate").native();
  spec::LaunchPlan plan =
      Plan("echo begin; while [ ! -e " + gate + " ]; do sleep 0.01; done; echo end");
  plan.measures_usage = true;
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(service.Await([&] { return service.usage_calls() > 0; }));
  ASSERT_TRUE(base::WriteFileAtomic(gate, "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "begin\nend\n");
  EXPECT_EQ(service.usage_calls(), 1);
}

TEST_F(Launcher, MeasuresNothingWhereThePlanDoesNotAskForIt) {
  const base::Deadline later = base::Deadline::After(absl::Seconds(3));
  service.TakeUsage();
  base::ChildProcess launcher = Launch(Plan("while :; do sleep 0.01; done"));
  EXPECT_TRUE(service.Await([&] { return later.Expired(); }));
  EXPECT_EQ(service.usage_calls(), 0);
  ASSERT_TRUE(launcher.SignalGroup(SIGTERM).ok());
  WaitFor(launcher);
}

TEST_F(Launcher, OneOfAGangOnAClusterIsHeardOfAlsoWhileItHasNothingToSay) {
  const std::string gate = (folder.path() / "gate").native();
  spec::LaunchPlan plan = OneOfTwo("while [ ! -e " + gate + " ]; do sleep 0.01; done");
  plan.boot_id.clear();
  ::setenv("TUTTI_BEAT", "0.2", 1);
  base::ChildProcess launcher = Launch(plan);
  ::unsetenv("TUTTI_BEAT");
  ASSERT_TRUE(service.AwaitEvent("started"));
  EXPECT_EQ(service.Events("preparing").at(0)["beat"], 0.2);
  const int before = service.requests();
  EXPECT_TRUE(service.Await([&] { return service.requests() >= before + 5; }));
  EXPECT_EQ(service.Events().size(), 3u);
  ASSERT_TRUE(base::WriteFileAtomic(gate, "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
}

TEST_F(Launcher, OneThatIsAlonePromisesNoSignsOfLife) {
  spec::LaunchPlan plan = Plan("true");
  plan.boot_id.clear();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_FALSE(service.Events("preparing").at(0).contains("beat"));
}

TEST_F(Launcher, VariablesExpandPerProcessAndFoldersAreInPlace) {
  spec::LaunchPlan plan = Plan(
      "echo $RANK/$WORLD_SIZE/$LOCAL_RANK; pwd; ls -d outputs $TMPDIR $AZ_BATCHAI_MOUNT_ROOT "
      "$AZ_BATCHAI_STDOUTERR_DIR; cat $AZ_BATCHAI_MPI_HOST_FILE",
      2);
  EXPECT_TRUE(Run(plan).ok());
  for (int rank : {0, 1}) {
    const std::string root = plan.directory;
    EXPECT_EQ(service.Output(rank, "stdout"),
              absl::StrCat(rank, "/2/", rank, "\n", root, "/work\n", root, "/inputs\n", root,
                           "/scratch\n", root, "/spool\noutputs\n127.77.0.1\n127.77.0.1\n"));
    EXPECT_EQ(service.Output(rank, "stderr"), "");
  }
}

TEST_F(Launcher, StagesCodeInputsAndOutputsAndSendsResults) {
  ASSERT_TRUE(base::MakeDirectories(folder.path() / "in").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "in/data.txt", "data\n").ok());
  const std::vector<TestEntry> code = {{"sub/run.sh",
                                        "cat \"$1/data.txt\" \"$2\"; echo model > $3/m.bin\n"
                                        "mkdir -p outputs/deep; echo r0 > outputs/deep/r\n"
                                        "ln -s deep/r outputs/latest\n"}};
  const TestArchive archive(code);
  service.SetSnapshot(archive.bytes());
  spec::LaunchPlan plan = Plan(
      "bash sub/run.sh ${{inputs.folder}} ${{inputs.file}} ${{outputs.model}} && echo "
      "${{inputs.n}}");
  plan.snapshot = archive.hash();
  plan.inputs["folder"] = {.path = (folder.path() / "in").string()};
  plan.inputs["file"] = {
      .type = "uri_file", .path = (folder.path() / "in/data.txt").string(), .mode = "download"};
  plan.inputs["n"] = {.type = "integer", .literal = "17"};
  plan.outputs["model"] = {};
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stderr"), "");
  EXPECT_EQ(service.Output(0, "stdout"), "data\ndata\n17\n");
  const auto files = service.Files();
  EXPECT_EQ(files.at("outputs/model/m.bin"), "model\n");
  EXPECT_EQ(files.at("outputs/deep/r"), "r0\n");
  EXPECT_EQ(files.at("outputs/latest"), "r0\n");
}

TEST_F(Launcher, KeepsWhatIsInstalledInThePythonOfAJobThatRunsOne) {
  for (const char* package : {"a_toy-1.5.dist-info", "other-2.egg-info", "a_toy"}) {
    ASSERT_TRUE(base::MakeDirectories(folder.path() / "packages" / package).ok());
  }
  spec::LaunchPlan plan = Plan("exec python3 -c pass");
  plan.environment_variables["PYTHONPATH"] = (folder.path() / "packages").string();
  EXPECT_TRUE(Run(plan).ok());
  const std::string installed = service.Files().at("logs/environment.txt");
  EXPECT_THAT(installed,
              ::testing::MatchesRegex("# Python 3[.0-9]+ [(]/[^\n]*/python3[^\n]*[)]\n.*"));
  EXPECT_THAT(installed, AllOf(HasSubstr("\na-toy==1.5\n"), HasSubstr("\nother==2\n")));
  ASSERT_EQ(service.Events("finalizing").size(), 1u);
  EXPECT_EQ(service.Events("finalizing")[0]["kept_files"], 0) << "it is no result of the job's";
}

TEST_F(Launcher, KeepsTheListThatAJobHasWrittenItself) {
  EXPECT_TRUE(Run(Plan("mkdir -p logs && echo mine >logs/environment.txt # python")).ok());
  EXPECT_EQ(service.Files().at("logs/environment.txt"), "mine\n");
}

TEST_F(Launcher, KeepsNoSuchListOfAJobWithoutPython) {
  EXPECT_TRUE(Run(Plan("echo hi")).ok());
  EXPECT_EQ(service.Files().count("logs/environment.txt"), 0u);
}

TEST_F(Launcher, TellsWhatWillBeRemovedButNotOfTheCode) {
  const std::vector<TestEntry> code = {{"big.py", std::string(5000, '#')}};
  const TestArchive archive(code);
  service.SetSnapshot(archive.bytes());
  // The clock of files ticks every few milliseconds.
  spec::LaunchPlan plan = Plan(
      "mkdir checkpoints; while [ ! checkpoints -nt big.py ]; do touch checkpoints; done; "
      "head -c 20000 /dev/zero >checkpoints/a; head -c 3000 /dev/zero >checkpoints/b; "
      "head -c 9000 /dev/zero >outputs/kept");
  plan.snapshot = archive.hash();
  EXPECT_TRUE(Run(plan).ok());
  ASSERT_EQ(service.Events("finalizing").size(), 1u);
  const nlohmann::json event = service.Events("finalizing")[0];
  EXPECT_EQ(event["unkept"],
            nlohmann::json::parse(R"([{"path": "checkpoints", "bytes": 23000, "result": false}])"));
  EXPECT_EQ(event["kept_files"], 1);
  EXPECT_EQ(event["unkept_more"], false);
}

TEST_F(Launcher, MakesAnMlflowStoreForCodeAndRemovesOneThatWasNotUsed) {
  const std::vector<TestEntry> code = {{"a.py", "#"}};
  const TestArchive archive(code);
  service.SetSnapshot(archive.bytes());
  spec::LaunchPlan plan = Plan(
      "grep -c artifact_location \"$MLFLOW_TRACKING_URI/0/meta.yaml\"; "
      "cd \"$MLFLOW_TRACKING_URI/0\"; [ $RANK = 0 ] || { mkdir run; : >run/meta.yaml; }",
      2);
  plan.snapshot = archive.hash();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "1\n");
  std::vector<std::string> names;
  for (const auto& [name, content] : service.Files()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("outputs/mlruns-rank-1/0/meta.yaml",
                                 "outputs/mlruns-rank-1/0/run/meta.yaml"));
}

TEST_F(Launcher, ARunOfMlflowIsMadeAheadForCodeThatSpeaksOfItsId) {
  const std::vector<TestEntry> code = {{"deep/a.py", "os.environ['MLFLOW_RUN_ID']"}};
  const TestArchive archive(code);
  service.SetSnapshot(archive.bytes());
  spec::LaunchPlan plan =
      Plan("ls \"$MLFLOW_TRACKING_URI/0/$(env | sed -n 's/^MLFLOW_RUN_.*=//p')\"", 2);
  plan.snapshot = archive.hash();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(1, "stdout"), "artifacts\nmeta.yaml\nmetrics\nparams\ntags\n");
  EXPECT_THAT(service.Files(), IsEmpty()) << "unused";
}

TEST_F(Launcher, TextsThatAreNoScriptsAskForNoRunOfMlflow) {
  const std::vector<TestEntry> code = {{"notes.txt", "MLFLOW_RUN_ID"},
                                       {".git/a.py", "MLFLOW_RUN_ID"}};
  const TestArchive archive(code);
  service.SetSnapshot(archive.bytes());
  spec::LaunchPlan plan = Plan("env | grep -c MLFLOW_RUN_ || true", 1);
  plan.snapshot = archive.hash();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "0\n");
}

TEST_F(Launcher, AnotherAttemptsMlflowStoreWritesToItsOwnFolder) {
  const base::TemporaryDirectory former;
  const auto meta = former.path() / "work/outputs/mlruns/0/meta.yaml";
  ASSERT_TRUE(base::MakeDirectories(meta.parent_path()).ok());
  ASSERT_TRUE(
      base::WriteFileAtomic(meta, absl::StrCat("artifact_location: ", former.path().native(),
                                               "/work/outputs/mlruns/0\n"))
          .ok());
  spec::LaunchPlan plan = Plan("cat \"$MLFLOW_TRACKING_URI/0/meta.yaml\"");
  plan.former_directory = former.path();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"),
            absl::StrCat("artifact_location: '", plan.directory, "/work/outputs/mlruns/0'\n"));
}

TEST_F(Launcher, GoesOnWithTheOutputsOfTheJobFromWhichItsJobResumes) {
  const base::TemporaryDirectory earlier;
  ASSERT_TRUE(base::WriteFileAtomic(earlier.path() / "checkpoint", "7\n").ok());
  spec::LaunchPlan plan = Plan("cat outputs/checkpoint; echo $TUTTI_RESUME_FROM >outputs/from");
  plan.resume = "earlier";
  plan.resume_outputs = earlier.path();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "7\n");
  EXPECT_EQ(service.Files()["outputs/checkpoint"], "7\n");
  EXPECT_EQ(service.Files()["outputs/from"], "earlier\n");
}

TEST_F(Launcher, SendsWhatItsJobResumesFromBeforeAnyNodesProcessesBegin) {
  const base::TemporaryDirectory earlier;
  ASSERT_TRUE(base::WriteFileAtomic(earlier.path() / "checkpoint", "7\n").ok());
  spec::LaunchPlan plan = OneOfTwo("rm outputs/checkpoint");
  plan.resume = "earlier";
  plan.resume_outputs = earlier.path();
  service.HoldGo(true);
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(service.Await([&] { return !service.Events("prepared").empty(); }));
  EXPECT_EQ(service.Files()["outputs/checkpoint"], "7\n");
  service.HoldGo(false);
  EXPECT_TRUE(WaitFor(launcher).ok());
}

TEST_F(Launcher, FollowsLinksWithinAnOutputAndNamesWhatItLeavesOut) {
  Run(
      Plan("cd outputs; mkdir -p runs/3 empty; echo w >runs/3/w; ln -s runs/3 latest; ln -s ../.. "
           "runs/3/up; "
           "ln -s /etc out; ln -s nowhere dangling; mkfifo pipe; ln -s runs/3/w best; ln -s "
           "../runs empty/r"));
  const auto files = service.Files();
  std::vector<std::string> names;
  for (const auto& [name, content] : files) {
    names.push_back(name);
    EXPECT_EQ(content, "w\n") << name;
  }
  EXPECT_THAT(names, ElementsAre("outputs/best", "outputs/empty/r/3/w", "outputs/latest/w",
                                 "outputs/runs/3/w"));
  ASSERT_EQ(service.Events("finalizing").size(), 1u);
  EXPECT_EQ(
      service.Events("finalizing")[0]["left_out"],
      (nlohmann::json{"outputs/dangling (a link to no file)",
                      "outputs/empty/r/3/up (a link within what a link leads to)",
                      "outputs/latest/up (a link within what a link leads to)",
                      "outputs/out (a link out of its folder, to /etc)", "outputs/pipe (a pipe)"}));
  EXPECT_EQ(service.Events("finalizing")[0]["left_out_more"], 1);
  EXPECT_TRUE(service.Events("finished")[0]["ok"]);
}

TEST_F(Launcher, NamesAResultWhoseNameIsTooLongAndSendsTheOthers) {
  Run(
      Plan("exec python3 -c \"\nimport os\nopen('outputs/kept', 'w').write('w')\n"
           "os.chdir('outputs')\nfor i in range(20):\n  os.mkdir('d' * 240)\n"
           "  os.chdir('d' * 240)\nopen('deep.txt', 'w').write('w')\n\""));
  EXPECT_EQ(service.Files().size(), 2u) << "that, and what was installed";
  EXPECT_EQ(service.Files()["outputs/kept"], "w");
  const std::string left_out = service.Events("finalizing").at(0)["left_out"].at(0);
  EXPECT_THAT(left_out, AllOf(HasSubstr("outputs/ddd"), HasSubstr("(File name too long)")));
  EXPECT_LT(left_out.size(), 300u);
  EXPECT_TRUE(service.Events("finished").at(0)["ok"]);
}

TEST_F(Launcher, FailsIfTheFolderOfResultsCannotBeRead) {
  Run(Plan("rm -r outputs; ln -s outputs outputs; echo w >logs/kept"));
  EXPECT_EQ(service.Files()["logs/kept"], "w\n");
  const auto finished = service.Events("finished").at(0);
  EXPECT_FALSE(finished["ok"]);
  EXPECT_EQ(finished["reason"], "read outputs: Too many levels of symbolic links");
}

TEST_F(Launcher, AJobMayRemoveItsOutputsFolder) {
  Run(Plan("rm -r outputs"));
  EXPECT_TRUE(service.Events("finished").at(0)["ok"]);
}

TEST_F(Launcher, SaysWhichInputIsMissingAndStartsNothing) {
  spec::LaunchPlan plan = Plan("echo never");
  plan.inputs["data"] = {.path = "/no/such/folder"};
  Run(plan);
  EXPECT_THAT(Kinds(), ElementsAre("preparing", "finished"));
  const auto finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["ok"], false);
  EXPECT_THAT(finished["reason"], HasSubstr("input \"data\": /no/such/folder does not exist"));
}

TEST_F(Launcher, RefusesASnapshotWithOtherBytesThanItsHash) {
  service.SetSnapshot("not what was asked for");
  spec::LaunchPlan plan = Plan("echo never");
  plan.snapshot = TestArchive(std::vector<TestEntry>(1, {"a", "b"})).hash();
  Run(plan);
  EXPECT_THAT(service.Events("finished").at(0)["reason"], HasSubstr("other bytes"));
}

TEST_F(Launcher, WaitsForTheGangBeforeItStartsAProcess) {
  service.HoldGo(true);
  base::ChildProcess launcher = Launch(OneOfTwo("echo begun"));
  ASSERT_TRUE(service.AwaitEvent("prepared"));
  EXPECT_TRUE(service.Events("started").empty());
  service.HoldGo(false);
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "begun\n");
  EXPECT_EQ(service.connections(), 1u);
}

TEST_F(Launcher, ANodeThatIsTheWholeGangWaitsForNobody) {
  service.HoldGo(true);
  EXPECT_TRUE(Run(Plan("echo begun")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "begun\n");
}

TEST_F(Launcher, StoppedWhileItWaitsItEndsWithoutStartingAnything) {
  service.HoldGo(true);
  base::ChildProcess launcher = Launch(OneOfTwo("echo begun"));
  ASSERT_TRUE(service.AwaitEvent("prepared"));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  EXPECT_THAT(Kinds(), ElementsAre("preparing", "prepared", "unlaunched", "finished"));
  EXPECT_THAT(service.Events("finished").at(0)["reason"], HasSubstr("stopped"));
}

TEST_F(Launcher, StoppedBeforeItListensItEndsWithoutStartingAnything) {
  const spec::LaunchPlan plan = Plan("echo begun");
  ASSERT_TRUE(base::MakeDirectories(plan.directory).ok());
  ASSERT_TRUE(base::WriteFileAtomic(std::filesystem::path(plan.directory) / "stop", "").ok());
  Run(plan);
  EXPECT_TRUE(service.Events("started").empty());
  EXPECT_THAT(service.Events("finished").at(0)["reason"], HasSubstr("stopped"));
}

TEST_F(Launcher, AFailureIsReportedAtOnceWithItsReasonWhileOthersRun) {
  base::ChildProcess launcher =
      Launch(Plan("if [ $RANK = 1 ]; then echo 'Traceback (most recent call last):' >&2; "
                  "echo 'ValueError: no such label: 17' >&2; exit 3; else sleep 600; fi",
                  2));
  ASSERT_TRUE(service.AwaitEvent("exited"));
  const auto first = service.Events("exited").at(0);
  EXPECT_EQ(first["rank"], 1);
  EXPECT_EQ(first["code"], 3);
  EXPECT_EQ(first["last_error"], "ValueError: no such label: 17");
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  const auto second = service.Events("exited").at(1);
  EXPECT_EQ(second["rank"], 0);
  EXPECT_EQ(second["stopped"], true);
  EXPECT_EQ(second["signal"], SIGTERM);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(Launcher, EndsProcessesThatIgnoreSigtermAndThoseWithSessionsOfTheirOwn) {
  spec::LaunchPlan plan = Plan(
      "trap '' TERM; setsid sleep 600 & (setsid sh -c 'trap \"\" TERM; sleep 600; sleep 600' &) ; "
      "echo nested; sleep 600; sleep 600",
      2);
  plan.grace_seconds = 0.2;
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput("nested", 0) && AwaitOutput("nested", 1));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  EXPECT_EQ(service.Events("exited").size(), 2u);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(Launcher, EndsWhatASuccessfulJobLeavesBehindAndAChainOfForks) {
  // Each link of the chain starts the next in a session of its own and ends.
  spec::LaunchPlan plan = Plan(
      "setsid sleep 600 & cat > chain.sh <<'END'\nsleep 0.01\nsetsid sh chain.sh &\nEND\n"
      "setsid sh chain.sh & echo done");
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Events("exited").at(0)["code"], 0);
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(Launcher, TheGraceComesWithTheSignal) {
  spec::LaunchPlan plan = Plan("trap '' TERM; echo ready; sleep 600; sleep 600");
  plan.grace_seconds = 600;
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput("ready"));
  sigval value{};
  value.sival_int = 100;
  ::sigqueue(launcher.pid(), SIGTERM, value);
  WaitFor(launcher);
  EXPECT_EQ(service.Events("exited").at(0)["signal"], SIGKILL);
}

TEST_F(Launcher, TellsTheExceptionThatARankHadShownBeforeItWasStopped) {
  base::ChildProcess launcher = Launch(Plan(
      "if [ $RANK = 1 ]; then echo fine; exec sleep 600; fi\n"
      "printf 'Traceback (most recent call last):\\n  File \"a\"\\nKeyError: 1\\n' >&2\n"
      "trap 'echo \"Traceback (most recent call last):\" >&2; echo \"OSError: late\" >&2; exit 1'"
      " TERM\necho ready; while true; do sleep 0.1; done",
      2));
  ASSERT_TRUE(AwaitOutput("fine", 1));
  ASSERT_TRUE(AwaitOutput("ready"));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  for (const auto& exited : service.Events("exited")) {
    EXPECT_EQ(exited["stopped"], true);
    EXPECT_EQ(exited.value("error_before_stop", ""), exited["rank"] == 0 ? "KeyError: 1" : "");
  }
}

// Rank 0 ends and writes what it had buffered; rank 1 had caught its exception and goes on, which
// stdout alone shows.
TEST_F(Launcher, TellsWhetherTheExceptionWasTheLastThatARankHadShown) {
  base::ChildProcess launcher = Launch(
      Plan("printf 'Traceback (most recent call last):\\n  File \"a\"\\nKeyError: 1\\n' >&2\n"
           "[ $RANK = 0 ] || sleep 1.5\necho ready\nexec sleep 600",
           2));
  ASSERT_TRUE(AwaitOutput("ready", 0));
  ASSERT_TRUE(AwaitOutput("ready", 1));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  for (const auto& exited : service.Events("exited")) {
    EXPECT_EQ(exited.value("error_before_stop", ""), "KeyError: 1");
    EXPECT_EQ(exited.value("error_was_last", false), exited["rank"] == 0);
  }
}

// As mpi4py does it: a function of C that waits is called when Python has come to its end.
constexpr char kPythonThatWaits[] = R"(
import ctypes, os, sys, time, traceback
ctypes.pythonapi.Py_AtExit.argtypes = [ctypes.c_void_p]
ctypes.pythonapi.Py_AtExit(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))
if os.environ["RANK"] == "2":
    sys.exit(7)
try:
    raise ValueError("no such label: 17")
except ValueError:
    traceback.print_exc()
    if os.environ["RANK"] == "1":
        sys.exit(1)
print("going on without it", file=sys.stderr, flush=True)
time.sleep(600)
)";

TEST_F(Launcher, OfMpiRanksThatAreStoppedItTellsWhosePythonHadEnded) {
  const auto script = folder.path() / "train.py";
  ASSERT_TRUE(base::WriteFileAtomic(script, kPythonThatWaits).ok());
  spec::LaunchPlan plan = Plan("exec python3 " + script.string(), 3);
  plan.distribution.type = "mpi";
  plan.environment_variables[kMpiVariable] = "direct";
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput("going on without it", 0, "stderr"));
  ASSERT_TRUE(AwaitOutput("ValueError", 1, "stderr"));
  for (const auto& started : service.Events("started")) {
    const auto expected = started["rank"] == 0 ? PythonState::kRuns : PythonState::kEnded;
    base::AwaitPatiently(absl::Seconds(20),
                         [&] { return PythonStateOf({started["pid"]}) == expected; });
  }
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  for (const auto& exited : service.Events("exited")) {
    EXPECT_EQ(exited.value("python_ended", false), exited["rank"] != 0) << exited;
    EXPECT_EQ(exited.value("error_was_last", false), exited["rank"] == 1) << exited;
  }
}

TEST_F(Launcher, HoldsTheWallTimeLimit) {
  spec::LaunchPlan plan = Plan("sleep 600");
  plan.timeout_seconds = 0.3;
  Run(plan);
  const auto finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["ok"], false);
  EXPECT_EQ(finished["reason"], "wall time limit of 0.3 s reached");
  EXPECT_EQ(finished["timed_out"], true);
  EXPECT_EQ(service.Events("exited").at(0)["stopped"], true);
}

TEST_F(Launcher, KillsTheLargestRankWhenTheNodesMemoryShareIsUsedUp) {
  spec::LaunchPlan plan = Plan(
      "if [ $RANK = 1 ]; then exec python3 -c 'import time; b = bytearray(200 << 20); "
      "time.sleep(600)'; else exec sleep 1; fi",
      2);
  plan.memory_bytes = 100 << 20;
  Run(plan);
  for (const auto& exited : service.Events("exited")) {
    EXPECT_EQ(exited["out_of_memory"], exited["rank"] == 1) << exited;
    if (exited["rank"] != 1) continue;
    EXPECT_EQ(exited["signal"], SIGKILL);
    EXPECT_THAT(exited["last_error"], StartsWith("out of memory: rank 1 used "));
    EXPECT_THAT(exited["last_error"], HasSubstr("of its 100 MiB"));
  }
}

TEST_F(Launcher, TellsThatAKillWasNotForMemory) {
  const auto kills = KernelOutOfMemoryKills();
  Run(Plan("if [ $RANK = 0 ]; then kill -9 $$; else bash -c 'kill -9 $$'; fi", 2));
  if (!kills || KernelOutOfMemoryKills() != kills) GTEST_SKIP() << "the machine ran out of memory";
  for (const auto& exited : service.Events("exited")) {
    EXPECT_EQ(exited["out_of_memory"], false);
    EXPECT_EQ(exited.value("not_for_memory", false), true) << exited;
  }
}

TEST_F(Launcher, MemoryThatForkedWorkersShareCountsOnce) {
  spec::LaunchPlan plan = Plan(
      "python3 -c 'import os, time; b = bytearray(os.urandom(1 << 20)) * 60\n"
      "pids = [os.fork() for _ in range(1)]\n"
      "if pids[0]: pids.append(os.fork())\n"
      "time.sleep(1)'");
  plan.memory_bytes = 130 << 20;
  Run(plan);
  EXPECT_EQ(service.Events("exited").at(0)["out_of_memory"], false);
}

TEST_F(Launcher, MetricsAreDeliveredAsTheyAreWritten) {
  base::ChildProcess launcher =
      Launch(Plan("echo '{\"event\": \"start\"}' >> $TUTTI_METRICS_FILE; sleep 600"));
  ASSERT_TRUE(AwaitOutput("{\"event\": \"start\"}\n", 0, "metrics"));
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
}

TEST_F(Launcher, WhatIsLoggedByMlflowIsDeliveredAsItIsLogged) {
  const std::vector<TestEntry> code = {{"a.py", "import mlflow"}};
  const TestArchive archive(code);
  service.SetSnapshot(archive.bytes());
  spec::LaunchPlan plan = Plan(
      "run=\"$MLFLOW_TRACKING_URI/0/a\"; mkdir -p \"$run/metrics\"; : >\"$run/meta.yaml\"; "
      "echo '1000 0.5 1' >\"$run/metrics/loss\"; sleep 600");
  plan.snapshot = archive.hash();
  base::ChildProcess launcher = Launch(plan);
  const std::string line =
      "{\"event\":\"metric\",\"name\":\"loss\",\"value\":0.5,\"step\":1,\"time\":1.0,"
      "\"run\":\"a\"}\n";
  ASSERT_TRUE(AwaitOutput(line, 0, "mlflow"));
  const std::filesystem::path metrics = NodeFolders(plan.directory).work_outputs() / "mlruns/0/a";
  std::ofstream(metrics / "metrics/loss", std::ios::app) << "2000 nan 2\n";
  ::kill(launcher.pid(), SIGTERM);
  WaitFor(launcher);
  EXPECT_EQ(service.Output(0, "mlflow"),
            line +
                "{\"event\":\"metric\",\"name\":\"loss\",\"value\":NaN,\"step\":2,"
                "\"time\":2.0,\"run\":\"a\"}\n")
      << "what was logged last has come, too";
}

TEST_F(Launcher, UnixSocketsCanBeBoundInTheTemporaryFolderHoweverDeepTheNodesFolderLies) {
  spec::LaunchPlan plan = Plan(
      "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).bind(os.environ[\"TMPDIR\"] + "
      "\"/pymp-12345678/listener-12345678\"[14:])' && echo $TMPDIR && ls $TMPDIR");
  plan.directory = absl::StrCat(plan.directory, "/", std::string(90, 'x'));
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stderr"), "");
  const std::string link = service.Output(0, "stdout").substr(0, 27);
  EXPECT_THAT(link, StartsWith("/tmp/tutti-"));
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  EXPECT_THAT(service.Output(0, "stdout"), testing::EndsWith("listener-12345678\n"));
}

TEST_F(Launcher, ACommandThatIsNotThereIsNamed) {
  Run(Plan("no-such-program --flag"));
  const auto exited = service.Events("exited").at(0);
  EXPECT_EQ(exited["code"], 127);
  EXPECT_THAT(exited["last_error"], HasSubstr("no-such-program: command not found"));
}

}  // namespace
}  // namespace tutti::launch
