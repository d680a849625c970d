// Covers: batch_ai_definitions.cc, commands/node_cordon.cc, commands/node_check.cc,
// command_definitions.cc, model_definitions.cc, site_definitions.cc, cluster_definitions.cc,
// script_definitions.cc, commands/built_environments.cc, commands/job_delete.cc,
// commands/job_list.cc, commands/job_diff.cc, commands/job_show.cc, commands/job_stream.cc,
// commands/job_wait.cc, commands/models/model_commands.cc, commands/models/score_models.cc,
// commands/monitoring/job_stacks.cc, commands/monitoring/tensorboard_command.cc,
// commands/node_list.cc, commands/plan_nodes.cc, commands/run.cc, connection/service_client.cc.
#include "platform/client/command_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "platform/client/connection/connection_fake.h"
#include "spec/site/compute_file.h"

namespace tutti::client {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class CommandParserTest : public testing::Test {
 protected:
  CommandParserTest() {
    wiring_.version = "0.1.0";
    wiring_.serve = [this](const ServeOptions& options) {
      served_ = options;
      return absl::OkStatus();
    };
    wiring_.launch = [this](const std::filesystem::path& plan) {
      launched_ = plan;
      return absl::OkStatus();
    };
  }

  absl::StatusOr<ParsedCommand> Parse(const std::vector<std::string>& arguments) {
    parser_ = std::make_unique<CommandParser>(wiring_);
    return parser_->Parse(arguments);
  }

  // Runs the command against the fake service; what it wrote is in out_ and err_.
  absl::StatusOr<ExitCode> Do(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    const auto command = Parse(arguments);
    if (!command.ok()) return command.status();
    Context context{fake_.connect(), home_, "/programs", "0.1.0", out_, err_, {}, {}, build_};
    return command->run(context);
  }

  std::string Wrong(const std::vector<std::string>& arguments) {
    const auto command = Parse(arguments);
    EXPECT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(command.status().message());
  }

  FakeService::Answer Handle(const http::ClientRequest& request) {
    const std::string call = absl::StrCat(request.method, " ", request.target);
    if (request.method == "POST") posted_ = request.body;
    const auto found = answers_.find(call);
    if (found == answers_.end()) return {.status = 404, .chunks = {"{}"}};
    return found->second;
  }

  std::map<std::string, FakeService::Answer> answers_;
  std::string posted_;  // the body of the last POST
  std::filesystem::path home_ = "/home";
  BuildEnvironment build_;
  FakeService fake_{[this](const http::ClientRequest& request) { return Handle(request); }};
  Wiring wiring_;
  std::unique_ptr<CommandParser> parser_;
  std::ostringstream out_, err_;
  ServeOptions served_;
  std::filesystem::path launched_;
};

constexpr char kFailedJob[] =
    R"({"id": "brave_ant", "state": "Failed", "reason": "rank 1: exit code 3",
  "compute": "local", "node_count": 2, "world_size": 2, "created": "2026-01-01T00:00:00Z",
  "started": "2026-01-01T00:00:01Z", "ended": "2026-01-01T00:00:05Z",
  "failures": [{"rank": 1, "node": "n2", "what": "exit code 3", "consequence": false},
               {"rank": 0, "node": "n1", "what": "lost rank 1", "consequence": true}],
  "events": [{"time": "2026-01-01T00:00:00Z", "state": "Queued", "reason": "waits"}]})";

TEST_F(CommandParserTest, HelpNamesEveryCommandAndTheExitCodes) {
  const auto help = Parse({"--help"});
  ASSERT_TRUE(help.ok());
  for (const char* word :
       {"serve", "run", "job", "node", "backup", "restore", "doctor", "score", "top", "bench",
        "plan", "completion", "Exit codes", "TUTTI_HOME", "--home"}) {
    EXPECT_THAT(help->text, HasSubstr(word));
  }
  EXPECT_THAT(help->text, Not(HasSubstr("launch")));
  EXPECT_THAT(help->text, Not(HasSubstr("__complete")));
  EXPECT_EQ(Parse({"--version"})->text, "tutti 0.1.0\n");
  EXPECT_THAT(Parse({"job", "stream", "--help"})->text, HasSubstr("--rank"));
}

TEST_F(CommandParserTest, SaysWhatIsWrongAndWhatWasMeant) {
  EXPECT_EQ(Wrong({"jobs"}),
            "unknown command \"jobs\" (did you mean \"job\"?); see `tutti --help`");
  EXPECT_THAT(Wrong({"job", "frobnicate"}), HasSubstr("unknown command \"frobnicate\";"));
  EXPECT_THAT(Wrong({"submit", "job.yml"}), HasSubstr("did you mean `tutti job create`?"));
  EXPECT_THAT(Wrong({"job", "logs", "x"}), HasSubstr("did you mean `tutti job stream`?"));
  EXPECT_THAT(Wrong({"cancel", "x"}), HasSubstr("did you mean `tutti job cancel`?"));
  EXPECT_THAT(Wrong({"squeue"}), HasSubstr("did you mean `tutti job list`?"));
  EXPECT_THAT(Wrong({"job", "list", "--limt", "3"}), HasSubstr("did you mean \"--limit\"?"));
  EXPECT_THAT(Wrong({"run", "train.py", "--epochs", "5"}),
              HasSubstr("a program's own arguments are written after --"));
  EXPECT_THAT(Wrong({"job", "list", "-o", "xml"}), HasSubstr("table, json and yaml"));
  EXPECT_THAT(Wrong({"job", "show"}), HasSubstr("tutti job show --help"));
  EXPECT_EQ(Wrong({"run"}),
            "say what is run: a job file or a script, as in tutti run train.py; see `tutti run "
            "--help`");
  EXPECT_THAT(Wrong({"job", "validate"}), HasSubstr("say which file"));
  EXPECT_THAT(Wrong({"job", "wait", "x", "--timeout", "soon"}), HasSubstr("90s"));
  EXPECT_THAT(Wrong({"serve", "--nodes", "0"}), HasSubstr("--nodes"));
  EXPECT_THAT(Parse({})->text, HasSubstr("Runs training jobs"));
  EXPECT_THAT(Parse({"job"})->text, HasSubstr("validate"));
}

TEST_F(CommandParserTest, ConvertsAFileOfBatchAiByTheOptionsThatItsCommandsHad) {
  const base::TemporaryDirectory folder("batchai");
  const std::string file = (folder.path() / "job.json").string();
  ASSERT_TRUE(base::WriteFileAtomic(file, R"({"properties": {"nodeCount": 2, "mountVolumes": {
      "azureBlobFileSystems": [{"accountName": "<AZURE_BATCHAI_STORAGE_ACCOUNT>",
                                "containerName": "c", "relativeMountPath": "v"}]},
      "secrets": [{"name": "S", "value": "hunter2"}],
      "horovodSettings": {"pythonScriptFilePath": "a.py"}}})")
                  .ok());
  const auto code = Do({"batchai", "convert", "-f", file, "-n", "one", "-c", "local", "-e", "mnist",
                        "-g", "group", "-w", "space", "--storage-account-name", "acme"});
  ASSERT_TRUE(code.ok()) << code.status();
  for (const char* text : {"name: \"one\"", "compute: local", "experiment_name: \"mnist\"",
                           "https://acme.blob.core.windows.net/c/", "type: mpi"}) {
    EXPECT_THAT(out_.str(), HasSubstr(text));
  }
  EXPECT_THAT(err_.str(), HasSubstr("tutti secret set one-S"));
  EXPECT_THAT(out_.str() + err_.str(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Do({"batchai", "job", "create", file}).status().message(),
              HasSubstr("--storage-account-name"));
  EXPECT_THAT(Wrong({"batchai", "file-server", "create", file, "-n", "x"}), HasSubstr("--folder"));
  EXPECT_THAT(Wrong({"batchai", "cluster", "create", file}), HasSubstr("--name"));
}

TEST_F(CommandParserTest, TakesTheCommandsOfAzBatchAiForItsOwn) {
  const base::TemporaryDirectory home("home");
  home_ = home.path();
  answers_["GET /v1/job-summaries?limit=20"] = {
      .chunks = {absl::StrCat(R"({"jobs": [)", kFailedJob, "]}")}};
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["GET /v1/jobs/brave_ant/stream?follow=true&reports=false"] = {
      .chunks = {R"({"type": "output", "cursor": "2", "rank": 0, "stream": "stdout", "text": "a"})"
                 "\n"}};
  answers_["POST /v1/jobs/brave_ant/cancel"] = {.chunks = {kFailedJob}};
  answers_["DELETE /v1/jobs/brave_ant"] = {.chunks = {"{}"}};
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "local", "address": "127.77.0.1",
                                "state": "idle"}], "warnings": []})"}};
  using Words = std::vector<std::string>;
  const std::pair<Words, Words> kPairs[] = {
      {{"job", "list"}, {"job", "list"}},
      {{"job", "show", "-n", "brave_ant", "-e", "mnist"}, {"job", "show", "brave_ant"}},
      {{"job", "stream", "-j", "brave_ant"}, {"job", "stream", "brave_ant"}},
      {{"job", "wait", "-n", "brave_ant", "--timeout", "9s"}, {"job", "wait", "brave_ant"}},
      {{"job", "terminate", "--name", "brave_ant", "-y"}, {"job", "cancel", "brave_ant"}},
      {{"job", "delete", "--job", "brave_ant", "-y"}, {"job", "delete", "brave_ant"}},
      {{"cluster", "list", "-o", "yaml"}, {"compute", "list", "-o", "yaml"}},
      {{"cluster", "show", "-n", "local"}, {"compute", "show", "local"}},
      {{"cluster", "node", "list", "-c", "local"}, {"node", "list", "--compute", "local"}},
      {{"file-server", "list"}, {"file-server", "list"}}};
  for (const auto& [theirs, ours] : kPairs) {
    Words command = {"batchai"};
    command.insert(command.end(), theirs.begin(), theirs.end());
    command.insert(command.end(), {"-g", "group", "-w", "space"});
    const auto code = Do(command);
    ASSERT_TRUE(code.ok()) << absl::StrJoin(command, " ") << ": " << code.status();
    const std::string shown = out_.str();
    ASSERT_TRUE(Do(ours).ok());
    EXPECT_EQ(shown, out_.str()) << absl::StrJoin(command, " ");
    EXPECT_FALSE(shown.empty());
  }
  EXPECT_THAT(
      std::string(Do({"batchai", "cluster", "delete", "-n", "nc6", "-y"}).status().message()),
      HasSubstr("no compute nc6"));
  for (const char* command : {"show", "delete"}) {
    const Words ours = {"file-server", command, "images"};
    EXPECT_EQ(Do({"batchai", "file-server", command, "-n", "images"}).status(), Do(ours).status());
    EXPECT_EQ(Do(ours).status().code(), absl::StatusCode::kNotFound);
  }
  EXPECT_THAT(Wrong({"batchai", "cluster", "node", "list"}), HasSubstr("--cluster"));
}

TEST_F(CommandParserTest, NamesWhatStandsInPlaceOfAzsOtherCommands) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{"batchai", "workspace", "create", "-n", "w"}, "workspace: there are no workspaces here"},
      {{"batchai", "experiment", "list"}, "tutti batchai job list -e NAME"},
      {{"batchai", "list-usages"}, "tutti top shows the nodes"},
      {{"batchai", "job", "node", "exec"}, "tutti job stacks NAME"},
      {{"batchai", "cluster", "auto-scale", "-n", "c", "--min", "0"},
       "tutti batchai cluster resize -t COUNT"},
      {{"batchai", "job", "create", "-f", "j.json", "--afs-name", "a"},
       "--afs-name: shares are named in the file"}};
  for (const auto& [command, message] : kCases) EXPECT_THAT(Wrong(command), HasSubstr(message));
  EXPECT_THAT(Wrong({"job", "experiment"}), Not(HasSubstr("batchai")));
}

TEST_F(CommandParserTest, ShowsTheNodesOfAJobOfBatchAiInTheOrderOfItsRanks) {
  const base::TemporaryDirectory home("home");
  home_ = home.path();
  answers_["GET /v1/jobs/brave_ant"] = {
      .chunks = {R"({"id": "brave_ant", "state": "Running", "compute": "local",
                     "nodes": ["n3", "n1", "n9"]})"}};
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "local", "address": "127.77.0.1"},
                               {"name": "n2", "compute": "local", "address": "127.77.0.2"},
                               {"name": "n3", "compute": "local", "address": "127.77.0.3"},
                               {"name": "n9", "compute": "hpc", "address": "10.0.0.9"}]})"}};
  const auto code = Do({"batchai", "job", "node", "list", "-j", "brave_ant", "-o", "json"});
  ASSERT_TRUE(code.ok()) << code.status();
  std::vector<std::string> addresses;
  const auto shown = nlohmann::json::parse(out_.str());
  for (const auto& node : shown["nodes"]) {
    addresses.push_back(node["address"]);
  }
  EXPECT_THAT(addresses, ElementsAre("127.77.0.3", "127.77.0.1"));
  EXPECT_THAT(err_.str(), HasSubstr("node n9 of job brave_ant is there no more"));
  answers_["GET /v1/jobs/brave_ant"] = {
      .chunks = {R"({"id": "brave_ant", "state": "Queued", "compute": "local", "nodes": []})"}};
  ASSERT_TRUE(Do({"batchai", "job", "node", "list", "-j", "brave_ant"}).ok());
  EXPECT_THAT(err_.str(), HasSubstr("job brave_ant has no nodes (Queued)"));
}

TEST_F(CommandParserTest, ResizesAClusterThatWasMadeFromAFileAndNoOther) {
  const base::TemporaryDirectory home("home");
  home_ = home.path();
  ASSERT_TRUE(spec::WriteComputes(home_, {{"nc6", {.name = "NC6", .max_instances = 2}}}).ok());
  const auto code = Do({"batchai", "cluster", "resize", "-n", "nc6", "-t", "3", "-g", "group"});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(out_.str(), "a job may have 3 nodes of azureml:NC6\n");
  EXPECT_EQ(spec::ReadComputes(home_)->at("nc6").max_instances, 3);
  const auto refused = [this](const std::string& name, const std::string& target) {
    return Do({"batchai", "cluster", "resize", "-n", name, "-t", target}).status();
  };
  EXPECT_THAT(refused("nc6", "0").message(), HasSubstr("cluster delete -n nc6"));
  EXPECT_THAT(refused("local", "3").message(), HasSubstr("--as local"));
  EXPECT_EQ(refused("nowhere", "3").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(spec::ReadComputes(home_)->at("nc6").max_instances, 3);
}

TEST_F(CommandParserTest, ListsTheJobsOfAnExperimentOfBatchAi) {
  answers_["GET /v1/job-summaries?limit=1000"] = {
      .chunks = {R"({"jobs": [{"id": "a", "experiment_name": "mnist",
                               "created": "2026-01-01T00:00:00Z"},
                              {"id": "b", "experiment_name": "cifar",
                               "created": "2026-01-01T00:00:00Z"}]})"}};
  ASSERT_TRUE(Do({"batchai", "job", "list", "-e", "mnist", "-w", "space"}).ok());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\na "), Not(HasSubstr("\nb "))));
}

TEST_F(CommandParserTest, StorageSaysWhatItNeeds) {
  EXPECT_THAT(Parse({"storage"})->text, HasSubstr("cp"));
  for (const char* command : {"cp", "mv", "sync", "rm"}) {
    EXPECT_THAT(Parse({"storage", command, "--help"})->text,
                AllOf(HasSubstr("--dry-run"), HasSubstr("--output")));
  }
  EXPECT_THAT(Wrong({"storage", "ls"}), HasSubstr("tutti storage ls --help"));
  EXPECT_THAT(Do({"storage", "cp", "job:x/y"}).status().message(), HasSubstr("where to"));
  EXPECT_THAT(Do({"storage", "rm", "ftp://x"}).status().message(),
              HasSubstr("azureml://datastores/NAME/paths/PATH"));
}

TEST_F(CommandParserTest, ServesAndLaunchesByWhatItWasGiven) {
  ASSERT_TRUE(Do({"serve", "--nodes", "3", "--port", "0", "--home", "/x"}).ok());
  EXPECT_EQ(served_.nodes, 3);
  EXPECT_TRUE(served_.usage);
  EXPECT_EQ(served_.port, 0);
  EXPECT_EQ(served_.home, "/home");  // the context's
  ASSERT_TRUE(Do({"serve", "--no-usage"}).ok());
  EXPECT_FALSE(served_.usage);
  EXPECT_EQ(served_.tls, true);
  ASSERT_TRUE(Do({"serve", "--no-tls"}).ok());
  EXPECT_EQ(served_.tls, false);
  EXPECT_EQ(served_.mlflow, false);
  ASSERT_TRUE(Do({"serve", "--tls", "--mlflow"}).ok());
  EXPECT_EQ(served_.tls, true);
  EXPECT_EQ(served_.mlflow, true);
  EXPECT_EQ(Parse({"serve", "--home", "/x"})->home, "/x");
  EXPECT_EQ(Parse({"--home", "/x", "job", "list"})->home, "/x");
  ASSERT_TRUE(Do({"launch", "--plan", "/p"}).ok());
  EXPECT_EQ(launched_, "/p");
}

TEST_F(CommandParserTest, ABackupOfAFolderWithoutAServiceIsRefused) {
  EXPECT_THAT(Wrong({"backup"}), HasSubstr("tutti backup --help"));
  EXPECT_THAT(Wrong({"restore", "file", "--with-results"}), HasSubstr("--with-results"));
  const absl::Status refused = Do({"backup", "file", "--with-results"}).status();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has no service's state"));
  EXPECT_TRUE(absl::IsNotFound(Do({"restore", "/no/such/file"}).status()));
}

TEST_F(CommandParserTest, ShowsAJobWithItsFailures) {
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("Failed: rank 1: exit code 3"));
  EXPECT_THAT(out_.str(), HasSubstr("rank 0 on n1: lost rank 1 (a consequence)"));
  EXPECT_THAT(out_.str(), HasSubstr("Queued       waits"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("Use")));
  ASSERT_TRUE(Do({"job", "show", "brave_ant", "-o", "yaml"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("id: brave_ant\n"));
}

TEST_F(CommandParserTest, ShowsWhatAJobHasUsed) {
  nlohmann::json job = nlohmann::json::parse(kFailedJob);
  job["nodes"] = {"n1", "n2"};
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {job.dump()}};
  answers_["GET /v1/jobs/brave_ant/usage?"] = {
      .chunks = {
          R"({"live": false, "nodes": [{"whole": {"cpu": [1, 2], "memory": [3e9, 2e9]}}]})"}};
  ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
  const std::string memory = "\n  memory  mean 2.50 GB, peak 3.00 GB\n";
  EXPECT_THAT(out_.str(), HasSubstr("\nUse\n  cpu     mean 1.50 cores, peak 2.00" + memory));
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "local", "cores": [0]},
                               {"name": "n2", "compute": "other", "cores": [0]}]})"}};
  ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("mean 1.50 cores, peak 2.00" + memory)) << "n2 is not known";
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "local", "cores": [0]},
                               {"name": "n2", "compute": "local", "cores": [1, 2]},
                               {"name": "n3", "compute": "local", "cores": [3]}]})"}};
  ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("mean 1.50 of 3 cores, peak 2.00" + memory));
  job["part"] = {{"cpus", 2}};
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {job.dump()}};
  ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("mean 1.50 of 4 cores, peak 2.00" + memory));
}

TEST_F(CommandParserTest, ShowsAJobOfWhichNoUseIsKnown) {
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  for (const char* nothing : {"[]", R"({"live": true, "problems": [], "nodes": []})"}) {
    answers_["GET /v1/jobs/brave_ant/usage?"] = {.chunks = {nothing}};
    ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
    EXPECT_THAT(out_.str(), AllOf(HasSubstr("Events"), Not(HasSubstr("Use")))) << nothing;
  }
}

TEST_F(CommandParserTest, ShowsWhatDiffersFromTheScriptsLastJob) {
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["GET /v1/jobs/brave_ant/submission"] = {
      .chunks = {R"({"job": {"command": "train --lr 0.01", "instance_count": 2}})"}};
  answers_["GET /v1/jobs/brave_ant/submission?former=true"] = {
      .chunks = {R"({"former": "old", "job": {"command": "train"}})"}};
  answers_["GET /v1/jobs/old/submission"] = {
      .chunks = {R"({"former": null, "job": {"command": "train --lr 0.1", "instance_count": 1}})"}};
  answers_["GET /v1/jobs/old"] = {.chunks = {R"({"id": "old", "state": "Completed"})"}};
  ASSERT_TRUE(Do({"job", "show", "brave_ant"}).ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("Differs from old: --lr 0.1 -> 0.01; resources.instance_count 1 -> 2\n"));
  ASSERT_TRUE(Do({"job", "diff", "brave_ant"}).ok());
  EXPECT_EQ(out_.str(),
            "From old to brave_ant\nArguments\n  --lr 0.1 -> 0.01\n"
            "Keys\n  resources.instance_count 1 -> 2\n");
  ASSERT_TRUE(Do({"job", "diff", "old", "brave_ant"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("resources.instance_count 2 -> 1"));
  ASSERT_TRUE(Do({"job", "diff", "old", "old"}).ok());
  EXPECT_EQ(out_.str(), "From old to old\nnothing differs\n");
  EXPECT_TRUE(absl::IsNotFound(Do({"job", "diff", "old"}).status()));
}

TEST_F(CommandParserTest, ShowsAPipelineAsATree) {
  answers_["GET /v1/jobs/fit"] = {
      .chunks = {R"({"id": "fit", "type": "pipeline", "state": "Failed", "reason": "step b failed",
        "children": [
          {"step": "a", "type": "sweep", "id": "fit.a", "state": "Completed", "reason": "best trial-1",
           "started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:00:05Z", "children": [
             {"step": "trial-1", "id": "fit.a.trial-1", "state": "Completed", "reason": "ended",
              "values": {"x": "3"}, "metric": 0.25, "best": true, "children": []}]},
          {"step": "b", "id": "fit.b", "state": "Failed", "reason": "exit code 3", "children": []},
          {"step": "c", "id": null, "state": "NotStarted", "reason": "", "children": []}]})"}};
  ASSERT_TRUE(Do({"job", "show", "fit"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("├─ a           Completed       0:05  best trial-1\n"));
  EXPECT_THAT(out_.str(), HasSubstr("│  └─ trial-1  Completed             0.25  best  x=3\n"));
  EXPECT_THAT(out_.str(), HasSubstr("├─ b           Failed                exit code 3\n"));
  EXPECT_THAT(out_.str(), HasSubstr("└─ c           not started"));
}

TEST_F(CommandParserTest, ShowsTheBestTrialsOfASweepThatHasMoreThanWereFetched) {
  answers_["GET /v1/jobs/s"] = {
      .chunks = {R"({"id": "s", "type": "sweep", "state": "Running", "reason": "under way",
        "children": [{"step": "trial-1", "id": "s.trial-1", "state": "Completed", "children": []}],
        "trials": {"count": 900, "states": {"Completed": 898, "Failed": 1, "Running": 1},
          "best": [{"step": "trial-7", "id": "s.trial-7", "state": "Completed", "metric": 0.25,
                    "best": true, "values": {"x": "3"}, "children": []}],
          "failed": [{"step": "trial-9", "id": "s.trial-9", "state": "Failed",
                      "reason": "exit code 3", "children": []}], "next": "101"}})"}};
  ASSERT_TRUE(Do({"job", "show", "s"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("Trials       900: 898 completed, 1 failed, 1 running\n"
                                    "  ├─ trial-7  Completed             0.25  best  x=3\n"
                                    "  ├─ trial-9  Failed                exit code 3\n"
                                    "  └─ 898 others: tutti job show s --all\n"));
  answers_["GET /v1/jobs/s/trials?limit=1000&after=101"] = {
      .chunks = {R"({"trials": [{"step": "trial-2", "state": "Running", "children": []}],
                     "next": null})"}};
  ASSERT_TRUE(Do({"job", "show", "s", "--all"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("Trials\n  ├─ trial-1  Completed"));
  EXPECT_THAT(out_.str(), HasSubstr("  └─ trial-2  Running"));
  ASSERT_TRUE(Do({"job", "show", "s", "--all", "-o", "json"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("\"step\": \"trial-2\""));
}

TEST_F(CommandParserTest, ShowsTheNewestEventsAndHowToSeeTheOthers) {
  std::string events;
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(&events, i == 1 ? "" : ",",
                    R"({"time": "2026-01-01T00:00:00Z", "state": "Running", "reason": "line )", i,
                    R"("})");
  }
  answers_["GET /v1/jobs/j"] = {
      .chunks = {absl::StrCat(R"({"id": "j", "state": "Running", "events": [)", events,
                              R"(], "events_before": null})")}};
  ASSERT_TRUE(Do({"job", "show", "j"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("older ones: tutti job show j --all\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("line 10\n")));
  EXPECT_THAT(out_.str(), HasSubstr("line 11\n"));
  ASSERT_TRUE(Do({"job", "show", "j", "--all"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("line 1\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("older ones")));
}

TEST_F(CommandParserTest, ShowsWhatAJobHasOfItsNodes) {
  answers_["GET /v1/jobs/small"] = {
      .chunks = {R"({"id": "small", "state": "Running", "reason": "", "nodes": ["n1", "n2"],
        "part": {"cpus": 2, "memory_bytes": 500000000, "gpus": 1},
        "parts": [{"node": "n1", "cores": [0, 1], "memory_bytes": 500000000, "gpus": ["3"]},
                  {"node": "n2", "cores": [4, 7], "memory_bytes": 500000000, "gpus": ["0"]}]})"}};
  ASSERT_TRUE(Do({"job", "show", "small"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("Part         2 cores, 500 MB, 1 GPU of each node\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Nodes        n1 (cores 0-1, 500 MB, GPU 3) "
                                    "n2 (cores 4,7, 500 MB, GPU 0)\n"));
}

TEST_F(CommandParserTest, ListsJobsAndNodes) {
  answers_["GET /v1/job-summaries?limit=20&state=Failed"] = {
      .chunks = {absl::StrCat(R"({"jobs": [)", kFailedJob, "]}")}};
  ASSERT_TRUE(Do({"job", "list", "--state", "Failed"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("brave_ant  Failed"));
  EXPECT_THAT(out_.str(), HasSubstr("0:04  rank 1: exit code 3"));
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "hpc", "address": "127.77.0.1",
                                "cores": [0, 1, 2, 5], "memory_bytes": 2000000000, "state": "unusable",
                                "reason": "a new disk", "job": null},
                                {"name": "n2", "compute": "local", "address": "127.77.0.2",
                                "cores": [0, 1, 2, 3], "memory_bytes": 2000000000, "state": "running",
                                "gpus": ["0", "1"], "job": "a", "jobs": ["a", "b"],
                                "used": {"cores": 3, "memory_bytes": 500000000, "gpus": 1}}],
                     "warnings": ["compute b does not answer"]})"}};
  ASSERT_TRUE(Do({"node", "list"}).ok());
  EXPECT_THAT(out_.str(), ::testing::ContainsRegex(
                              "n1 +hpc +127.77.0.1 +unusable +0-2,5 +2.00 GB +a new disk"));
  EXPECT_THAT(out_.str(),
              ::testing::ContainsRegex(
                  "n2 +local +127.77.0.2 +running +0-3 +3/4 +500 MB/2.00 GB +1/2 +a b"));
  EXPECT_EQ(err_.str(), "warning: compute b does not answer\n");
}

TEST_F(CommandParserTest, ListsTheNodesOfOneCompute) {
  const base::TemporaryDirectory home("home");
  home_ = home.path();
  ASSERT_TRUE(base::WriteFileAtomic(home_ / "site.yml", "computes: {gpu-cluster: local}\n").ok());
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "hpc", "address": "10.0.0.1",
                                "state": "idle"},
                                {"name": "n2", "compute": "local", "address": "127.77.0.2",
                                "state": "idle"}],
                     "file_servers": [{"name": "photos", "address": "10.0.0.5", "port": 2049,
                                       "state": "running"}], "warnings": []})"}};
  ASSERT_TRUE(Do({"node", "list", "--compute", "GPU-Cluster"}).ok());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("n2"), Not(HasSubstr("n1")), Not(HasSubstr("photos"))));
  // One of the service's, which this machine does not know.
  ASSERT_TRUE(Do({"node", "list", "--compute", "hpc", "-o", "json"}).ok());
  const auto listed = nlohmann::json::parse(out_.str());
  EXPECT_EQ(listed["nodes"].size(), 1);
  EXPECT_EQ(listed["nodes"][0]["name"], "n1");
  EXPECT_TRUE(listed["file_servers"].empty());
  const absl::Status unknown = Do({"node", "list", "--compute", "nowhere"}).status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("tutti compute list"));
}

TEST_F(CommandParserTest, ListsFileServersBelowTheNodes) {
  const std::string node =
      R"({"name": "n1", "compute": "local", "address": "127.77.0.1", "state": "idle"})";
  answers_["GET /v1/nodes"] = {
      .chunks = {absl::StrCat(R"({"nodes": [)", node, R"(], "file_servers": []})")}};
  ASSERT_TRUE(Do({"node", "list"}).ok());
  const std::string nodes = out_.str();
  EXPECT_THAT(nodes, Not(HasSubstr("FILL")));
  answers_["GET /v1/nodes"] = {.chunks = {absl::StrCat(R"({"nodes": [)", node, R"(], "file_servers":
      [{"name": "photos", "address": "10.0.0.5", "port": 2049, "state": "running", "fill":
        {"state": "filling", "files": 12, "of_files": 64, "bytes": 12000, "of_bytes": 64000}},
       {"name": "sets", "address": "10.0.0.5", "port": 2050, "state": "failed",
        "reason": "its port is in use", "fill": null},
       {"name": "words", "address": "10.0.0.5", "port": 2051, "state": "running", "fill":
        {"state": "cut off", "files": 1, "of_files": 2, "bytes": 3, "of_bytes": 4,
         "reason": "the store is away"}}]})")}};
  ASSERT_TRUE(Do({"node", "list"}).ok());
  EXPECT_EQ(out_.str(), absl::StrCat(nodes, R"(
NAME    ADDRESS                    STATE    FILL
photos  nfs://10.0.0.5/photos      running  filling: 12 of 64 files, 12.0 kB of 64.0 kB
sets    nfs://10.0.0.5:2050/sets   failed
words   nfs://10.0.0.5:2051/words  running  cut off: 1 of 2 files, 3 B of 4 B
sets: its port is in use
words: its fill was cut off: the store is away
)"));
}

TEST_F(CommandParserTest, CordonsNodes) {
  answers_["PUT /v1/nodes/local/n1/cordon"] = {.chunks = {"{}"}};
  answers_["DELETE /v1/nodes/local/n1/cordon"] = {.chunks = {"{}"}};
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "local", "address": "127.77.0.1",
                                "cores": [0], "memory_bytes": 2000000000, "state": "cordoned",
                                "reason": "by a user", "job": "brave_ant"}], "warnings": []})"}};
  ASSERT_TRUE(Do({"node", "cordon", "n1"}).ok());
  EXPECT_EQ(out_.str(), "n1 is cordoned: no job starts on it; job brave_ant goes on there\n");
  ASSERT_TRUE(Do({"node", "uncordon", "n1"}).ok());
  EXPECT_EQ(out_.str(), "n1 takes jobs again\n");
}

TEST_F(CommandParserTest, SetsListsAndDeletesSecrets) {
  answers_["PUT /v1/secrets/hub"] = {.chunks = {"{}"}};
  answers_["DELETE /v1/secrets/hub"] = {.chunks = {R"({"failed_jobs": ["brave_ant"]})"}};
  answers_["POST /v1/secret-rotations"] = {.chunks = {R"({"secrets": 2})"}};
  answers_["GET /v1/secrets"] = {
      .chunks = {R"({"secrets": [{"name": "hub", "created": "2026-11-25T10:00:00.000000Z", "set":
                    "2026-11-25T11:00:00.000000Z", "readable": false, "waiting_jobs":
                    ["brave_ant"]}]})"}};
  const base::TemporaryDirectory folder;
  const std::string file = folder.path() / "value";
  ASSERT_TRUE(base::WriteFileAtomic(file, "hunter22\n").ok());
  ASSERT_TRUE(Do({"secret", "set", "hub", "--file", file}).ok());
  EXPECT_EQ(out_.str(), "secret hub is set\n");
  EXPECT_FALSE(Do({"secret", "set", "hub", "hunter22"}).ok()) << "no value is an argument";
  ASSERT_TRUE(Do({"secret", "list"}).ok());
  EXPECT_EQ(out_.str(),
            "NAME  CREATED              SET                  KEY      WAITING\n"
            "hub   2026-11-25T10:00:00  2026-11-25T11:00:00  missing  brave_ant\n");
  ASSERT_TRUE(Do({"secret", "delete", "hub", "--yes"}).ok());
  EXPECT_EQ(out_.str(), "secret hub is deleted\nfailed, since they waited for it: brave_ant\n");
  ASSERT_TRUE(Do({"secret", "rotate"}).ok());
}

constexpr char kModelVersion[] = R"({"id": "azureml:net:2", "name": "net", "version": "2",
  "type": "custom_model", "description": "", "stage": null, "tags": {"a": "b"}, "properties": {},
  "aliases": ["best"], "archived": false, "created": "2026-01-01T00:00:00Z", "file_count": 1,
  "bytes": 5, "lineage": {"job": "brave_ant"}, "files": [{"path": "w", "bytes": 5}]})";

TEST_F(CommandParserTest, MakesAPythonEnvironmentWhereTheNodesOfTheJobLookForIt) {
  const base::TemporaryDirectory folder;
  const auto write = [&](const char* name, absl::string_view text) {
    EXPECT_TRUE(base::WriteFileAtomic(folder.path() / name, text).ok());
    return (folder.path() / name).string();
  };
  home_ = folder.path();
  std::vector<std::string> made;
  build_ = [&](const spec::Environment& environment, const std::filesystem::path& environments,
               bool nodes_have_gpus) -> absl::StatusOr<BuiltEnvironment> {
    made.push_back(absl::StrCat(environments.string(), nodes_have_gpus ? " gpu" : " cpu"));
    for (const auto& package : environment.packages)
      absl::StrAppend(&made.back(), " ", package.text);
    return BuiltEnvironment{environments / "key", "as it is"};
  };
  write("site.yml",
        "computes: {hpc: {type: slurm, folder: /shared}, apart: {type: slurm, folder: "
        "'node:/tmp'}}\n");
  const std::string list = write("requirements.txt", "six==1.0\n");
  const std::string job = write("job.yml",
                                "{\"command\": \"true\", \"compute\": \"hpc\", "
                                "\"environment\": {\"conda_file\": \"requirements.txt\"}}");
  ASSERT_TRUE(Do({"environment", "build", "--no-gpu", job}).ok());
  EXPECT_EQ(out_.str(), "/shared/environments/key\n");
  EXPECT_THAT(err_.str(), HasSubstr("note: as it is\n"));
  ASSERT_TRUE(Do({"environment", "build", "--gpu", "--compute", "hpc", list}).ok());
  ASSERT_TRUE(Do({"environment", "build", "--no-gpu", list}).ok());
  EXPECT_THAT(made,
              ElementsAre("/shared/environments cpu six==1.0", "/shared/environments gpu six==1.0",
                          (home_ / "environments").string() + " cpu six==1.0"));
  EXPECT_THAT(
      std::string(Do({"environment", "build", "--compute", "apart", list}).status().message()),
      HasSubstr("the nodes of compute apart share no folder"));
  build_ = [](auto&&...) { return absl::UnavailableError("no way to the package index (x)"); };
  const absl::Status away = Do({"environment", "build", list}).status();
  EXPECT_THAT(std::string(away.message()),
              HasSubstr("this machine has no way to the package index"));
  EXPECT_EQ(ExitCodeOf(away), ExitCode::kUsage);
}

TEST_F(CommandParserTest, ListsTheEnvironmentsThatWereMadeWithoutPasswords) {
  const base::TemporaryDirectory folder;
  home_ = folder.path();
  EXPECT_TRUE(Do({"environment", "list"}).ok());
  EXPECT_THAT(out_.str(), Not(HasSubstr("KEY")));
  const std::filesystem::path made = home_ / "environments/0123abcd";
  ASSERT_TRUE(base::MakeDirectories(made / "lib/python3.11").ok());
  const std::string size(10000, 'x');
  for (const auto& [name, text] :
       {std::pair("complete", std::string()), std::pair("pyvenv.cfg", std::string()),
        std::pair("requirements.txt", std::string("pkg @ https://me:t0ken@host/x.whl\nsix\n")),
        std::pair("lib/python3.11/a.py", size)}) {
    ASSERT_TRUE(base::WriteFileAtomic(made / name, text).ok());
  }
  std::filesystem::create_hard_link(made / "lib/python3.11/a.py", made / "lib/python3.11/b.py");
  ASSERT_TRUE(Do({"environment", "list"}).ok());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("FROM"), HasSubstr("pkg @ https://****@host/x.whl six")));
  EXPECT_THAT(out_.str(), Not(HasSubstr("SIZE")));
  ASSERT_TRUE(Do({"environment", "list", "-o", "json"}).ok());
  EXPECT_THAT(out_.str(), Not(HasSubstr("0123abcd"))) << "its JSON is of names";
  ASSERT_TRUE(Do({"environment", "list", "--built", "-o", "json"}).ok());
  const auto listed = nlohmann::json::parse(out_.str())["environments"];
  EXPECT_EQ(listed[0]["packages"][0], "pkg @ https://****@host/x.whl");
  EXPECT_EQ(listed[0]["bytes"], 10038) << "of two names of a file one counts";
}

TEST_F(CommandParserTest, RemovesEnvironmentsThatNoJobHasTakenForAWhile) {
  constexpr char kOne[] =
      R"({"dry_run": true, "bytes": 5000, "removed": [{"kind": "environments", "name": "0123", "place": null, "bytes": 5000, "last_used": "2026-01-01T00:00:00Z", "why": "unused for 40 days"}]})";
  const std::string call = "POST /v1/prune?dry_run=";
  answers_[call + "true&environments_unused_for=2592000"] = {.chunks = {kOne}};
  answers_[call + "false&environments_unused_for=2592000"] = {
      .chunks = {absl::StrReplaceAll(kOne, {{"true", "false"}})}};
  ASSERT_TRUE(Do({"environment", "prune", "--yes"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("unused for 40 days\n5.00 kB would be removed\n"));
  EXPECT_THAT(out_.str(), EndsWith("5.00 kB removed\n"));
  answers_[call + "true&environments_unused_for=604800"] = {
      .chunks = {R"({"dry_run": true, "removed": []})"}};
  ASSERT_TRUE(Do({"environment", "prune", "--unused-for", "1w"}).ok());
  EXPECT_EQ(out_.str(), "nothing would be removed\n");
  EXPECT_THAT(Wrong({"environment", "prune", "--unused-for", "long"}), HasSubstr("no duration"));
}

TEST_F(CommandParserTest, RegistersAModelAndShowsIt) {
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["POST /v1/models"] = {.status = 201, .chunks = {kModelVersion}};
  answers_["GET /v1/models/net/versions/%40latest"] = {.chunks = {kModelVersion}};
  answers_["GET /v1/models/net/versions/%40best"] = {.chunks = {kModelVersion}};
  ASSERT_TRUE(
      Do({"model", "register", "-n", "net", "--from-job", "brave_ant", "--path", "outputs/m"})
          .ok());
  EXPECT_EQ(out_.str(), "azureml:net:2 is registered (1 file, 5 B)\n");
  ASSERT_TRUE(Do({"model", "show", "net"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("azureml:net:2\ntype          custom_model\n"));
  EXPECT_THAT(out_.str(), HasSubstr("made by\n  job           brave_ant\n"));
  ASSERT_TRUE(Do({"model", "show", "net", "--label", "best"}).ok());
  answers_["PATCH /v1/models/net/versions/2"] = {.chunks = {kModelVersion}};
  answers_["PUT /v1/models/net/aliases/champion"] = {.chunks = {"{}"}};
  ASSERT_TRUE(
      Do({"model", "update", "net", "--tag", "c=d", "--alias", "champion", "--stage", "x"}).ok());
  EXPECT_THAT(fake_.requests(), Contains("PUT /v1/models/net/aliases/champion"));
}

TEST_F(CommandParserTest, SaysWhatIsMissingOfAModel) {
  const auto said = [&](const std::vector<std::string>& arguments) {
    return std::string(Do(arguments).status().message());
  };
  EXPECT_THAT(said({"model", "register", "--path", "/nowhere"}), HasSubstr("has no name"));
  EXPECT_THAT(said({"model", "register", "-n", "net"}), HasSubstr("has no path"));
  EXPECT_THAT(said({"model", "register", "-n", "net", "--path", "/nowhere"}),
              HasSubstr("/nowhere does not exist"));
  EXPECT_THAT(said({"model", "register", "-n", "net", "--path", "x", "--tag", "a"}),
              HasSubstr("--tag a: write KEY=VALUE"));
  EXPECT_THAT(said({"model", "create", "--file", "/nowhere.yml"}), HasSubstr("/nowhere.yml"));
  EXPECT_THAT(said({"model", "delete", "net"}), HasSubstr("say --yes"));
  EXPECT_THAT(Wrong({"model", "register", "-n", "net", "--from-job", "j"}), HasSubstr("--path"));
  EXPECT_THAT(Wrong({"model", "show", "net", "-v", "1", "-l", "best"}), HasSubstr("--version"));
  EXPECT_THAT(Wrong({"model", "delete", "net", "-v", ""}), HasSubstr("is empty"));
  EXPECT_THAT(Wrong({"model", "show"}), HasSubstr("tutti model show --help"));
}

TEST_F(CommandParserTest, ListsModelsAndTheirVersions) {
  answers_["GET /v1/models?archived=false&limit=1000&after="] = {
      .chunks = {R"({"models": [{"name": "net", "latest": "2", "versions": 2, "created":
                    "2026-01-01T00:00:00Z", "description": "d"}], "after": "net"})"}};
  answers_["GET /v1/models?archived=false&limit=1000&after=net"] = {
      .chunks = {R"({"models": [{"name": "other", "latest": null, "versions": 1, "created":
                    "2026-01-02T00:00:00Z", "description": ""}], "after": null})"}};
  ASSERT_TRUE(Do({"model", "list"}).ok());
  EXPECT_EQ(out_.str(),
            "NAME   LATEST  VERSIONS  CREATED     DESCRIPTION\n"
            "net    2              2  2026-01-01  d\n"
            "other                 1  2026-01-02\n");
  answers_["GET /v1/models/net/versions?limit=1000&before=0"] = {
      .chunks = {absl::StrCat(R"({"versions": [)", kModelVersion,
                              R"(, {"version": "1", "archived": true}], "before": null})")}};
  ASSERT_TRUE(Do({"model", "list", "--name", "net"}).ok());
  EXPECT_EQ(out_.str(),
            "VERSION  TYPE          STAGE  ALIASES  SIZE  CREATED     DESCRIPTION\n"
            "2        custom_model         best      5 B  2026-01-01\n");
  ASSERT_TRUE(Do({"model", "list", "--name", "net", "--archived"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("1 (archived)"));
}

TEST_F(CommandParserTest, LooksAtANodeOrAtAll) {
  answers_["GET /v1/nodes"] = {
      .chunks = {R"({"nodes": [{"name": "n1", "compute": "local"}, {"name": "n2", "compute":
                    "local"}, {"name": "gpu1", "compute": "hpc"}], "warnings": []})"}};
  answers_["POST /v1/nodes/local/n1/check"] = {
      .chunks = {R"({"checks": [{"name": "disk", "outcome": "ok", "detail": "9 GiB free"}]})"}};
  answers_["POST /v1/nodes/local/n2/check"] = {
      .chunks = {R"({"checks": [{"name": "gpu", "outcome": "ill", "detail": "GPU 1 is gone"}]})"}};
  EXPECT_EQ(*Do({"node", "check", "n1"}), ExitCode::kOk);
  EXPECT_EQ(out_.str(),
            "NODE  CHECK  FOUND  DETAIL\n"
            "n1    disk   ok     9 GiB free\n");
  EXPECT_EQ(*Do({"node", "check"}), ExitCode::kJobFailed);
  EXPECT_EQ(out_.str(),
            "NODE  CHECK  FOUND  DETAIL\n"
            "n1    disk   ok     9 GiB free\n"
            "n2    gpu    ill    GPU 1 is gone\n");
}

// A line of the stream of a job's output.
std::string StreamedLine(const std::string& stream, int rank, const std::string& text) {
  return nlohmann::json{{"type", "output"}, {"cursor", "1"},    {"time", "2026-01-01T00:00:02Z"},
                        {"rank", rank},     {"stream", stream}, {"text", text}}
             .dump() +
         "\n";
}

TEST_F(CommandParserTest, PlansFromTheMetricsOfAJobOfOneNode) {
  const auto error = [&](const std::vector<std::string>& words) {
    return std::string(Do(words).status().message());
  };
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  EXPECT_THAT(error({"plan", "brave_ant"}), HasSubstr("has 2 nodes"));
  EXPECT_THAT(error({"plan", "--nodes", "4", "--price=3", "brave_ant"}), HasSubstr("has 2 nodes"));
  const std::string one =
      absl::StrReplaceAll(kFailedJob, {{"\"node_count\": 2", "\"node_count\": 1"}});
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {one}};
  const std::string stream = "GET /v1/jobs/brave_ant/stream?follow=false";
  answers_[stream] = {.chunks = {StreamedLine("stdout", 0, "hello")}};
  EXPECT_THAT(error({"plan", "brave_ant", "--nodes", "4"}), HasSubstr("has no metrics"));
  answers_[stream] = {
      .chunks = {StreamedLine("metrics", 1, "{}"), StreamedLine("metrics", 0, "{}")}};
  EXPECT_THAT(error({"plan", "brave_ant"}), HasSubstr("tutti-bench is not beside this program"));
  answers_.clear();
  for (const char* word : {"--help", "recipe.yml", "./recipe", "plan.json"}) {
    EXPECT_THAT(error({"plan", word}), HasSubstr("tutti-bench is not beside")) << word;
  }
}

TEST_F(CommandParserTest, StartsTensorBoardOverEventFiles) {
  const base::TemporaryDirectory folder;
  const std::string said = (folder.path() / "said").native();
  const std::string script = absl::StrCat(
      "#!/bin/sh\n(echo \"$1 $3 $4\"; /usr/bin/find \"$2\" "
      "-type f -printf '%P\\n') >",
      said, "\nexit $5\n");
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "tensorboard", script, 0755).ok());
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["GET /v1/jobs/brave_ant/files"] = {.chunks = {R"({"files": []})"}};
  const auto none = Do({"tensorboard", "brave_ant"});
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("tutti-train --tensorboard"));
  answers_["GET /v1/jobs/brave_ant/files"] = {
      .chunks = {R"({"files": [{"path": "outputs/tb/events.out.tfevents.1", "bytes": 1}]})"}};
  answers_["GET /v1/jobs/brave_ant/files/outputs/tb/events.out.tfevents.1"] = {.chunks = {"x"}};
  EXPECT_EQ(*Do({"tensorboard", "brave_ant", "--", "--port", "0"}), ExitCode::kOk);
  EXPECT_EQ(*base::ReadFile(said),
            "--logdir --port 0\nbrave_ant/outputs/tb/events.out.tfevents.1\n");
  EXPECT_THAT(
      std::string(Do({"tensorboard", "brave_ant", "--", "--x", "y", "3"}).status().message()),
      HasSubstr("tensorboard ended with exit code 3"));
  EXPECT_TRUE(absl::IsInvalidArgument(Do({"tensorboard", "--", "--port"}).status()));
  ASSERT_TRUE(std::filesystem::remove(folder.path() / "tensorboard"));
  EXPECT_THAT(std::string(Do({"tensorboard", "brave_ant"}).status().message()),
              HasSubstr("pip install tensorboard"));
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(CommandParserTest, AsksForStacksAndFailsIfNoRankHasAnswered) {
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["POST /v1/jobs/brave_ant/stacks?wait=5&rank=3&native=true"] = {
      .chunks = {R"json({"job": "brave_ant", "groups": [{"ranks": [3], "shown": 3, "note": null,
          "processes": [{"pid": 7, "command": "train", "python": "f (a.py:1)", "native": null,
          "kernel": null, "notes": []}]}], "missing": []
})json"}};
  const auto shown = Do({"job", "stacks", "brave_ant", "--rank", "3", "--native", "--wait", "5"});
  EXPECT_EQ(*shown, ExitCode::kOk);
  EXPECT_EQ(out_.str(), "rank 3:\n  train (process 7)\n    f (a.py:1)\n");
  answers_["POST /v1/jobs/brave_ant/stacks?wait=60"] = {
      .chunks = {R"({"job": "brave_ant", "groups": [],
          "missing": [{"node": "n1", "ranks": [0], "why": "it is old"}]})"}};
  EXPECT_EQ(*Do({"job", "stacks", "brave_ant"}), ExitCode::kSystemError);
  EXPECT_EQ(out_.str(), "rank 0 on n1: none: it is old\n");
  EXPECT_EQ(*Do({"job", "stacks", "brave_ant", "-o", "json"}), ExitCode::kSystemError);
  EXPECT_THAT(out_.str(), HasSubstr("\"missing\""));
  EXPECT_THAT(Wrong({"job", "stacks", "brave_ant", "--wait", "301"}), HasSubstr("--wait"));
}

TEST_F(CommandParserTest, TheExitCodeOfWaitIsTheJobs) {
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  EXPECT_EQ(*Do({"job", "wait", "brave_ant"}), ExitCode::kJobFailed);
  EXPECT_EQ(out_.str(), "Failed after 0:04: rank 1: exit code 3\n");
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {R"({"id": "brave_ant", "state": "Running"})"}};
  EXPECT_EQ(ExitCodeOf(Do({"job", "wait", "brave_ant", "--timeout", "0.01"}).status()),
            ExitCode::kDeadline);
  EXPECT_EQ(ExitCodeOf(Do({"job", "wait", "calm_bee"}).status()), ExitCode::kNotFound);
}

TEST_F(CommandParserTest, RunFollowsAJobAndEndsWithItsResult) {
  const base::TemporaryDirectory folder;
  const std::string file = (folder.path() / "job.yml").string();
  ASSERT_TRUE(base::WriteFileAtomic(file,
                                    "type: command\ncommand: echo hi\ncompute: local\n"
                                    "environment: host\n")
                  .ok());
  answers_["POST /v1/jobs"] = {.status = 201, .chunks = {R"({"id": "brave_ant"})"}};
  answers_["GET /v1/jobs/brave_ant/stream?follow=true&reports=false"] = {
      .chunks = {R"({"type": "output", "cursor": "1", "rank": 0, "stream": "stdout", "text": "hi"})"
                 "\n"}};
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  EXPECT_EQ(*Do({"run", file}), ExitCode::kJobFailed);
  EXPECT_THAT(out_.str(), HasSubstr("[0] hi\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Failed after 0:04: rank 1: exit code 3\n"));

  EXPECT_EQ(*Do({"run", file, "-o", "json"}), ExitCode::kJobFailed);
  EXPECT_THAT(err_.str(), HasSubstr("[0] hi\n"));
  EXPECT_TRUE(absl::StartsWith(out_.str(), "{")) << out_.str();

  EXPECT_EQ(*Do({"job", "create", file}), ExitCode::kOk);
  EXPECT_EQ(out_.str(), "brave_ant\n");
}

TEST_F(CommandParserTest, AJobIsResumedFromAnEarlierOneOrFromItself) {
  const base::TemporaryDirectory folder;
  const std::string file = (folder.path() / "job.yml").string();
  ASSERT_TRUE(base::WriteFileAtomic(file, "command: echo hi\nenvironment: host\n").ok());
  answers_["POST /v1/jobs"] = {.status = 201, .chunks = {R"({"id": "calm_bee"})"}};
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["GET /v1/jobs/brave_ant/submission"] = {
      .chunks = {R"({"file": "job.yml", "base_directory": "/", "text": "command: echo hi\n"})"}};
  answers_["GET /v1/jobs?limit=1"] = {.chunks = {absl::StrCat(R"({"jobs": [)", kFailedJob, "]}")}};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", file, "--resume", "brave_ant", "--detach"},
        {"job", "create", file, "--resume", "last"},
        {"job", "rerun", "brave_ant", "--resume", "--detach"}}) {
    posted_.clear();
    EXPECT_TRUE(Do(words).ok()) << Do(words).status();
    EXPECT_THAT(posted_, HasSubstr("resume: brave_ant")) << words[1];
  }
  EXPECT_TRUE(Do({"job", "rerun", "brave_ant", "--detach"}).ok());
  EXPECT_THAT(posted_, Not(HasSubstr("resume")));
  EXPECT_EQ(ExitCodeOf(Do({"run", file, "--resume", "no_such"}).status()), ExitCode::kNotFound);
}

TEST_F(CommandParserTest, AFaultyJobFileIsNotSent) {
  const base::TemporaryDirectory folder;
  const std::string file = (folder.path() / "job.yml").string();
  ASSERT_TRUE(base::WriteFileAtomic(file, "type: command\ncomand: echo hi\n").ok());
  const absl::Status status = Do({"run", file}).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job.yml:2: unknown key \"comand\""));
  EXPECT_EQ(ExitCodeOf(Do({"run", "/no/such/job.yml"}).status()), ExitCode::kUsage);
  EXPECT_THAT(fake_.requests(), Not(Contains(HasSubstr("POST /v1/jobs"))));
}

// Each once, also those that are known without it.
TEST_F(CommandParserTest, TellsTheServicesFaultsWithThoseOfTheFile) {
  const base::TemporaryDirectory folder;
  const std::string file = (folder.path() / "job.yml").string();
  ASSERT_TRUE(base::WriteFileAtomic(file, "type: command\ncommand: x\nfoo: 1\n").ok());
  const std::string known = absl::StrCat(file, ":3: unknown key \"foo\"");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", file}, {"job", "validate", "-f", file}}) {
    answers_["POST /v1/job-checks"] = {
        .status = 400,
        .chunks = {absl::StrCat(R"({"error": {"code": "INVALID_ARGUMENT", "message": ")",
                                absl::StrReplaceAll(known, {{"\"", "\\\""}}),
                                R"(\njob.yml: too few nodes"}})")}};
    EXPECT_EQ(Do(command).status().message(), absl::StrCat(known, "\njob.yml: too few nodes"));
    answers_.erase("POST /v1/job-checks");  // it is away
    EXPECT_EQ(Do(command).status().message(), known);
  }
}

TEST_F(CommandParserTest, ShowsAllParamsOfAJobIfAskedTo) {
  std::string params;
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&params, i > 0 ? ", " : "", R"({"name": "p)", i, R"(", "value": "1"})");
  }
  answers_["GET /v1/jobs?limit=1000"] = {.chunks = {R"({"jobs": [{"id": "brave_ant"}]})"}};
  answers_["GET /v1/jobs/brave_ant"] = {
      .chunks = {absl::StrCat(R"({"id": "brave_ant", "state": "Completed", "type": "command", )",
                              R"("logged": {"params": [)", params, "]}}")}};
  ASSERT_EQ(*Do({"job", "show", "brave_ant"}), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("p7 1 and 2 more: tutti job show brave_ant --all\n"));
  ASSERT_EQ(*Do({"job", "show", "brave_ant", "--all"}), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("p7 1, p8 1, p9 1\n"));
  ASSERT_EQ(*Do({"job", "show", "brave_ant", "-o", "json"}), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("p9"));
}

TEST_F(CommandParserTest, DeletesOnlyWhatIsNamedInFull) {
  answers_["GET /v1/jobs?limit=1000"] = {.chunks = {R"({"jobs": [{"id": "brave_ant"}]})"}};
  EXPECT_EQ(ExitCodeOf(Do({"job", "delete", "brave"}).status()), ExitCode::kUsage);
  EXPECT_THAT(fake_.requests(), Not(Contains(HasSubstr("DELETE"))));
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["DELETE /v1/jobs/brave_ant"] = {.chunks = {"{}"}};
  EXPECT_EQ(*Do({"job", "delete", "brave_ant"}), ExitCode::kOk);
}

TEST_F(CommandParserTest, StreamsWhatWasAskedFor) {
  const std::string lines =
      R"({"type": "state", "cursor": "1", "state": "Running", "reason": ""})"
      "\n"
      R"({"type": "output", "cursor": "2", "rank": 0, "stream": "stdout", "text": "a"})"
      "\n"
      R"({"type": "output", "cursor": "3", "rank": 1, "stream": "stderr", "text": "b"})"
      "\n";
  answers_["GET /v1/jobs/brave_ant"] = {.chunks = {kFailedJob}};
  answers_["GET /v1/jobs/brave_ant/stream?follow=true"] = {.chunks = {lines}};  // JSON's
  answers_["GET /v1/jobs/brave_ant/stream?follow=true&reports=false"] = {.chunks = {lines}};
  answers_["GET /v1/jobs/brave_ant/stream?follow=false&reports=false"] = {.chunks = {lines}};
  ASSERT_TRUE(Do({"job", "stream", "brave_ant", "--no-prefix"}).ok());
  EXPECT_EQ(out_.str(), "a\nb\n");
  ASSERT_TRUE(Do({"job", "stream", "brave_ant", "--rank", "1"}).ok());
  EXPECT_EQ(out_.str(), "[1!] b\n");
  ASSERT_TRUE(Do({"job", "stream", "brave_ant", "--no-follow"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("[1!] b\n"));
  ASSERT_TRUE(Do({"job", "stream", "brave_ant", "-o", "json"}).ok());
  EXPECT_EQ(out_.str(), lines);
}

TEST_F(CommandParserTest, TheTreeForTheShellsIsTheOneThatIsParsed) {
  ASSERT_TRUE(Do({"completion", "bash"}).ok());
  for (const char* word :
       {"'job/stream'", "table json yaml", "--cancel-on-interrupt", "bash zsh"}) {
    EXPECT_THAT(out_.str(), HasSubstr(word));
  }
  EXPECT_THAT(out_.str(), Not(HasSubstr("launch")));
}

TEST_F(CommandParserTest, ScoreSaysWhenItsProgramIsMissing) {
  const absl::Status status = Do({"score", "cat.jpg", "--model", "m"}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("tutti-score"));
}

TEST_F(CommandParserTest, ScoreSaysWhatTheAddressOfAJobsModelIs) {
  const absl::Status status = Do({"score", "serve", "azureml://jobs/train-1"}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("write azureml://jobs/JOB/outputs/NAME/paths/PATH"));
}

}  // namespace
}  // namespace tutti::client
