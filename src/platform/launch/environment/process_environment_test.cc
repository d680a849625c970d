// Covers: rank_driver.cc, pmi_id.cc, platform/launch/distribution/tensorflow_cluster.cc,
// platform/launch/distribution/rank_drivers.cc.
#include "platform/launch/environment/process_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "platform/launch/distribution/tensorflow_cluster.h"
#include "spec/environment/contract_variables.h"
#include "spec/types/enum_names.h"

namespace tutti::launch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

spec::LaunchPlan TwoByTwo(const std::string& kind, int node) {
  spec::LaunchPlan plan;
  plan.allocation_id = "job.1";
  plan.job_id = "job";
  plan.experiment_name = "trials";
  plan.node_index = node;
  plan.nodes = {{"n1", "127.77.0.1", 0, 2}, {"n2", "127.77.0.2", 2, 2}};
  plan.master_port = 6105;
  plan.distribution.type = kind;
  plan.directory = "/a";
  plan.job_token = "beef";
  return plan;
}

TEST(EnvironmentOfTest, WherePmiIsServedItSaysWhichRankItIs) {
  NodeFacts facts;
  EXPECT_THAT(EnvironmentOf(TwoByTwo("mpi", 1), 1, facts), Not(Contains(Key("PMI_PORT"))));
  facts.pmi = "127.77.0.1:4711";
  const Variables variables = EnvironmentOf(TwoByTwo("mpi", 1), 1, facts);
  EXPECT_EQ(variables.at("PMI_PORT"), "127.77.0.1:4711");
  EXPECT_EQ(variables.at("PMI_RANK"), "3");
  EXPECT_EQ(variables.at("PMI_SIZE"), "4");
  EXPECT_EQ(variables.at("MPI_LOCALRANKID"), "1");
  EXPECT_EQ(variables.at("MPI_LOCALNRANKS"), "2");
}

TEST(EnvironmentOfTest, ThePmiIdOfARankFollowsFromTheJobsTokenAndItsAllocation) {
  NodeFacts facts;
  facts.pmi = "127.77.0.1:4711";
  const auto id_of = [&facts](const spec::LaunchPlan& plan, int local_rank) {
    int id = 0;
    EXPECT_TRUE(absl::SimpleAtoi(EnvironmentOf(plan, local_rank, facts).at("PMI_ID"), &id));
    return id;
  };
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  const int first = id_of(plan, 0);
  EXPECT_GT(first, 0);
  EXPECT_EQ(id_of(plan, 1), first + 1);
  EXPECT_EQ(id_of(TwoByTwo("mpi", 1), 1), first + 3);
  plan.allocation_id = "job.2";
  EXPECT_NE(id_of(plan, 0), first);
  plan.allocation_id = "job.1";
  plan.job_token = "feed";
  EXPECT_NE(id_of(plan, 0), first);
}

TEST(EnvironmentOfTest, EveryValueForEveryProcessOfTwoByTwo) {
  for (const auto kind : {"mpi", "pytorch"}) {
    for (int rank = 0; rank < 4; ++rank) {
      const int node = rank / 2, local = rank % 2;
      NodeFacts facts;
      facts.program_folder = "/opt/tutti";
      facts.own = {{"PATH", "/usr/bin"}, {"HOME", "/root"}, {"SECRET_KEY", "x"}};
      facts.inputs = {{"data-set", "/data"}};
      facts.outputs = {{"model", "/a/outputs/model"}};
      facts.cores = 4;
      const Variables expected = {
          {"MASTER_ADDR", "127.77.0.1"},
          {"MASTER_PORT", "6105"},
          {"WORLD_SIZE", "4"},
          {"RANK", absl::StrCat(rank)},
          {"LOCAL_RANK", absl::StrCat(local)},
          {"LOCAL_WORLD_SIZE", "2"},
          {"NODE_RANK", absl::StrCat(node)},
          {"GROUP_RANK", absl::StrCat(node)},
          {"GROUP_WORLD_SIZE", "2"},
          {"ROLE_RANK", absl::StrCat(rank)},
          {"ROLE_WORLD_SIZE", "4"},
          {"PET_NNODES", "2"},
          {"PET_NPROC_PER_NODE", "2"},
          {"PET_NODE_RANK", absl::StrCat(node)},
          {"PET_MASTER_ADDR", "127.77.0.1"},
          {"PET_MASTER_PORT", "6105"},
          {"PET_RDZV_ENDPOINT", "127.77.0.1:6105"},
          {"PET_RDZV_BACKEND", "static"},
          {"PET_RDZV_ID", "job"},
          {"OMPI_COMM_WORLD_RANK", absl::StrCat(rank)},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", absl::StrCat(local)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"OMPI_COMM_WORLD_NODE_RANK", absl::StrCat(local)},
          {"HOROVOD_RANK", absl::StrCat(rank)},
          {"HOROVOD_SIZE", "4"},
          {"HOROVOD_LOCAL_RANK", absl::StrCat(local)},
          {"HOROVOD_LOCAL_SIZE", "2"},
          {"HOROVOD_CROSS_RANK", absl::StrCat(node)},
          {"HOROVOD_CROSS_SIZE", "2"},
          {"AZ_BATCH_MASTER_NODE", "127.77.0.1:6105"},
          {"AZ_BATCH_HOST_LIST", "127.77.0.1,127.77.0.2"},
          {"AZ_BATCH_NODE_LIST", "127.77.0.1;127.77.0.2"},
          {"AZ_BATCH_IS_CURRENT_NODE_MASTER", node == 0 ? "true" : "false"},
          {"AZ_BATCHAI_MOUNT_ROOT", "/a/inputs"},
          {"AZ_BATCHAI_JOB_MOUNT_ROOT", "/a/inputs"},
          {"AZ_BATCHAI_MPI_MASTER_NODE", "127.77.0.1"},
          {"AZ_BATCHAI_NODE_LIST", "127.77.0.1,127.77.0.2"},
          {"AZ_BATCHAI_NUM_GPUS", "0"},
          {"AZ_BATCHAI_GPU_COUNT_FOUND", "0"},
          {"AZ_BATCHAI_JOB_TEMP", "/a/scratch"},
          {"AZ_BATCHAI_JOB_TEMP_DIR", "/a/scratch"},
          {"AZ_BATCHAI_STDOUTERR_DIR", "/a/spool"},
          {"AZ_BATCHAI_MPI_HOST_FILE", "/a/hostfile"},
          {"AZ_BATCHAI_TASK_INDEX", absl::StrCat(rank)},
          {"AZ_BATCHAI_WORKER_HOSTS", "127.77.0.1,127.77.0.2"},
          {"AZ_BATCHAI_PS_HOSTS", ""},
          {"AZ_BATCHAI_PYTORCH_INIT_METHOD", "tcp://127.77.0.1:6105"},
          {"AZ_BATCHAI_INPUT_data_set", "/data"},
          {"AZ_BATCHAI_OUTPUT_model", "/a/outputs/model"},
          {"AZURE_ML_INPUT_data_set", "/data"},
          {"AZURE_ML_OUTPUT_model", "/a/outputs/model"},
          {"AZUREML_DATAREFERENCE_data_set", "/data"},
          {"AZUREML_RUN_ID", "job"},
          {"AZUREML_ROOT_RUN_ID", "job"},
          {"AZUREML_EXPERIMENT_NAME", "trials"},
          {"AZUREML_ARM_PROJECT_NAME", "trials"},
          {"AZUREML_ARM_WORKSPACE_NAME", "tutti"},
          {"AZUREML_ARM_RESOURCEGROUP", "tutti"},
          {"AZUREML_ARM_SUBSCRIPTION", "00000000-0000-0000-0000-000000000000"},
          {"AZUREML_CR_NODE_RANK", absl::StrCat(node)},
          {"AZUREML_NODE_COUNT", "2"},
          {"AZUREML_PROCESS_NAME", absl::StrCat("rank_", rank)},
          {"TUTTI_JOB_ID", "job"},
          {"TUTTI_ALLOCATION_ID", "job.1"},
          {"TUTTI_RESTART_COUNT", "0"},
          {"TUTTI_NODE_NAME", node == 0 ? "n1" : "n2"},
          {"TUTTI_NODE_ADDRESS", node == 0 ? "127.77.0.1" : "127.77.0.2"},
          {"TUTTI_JOB_TOKEN", "beef"},
          {"TUTTI_METRICS_FILE", absl::StrCat("/a/spool/rank-", rank, ".metrics")},
          {"MLFLOW_TRACKING_URI", rank == 0 ? "/a/work/outputs/mlruns"
                                            : absl::StrCat("/a/work/outputs/mlruns-rank-", rank)},
          {"MLFLOW_EXPERIMENT_NAME", "trials"},
          {"MLFLOW_ALLOW_FILE_STORE", "true"},
          {"PYTHONUNBUFFERED", "1"},
          {"OMP_NUM_THREADS", "2"},
          {"TMPDIR", "/a/scratch"},
          {"PATH", "/opt/tutti:/usr/bin"},
          {"HOME", "/root"},
      };
      EXPECT_EQ(EnvironmentOf(TwoByTwo(kind, node), local, facts), expected);
    }
  }
}

TEST(EnvironmentOfTest, AStepHasTheNameOfTheOutermostPipelineToo) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  plan.job_id = "pipeline.part.train";
  EXPECT_THAT(EnvironmentOf(plan, 1, {}),
              AllOf(Contains(Pair("AZUREML_RUN_ID", "pipeline.part.train")),
                    Contains(Pair("AZUREML_ROOT_RUN_ID", "pipeline"))));
}

TEST(EnvironmentOfTest, TellsFromWhichJobsOutputsTheProcessesGoOn) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  EXPECT_THAT(EnvironmentOf(plan, 1, {}), Not(Contains(Key("TUTTI_RESUME_FROM"))));
  plan.resume = "earlier";
  EXPECT_THAT(EnvironmentOf(plan, 1, {}), Contains(Pair("TUTTI_RESUME_FROM", "earlier")));
  plan.attempt = 2;
  EXPECT_THAT(EnvironmentOf(plan, 1, {}), Contains(Pair("TUTTI_RESUME_FROM", plan.job_id)));
}

TEST(EnvironmentOfTest, TheOnlyProcessOfAJobWithoutADistributionIsNoneOfSeveral) {
  spec::LaunchPlan plan = TwoByTwo("none", 0);
  plan.nodes = {{"n1", "127.77.0.1", 0, 1}};
  const auto set_by = [&plan] {
    std::vector<std::string> names;
    for (const auto& [name, value] : EnvironmentOf(plan, 0, {})) {
      const bool of_azure = absl::StartsWith(name, "AZ");
      const bool of_several = absl::StrContains(name, "RANK") || absl::StrContains(name, "SIZE") ||
                              absl::StrContains(name, "MASTER") || absl::StartsWith(name, "PET_") ||
                              absl::StartsWith(name, "HOROVOD_") || name == "TF_CONFIG";
      if (of_several && !of_azure) names.push_back(name);
    }
    return names;
  };
  EXPECT_THAT(set_by(), ElementsAre());
  EXPECT_THAT(
      EnvironmentOf(plan, 0, {}),
      AllOf(Contains(Pair("TUTTI_NODE_ADDRESS", "127.77.0.1")), Contains(Key("AZUREML_RUN_ID")),
            Contains(Pair("TUTTI_JOB_TOKEN", "beef")), Contains(Key("TUTTI_METRICS_FILE"))));
  plan.environment_variables = {{"RANK", "3"}};
  EXPECT_THAT(set_by(), ElementsAre("RANK")) << "the user's own";
  EXPECT_THAT(OverriddenNames(plan), ElementsAre());
  plan.distribution.type = "pytorch";
  EXPECT_THAT(
      EnvironmentOf(plan, 0, {}),
      AllOf(Contains(Pair("RANK", "0")), Contains(Pair("WORLD_SIZE", "1")),
            Contains(Pair("LOCAL_RANK", "0")), Contains(Pair("MASTER_ADDR", "127.77.0.1"))));
  plan.distribution.type = "none";
  plan.nodes.push_back({"n2", "127.77.0.2", 1, 1});
  EXPECT_THAT(EnvironmentOf(plan, 0, {}), Contains(Pair("RANK", "0"))) << "one of two";
}

TEST(EnvironmentOfTest, AUserMaySetDefaultsButNotWhoAProcessIs) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  plan.environment_variables = {{"RANK", "9"},     {"MINE", "a b"},  {"OMP_NUM_THREADS", "7"},
                                {"PATH", "/mine"}, {"TMPDIR", "/t"}, {"TUTTI_JOB_TOKEN", "0"}};
  NodeFacts facts;
  facts.program_folder = "/opt/tutti";
  EXPECT_THAT(
      EnvironmentOf(plan, 1, facts),
      AllOf(Contains(Pair("RANK", "1")), Contains(Pair("MINE", "a b")),
            Contains(Pair("OMP_NUM_THREADS", "7")), Contains(Pair("PATH", "/opt/tutti:/mine")),
            Contains(Pair("TMPDIR", "/t")), Contains(Pair("TUTTI_JOB_TOKEN", "beef"))));
  EXPECT_THAT(OverriddenNames(plan), ElementsAre("RANK", "TUTTI_JOB_TOKEN"));
}

struct JobAndPlan {
  spec::JobSpec job;
  spec::LaunchPlan plan;  // of its first node
};

JobAndPlan JobOf(const std::string& kind, int nodes, bool has_part) {
  spec::JobSpec job;
  job.compute = "local";
  job.instance_count = nodes;
  job.distribution.type = kind;
  job.distribution.worker_count = nodes;
  job.environment.is_host = has_part;
  job.inputs["data-set"] = {.path = "/data"};
  job.outputs["model"] = {};
  if (has_part) job.share = spec::NodeShare{.cpus = 1};
  spec::LaunchPlan plan = TwoByTwo(kind, 0);
  plan.nodes = {{"n1", "127.77.0.1", 0, 1}, {"n2", "127.77.0.2", 1, 1}};
  plan.nodes.resize(nodes);
  plan.distribution = job.distribution;
  plan.environment = job.environment;
  plan.inputs = job.inputs;
  plan.outputs = job.outputs;
  if (has_part) plan.cores = {0};
  return {std::move(job), std::move(plan)};
}

std::vector<JobAndPlan> JobsOfAllKinds() {
  std::vector<JobAndPlan> jobs;
  for (const spec::DistributionDriver* const driver : spec::Distributions()) {
    for (const int nodes : {1, 2}) {
      for (const bool has_part : {false, true}) {
        jobs.push_back(JobOf(std::string(driver->type), nodes, has_part));
      }
    }
  }
  return jobs;
}

TEST(EnvironmentOfTest, WhatSubmissionSaysToHaveNoEffectHasNoneAndAllElseCounts) {
  const auto environment_of = [](const spec::LaunchPlan& plan) {
    NodeFacts facts;
    facts.inputs = {{"data-set", "/data"}};
    facts.outputs = {{"model", "/a/outputs/model"}};
    if (!plan.environment.is_host) facts.python = "/a/python";
    return EnvironmentOf(plan, 0, facts);
  };
  Variables all;  // that any job has
  for (const JobAndPlan& of : JobsOfAllKinds()) {
    for (const auto& [name, value] : environment_of(of.plan)) all[name] = "mine";
  }
  all.erase("PATH");  // the job's is a part of it
  EXPECT_THAT(all, AllOf(Contains(Key("RANK")), Contains(Key("TF_CONFIG")),
                         Contains(Key("RAY_ADDRESS")), Contains(Key("HIP_VISIBLE_DEVICES"))));
  for (auto& [job, plan] : JobsOfAllKinds()) {
    plan.environment_variables = all;
    const Variables found = environment_of(plan);
    for (const auto& [name, mine] : all) {
      EXPECT_EQ(spec::SetByTutti(job, name).has_value(), found.at(name) != mine)
          << name << ", " << job.distribution.type << " on " << job.instance_count;
    }
  }
}

TEST(EnvironmentOfTest, WhatTheJobsEnvironmentSetsLiesBelowItsOwnVariables) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  plan.environment.variables = {
      {"FOO", "file ${{inputs.x}}"}, {"MINE", "file"}, {"OMP_NUM_THREADS", "3"}, {"RANK", "9"}};
  plan.environment_variables = {{"MINE", "job"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, {}),
              AllOf(Contains(Pair("FOO", "file ${{inputs.x}}")), Contains(Pair("MINE", "job")),
                    Contains(Pair("OMP_NUM_THREADS", "3")), Contains(Pair("RANK", "1"))));
  EXPECT_THAT(OverriddenNames(plan), ElementsAre("RANK"));
}

TEST(EnvironmentOfTest, ARunThatWasMadeAheadIsNamedUnlessTheJobHasItsOwnPlace) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  NodeFacts facts;
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Not(Contains(Key("MLFLOW_RUN_ID"))));
  facts.mlflow_run = "beef";
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Contains(Pair("MLFLOW_RUN_ID", "beef")));
  plan.environment_variables = {{"MLFLOW_TRACKING_URI", "http://mlflow:5000"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Not(Contains(Key("MLFLOW_RUN_ID"))));
}

TEST(EnvironmentOfTest, TheJobsOwnPlaceForMlflowWinsAndGetsNoExperiment) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  plan.environment_variables = {{"MLFLOW_TRACKING_URI", "http://mlflow:5000"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, {}),
              AllOf(Contains(Pair("MLFLOW_TRACKING_URI", "http://mlflow:5000")),
                    Not(Contains(Key("MLFLOW_EXPERIMENT_NAME")))));
  plan.environment_variables = {{"MLFLOW_EXPERIMENT_ID", "7"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, {}),
              AllOf(Contains(Pair("MLFLOW_TRACKING_URI", "/a/work/outputs/mlruns-rank-1")),
                    Not(Contains(Key("MLFLOW_EXPERIMENT_NAME")))));
}

TEST(EnvironmentOfTest, WhereTheServiceTracksEveryRankHasTheJobsOneRun) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  NodeFacts facts;
  facts.tracking = {.address = "https://10.0.0.1:6280",
                    .run = "beef",
                    .experiment = "trials",
                    .certificate = "/a/service.pem",
                    .token = "secret"};
  for (const int local : {0, 1}) {
    EXPECT_THAT(EnvironmentOf(plan, local, facts),
                AllOf(Contains(Pair("MLFLOW_TRACKING_URI", "https://10.0.0.1:6280")),
                      Contains(Pair("TUTTI_TRACKING", "https://10.0.0.1:6280")),
                      Contains(Pair("MLFLOW_RUN_ID", "beef")),
                      Contains(Pair("MLFLOW_EXPERIMENT_NAME", "trials")),
                      Contains(Pair("MLFLOW_TRACKING_SERVER_CERT_PATH", "/a/service.pem")),
                      Not(Contains(Key("no_proxy"))), Not(Contains(Key("MLFLOW_TRACKING_TOKEN")))));
  }
  facts.own = {{"https_proxy", "http://proxy:1"}, {"no_proxy", "a.b"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Contains(Pair("no_proxy", "a.b,10.0.0.1")));
  facts.own.clear();
  plan.environment_variables = {{"HTTPS_PROXY", "http://proxy:1"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Contains(Pair("no_proxy", "10.0.0.1")))
      << "also where a user sets it";
  plan.environment_variables["NO_PROXY"] = "c.d";
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), AllOf(Contains(Pair("no_proxy", "c.d,10.0.0.1")),
                                                   Contains(Pair("NO_PROXY", "c.d,10.0.0.1"))));
  plan.environment_variables.clear();
  facts.tracking.run.clear();
  facts.tracking.certificate.clear();
  EXPECT_THAT(EnvironmentOf(plan, 1, facts),
              AllOf(Not(Contains(Key("MLFLOW_RUN_ID"))),
                    Not(Contains(Key("MLFLOW_TRACKING_SERVER_CERT_PATH")))));
}

TEST(EnvironmentOfTest, WhatAUserSetsOfTrackingWins) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  NodeFacts facts;
  facts.tracking = {.address = "https://10.0.0.1:6280",
                    .run = "beef",
                    .experiment = "trials",
                    .certificate = "/a/service.pem",
                    .token = "secret"};
  plan.environment_variables = {{"MLFLOW_EXPERIMENT_NAME", "mine"},
                                {"MLFLOW_TRACKING_INSECURE_TLS", "true"}};
  EXPECT_THAT(
      EnvironmentOf(plan, 1, facts),
      AllOf(Contains(Pair("MLFLOW_EXPERIMENT_NAME", "mine")), Not(Contains(Key("MLFLOW_RUN_ID"))),
            Not(Contains(Key("MLFLOW_TRACKING_SERVER_CERT_PATH")))));
  plan.environment_variables = {{"MLFLOW_RUN_ID", ""}};
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Contains(Pair("MLFLOW_RUN_ID", "")));
}

TEST(EnvironmentOfTest, VariablesMayNameInputsAndOutputs) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  plan.inputs["gone"] = {.type = "number", .absent = true};
  plan.environment_variables = {{"A", "${{inputs.x}}/y $[[no ${{inputs.gone}}]]"},
                                {"PATH", "${{inputs.x}}/bin:/usr/bin"}};
  NodeFacts facts;
  facts.inputs = {{"x", "/in"}};
  EXPECT_THAT(EnvironmentOf(plan, 0, facts),
              AllOf(Contains(Pair("A", "/in/y ")), Contains(Pair("PATH", "/in/bin:/usr/bin"))));
}

TEST(EnvironmentOfTest, APythonEnvironmentComesFirstAndTheLaunchersIsNotSeen) {
  NodeFacts facts;
  facts.program_folder = "/opt/tutti";
  facts.own = {{"PATH", "/usr/bin"}, {"PYTHONPATH", "/p"}, {"CONDA_PREFIX", "/c"}};
  const spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  EXPECT_THAT(EnvironmentOf(plan, 0, facts), Contains(Pair("PYTHONPATH", "/p")));
  facts.own_package = "/o";
  EXPECT_THAT(EnvironmentOf(plan, 0, facts), Contains(Pair("PYTHONPATH", "/o:/p")));
  facts.own_package = "";
  facts.python = "/a/python";
  EXPECT_THAT(EnvironmentOf(plan, 0, facts),
              AllOf(Contains(Pair("PATH", "/opt/tutti:/a/python/bin:/usr/bin")),
                    Contains(Pair("VIRTUAL_ENV", "/a/python")), Not(Contains(Key("PYTHONPATH"))),
                    Not(Contains(Key("CONDA_PREFIX")))));
}

TEST(EnvironmentOfTest, EveryProcessSeesTheNodesGpusAndNothingIsSetWithoutOne) {
  NodeFacts facts;
  const spec::LaunchPlan plan = TwoByTwo("pytorch", 0);
  EXPECT_THAT(EnvironmentOf(plan, 0, facts), Not(Contains(Key("CUDA_VISIBLE_DEVICES"))));
  EXPECT_THAT(EnvironmentOf(plan, 0, facts), Not(Contains(Key("TF_CONFIG"))));
  facts.gpus = {"2", "3"};
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), AllOf(Contains(Pair("CUDA_VISIBLE_DEVICES", "2,3")),
                                                   Contains(Pair("AZ_BATCHAI_NUM_GPUS", "2"))));
}

TEST(EnvironmentOfTest, AJobOfOneNodeHasAFolderThatAllOfItsProcessesShare) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  EXPECT_THAT(EnvironmentOf(plan, 1, {}), Not(Contains(Key("AZ_BATCHAI_SHARED_JOB_TEMP"))));
  plan.nodes.resize(1);
  EXPECT_THAT(EnvironmentOf(plan, 1, {}),
              Contains(Pair("AZ_BATCHAI_SHARED_JOB_TEMP", "/a/scratch")));
}

TEST(EnvironmentOfTest, NodesOfOneDiskShareTheFirstOnesFolderUnlessTheJobNamesAnother) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 1);
  plan.directory = "/state/n2/job.1";
  EXPECT_EQ(SharedScratch(plan), "");
  plan.boot_id = "this machine's";
  EXPECT_THAT(EnvironmentOf(plan, 1, {}),
              Contains(Pair("AZ_BATCHAI_SHARED_JOB_TEMP", "/state/n1/job.1/scratch")));
  plan.environment_variables = {{"AZ_BATCHAI_SHARED_JOB_TEMP", "/mine"}};
  EXPECT_THAT(EnvironmentOf(plan, 1, {}), Contains(Pair("AZ_BATCHAI_SHARED_JOB_TEMP", "/mine")));
  plan.boot_id = "";
  plan.shared_folder = "/shared";
  plan.directory = "/shared/job.1/1";
  EXPECT_EQ(SharedScratch(plan), "/shared/job.1/0/scratch");
}

TEST(EnvironmentOfTest, AnAttemptThatGoesOnFindsWhatTheOneBeforeWroteInItsOwnOutputs) {
  spec::LaunchPlan plan = TwoByTwo("mpi", 0);
  const NodeFacts facts{.outputs = {{"model", "/a/outputs/model"}}};
  EXPECT_THAT(EnvironmentOf(plan, 1, facts), Not(Contains(Key("AZ_BATCHAI_PREV_OUTPUT_model"))));
  plan.former_directory = "/former";
  EXPECT_THAT(EnvironmentOf(plan, 1, facts),
              Contains(Pair("AZ_BATCHAI_PREV_OUTPUT_model", "/a/outputs/model")));
}

TEST(EnvironmentOfTest, ARankOfAPartSeesItsGpusAloneWhateverTheJobSays) {
  spec::LaunchPlan plan = TwoByTwo("pytorch", 0);
  plan.cores = {4, 5, 6, 7};
  plan.gpus = {"3"};
  plan.environment_variables["CUDA_VISIBLE_DEVICES"] = "0,1,2,3";
  const NodeFacts facts{.gpus = plan.gpus, .cores = 4};
  const Variables variables = EnvironmentOf(plan, 1, facts);
  EXPECT_THAT(variables, Contains(Pair("CUDA_VISIBLE_DEVICES", "3")));
  EXPECT_THAT(variables, Contains(Pair("HIP_VISIBLE_DEVICES", "3")));
  EXPECT_THAT(variables, Contains(Pair("AZ_BATCHAI_GPU_COUNT_FOUND", "1")));
  EXPECT_THAT(variables, Contains(Pair("OMP_NUM_THREADS", "2")));
  EXPECT_THAT(OverriddenNames(plan), Contains("CUDA_VISIBLE_DEVICES"));
  plan.gpus.clear();
  EXPECT_THAT(EnvironmentOf(plan, 1, {}), Contains(Pair("CUDA_VISIBLE_DEVICES", "")));
}

spec::LaunchPlan TensorFlow() {
  spec::LaunchPlan plan = TwoByTwo("tensorflow", 1);
  plan.nodes[1].process_count = 1;
  plan.distribution.worker_count = 2;
  plan.distribution.parameter_server_count = 1;
  return plan;
}

TEST(TensorFlowClusterTest, WorkersComeFirstThenParameterServersEachWithAPortOfItsOwn) {
  const spec::LaunchPlan plan = TensorFlow();
  const auto config = nlohmann::json::parse(TfConfig(plan, 2));
  EXPECT_EQ(config, nlohmann::json::parse(R"({
    "cluster": {"worker": ["127.77.0.1:6106", "127.77.0.1:6107"], "ps": ["127.77.0.2:6108"]},
    "task": {"type": "ps", "index": 0}, "environment": "cloud"})"));
  EXPECT_THAT(EnvironmentOf(plan, 0, {}),
              AllOf(Contains(Pair("TF_CONFIG", TfConfig(plan, 2))), Contains(Pair("RANK", "2")),
                    Contains(Pair("AZ_BATCHAI_TASK_INDEX", "0")),
                    Contains(Pair("AZ_BATCHAI_WORKER_HOSTS", "127.77.0.1:6106,127.77.0.1:6107")),
                    Contains(Pair("AZ_BATCHAI_PS_HOSTS", "127.77.0.2:6108")),
                    Contains(Pair("AZUREML_PROCESS_NAME", "ps_0"))));
}

TEST(TensorFlowClusterTest, WithoutParameterServersThereIsNoSuchJob) {
  spec::LaunchPlan plan = TensorFlow();
  plan.distribution.worker_count = 3;
  plan.distribution.parameter_server_count = 0;
  plan.master_port = 65535;  // ports wrap
  const auto config = nlohmann::json::parse(TfConfig(plan, 0));
  EXPECT_FALSE(config["cluster"].contains("ps"));
  EXPECT_EQ(config["cluster"]["worker"][0], "127.77.0.1:1024");
}

TEST(HostFileTest, ListsEachAddressOncePerProcess) {
  EXPECT_EQ(HostFile(TensorFlow()), "127.77.0.1\n127.77.0.1\n127.77.0.2\n");
}

}  // namespace
}  // namespace tutti::launch
