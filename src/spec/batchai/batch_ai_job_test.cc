// Covers: batch_ai_shell.cc, batch_ai_text.cc, toolkits.cc, volumes.cc, mount_command.cc.
#include "spec/batchai/batch_ai_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "spec/batchai/mount_command.h"
#include "spec/data/datastore_file.h"
#include "spec/file/job_file.h"
#include "spec/site/site.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A job with what `more` adds to its properties.
std::string JobJson(const std::string& more, int nodes = 2) {
  return absl::StrCat("{\n\t\"$schema\": \"https://x/2018-05-01/job.json\",\n\t\"properties\": {\n",
                      "\t\t\"nodeCount\": ", nodes, ",\n", more, "\n\t}\n}\n");
}

BatchAiJob Convert(const std::string& json, const BatchAiOptions& options = {}) {
  const auto job = ConvertBatchAiJob(json, "job.json", options);
  EXPECT_TRUE(job.ok()) << job.status() << "\n" << json;
  return job.ok() ? *job : BatchAiJob{};
}

std::string Refusal(const std::string& json, const BatchAiOptions& options = {}) {
  const auto job = ConvertBatchAiJob(json, "job.json", options);
  EXPECT_TRUE(absl::IsInvalidArgument(job.status())) << json << job.status();
  return std::string(job.status().message());
}

// Returns what the job's file says once it is read as any other.
JobSpec Read(const BatchAiJob& job) {
  const auto read = ReadJobFile(job.text, "job.yml", "/base", BuiltInSite(),
                                [](const std::filesystem::path&) { return std::string(); });
  EXPECT_TRUE(read.ok()) << read.status() << "\n" << job.text;
  return read.ok() ? read->spec : JobSpec{};
}

constexpr char kCustomMpi[] = R"("customMpiSettings": {"commandLine": "./a.out"})";
constexpr char kBlobs[] =
    R"("mountVolumes": {"azureBlobFileSystems": [{"accountName": "acme", "containerName": "images",
       "relativeMountPath": "data"}]},)";

TEST(BatchAiJob, WarnsOfACommandThatIsAFileOfAShare) {
  const auto warnings = [](const char* command, int nodes) {
    return Convert(JobJson(absl::StrCat(kBlobs, R"("customToolkitSettings": {"commandLine": ")",
                                        command, "\"}"),
                           nodes))
        .warnings;
  };
  for (const int nodes : {1, 2}) {
    EXPECT_THAT(warnings("$AZ_BATCHAI_JOB_MOUNT_ROOT/data/run.sh", nodes),
                Contains(HasSubstr("mounted with mode 0777")));
    EXPECT_THAT(warnings("bash $AZ_BATCHAI_JOB_MOUNT_ROOT/data/run.sh", nodes),
                Not(Contains(HasSubstr("0777"))));
    EXPECT_THAT(warnings(R"(a"}, "jobPreparation": {"commandLine": )"
                         R"("$AZ_BATCHAI_JOB_MOUNT_ROOT/data/run.sh)",
                         nodes),
                Contains(HasSubstr("0777")));
  }
}

TEST(BatchAiJob, GivesHorovodWithoutAContainerAndSaysWhatTheMachineMustHave) {
  const std::string settings = R"("horovodSettings": {"pythonScriptFilePath": "a.py"})";
  const auto converted = Convert(JobJson(settings));
  EXPECT_THAT(converted.warnings, Contains(HasSubstr("must have the framework")));
  const std::string container =
      R"(, "containerSettings": {"imageSourceRegistry": {"image": "team/train:1"}})";
  EXPECT_THAT(Convert(JobJson(settings + container)).warnings, IsEmpty());
}

TEST(BatchAiJob, ComposesEachToolkitAsBatchAiDid) {
  const struct {
    const char* settings;
    int nodes;
    const char* command;
    const char* kind;
    int per_node;
  } kCases[] = {
      {R"("customToolkitSettings": {"commandLine": "make all"})", 1, "make all", "none", 1},
      {R"("customToolkitSettings": {"commandLine": "make all"})", 3,
       "if [ \"$NODE_RANK\" = 0 ]; then\nmake all\nfi\n", "none", 1},
      {R"("customMpiSettings": {"commandLine": "./a.out -x", "processCount": 8})", 2, "./a.out -x",
       "mpi", 4},
      {R"("horovodSettings": {"pythonScriptFilePath": "a.py", "commandLineArgs": "--n 1"})", 2,
       "python a.py --n 1", "mpi", 1},
      {R"("horovodSettings": {"pythonScriptFilePath": "a.py", "pythonInterpreterPath": "python3.9",
          "processCount": 4})",
       1, "python3.9 a.py", "mpi", 4},
      {R"("pyTorchSettings": {"pythonScriptFilePath": "a.py", "communicationBackend": "Gloo"})", 2,
       "python a.py", "pytorch", 1},
      {R"("pyTorchSettings": {"pythonScriptFilePath": "a.py", "communicationBackend": "mpi",
          "processCount": 4})",
       2, "python a.py", "mpi", 2},
      {R"("pyTorchSettings": {"pythonScriptFilePath": "a.py"})", 1, "python a.py", "none", 1},
      {R"("tensorFlowSettings": {"pythonScriptFilePath": "a.py", "masterCommandLineArgs": "-m"})",
       1, "python a.py -m", "none", 1},
      {R"("cntkSettings": {"pythonScriptFilePath": "a.py", "processCount": 4})", 2, "python a.py",
       "mpi", 2},
      {R"("cntkSettings": {"languageType": "BrainScript", "configFilePath": "a.cntk",
          "commandLineArgs": "rootDir=."})",
       1, "cntk configFile=a.cntk rootDir=.", "none", 1},
      {R"("caffeSettings": {"configFilePath": "s.prototxt", "commandLineArgs": "-gpu all"})", 1,
       "caffe train -solver s.prototxt -gpu all", "none", 1},
      {R"("caffeSettings": {"pythonScriptFilePath": "a.py"})", 2, "python a.py", "mpi", 1},
      {R"("caffe2Settings": {"pythonScriptFilePath": "a.py",
          "commandLineArgs": "--shard_id $AZ_BATCHAI_TASK_INDEX"})",
       2, "python a.py --shard_id $AZ_BATCHAI_TASK_INDEX", "none", 1},
      {R"("chainerSettings": {"pythonScriptFilePath": "a.py", "processCount": 2})", 2,
       "python a.py", "mpi", 1},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.settings);
    const JobSpec job = Read(Convert(JobJson(one.settings, one.nodes)));
    EXPECT_EQ(job.command, one.command);
    EXPECT_EQ(job.distribution.type, one.kind);
    EXPECT_EQ(job.distribution.process_count_per_instance, one.per_node);
    EXPECT_EQ(job.instance_count, one.nodes);
    EXPECT_TRUE(job.environment.is_host);
  }
}

TEST(BatchAiJob, GivesEachTaskOfTensorFlowItsArguments) {
  const JobSpec job = Read(Convert(JobJson(R"("tensorFlowSettings": {"pythonScriptFilePath": "a.py",
      "masterCommandLineArgs": "-m", "workerCommandLineArgs": "-w",
      "parameterServerCommandLineArgs": "-p", "workerCount": 3})")));
  EXPECT_EQ(job.command,
            "case \"$AZUREML_PROCESS_NAME\" in\nworker_0) python a.py -m ;;\nworker_*) python a.py "
            "-w ;;\nps_*) python a.py -p ;;\nesac\n");
  EXPECT_EQ(job.distribution.type, "tensorflow");
  EXPECT_EQ(job.distribution.worker_count, 3);
  EXPECT_EQ(job.distribution.parameter_server_count, 1);
}

TEST(BatchAiJob, TellsAScriptTheBackendThatItIsToTake) {
  const auto variables = [](const std::string& backend, const std::string& more) {
    return Read(Convert(JobJson(absl::StrCat(
                    R"("pyTorchSettings": {"pythonScriptFilePath": "a.py")", backend, "}", more))))
        .environment_variables;
  };
  const auto is = [](const char* backend) { return Pair("AZ_BATCHAI_PYTORCH_BACKEND", backend); };
  EXPECT_THAT(variables(R"(, "communicationBackend": "NCCL")", ""), ElementsAre(is("nccl")));
  EXPECT_THAT(variables(R"(, "communicationBackend": "tcp")", ""), ElementsAre(is("gloo")));
  EXPECT_THAT(variables("", ""), IsEmpty());
  EXPECT_THAT(variables(R"(, "communicationBackend": "gloo")",
                        R"(, "environmentVariables":
                           [{"name": "AZ_BATCHAI_PYTORCH_BACKEND", "value": "own"}])"),
              ElementsAre(is("own")));
}

TEST(BatchAiJob, SaysWhichToolkitsCannotBeHad) {
  for (const char* toolkit :
       {"cntkSettings", "caffeSettings", "caffe2Settings", "chainerSettings"}) {
    const BatchAiJob job =
        Convert(JobJson(absl::StrCat("\"", toolkit, "\": {\"pythonScriptFilePath\": \"a.py\"}")));
    EXPECT_THAT(job.warnings, ElementsAre(AllOf(HasSubstr("job.json:5: "), HasSubstr(toolkit),
                                                HasSubstr("name an image"))));
  }
  EXPECT_THAT(Convert(JobJson(kCustomMpi)).warnings, IsEmpty());
}

TEST(BatchAiJob, MakesVolumesInputsAndPathsOnThemExpressions) {
  const BatchAiJob converted = Convert(JobJson(R"(
    "mountVolumes": {
      "azureFileShares": [{"azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/scripts",
                           "relativeMountPath": "scripts"}],
      "azureBlobFileSystems": [{"accountName": "<AZURE_BATCHAI_STORAGE_ACCOUNT>", "containerName": "images",
                                "relativeMountPath": "data/all"}],
      "fileServers": [{"fileServer": {"id": "/subscriptions/0/fileservers/nfs1"}, "sourceDirectory": "/a/",
                       "relativeMountPath": "nfs"}],
      "unmanagedFileSystems": [{"mountCommand": "mount -t nfs -o ro 10.0.0.4:/export/sets", "relativeMountPath": "sets"},
                               {"mountCommand": "mount --bind /srv", "relativeMountPath": "local"}]
    },
    "environmentVariables": [{"name": "SETS", "value": "${AZ_BATCHAI_JOB_MOUNT_ROOT}/sets/a b"}],
    "customMpiSettings": {"commandLine": "sh $AZ_BATCHAI_JOB_MOUNT_ROOT/scripts//x/../run.sh"})"),
                                       {.storage_account = "acme"});
  EXPECT_THAT(converted.text, HasSubstr("$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts//x/../run.sh"));
  const BatchAiJob good = Convert(JobJson(R"(
    "mountVolumes": {
      "azureFileShares": [{"azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/scripts",
                           "relativeMountPath": "scripts"}],
      "azureBlobFileSystems": [{"accountName": "<AZURE_BATCHAI_STORAGE_ACCOUNT>", "containerName": "images",
                                "relativeMountPath": "data/all"}],
      "unmanagedFileSystems": [{"mountCommand": "sudo mount -t nfs4 -o ro 10.0.0.4:/export/sets", "relativeMountPath": "sets"},
                               {"mountCommand": "mount -o bind,ro /srv", "relativeMountPath": "local"}]
    },
    "environmentVariables": [{"name": "SETS", "value": "${AZ_BATCHAI_JOB_MOUNT_ROOT}/sets/a"},
                             {"name": "PLAIN", "value": 5}],
    "inputDirectories": [{"id": "IMAGES", "path": "$AZ_BATCHAI_JOB_MOUNT_ROOT/data/all/train set"}],
    "customMpiSettings": {"commandLine": "sh $AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/run.sh --a=\"$AZ_BATCHAI_INPUT_IMAGES/x\" $AZ_BATCHAI_JOB_MOUNT_ROOT"})"),
                                  {.storage_account = "acme"});
  const JobSpec job = Read(good);
  EXPECT_EQ(job.command,
            "sh ${{inputs.scripts}}/run.sh --a=\"${{inputs.IMAGES}}/x\" "
            "$AZ_BATCHAI_JOB_MOUNT_ROOT");
  EXPECT_THAT(job.environment_variables,
              UnorderedElementsAre(Pair("SETS", "${{inputs.sets}}/a"), Pair("PLAIN", "5")));
  // The container is read by its one directory alone.
  EXPECT_THAT(job.inputs,
              UnorderedElementsAre(Key("scripts"), Key("IMAGES"), Key("sets"), Key("local")));
  EXPECT_EQ(job.inputs.at("scripts").place->account, "acme");
  EXPECT_EQ(job.inputs.at("scripts").place->kind, StoreKind::kAzureFile);
  EXPECT_EQ(job.inputs.at("IMAGES").place->container, "images");
  EXPECT_EQ(job.inputs.at("IMAGES").place->path, "train set");
  EXPECT_EQ(job.inputs.at("sets").place->endpoint, "nfs://10.0.0.4");
  EXPECT_EQ(job.inputs.at("sets").place->container, "export");
  EXPECT_EQ(job.inputs.at("local").path, "/srv");
}

TEST(BatchAiJob, KeepsWhatFollowsAPathOnAVolume) {
  const struct {
    const char* written;
    const char* becomes;
  } kCases[] = {
      {"", ""},
      {"/", "/"},
      {"/*.py", "/*.py"},
      {"/$X/a", "/$X/a"},
      {"/{a,b}", "/{a,b}"},
      {"/sub/$Y", "/sub/$Y"},
      {"//sub//", "/sub/"},
      {"/ x", "/ x"},
      {"/sub x", "/sub x"},
      {"/`x`", "/`x`"},
  };
  for (const auto& one : kCases) {
    const std::string command =
        absl::StrCat("cp $AZ_BATCHAI_JOB_MOUNT_ROOT/data", one.written, "; ls");
    const BatchAiJob job = Convert(JobJson(
        absl::StrCat(kBlobs, "\"customMpiSettings\": {\"commandLine\": \"", command, "\"}")));
    EXPECT_EQ(Read(job).command, absl::StrCat("cp ${{inputs.data}}", one.becomes, "; ls"));
  }
}

TEST(BatchAiJob, BringsOutputsAndLogsToVolumes) {
  const BatchAiJob converted = Convert(JobJson(absl::StrCat(R"(
    "mountVolumes": {"unmanagedFileSystems": [{"mountCommand": "mount --bind /srv/out/", "relativeMountPath": "out"}],
                     "fileServers": [{"fileServer": {"id": "nfs1"}, "relativeMountPath": "nfs"}]},
    "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/out/logs",
    "outputDirectories": [{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/out", "pathSuffix": "Models"},
                          {"id": "PLAIN", "pathPrefix": "/mnt/x/"},
                          {"id": "SERVED", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/nfs"},
                          {"id": "AWAY", "pathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/external"}],)",
                                                            kCustomMpi)));
  const JobSpec job = Read(converted);
  EXPECT_EQ(job.outputs.at("MODEL").place->path, "/srv/out/${{name}}/outputs/Models");
  EXPECT_EQ(job.outputs.at("MODEL").mode, "upload");
  EXPECT_EQ(job.outputs.at("PLAIN").place->path, "/mnt/x/${{name}}/outputs/PLAIN");
  EXPECT_FALSE(job.outputs.at("SERVED").place.has_value());
  EXPECT_FALSE(job.outputs.at("AWAY").place.has_value());
  EXPECT_EQ(job.logs_place->path, "/srv/out/logs");
  EXPECT_THAT(job.inputs, IsEmpty());
  EXPECT_THAT(converted.warnings,
              UnorderedElementsAre(AllOf(HasSubstr("output SERVED"), HasSubstr("file server")),
                                   AllOf(HasSubstr("output AWAY"), HasSubstr("--cluster-file"))));
}

TEST(BatchAiJob, HasTheVolumesOfItsCluster) {
  const std::string job = JobJson(R"(
    "customMpiSettings": {"commandLine": "sh $AZ_BATCHAI_MOUNT_ROOT/external/run.sh"})");
  EXPECT_THAT(Refusal(job), AllOf(HasSubstr("job.json:6: "), HasSubstr("--cluster-file")));
  BatchAiOptions options;
  options.cluster_file = "cluster.json";
  options.cluster_text = R"({"properties": {"vmSize": "x", "nodeSetup": {"mountVolumes": {
      "azureFileShares": [{"azureFileUrl": "https://acme.file.core.windows.net/s", "relativeMountPath": "external"}],
      "azureBlobFileSystems": [{"accountName": "acme", "containerName": "c", "relativeMountPath": "unused"}]}}}})";
  const JobSpec read = Read(Convert(job, options));
  EXPECT_EQ(read.command, "sh ${{inputs.external}}/run.sh");
  EXPECT_THAT(read.inputs, ElementsAre(Key("external")));
  options.cluster_text = R"({"properties": {"vmSize": "x"}})";
  EXPECT_THAT(Refusal(job, options), HasSubstr("nodeSetup.mountVolumes of the cluster"));
}

TEST(BatchAiJob, PreparesEachNodeOnceBeforeWhatRuns) {
  const JobSpec job = Read(Convert(JobJson(absl::StrCat(
      R"("jobPreparation": {"commandLine": "echo 'a b'; pip install x"},)", kCustomMpi))));
  EXPECT_THAT(
      job.command,
      AllOf(HasSubstr("\"${BASH:-sh}\" -c 'echo '\\''a b'\\''; pip install x'"),
            HasSubstr("LOCAL_RANK"), ::testing::EndsWith("sleep 0.2; done\nfi\n./a.out\n")));
}

TEST(BatchAiJob, PreparesEachContainerOfAnImage) {
  const JobSpec job = Read(Convert(JobJson(absl::StrCat(
      R"("jobPreparation": {"commandLine": "pip install x"},
         "containerSettings": {"imageSourceRegistry": {"image": "a/b:1"}},)",
      kCustomMpi))));
  EXPECT_THAT(job.command,
              ::testing::EndsWith("sleep 0.2; done\n  prepare || exit\nfi\n./a.out\n"));
}

TEST(BatchAiJob, ExportsWhatExpandsOnTheNode) {
  const JobSpec job = Read(Convert(JobJson(absl::StrCat(
      R"("environmentVariables": [{"name": "A", "value": "$AZ_BATCHAI_JOB_TEMP/x \"$HOME\""},
                                  {"name": "B", "value": "one\ntwo"}, {"name": "C", "value": "$HOME"}],)",
      kCustomMpi))));
  EXPECT_EQ(job.command,
            "export A=\"$AZ_BATCHAI_JOB_TEMP/x \\\"\\$HOME\\\"\"\nexport B='one\ntwo'\n./a.out\n");
  EXPECT_THAT(job.environment_variables, ElementsAre(Pair("C", "$HOME")));
}

TEST(BatchAiJob, NamesSecretsAndWritesNoneOfTheirValues) {
  const std::string json = JobJson(absl::StrCat(
      R"("secrets": [{"name": "TOKEN", "value": "hunter2"},
                     {"name": "KEY", "valueSecretReference": {"sourceVault": {"id": "v"},
                      "secretUrl": "https://v.vault.azure.net/secrets/my-key/1"}}],
         "containerSettings": {"shmSize": "2g", "imageSourceRegistry": {"image": "team/x:1",
             "serverUrl": "https://acme.azurecr.io", "credentials": {"username": "u", "password": "hunter3"}}},
         "mountVolumes": {"azureFileShares": [{"azureFileUrl": "https://acme.file.core.windows.net/s",
             "relativeMountPath": "s", "credentials": {"accountKey": "hunter4"}}]},)",
      kCustomMpi));
  const BatchAiJob job = Convert(json, {.name = "run1"});
  EXPECT_THAT(job.text, AllOf(HasSubstr("TOKEN: \"run1-TOKEN\""), HasSubstr("KEY: \"my-key\""),
                              HasSubstr("image: \"acme.azurecr.io/team/x:1\""),
                              HasSubstr("shm_size: \"2g\""), Not(HasSubstr("hunter"))));
  ASSERT_EQ(job.secrets.size(), 2u);
  EXPECT_THAT(Convert(json, {.name = "run1", .without_values = true}).text,
              AllOf(Not(HasSubstr("TOKEN")), HasSubstr("KEY: \"my-key\"")));
  EXPECT_EQ(job.secrets[0].value, "hunter2");
  EXPECT_EQ(job.secrets[1].secret, "my-key");
  EXPECT_THAT(job.warnings, ElementsAre(HasSubstr("registry.acme.azurecr.io")));
  ASSERT_EQ(job.stores.size(), 1u);
  EXPECT_EQ(job.stores[0].address, "https://acme.file.core.windows.net/s/");
  const auto store = ReadDatastoreFile(job.stores[0].text, "store.yml", "/");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(store->datastore.name, "batchai-acme-s");
  EXPECT_EQ(store->datastore.place.kind, StoreKind::kAzureFile);
  EXPECT_EQ(store->datastore.place.container, "s");
  EXPECT_THAT(store->credentials, HasSubstr("hunter4"));
  const BatchAiJob in_vault = Convert(JobJson(absl::StrCat(
      R"("mountVolumes": {"azureBlobFileSystems": [{"accountName": "acme", "containerName": "c",
             "relativeMountPath": "c", "credentials": {"accountKeySecretReference": {}}}]},)",
      kCustomMpi)));
  EXPECT_THAT(in_vault.warnings, ElementsAre(HasSubstr("Key Vault")));
  EXPECT_THAT(in_vault.stores, IsEmpty());
}

TEST(BatchAiJob, TakesClusterExperimentPriorityAndTime) {
  const auto with = [](const std::string& more) {
    return JobJson(absl::StrCat(more, ",", kCustomMpi));
  };
  const BatchAiJob job = Convert(with(R"("cluster": {"id": "/subscriptions/0/clusters/nc6"},
      "experimentName": "e", "schedulingPriority": "high", "location": "eastus",
      "constraints": {"maxWallClockTime": "P1DT2H"})"));
  EXPECT_THAT(job.text, AllOf(HasSubstr("compute: azureml:nc6\n"), HasSubstr("timeout: 93600\n"),
                              HasSubstr("priority: high\n"), HasSubstr("experiment_name: \"e\"")));
  EXPECT_THAT(job.warnings, ElementsAre(HasSubstr("\"location\" has no effect")));
  const BatchAiJob other = Convert(
      with(
          R"("cluster": {"id": "nc6"}, "priority": -5, "constraints": {"maxWallClockTime": "1.01:00:30"})"),
      {.name = "n", .cluster = "local", .experiment = "f"});
  EXPECT_THAT(other.text, AllOf(HasSubstr("compute: local\n"), HasSubstr("timeout: 90030\n"),
                                HasSubstr("priority: low\n"), HasSubstr("name: \"n\"\n")));
}

TEST(BatchAiJob, ReadsWhatJsonEscapes) {
  const auto command = [](const std::string& written) {
    return JobJson(absl::StrCat("\"customMpiSettings\": {\"commandLine\": \"", written, "\"}"));
  };
  const struct {
    const char* written;
    const char* becomes;
  } kCases[] = {{R"(a \ud83d\ude00 b)", "a \U0001F600 b"},
                {R"(\u00e9 \/x)", "\u00e9 /x"},
                {R"(a\\ud83d\\ude00)", R"(a\ud83d\ude00)"},
                {R"(\udbff\udffd)", "\U0010FFFD"}};
  for (const auto& one : kCases) {
    EXPECT_EQ(Read(Convert(command(one.written))).command, one.becomes) << one.written;
  }
  EXPECT_THAT(Refusal(command(R"(\ud83d alone)")), HasSubstr("job.json:"));
}

TEST(BatchAiJob, TakesFractionsOfATime) {
  const struct {
    const char* written;
    int64_t seconds;
  } kCases[] = {{"PT1.5H", 5400},  {"PT0.5H", 1800}, {"P1.5D", 129600},   {"P0.5W", 302400},
                {"PT1M30.9S", 90}, {"P7D", 604800},  {"01:00:01.5", 3601}};
  for (const auto& one : kCases) {
    EXPECT_THAT(Convert(JobJson(absl::StrCat("\"constraints\": {\"maxWallClockTime\": \"",
                                             one.written, "\"},", kCustomMpi)))
                    .text,
                HasSubstr(absl::StrCat("timeout: ", one.seconds, "\n")))
        << one.written;
  }
}

TEST(BatchAiJob, TellsASchemaFromAFileThatItDescribes) {
  EXPECT_THAT(Refusal(R"({"title": "Job's schema validation.", "properties": {"properties": {}},
                          "definitions": {}})"),
              AllOf(HasSubstr("job.json:1: this is a schema"), Not(HasSubstr("unknown key"))));
}

TEST(BatchAiJob, SaysWhereNodesShareAFolder) {
  const std::string command =
      R"("customMpiSettings": {"commandLine": "ls $AZ_BATCHAI_SHARED_JOB_TEMP"})";
  const auto warned = Contains(HasSubstr("AZ_BATCHAI_SHARED_JOB_TEMP is set where the nodes have"));
  EXPECT_THAT(Convert(JobJson(command, 2)).warnings, warned);
  EXPECT_THAT(Convert(JobJson(command, 1)).warnings, Not(warned));
}

TEST(BatchAiJob, RefusesByFileKeyAndWhatToDo) {
  const struct {
    std::string json;
    const char* says;
  } kCases[] = {
      {"[1]", "must be a mapping"},
      {"{\"properties\": 1}", "\"properties\" must say what the job is"},
      {"{\"properties\": {}, \"propertes\": 1}", "unknown key \"propertes\""},
      {JobJson("\"x\": 1"), "nothing says what runs: one of customToolkitSettings"},
      {JobJson(R"("customMpiSetting": {"commandLine": "a"})"),
       "did you mean \"customMpiSettings\""},
      {JobJson(absl::StrCat(kCustomMpi, R"(,"horovodSettings": {"pythonScriptFilePath": "a"})")),
       "horovodSettings stands beside customMpiSettings"},
      {JobJson(R"("customMpiSettings": {"processCount": 3, "commandLine": "a"})"),
       "write a multiple of nodeCount"},
      {JobJson(R"("customMpiSettings": {})"), "the key \"commandLine\" is missing"},
      {JobJson(R"("caffeSettings": {})"), "configFilePath or pythonScriptFilePath"},
      {JobJson(R"("cntkSettings": {"configFilePath": "a", "pythonScriptFilePath": "b"})"),
       "leave one of them out"},
      {JobJson(
           R"("pyTorchSettings": {"pythonScriptFilePath": "a", "communicationBackend": "nvlink"})"),
       "must be one of tcp, gloo, mpi, nccl"},
      {JobJson(kCustomMpi, 0), "nodeCount must be a whole number"},
      {JobJson(absl::StrCat(R"("inputDirectories": [{"id": "a-b", "path": "/x"}],)", kCustomMpi)),
       "must be of letters, digits"},
      {JobJson(absl::StrCat(R"("inputDirectories": [{"id": "A", "path": "x"}],)", kCustomMpi)),
       "must begin with $AZ_BATCHAI_JOB_MOUNT_ROOT"},
      {JobJson(absl::StrCat(
           R"("inputDirectories": [{"id": "A", "path": "$AZ_BATCHAI_JOB_MOUNT_ROOT/z"}],)", kBlobs,
           kCustomMpi)),
       "no volume is mounted there; mountVolumes must have it"},
      {JobJson(absl::StrCat(
           R"("mountVolumes": {"azureFileShares": [{"azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/x", "relativeMountPath": "x"}]},)",
           kCustomMpi)),
       "--storage-account-name"},
      {JobJson(absl::StrCat(
           R"("mountVolumes": {"unmanagedFileSystems": [{"mountCommand": "mount -t lustre a@tcp:/x", "relativeMountPath": "x"}]},)",
           kCustomMpi)),
       "write mount --bind /FOLDER"},
      {JobJson(absl::StrCat(
           R"("mountVolumes": {"unmanagedFileSystems": [{"mountCommand": "mount --bind /x", "relativeMountPath": "../x"}]},)",
           kCustomMpi)),
       "below the mount root"},
      {JobJson(absl::StrCat(R"("containerSettings": {},)", kCustomMpi)),
       "imageSourceRegistry must name the image"},
      {JobJson(absl::StrCat(R"("constraints": {"maxWallClockTime": "soon"},)", kCustomMpi)),
       "must be a time"},
      {JobJson(absl::StrCat(R"("priority": 2000,)", kCustomMpi)), "from -1000 to 1000"},
      {JobJson(absl::StrCat(
           R"("secrets": [{"name": "A", "value": "x"}], "environmentVariables": [{"name": "A"}],)",
           kCustomMpi)),
       "stand once in environmentVariables and secrets"},
      {JobJson(absl::StrCat(
           R"("secrets": [{"name": "A", "value": "x", "valueSecretReference": {"secretUrl": "https://v.vault.azure.net/secrets/prod-db"}}],)",
           kCustomMpi)),
       "a value or a valueSecretReference, and not both"},
      {JobJson(absl::StrCat(R"("secrets": [{"name": "A"}],)", kCustomMpi)),
       "a value or a valueSecretReference, and not both"},
  };
  for (const auto& one : kCases) {
    const std::string refusal = Refusal(one.json);
    EXPECT_THAT(refusal, HasSubstr(one.says)) << one.json;
    EXPECT_THAT(refusal, HasSubstr("job.json:")) << one.json;
  }
}

// Facts of the job.json files that Azure published (github.com/Azure/BatchAI, recipes/): toolkit,
// nodes, processes, settings; what each is composed to. Files share mounts and paths of one
// pattern.
TEST(BatchAiJob, ConvertsThePublishedRecipes) {
  const struct {
    const char* recipe;
    const char* toolkit;
    const char* script_key;
    int nodes, processes;  // 0: not said
    bool has_output, has_preparation;
    const char* kind;
  } kRecipes[] = {
      {"Caffe2-GPU-Distributed", "caffe2Settings", "pythonScriptFilePath", 2, 0, false, false,
       "none"},
      {"Chainer-GPU-Distributed", "chainerSettings", "pythonScriptFilePath", 2, 0, true, false,
       "mpi"},
      {"Chainer-GPU-Distributed-Infiniband", "chainerSettings", "pythonScriptFilePath", 2, 8, true,
       true, "mpi"},
      {"CNTK-GPU-BrainScript", "cntkSettings", "configFilePath", 1, 0, true, false, "none"},
      {"CNTK-GPU-BrainScript-Distributed", "cntkSettings", "configFilePath", 2, 0, true, false,
       "mpi"},
      {"CNTK-GPU-Python", "cntkSettings", "pythonScriptFilePath", 1, 0, true, false, "none"},
      {"CNTK-GPU-Python-Distributed", "cntkSettings", "pythonScriptFilePath", 2, 2, true, true,
       "mpi"},
      {"CNTK-GPU-Python-Distributed-Infiniband", "cntkSettings", "pythonScriptFilePath", 2, 8, true,
       true, "mpi"},
      {"Horovod-Infiniband-Benchmark", "horovodSettings", "pythonScriptFilePath", 2, 8, false, true,
       "mpi"},
      {"Horovod-PyTorch", "horovodSettings", "pythonScriptFilePath", 2, 0, true, true, "mpi"},
      {"Horovod-Tensorflow", "horovodSettings", "pythonScriptFilePath", 2, 0, false, true, "mpi"},
      {"Keras-GPU (CNTK)", "cntkSettings", "pythonScriptFilePath", 1, 0, false, false, "none"},
      {"Keras-GPU (TensorFlow)", "tensorFlowSettings", "pythonScriptFilePath", 1, 0, false, true,
       "none"},
      {"PyTorch-GPU-Distributed-Gloo", "pyTorchSettings", "pythonScriptFilePath", 2, 0, false,
       false, "pytorch"},
      {"TensorFlow-GPU", "tensorFlowSettings", "pythonScriptFilePath", 1, 0, false, false, "none"},
      {"TensorFlow-GPU-Distributed", "tensorFlowSettings", "pythonScriptFilePath", 2, 0, true,
       false, "tensorflow"},
      {"Distributed-Batch-Scoring-in-Tensorflow-with-GPU", "customMpiSettings", "commandLine", 2, 0,
       true, true, "mpi"},
  };
  for (const auto& recipe : kRecipes) {
    SCOPED_TRACE(recipe.recipe);
    std::string settings =
        absl::StrCat("\"", recipe.script_key, "\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/a/b.py\"");
    if (recipe.processes > 0) absl::StrAppend(&settings, ", \"processCount\": ", recipe.processes);
    std::string json = absl::StrCat("\"", recipe.toolkit, "\": {", settings, "},",
                                    R"("stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
           "mountVolumes": {"azureFileShares": [
               {"azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/logs", "relativeMountPath": "logs"},
               {"azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/scripts", "relativeMountPath": "scripts"}]},
           "containerSettings": {"imageSourceRegistry": {"image": "org/name:1"}})");
    if (recipe.has_output) {
      absl::StrAppend(&json, R"(,"outputDirectories": [{"id": "MODEL",
          "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/logs"}])");
    }
    if (recipe.has_preparation) {
      absl::StrAppend(&json, R"(,"jobPreparation": {"commandLine": "apt update"})");
    }
    const BatchAiJob converted = Convert(JobJson(json, recipe.nodes), {.storage_account = "acme"});
    // Without the places that only a datastore's credentials open.
    BatchAiJob readable = converted;
    readable.text = absl::StrReplaceAll(
        converted.text, {{"https://acme.file.core.windows.net/logs", "file:///logs"}});
    const JobSpec job = Read(readable);
    EXPECT_EQ(job.distribution.type, recipe.kind);
    EXPECT_EQ(job.instance_count, recipe.nodes);
    if (recipe.processes > 0) {
      EXPECT_EQ(job.WorldSize(), recipe.processes);
    }
    EXPECT_THAT(job.command, HasSubstr("${{inputs.scripts}}/a/b.py"));
    EXPECT_THAT(job.inputs, ElementsAre(Key("scripts")));
    EXPECT_EQ(job.outputs.count("MODEL"), recipe.has_output ? 1u : 0u);
    EXPECT_TRUE(job.logs_place.has_value());
  }
}

TEST(BatchAiJob, GivesVolumesNamesThatInputsMayHave) {
  const JobSpec job = Read(Convert(JobJson(absl::StrCat(
      R"("inputDirectories": [{"id": "data", "path": "/x"}],
         "mountVolumes": {"unmanagedFileSystems": [
             {"mountCommand": "mount --bind /a", "relativeMountPath": "data"},
             {"mountCommand": "mount --bind /b", "relativeMountPath": "data-volume"},
             {"mountCommand": "mount --bind /c", "relativeMountPath": "2/sets"}]},)",
      kCustomMpi))));
  EXPECT_THAT(job.inputs, UnorderedElementsAre(Key("data"), Key("data_volume"),
                                               Key("data_volume_volume"), Key("volume_2_sets")));
}

TEST(Volumes, TellsWhatAMountCommandMounts) {
  const struct {
    const char* command;
    const char* address;
  } kCases[] = {
      {"mount -t nfs 10.0.0.4:/data", "nfs://10.0.0.4/data"},
      {"sudo /bin/mount -t nfs4 -o ro,vers=4 host:/a/b/", "nfs://host/a/b"},
      {"mount.nfs host:/a", "nfs://host/a"},
      {"mount -t cifs //acme.file.core.windows.net/s -o vers=3.0",
       "https://acme.file.core.windows.net/s"},
      {"mount --bind /data", "/data"},
      {"mount -o bind /data", "/data"},
      {"mount -t cifs //server/s", ""},
      {"mount -t glusterfs h:/v", ""},
      {"mount", ""},
      {"", ""},
      {"mount --bind relative", ""},
      {"mount -t nfs 10.0.0.4:/export/mount", "nfs://10.0.0.4/export/mount"},
      {"mount --bind /srv/mount", "/srv/mount"},
      {"sudo -n mount -t nfs4 host:/", "nfs://host"},
      {"/sbin/mount.nfs4 host:/a /mnt", "nfs://host/a"},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(VolumeOfMountCommand(one.command).address, one.address) << one.command;
  }
}

TEST(Volumes, WritesAMountCommandWithoutOptions) {
  for (const char* command :
       {"mount -t nfs 10.0.0.4:/data", "mount -t nfs host:/", "mount --bind /data",
        "mount -t cifs //acme.file.core.windows.net/s"}) {
    EXPECT_EQ(MountCommandOf(VolumeOfMountCommand(command)), command);
  }
}

std::string UnmanagedJson(const std::string& command) {
  return JobJson(absl::StrCat(R"("mountVolumes": {"unmanagedFileSystems": [{"mountCommand": ")",
                              command, R"(", "relativeMountPath": "x"}]},)", kCustomMpi));
}

TEST(BatchAiJob, TakesThePasswordOfAMountedShareForItsKey) {
  for (const char* options :
       {"-o vers=3.0,username=acme,password=c2VjcmV0LWtleQ==,dir_mode=0777",
        "-opass=c2VjcmV0LWtleQ==", "--options=username=acme,password=c2VjcmV0LWtleQ==",
        "-o 'ro,password=c2VjcmV0LWtleQ=='"}) {
    const BatchAiJob job = Convert(
        UnmanagedJson(absl::StrCat("mount -t cifs //acme.file.core.windows.net/s ", options)));
    ASSERT_EQ(job.stores.size(), 1u) << options;
    EXPECT_EQ(job.stores[0].name, "batchai-acme-s");
    EXPECT_THAT(job.stores[0].text, HasSubstr("c2VjcmV0LWtleQ=="));
    EXPECT_THAT(job.text, Not(HasSubstr("c2Vj")));
  }
}

TEST(BatchAiJob, ShowsNoPasswordOfAMountThatItRefuses) {
  for (const char* command :
       {"mount -t lustre h:/x -o password=hunter2", "mount -t x -ohunter=1,pass=hunter2 h:/x",
        "mount -t lustre -o hunter2 h:/x"}) {
    EXPECT_THAT(Refusal(UnmanagedJson(command)),
                AllOf(HasSubstr("h:/x"), Not(HasSubstr("hunter2"))));
  }
}

TEST(BatchAiJob, TakesNoMoreForAnAddressThanAnAddress) {
  const auto share = [](const std::string& url) {
    return JobJson(
        absl::StrCat(R"("mountVolumes": {"azureFileShares": [{"azureFileUrl": ")", url,
                     R"(", "relativeMountPath": "x", "credentials": {"accountKey": "hunter3"}}]},)",
                     kCustomMpi));
  };
  for (const char* url : {"https://acme.file.core.windows.net/s?sv=1&sig=hunter2",
                          "https://acme.file.core.windows.net/s#hunter2",
                          "https://me:hunter2@acme.file.core.windows.net/s"}) {
    EXPECT_THAT(Refusal(share(url)), AllOf(HasSubstr("azureFileUrl must have an address alone"),
                                           Not(HasSubstr("hunter"))));
  }
  for (const auto& [account, container] : {std::pair("evil.com/x?", "c"), std::pair("acme", "c?s"),
                                           std::pair("acme", "../x"), std::pair("a@b", "c")}) {
    EXPECT_THAT(Refusal(JobJson(
                    absl::StrCat(R"("mountVolumes": {"azureBlobFileSystems": [{"accountName": ")",
                                 account, R"(", "containerName": ")", container,
                                 R"(", "relativeMountPath": "x"}]},)", kCustomMpi))),
                HasSubstr("must be names"));
  }
  const BatchAiJob elsewhere = Convert(share("https://acme.file.core.chinacloudapi.cn/s"));
  EXPECT_THAT(elsewhere.stores, IsEmpty());
  EXPECT_THAT(elsewhere.warnings,
              ElementsAre(AllOf(HasSubstr("key of https://acme.file.core.chinacloudapi.cn/s"),
                                HasSubstr("make a datastore"), Not(HasSubstr("hunter")))));
}

TEST(BatchAiJob, SaysWhichPathsItLeavesAsTheyAre) {
  EXPECT_THAT(Convert(JobJson(absl::StrCat(kBlobs, R"("customMpiSettings": {"commandLine":
      "sh $AZ_BATCHAI_JOB_MOUNT_ROOT/data/../x.sh"})")))
                  .warnings,
              ElementsAre(HasSubstr("$AZ_BATCHAI_JOB_MOUNT_ROOT/data/../x.sh is left as it is")));
}

TEST(BatchAiJob, BringsAnOutputNowhereButBelowItsJob) {
  const auto output = [](const std::string& prefix, const std::string& suffix) {
    return JobJson(absl::StrCat(kBlobs, R"("outputDirectories": [{"id": "A", "pathPrefix": ")",
                                prefix, R"(", "pathSuffix": ")", suffix, "\"}],", kCustomMpi));
  };
  EXPECT_THAT(Refusal(output("/srv", "../../other job")), HasSubstr("pathSuffix"));
  EXPECT_THAT(Refusal(output("/srv/../etc", "x")), HasSubstr("has \"..\""));
  EXPECT_THAT(Convert(output("/srv//out/", "/a/./b/")).text,
              HasSubstr("file:///srv/out/${{name}}/outputs/a/b\""));
  EXPECT_THAT(Convert(output("/srv", "/")).text, HasSubstr("file:///srv/${{name}}/outputs/A\""));
  EXPECT_THAT(Convert(output("$AZ_BATCHAI_JOB_MOUNT_ROOT/data", "a b#?%")).text,
              HasSubstr("/images/${{name}}/outputs/a%20b%23%3F%25\""));
}

TEST(BatchAiJob, SaysWhatOfAVolumeAScriptDoesNotFind) {
  const BatchAiJob job = Convert(JobJson(R"(
    "mountVolumes": {"unmanagedFileSystems": [{"mountCommand": "mount --bind /a", "relativeMountPath": "my-data"},
                                              {"mountCommand": "mount --bind /b", "relativeMountPath": "out"}]},
    "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/out",
    "customMpiSettings": {"commandLine": "$AZ_BATCHAI_JOB_MOUNT_ROOT/out/run"})"));
  EXPECT_THAT(job.warnings,
              UnorderedElementsAre(HasSubstr("my-data lies at my_data below the mount root"),
                                   HasSubstr("mounted at out has outputs or logs")));
}

TEST(BatchAiJob, TellsWhatItsClustersFileWarnsOf) {
  BatchAiOptions options;
  options.cluster_file = "cluster.json";
  options.cluster_text = R"({"properties": {"nodeSetup": {"mountVolumes": {
      "azureBlobFileSystems": [{"accountName": "acme", "containerName": "c", "relativeMountPath": "c",
        "mountOptions": "x", "credentials": {"accountKeySecretReference": {}}}]}}}})";
  EXPECT_THAT(Convert(JobJson(kCustomMpi), options).warnings,
              ElementsAre(AllOf(HasSubstr("cluster.json:3: "), HasSubstr("Key Vault"))));
}

TEST(BatchAiJob, NamesTheClusterWhoseVolumesItHas) {
  const std::string json =
      R"({"properties": {"cluster": {"id": "/subscriptions/0/clusters/nc6"}}})";
  EXPECT_EQ(*ClusterOfBatchAiJob(json, "job.json", ""), "nc6");
  EXPECT_EQ(*ClusterOfBatchAiJob(json, "job.json", "/subscriptions/0/clusters/nc24/"), "nc24");
  EXPECT_EQ(*ClusterOfBatchAiJob("{}", "job.json", ""), "");
  EXPECT_THAT(Convert(JobJson(kCustomMpi), {.cluster = "/subscriptions/0/clusters/nc24"}).text,
              HasSubstr("compute: azureml:nc24\n"));
}

}  // namespace
}  // namespace tutti::spec
