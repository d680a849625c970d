// Covers: spec/command/job_data.cc, spec/command/job_sections.cc, spec/command/tutti_keys.cc,
// spec/command/output_place.cc, spec/command/command_reader.cc,
// spec/environment/contract_variables.cc, spec/text/mapping_reader.cc, spec/text/diagnostics.cc.
#include "spec/file/job_file.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tutti::spec {
namespace {
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<ReadResult> Read(absl::string_view text) {
  return ReadJobFile(text, "job.yml", "/home/me/project");
}

JobSpec SpecOf(absl::string_view text) {
  const auto result = Read(text);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->spec : JobSpec();
}

// The lines of the error; those of a file that should be refused.
std::vector<std::string> Errors(absl::string_view text) {
  const auto result = Read(text);
  EXPECT_FALSE(result.ok());
  return absl::StrSplit(std::string(result.status().message()), '\n');
}

TEST(JobFile, ASchemaOfAnotherTypeIsAWarning) {
  const auto warnings = [](absl::string_view schema) {
    const auto result =
        Read(absl::StrCat("type: command\n$schema: https://x/latest/", schema, "\ncommand: x\n"));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? absl::StrJoin(result->warnings, "\n") : "";
  };
  EXPECT_THAT(warnings("pipelineJob.schema.json"),
              HasSubstr("job.yml:2: $schema is that of pipeline jobs, but the job is read as its "
                        "type says: command"));
  EXPECT_EQ(warnings("commandJob.schema.json"), "");
}

TEST(JobFile, AReferenceWithTooFewBracesIsAWarning) {
  const auto warnings = [](absl::string_view command) {
    const auto result =
        Read(absl::StrCat("command: \"", command, "\"\ninputs: {lr: 1}\noutputs: {m: {}}\n"));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? absl::StrJoin(result->warnings, "\n") : "";
  };
  for (const char* command : {"x ${inputs.lr}", "x {{inputs.lr}}", "x ${ inputs.lr }"}) {
    EXPECT_THAT(warnings(command), HasSubstr("did you mean \"${{inputs.lr}}\"?")) << command;
  }
  EXPECT_THAT(warnings("x --to={{ outputs.m }}"),
              HasSubstr("job.yml:1: \"{{ outputs.m }}\" is no expression, the shell gets it as it "
                        "is; did you mean \"${{outputs.m}}\"?"));
  for (const char* command : {"x ${{inputs.lr}}", "x ${inputs.none}", "x {inputs.lr}",
                              "x inputs.lr", "x ${{ inputs.lr }} ${outputs.lr", "{{inputs."}) {
    EXPECT_EQ(warnings(command), "") << command;
  }
}

constexpr char kCompleteFile[] = R"(
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
name: cifar-1
display_name: CIFAR on two nodes
experiment_name: cifar
description: A test.
tags: {owner: me, round: 3}
code: ./src
command: >-
  python train.py --data ${{inputs.data}} --lr ${{inputs.lr}}
  --out ${{outputs.model}}
environment: azureml:host@latest
environment_variables:
  OMP_NUM_THREADS: 1
  EMPTY:
compute: azureml:local
inputs:
  data:
    type: uri_folder
    path: ../data/
    mode: download
  file: {type: uri_file, path: file:///abs/x.bin}
  lr: 0.10
  n: 3
  flag: true
  text: "3"
outputs:
  model: {type: uri_folder, mode: upload}
  logs:
distribution:
  type: PyTorch
  process_count_per_instance: 4
resources: {instance_count: 2}
limits: {timeout: 3600}
queue_settings: {priority: high}
)";

TEST(JobFile, ReadsACompleteFile) {
  const auto result = Read(kCompleteFile);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings, IsEmpty());
  const JobSpec& spec = result->spec;
  EXPECT_EQ(spec.file_name, "job.yml");
  EXPECT_EQ(spec.name, "cifar-1");
  EXPECT_EQ(spec.display_name, "CIFAR on two nodes");
  EXPECT_EQ(spec.experiment_name, "cifar");
  EXPECT_EQ(spec.tags.at("round"), "3");
  EXPECT_EQ(spec.code, "/home/me/project/src");
  EXPECT_EQ(spec.command,
            "python train.py --data ${{inputs.data}} --lr ${{inputs.lr}} --out ${{outputs.model}}");
  EXPECT_EQ(spec.command_line, 10);
  EXPECT_TRUE(spec.environment.is_host);
  EXPECT_EQ(spec.environment_variables.at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(spec.environment_variables.at("EMPTY"), "");
  EXPECT_EQ(spec.compute, "local");
  EXPECT_EQ(spec.inputs.at("data").path, "/home/me/data");
  EXPECT_EQ(spec.inputs.at("data").mode, "download");
  EXPECT_EQ(spec.inputs.at("data").location.line, 21);
  EXPECT_EQ(spec.inputs.at("file").path, "/abs/x.bin");
  EXPECT_EQ(spec.outputs.at("model").mode, "upload");
  EXPECT_EQ(spec.outputs.at("logs").mode, "rw_mount");
  EXPECT_EQ(spec.distribution.type, "pytorch");
  EXPECT_EQ(spec.WorldSize(), 8);
  EXPECT_EQ(spec.timeout, absl::Hours(1));
  EXPECT_EQ(spec.priority, Priority::kHigh);
}

TEST(JobFile, PlainValuesAreInputsAsAzureWritesThem) {
  const JobSpec spec =
      SpecOf("command: x\ninputs: {lr: 0.10, n: 3, flag: true, text: '3', word: abc}\n");
  const auto is = [&](const char* name, const char* type, const char* literal) {
    EXPECT_EQ(spec.inputs.at(name).type, type);
    EXPECT_EQ(spec.inputs.at(name).literal, literal);
    EXPECT_EQ(spec.inputs.at(name).path, "");
  };
  is("lr", "number", "0.10");
  is("n", "integer", "3");
  is("flag", "boolean", "True");
  is("text", "string", "3");
  is("word", "string", "abc");
}

TEST(JobFile, TheShortestFileTakesTheDefaults) {
  const JobSpec spec = SpecOf("command: ./run.sh");
  EXPECT_EQ(spec.WorldSize(), 1);
  EXPECT_EQ(spec.timeout, absl::InfiniteDuration());
  EXPECT_EQ(spec.priority, Priority::kNormal);
  EXPECT_EQ(spec.environment.name, "host");
  EXPECT_TRUE(spec.environment.is_host);
  EXPECT_EQ(spec.compute, "local");
  EXPECT_EQ(spec.experiment_name, "project");
  EXPECT_EQ(spec.code, "");
}

TEST(JobFile, ReadsEveryDistribution) {
  EXPECT_EQ(SpecOf("command: x\nresources: {instance_count: 3}\n"
                   "distribution: {type: mpi, process_count_per_instance: 2}\n")
                .WorldSize(),
            6);
  const JobSpec horovod = SpecOf("command: x\ndistribution: {type: horovod}\n");
  EXPECT_EQ(horovod.distribution.type, "mpi");
  EXPECT_EQ(horovod.ServerCount(), 0);
  const JobSpec spec = SpecOf(
      "command: x\ndistribution: {type: tensorflow, parameter_server_count: 1}\n"
      "resources: {instance_count: 2}\n");
  EXPECT_EQ(spec.distribution.worker_count, 2);
  EXPECT_EQ(spec.WorldSize(), 3);
  EXPECT_EQ(spec.ServerCount(), 1);
  EXPECT_THAT(Errors("command: x\nresources: {instance_count: 3}\n"
                     "distribution: {type: tensorflow, worker_count: 1}\n"),
              ElementsAre(HasSubstr("job.yml:3: worker_count and parameter_server_count make 1 "
                                    "processes for 3 nodes")));
}

TEST(JobFile, ARayJobHasOneProcessOnEachNodeAndTheFirstIsServedByTheOthers) {
  const JobSpec plain = SpecOf("command: x\ndistribution: {type: Ray}\n");
  EXPECT_EQ(plain.distribution.type, "ray");
  EXPECT_EQ(plain.distribution.ray.port, 0);
  EXPECT_TRUE(plain.distribution.ray.dashboard);
  EXPECT_EQ(plain.WorldSize(), 1);
  EXPECT_EQ(plain.ServerCount(), 0);
  const JobSpec spec = SpecOf(
      "command: x\nresources: {instance_count: 3}\n"
      "distribution:\n  type: ray\n  port: 7000\n  include_dashboard: false\n"
      "  dashboard_port: 7001\n  head_node_additional_args: --num-cpus 0\n"
      "  worker_node_additional_args: '--resources ''{\"a\": 1}'''\n");
  const RaySettings& ray = spec.distribution.ray;
  EXPECT_EQ(spec.WorldSize(), 3);
  EXPECT_EQ(spec.ServerCount(), 2);
  EXPECT_EQ(ray.port, 7000);
  EXPECT_FALSE(ray.dashboard);
  EXPECT_EQ(ray.dashboard_port, 7001);
  EXPECT_EQ(ray.head_options, "--num-cpus 0");
  EXPECT_EQ(ray.worker_options, "--resources '{\"a\": 1}'");
}

TEST(JobFile, WhatARayJobCannotHaveIsNamedWithItsLine) {
  EXPECT_THAT(
      Errors("command: x\ndistribution:\n  type: ray\n  port: 70000\n  address: 10.0.0.1:6379\n"
             "  process_count_per_instance: 2\n"),
      ElementsAre(HasSubstr("job.yml:4: "),
                  HasSubstr("job.yml:5: \"address\": a ray job has a cluster of its own"),
                  HasSubstr("job.yml:6: \"process_count_per_instance\" does not go with")));
}

TEST(JobFile, AnUnknownKeyIsAnsweredWithTheNearestAtEveryLevel) {
  EXPECT_THAT(Errors("comand: x\ncommand: x\n"),
              ElementsAre("job.yml:1: unknown key \"comand\" (did you mean \"command\"?)"));
  EXPECT_THAT(
      Errors("command: x\nresources:\n  instance_cout: 2\ninputs:\n  d:\n    pth: x\n    path: x\n"
             "limits:\n  timeoutt: 3\n"),
      ElementsAre("job.yml:3: unknown key \"instance_cout\" (did you mean \"instance_count\"?)",
                  "job.yml:6: unknown key \"pth\" (did you mean \"path\"?)",
                  "job.yml:9: unknown key \"timeoutt\" (did you mean \"timeout\"?)"));
  EXPECT_THAT(Errors("command: x\nzebra: 1\n"), ElementsAre("job.yml:2: unknown key \"zebra\""));
}

TEST(JobFile, AllErrorsComeAtOnceInTheOrderOfTheFile) {
  EXPECT_THAT(
      Errors("type: autoML2\nname: ../x\ncommand: ''\ncompute: gpu\n"
             "resources: {instance_count: 0}\nlimits: {timeout: soon}\n"
             "queue_settings: {priority: hgh}\n"),
      ElementsAre(HasSubstr("job.yml:1: job type \"autoML2\" is not supported"),
                  HasSubstr("job.yml:2: name must be"), HasSubstr("job.yml:3: command is empty"),
                  HasSubstr("job.yml:4: compute \"gpu\" does not exist"),
                  "job.yml:5: instance_count must be a whole number from 1 to 100000, but "
                  "is \"0\"",
                  HasSubstr("job.yml:6: timeout must be a whole number"),
                  HasSubstr("job.yml:7: priority must be one of low, medium, normal, high, "
                            "but is \"hgh\" (did you mean \"high\"?)")));
}

TEST(JobFile, ShowsTwentyErrorsAndCountsTheRest) {
  std::string text = "command: x\n";
  for (int i = 0; i < 30; ++i) absl::StrAppend(&text, "zzzzzz", i, ": 1\n");
  const auto errors = Errors(text);
  ASSERT_EQ(errors.size(), 21u);
  EXPECT_EQ(errors.back(), "and 10 more errors");
}

TEST(JobFile, WrongTypesAreNamed) {
  EXPECT_THAT(Errors("command: [a]\ncode: {}\ntags: 3\ninputs: []\ndistribution: mpi\n"
                     "environment_variables: {A: [1]}\n"),
              ElementsAre("job.yml:1: command must be text, but is a list",
                          "job.yml:2: code must be text, but is a mapping",
                          "job.yml:3: tags must be a mapping, but is \"3\"",
                          "job.yml:4: inputs must be a mapping, but is a list",
                          "job.yml:5: distribution must be a mapping, but is \"mpi\"",
                          "job.yml:6: environment_variables.A must be text, but is a list"));
}

TEST(JobFile, AFileThatIsNoMappingHasThatOneFault) {
  EXPECT_THAT(Errors("- a\n"),
              ElementsAre("job.yml:1: a job file must be a mapping, but is a list"));
  EXPECT_THAT(Errors("hello\n"),
              ElementsAre("job.yml:1: a job file must be a mapping, but is \"hello\""));
  EXPECT_THAT(Errors("command: x\nna\xffme: y\n"), ElementsAre("job.yml:2: is not UTF-8 text"));
}

TEST(JobFile, WhatIsNoYamlByItsNameEitherMayBeAScript) {
  const auto fault = [](const char* text, const char* name) {
    return std::string(ReadAllOfJobFile(text, name, "/", BuiltInSite(), {}).faults.message());
  };
  const char hint[] =
      "; a script needs a first line that begins with \"#!\", or a name that ends in .py or .sh";
  EXPECT_THAT(fault("import os\n", "/w/train"), EndsWith(hint));
  EXPECT_THAT(fault("x = {'a': 1}\nfor i in x:\n  y: z: 3\n", "/w/train.txt"), EndsWith(hint));
  EXPECT_THAT(fault("hello\n", "job.yaml"), Not(HasSubstr("script")));
  EXPECT_THAT(fault("x: 1\n", "job"), Not(HasSubstr("script")));
}

TEST(JobFile, BadYamlAndKeysThatComeTwiceNameTheLine) {
  EXPECT_THAT(Errors("command: x\ntags: {a: 1\nname: y\n"), ElementsAre(HasSubstr("job.yml:")));
  EXPECT_THAT(Errors("command: x\ncommand: y\n"),
              ElementsAre("job.yml:2: key \"command\" is there already, in line 1"));
  EXPECT_THAT(Errors(""), ElementsAre("job.yml:1: is empty"));
}

TEST(JobFile, AMissingCommandIsNamed) {
  EXPECT_THAT(Errors("name: x\n"), ElementsAre(HasSubstr("the key \"command\" is missing")));
  EXPECT_THAT(Errors("name: x\ncommand:\n"), ElementsAre(HasSubstr("job.yml:2: command is empty")));
}

TEST(JobFile, ExpressionsAreCheckedWithTheirOwnLine) {
  EXPECT_THAT(Errors("inputs: {data: 1}\ncommand: |\n  echo\n  run ${{inputs.dat}}\n"
                     "  ${{search_space.lr}}\n"),
              ElementsAre("job.yml:4: ${{inputs.dat}}: the job has no input \"dat\" (did you mean "
                          "\"data\"?)",
                          HasSubstr("job.yml:5: ${{search_space.lr}}: belongs to sweep jobs")));
}

TEST(JobFile, KeysWithoutEffectAreNamedInWarnings) {
  const auto result = Read(
      "command: x\nproperties: {a: 1}\nidentity: {type: managed}\nservices:\n  tb: {}\n"
      "resources:\n  instance_count: 2\n  instance_type: Standard_NC6\n  shm_size: 2g\n"
      "  docker_args: --x\nqueue_settings: {job_tier: spot}\n"
      "inputs: {d: ./data}\n"
      "outputs: {m: {path: azureml://x}}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(
      result->warnings,
      ElementsAre(HasSubstr("job.yml:2: \"properties\" has no effect"),
                  HasSubstr("job.yml:3: \"identity\" has no effect"),
                  HasSubstr("job.yml:4: \"services\" has no effect"),
                  HasSubstr("job.yml:8: \"instance_type\" has no effect"),
                  HasSubstr("job.yml:9: \"shm_size\" has no effect"),
                  HasSubstr("job.yml:10: \"docker_args\" has no effect"),
                  HasSubstr("job.yml:11: \"job_tier\" has no effect"),
                  HasSubstr("job.yml:12: input \"d\" is the plain text \"./data\""),
                  HasSubstr("job.yml:13: \"path\" has no effect: outputs are kept with the job")));
}

TEST(JobFile, DataElsewhereIsRefusedWithTheRemedy) {
  const std::pair<const char*, const char*> kCases[] = {
      {"azureml://datastores/d/paths/x/y.csv", "azureml://datastores/d/paths/x"},
      {"https://e.org/datasets/iris.csv", "https://e.org/datasets"},
      {"https://e.org/iris.csv", "https://e.org/iris.csv"},
      {"https://e.org/a/iris.csv?sv=1&sig=secret", "https://e.org/a"},
      {"azureml:data:1", "azureml:data"},
      {"azureml:data@latest", "azureml:data"}};
  for (const auto& [path, prefix] : kCases) {
    EXPECT_THAT(
        Errors(absl::StrCat("command: x\ninputs:\n  d:\n    path: ", path, "\n")),
        ElementsAre(absl::StrCat(
            "job.yml:4: input \"d\": \"", absl::StrReplaceAll(path, {{"?sv=1&sig=secret", "?…"}}),
            "\" is not on this machine",
            absl::StrContains(path, "azureml:") ? "" : ", and a folder cannot be listed there",
            absl::StrContains(path, "https:") ? " (a file has type: uri_file)" : "",
            absl::StrContains(path, "datastores") ? ": there is no datastore \"d\"" : "",
            "; copy it here and say where: tutti data map ", prefix, " FOLDER",
            absl::StrContains(path, "datastores")
                ? ", or make the datastore known by its file: tutti datastore create --file FILE"
            : absl::StartsWith(path, "azureml:data")
                ? ", or make the name known by its file: tutti data create --file FILE"
            : absl::StrContains(path, "sig=")
                ? ", or make a datastore with the signature as its sas_token, which no job then "
                  "shows: tutti datastore create --file FILE"
                : "")));
  }
  EXPECT_THAT(Errors("command: x\ninputs: {d: {type: uri_file}}\n"),
              ElementsAre("job.yml:2: input \"d\" has no path"));
  EXPECT_THAT(Errors("command: x\ninputs: {d: {type: number, path: x}}\n"),
              ElementsAre(HasSubstr("written as a plain value, as in \"d: 3\"")));
}

TEST(JobFile, DataElsewhereIsServedFromItsCopy) {
  Site site = BuiltInSite();
  ASSERT_TRUE(site.data.Add("wasbs://datasets@acc.blob.core.windows.net/", "/copies/sets").ok());
  ASSERT_TRUE(site.data.Add("azureml:cifar", "/copies/cifar").ok());
  const auto result = ReadJobFile(
      "command: x\ninputs:\n"
      "  a: {type: uri_file, path: 'https://acc.blob.core.windows.net/datasets/iris.csv'}\n"
      "  b: {path: 'azureml:cifar@latest', mode: download}\n"
      "  c: {path: 'https://e.org/x.csv', mode: direct}\n",
      "job.yml", "/base", site);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->spec.inputs.at("a").path, "/copies/sets/iris.csv");
  EXPECT_EQ(result->spec.inputs.at("b").path, "/copies/cifar");
  // An address that a program reads by itself is handed on.
  EXPECT_EQ(result->spec.inputs.at("c").literal, "https://e.org/x.csv");
  EXPECT_EQ(result->spec.inputs.at("c").path, "");
}

// The built-in site with a datastore.
Site SiteWithBlobs() {
  Site site = BuiltInSite();
  site.datastores["blobs"].place = {.kind = StoreKind::kAzureBlob,
                                    .account = "acme",
                                    .container = "images",
                                    .credential = CredentialKind::kAccountKey,
                                    .secret = "datastore.blobs",
                                    .datastore = "blobs"};
  return site;
}

TEST(JobFile, DataInAStoreArePlacesThatNodesFetch) {
  Site site = SiteWithBlobs();
  site.datastores["share"].place = {
      .kind = StoreKind::kLocal, .path = "/mnt", .datastore = "share"};
  ASSERT_TRUE(
      site.data_assets
          .Add(
              {.name = "train", .type = "uri_folder", .path = "azureml://datastores/blobs/paths/t"})
          .ok());
  const auto result = ReadJobFile(
      "command: x\ninputs:\n"
      "  a: {path: 'azureml://datastores/blobs/paths/train'}\n"
      "  b: {type: uri_file, path: 'wasbs://images@acme.blob.core.windows.net/a.csv'}\n"
      "  c: {path: 's3://open/*.png', mode: download}\n"
      "  d: {path: 'azureml:train:1'}\n"
      "  e: {path: 'azureml://datastores/share/paths/e', mode: direct}\n"
      "  f: {type: uri_file, path: 'https://other.blob.core.windows.net/c/f.csv'}\n"
      "  g: {path: 'azureml://datastores/blobs/paths/g', mode: direct}\n",
      "job.yml", "/base", site);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto& inputs = result->spec.inputs;
  EXPECT_EQ(inputs.at("a").place->path, "train");
  EXPECT_EQ(inputs.at("a").path, "");
  EXPECT_EQ(inputs.at("b").place->datastore, "blobs") << "not by https, which has no credentials";
  EXPECT_TRUE(inputs.at("c").place->is_pattern);
  EXPECT_EQ(inputs.at("d").place->path, "t");
  EXPECT_EQ(inputs.at("e").path, "/mnt/e");
  EXPECT_EQ(inputs.at("f").path, "https://other.blob.core.windows.net/c/f.csv");
  EXPECT_FALSE(inputs.at("f").place.has_value());
  EXPECT_EQ(inputs.at("g").literal, "azureml://datastores/blobs/paths/g");
  EXPECT_EQ(inputs.at("g").place->path, "g") << "its launcher serves it";
}

TEST(JobFile, APlaceThatCannotBeAnInputIsRefusedAtItsLine) {
  EXPECT_THAT(Errors("command: x\ninputs:\n  a: {type: uri_file, path: 's3://b/*.csv'}\n"),
              ElementsAre(HasSubstr("job.yml:3: input \"a\": a pattern stands for several files")));
  EXPECT_THAT(Errors("command: x\ninputs:\n  a: {type: uri_file, path: 's3://b/'}\n"),
              ElementsAre(HasSubstr("names all that the container holds")));
  EXPECT_THAT(Errors("command: x\ninputs:\n  a: {path: 's3://b/../c'}\n"),
              ElementsAre(HasSubstr("job.yml:3: input \"a\": \"s3://b/../c\" leads out")));
}

TEST(JobFile, OutputsInAStoreArePlacesThatNodesWriteTo) {
  Site site = SiteWithBlobs();
  const auto result = ReadJobFile(
      "command: x\noutputs:\n"
      "  a: {path: 'azureml://datastores/blobs/paths/runs/${{name}}/${{output_name}}/'}\n"
      "  b: {type: uri_file, mode: upload, path: "
      "'wasbs://images@acme.blob.core.windows.net/m%20l.pt'}\n"
      "  c: {type: custom_model, mode: rw_mount, path: 's3://bucket/'}\n"
      "  d: {path: 'file:///mnt/share/d'}\n"
      "  e: {path: 'azureml://datastores/blob/paths/x'}\n"
      "  f: {path: ./here}\n",
      "job.yml", "/base", site);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto& outputs = result->spec.outputs;
  EXPECT_EQ(outputs.at("a").place->path, "runs/${{name}}/a");
  EXPECT_EQ(outputs.at("a").place->secret, "datastore.blobs");
  EXPECT_EQ(outputs.at("a").location.line, 3);
  EXPECT_EQ(PlaceOfJob(*outputs.at("a").place, "blue").path, "runs/blue/a");
  EXPECT_EQ(outputs.at("b").place->path, "m l.pt");
  EXPECT_EQ(outputs.at("b").file, "m l.pt");
  EXPECT_EQ(outputs.at("c").place->path, "");
  EXPECT_EQ(outputs.at("d").place->kind, StoreKind::kLocal);
  EXPECT_EQ(outputs.at("d").place->path, "/mnt/share/d");
  EXPECT_FALSE(outputs.at("e").place.has_value());
  EXPECT_FALSE(outputs.at("f").place.has_value());
  EXPECT_THAT(
      result->warnings,
      ElementsAre(AllOf(HasSubstr("job.yml:7: \"path\" has no effect: there is no datastore "
                                  "\"blob\" (did you mean \"blobs\"?)"),
                        HasSubstr("tutti datastore create --file FILE")),
                  HasSubstr("job.yml:8: \"path\" has no effect: outputs are kept with the job")));
}

TEST(JobFile, LogsGoToThePlaceThatIsNamedForThem) {
  Site site = SiteWithBlobs();
  const auto result = ReadJobFile(
      "command: x\nresources:\n  properties:\n    tutti:\n"
      "      logs: azureml://datastores/blobs/paths/runs/\n",
      "job.yml", "/base", site);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->spec.logs_place.has_value());
  EXPECT_EQ(result->spec.logs_place->path, "runs");
  EXPECT_EQ(result->spec.logs_place->secret, "datastore.blobs");
  EXPECT_EQ(result->spec.logs_location.line, 5);
  EXPECT_EQ(result->spec.share, std::nullopt) << "it has whole nodes all the same";
  EXPECT_THAT(result->warnings, IsEmpty());
}

TEST(JobFile, LogsOnAShareThatAFolderServesGoToTheFolder) {
  const std::string text =
      "command: x\nresources: {properties: {tutti: {logs: "
      "'https://acme.file.core.windows.net/runs/a'}}}\n";
  EXPECT_THAT(Errors(text), ElementsAre(HasSubstr("there is no datastore with credentials")));
  Site site = BuiltInSite();
  ASSERT_TRUE(site.data.Add("https://acme.file.core.windows.net/runs", "/srv/runs").ok());
  const auto result = ReadJobFile(text, "job.yml", "/base", site);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->spec.logs_place.has_value());
  EXPECT_EQ(result->spec.logs_place->kind, StoreKind::kLocal);
  EXPECT_EQ(result->spec.logs_place->path, "/srv/runs/a");
}

TEST(JobFile, LogsThatCouldGoNowhereAreRefused) {
  const std::pair<const char*, const char*> kCases[] = {
      {"azureml://datastores/blob/paths/x", "there is no datastore \"blob\""},
      {"azureml://datastores/blob/paths/x", "tutti datastore create --file FILE"},
      {"my-store", "is no place in a store: write azureml://datastores/NAME/paths/PATH"},
      {"'s3://b/*'", "is a pattern"},
      {"'s3://b/${{output_name}}'", "a path may have ${{name}}"},
      {"'https://a.blob.core.windows.net/c/x?sv=1&sig=secret'", "its sas_token"},
      {"[s3://b/x]", "must be an address"}};
  for (const auto& [logs, message] : kCases) {
    EXPECT_THAT(
        Errors(absl::StrCat("command: x\nresources: {properties: {tutti: {logs: ", logs, "}}}\n")),
        ElementsAre(AllOf(HasSubstr("job.yml:2: resources.properties.tutti.logs: "),
                          HasSubstr(message), Not(HasSubstr("secret")))))
        << logs;
  }
}

TEST(JobFile, AsksForInputsToBeMounted) {
  const std::string inputs =
      "command: ls ${{inputs.x}}\ninputs:\n  x: {path: s3://b/x}\n"
      "  f: {path: s3://b/f, type: uri_file}\n  d: {path: s3://b/d, mode: download}\n"
      "  p: {path: 's3://b/*/p'}\nresources: {properties: {tutti: {mount: ";
  const auto job = Read(absl::StrCat(inputs, "[x]}}}\n"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->spec.mounts, ElementsAre("x"));
  EXPECT_FALSE(job->spec.share) << "such a job has its nodes whole";
  const std::pair<const char*, const char*> kCases[] = {
      {"[y]", "input \"y\": the job has no such input"},
      {"[f]", "input \"f\": it is a uri_file, and what is mounted is a folder"},
      {"[d]", "input \"d\": its mode is download, and what is mounted is ro_mount"},
      {"[p]", "input \"p\": its path is a pattern"}};
  for (const auto& [mount, message] : kCases) {
    EXPECT_THAT(Errors(absl::StrCat(inputs, mount, "}}}\n")),
                ElementsAre(AllOf(HasSubstr("job.yml:7: resources.properties.tutti.mount: "),
                                  HasSubstr(message))))
        << mount;
  }
}

TEST(JobFile, APlaceThatCannotBeWrittenToIsRefusedAtItsLine) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{path: 's3://b/*.csv'}", "is a pattern, and what is written is one folder or file"},
      {"{type: uri_file, path: 's3://b/'}", "add the file's name"},
      {"{path: 's3://b/../c'}", "leads out of its container"},
      {"{path: 's3://b/${{inputs.x}}'}", "a path may have ${{name}} and ${{output_name}}"},
      {"{path: 'gs://b/x'}", "type gcs with an HMAC key"},
      {"{path: 'file:here'}", "names no absolute path: write file:///FOLDER"},
      {"{path: 'https://a.file.core.windows.net/share/x'}",
       "no datastore with credentials: make one of type azure_file"},
      {"{path: 'https://a.blob.core.windows.net/c/x?sv=1&sig=secret'}",
       "give it to a datastore as its sas_token"}};
  for (const auto& [output, message] : kCases) {
    EXPECT_THAT(Errors(absl::StrCat("command: x\noutputs:\n  a: ", output, "\n")),
                ElementsAre(AllOf(HasSubstr("job.yml:3: output \"a\": path \""), HasSubstr(message),
                                  Not(HasSubstr("secret")))))
        << output;
  }
}

TEST(JobFile, ModelsAndTablesAreInputsAndOutputs) {
  const JobSpec spec = SpecOf(
      "command: x ${{outputs.f}}\ninputs:\n  m: {type: mlflow_model, path: ./model}\n"
      "  t: {type: mltable, path: ./table}\noutputs:\n  m: {type: custom_model}\n"
      "  f: {type: uri_file}\n");
  EXPECT_EQ(spec.inputs.at("m").path, "/home/me/project/model");
  EXPECT_EQ(spec.inputs.at("t").type, "mltable");
  EXPECT_EQ(spec.outputs.at("m").type, "custom_model");
  EXPECT_EQ(spec.outputs.at("f").file, "f");
  const auto named = Read(
      "command: x\noutputs: {f: {type: uri_file, path: "
      "'azureml://datastores/s/paths/${{name}}/a.txt'}}");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->spec.outputs.at("f").file, "a.txt");
  EXPECT_EQ(SpecOf("command: x\ninputs: {t: {type: mltable, path: t, mode: Eval_Mount}}\n")
                .inputs.at("t")
                .mode,
            "eval_mount");
  EXPECT_THAT(Errors("command: x\ninputs: {t: {type: uri_folder, path: t, mode: eval_mount}}\n"),
              ElementsAre(HasSubstr("job.yml:2: input \"t\": mode eval_mount is of type mltable "
                                    "alone, and it is of type uri_folder")));
  EXPECT_THAT(Errors("command: x\ninputs: {t: {type: mltable, path: 's3://b/*/t'}}\n"),
              ElementsAre(HasSubstr("a table is one folder, and the address is a pattern")));
}

TEST(JobFile, InputsHaveDefaultsAndMayBeOptional) {
  const JobSpec spec = SpecOf(
      "command: run $[[--lr ${{inputs.lr}}]] ${{inputs.n}}\ninputs:\n"
      "  lr: {type: number, optional: true}\n"
      "  n: {type: integer, default: 3, min: 1, max: 5}\n"
      "  b: {type: boolean, value: true}\n");
  EXPECT_TRUE(spec.inputs.at("lr").absent);
  EXPECT_EQ(spec.inputs.at("n").literal, "3");
  EXPECT_EQ(spec.inputs.at("b").literal, "True");
  EXPECT_THAT(Errors("command: x\ninputs:\n  n: {type: integer, default: 9, max: 5}\n"
                     "  i: {type: integer, default: 1.5}\n  s: {type: string}\n"
                     "  y: {type: boolean, default: yes}\n"),
              ElementsAre("job.yml:3: input \"n\" is \"9\", which is more than 5",
                          "job.yml:4: input \"i\" is \"1.5\", which is no whole number",
                          HasSubstr("job.yml:5: input \"s\" has no value"),
                          "job.yml:6: input \"y\" is \"yes\", which is no boolean (write true or "
                          "false)"));
  EXPECT_THAT(Errors("command: run ${{inputs.lr}}\ninputs: {lr: {type: number, optional: true}}\n"),
              ElementsAre(HasSubstr("input \"lr\" is optional and has no value")));
}

TEST(JobFile, AValueThatItsEnumLacksIsPassedOnWithAWarning) {
  const auto result = Read(
      "command: x ${{inputs.k}}\nenvironment: host\ncompute: local\ninputs:\n"
      "  k: {type: string, default: c, enum: [a, b]}\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->spec.inputs.at("k").literal, "c");
  EXPECT_THAT(result->warnings,
              ElementsAre("job.yml:5: input \"k\" is \"c\", which is none of a, b"));
}

TEST(JobFile, VariablesMayNameInputs) {
  EXPECT_EQ(SpecOf("command: x\ninputs: {a: 1}\nenvironment_variables: {A: '${{inputs.a}}'}\n")
                .environment_variables.at("A"),
            "${{inputs.a}}");
  EXPECT_THAT(Errors("command: x\nenvironment_variables:\n  A: ${{inputs.a}}\n"),
              ElementsAre(HasSubstr("job.yml:2: environment variable \"A\": ${{inputs.a}}")));
}

TEST(JobFile, AVariableThatNoProcessCanBeGivenIsNamed) {
  const std::string longest(131072 - 3, 'x');  // with "A=" and a zero byte 128 KiB
  const std::string begin = "command: x\nenvironment_variables:\n  A: ";
  EXPECT_EQ(SpecOf(begin + longest + "\n").environment_variables.at("A"), longest);
  EXPECT_THAT(Errors(begin + longest + "x\n"),
              ElementsAre(HasSubstr("job.yml:2: environment variable \"A\" has 131070 bytes")));
}

TEST(JobFile, AVariableThatTuttiSetsItselfIsAWarningWithItsLine) {
  const auto warnings = [](absl::string_view text) {
    const auto result = Read(text);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->warnings : std::vector<std::string>();
  };
  EXPECT_THAT(warnings("command: x\nenvironment: host\ndistribution: {type: pytorch}\n"
                       "environment_variables:\n  A: 1\n  MASTER_PORT: \"29500\"\n"
                       "  TF_CONFIG: '{}'\n  OMP_NUM_THREADS: 2\n"),
              ElementsAre("job.yml:6: environment_variables.MASTER_PORT has no effect: tutti sets "
                          "it in every process, to a free port of the first node"));
  EXPECT_THAT(warnings("command: x\nenvironment_variables: {MASTER_PORT: 1, RANK: 2}\n"), IsEmpty())
      << "one process without a distribution has no ranks";
  EXPECT_THAT(warnings("command: x\nenvironment: host\ndistribution: {type: tensorflow}\n"
                       "environment_variables:\n  TF_CONFIG: '{}'\n"),
              ElementsAre(HasSubstr("job.yml:5: environment_variables.TF_CONFIG has no effect")));
  EXPECT_THAT(warnings("command: x\ninputs: {a_b: 1}\nenvironment_variables:\n"
                       "  AZUREML_DATAREFERENCE_a_b: 2\n  AZUREML_DATAREFERENCE_c: 2\n"),
              ElementsAre(HasSubstr("job.yml:4: environment_variables.AZUREML_DATAREFERENCE_a_b")));
  EXPECT_THAT(warnings("command: x\nresources:\n  properties:\n    tutti:\n      secrets:\n"
                       "        TUTTI_JOB_TOKEN: mine\n"),
              ElementsAre(HasSubstr(
                  "job.yml:5: resources.properties.tutti.secrets.TUTTI_JOB_TOKEN has no effect")));
}

TEST(JobFile, AStepsVariableThatTuttiSetsItselfIsAWarningWithTheLineOfItsFile) {
  const auto read_file = [](const std::filesystem::path& file) -> absl::StatusOr<std::string> {
    EXPECT_EQ(file, "/home/me/project/part.yml");
    return "name: part\ntype: command\ncommand: x\nenvironment: host\n"
           "environment_variables:\n  RANK: 1\n  WORLD_SIZE: 1\n"
           "distribution: {type: pytorch, process_count_per_instance: 2}\n";
  };
  const auto result = ReadJobFile(
      "type: pipeline\njobs:\n  one:\n    component: ./part.yml\n"
      "    environment_variables:\n      WORLD_SIZE: 2\n"
      "  two:\n    command: x\n    environment: host\n    distribution: {type: mpi}\n"
      "    environment_variables: {LOCAL_RANK: 3}\n",
      "job.yml", "/home/me/project", BuiltInSite(), read_file);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings,
              UnorderedElementsAre(HasSubstr("job.yml:6: environment_variables.WORLD_SIZE has"),
                                   HasSubstr("part.yml:6: environment_variables.RANK has"),
                                   HasSubstr("job.yml:11: environment_variables.LOCAL_RANK has")));
}

TEST(JobFile, NamesOfComputesAreMappedByTheSite) {
  Site site = BuiltInSite();
  site.computes["cpu-cluster"] = "local";
  for (const char* name : {"azureml:CPU-cluster", "local", "azureml:serverless", "''"}) {
    const auto result =
        ReadJobFile(absl::StrCat("command: x\ncompute: ", name), "job.yml", "/base", site);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->spec.compute, "local");
  }
  EXPECT_THAT(Errors("command: x\ncompute: azureml:gpu\n"),
              ElementsAre(HasSubstr("computes: {gpu: local}")));
  const std::string id =
      "azureml:/subscriptions/s/resourceGroups/r/providers/Microsoft.MachineLearningServices/"
      "workspaces/w/computes/";
  const auto by_id = ReadJobFile(absl::StrCat("command: x\ncompute: ", id, "cpu-cluster\n"),
                                 "job.yml", "/base", site);
  EXPECT_TRUE(by_id.ok()) << by_id.status();
  const std::string name(100, 'n');
  EXPECT_THAT(Errors(absl::StrCat("command: x\ncompute: ", id, name, "\n")),
              ElementsAre(HasSubstr("computes: {" + name + ": local}")));
}

TEST(JobFile, FilesOfOtherKindsAreToldApart) {
  const auto with = [](absl::string_view schema) {
    return absl::StrCat("$schema: https://azuremlschemas.azureedge.net/latest/", schema,
                        ".schema.json\nname: x\n");
  };
  EXPECT_THAT(Errors(with("pipelineComponent")), ElementsAre(HasSubstr("component: ./job.yml")));
  EXPECT_THAT(Errors(with("environment")), ElementsAre(HasSubstr("environment: file:./job.yml")));
  EXPECT_THAT(Errors(with("amlCompute")),
              ElementsAre(HasSubstr("tutti compute create --file job.yml")));
  EXPECT_THAT(Errors(with("data")), ElementsAre(HasSubstr("tutti data create --file job.yml")));
  EXPECT_THAT(Errors(with("managedOnlineDeployment")), ElementsAre(HasSubstr("tutti score")));
  EXPECT_THAT(Errors(with("schedule")), ElementsAre(HasSubstr("have cron submit the job")));
  EXPECT_THAT(Errors("script: train.py\nframework: PyTorch\ncommunicator: None\n"
                     "environment: {docker: {baseImage: x}}\n"),
              ElementsAre(HasSubstr("job.yml:1: this is a file of kind run configuration (SDK v1), "
                                    "where one of kind job is expected: write its script")));
  EXPECT_THAT(Errors("apiVersion: batch/v1\nkind: Job\nspec: {}\n"),
              ElementsAre(HasSubstr("job.yml:1: this is a file of kind Kubernetes object")));
  EXPECT_THAT(Errors("{\"properties\": {\n\"nodeCount\": 1}}\n"),
              ElementsAre(AllOf(HasSubstr("job.yml:1: this is a file of kind job of Batch AI"),
                                HasSubstr("tutti batchai job create -f job.yml"))));
  EXPECT_TRUE(Read("command: echo hi\nenvironment: host\n"
                   "properties: {nodeCount: \"4\", owner: me}\n")
                  .ok());
  EXPECT_THAT(Errors("type: mltable\nname: x\npath: y\n"),
              ElementsAre(HasSubstr("job.yml:1: this is a file of kind data")));
}

TEST(JobFile, APlainTextThatLooksLikeAPathIsProposedWithItsType) {
  const auto warning = [](absl::string_view value) {
    const auto result =
        ReadJobFile(absl::StrCat("command: x\ninputs: {d: '", value, "'}\n"), "job.yml", "/base");
    return result.ok() && result->warnings.size() == 1 ? result->warnings[0] : "";
  };
  EXPECT_THAT(warning("https://x.org/a/iris.csv"),
              HasSubstr("write {type: uri_file, path: https://x.org/a/iris.csv}"));
  EXPECT_THAT(warning("./data/iris.csv"), HasSubstr("{type: uri_file,"));
  for (const char* folder : {"./data", "../.hidden", "https://x.org", "azureml:iris:1"}) {
    EXPECT_THAT(warning(folder), HasSubstr("{type: uri_folder,")) << folder;
  }
}

TEST(JobFile, ARegistrysModelThatIsNotHereIsAnsweredWithTheRemedy) {
  EXPECT_THAT(Errors("command: x\ninputs:\n  m: {type: mlflow_model, path: "
                     "'azureml://registries/azureml/models/bert/versions/3'}\n"),
              ElementsAre("job.yml:3: input \"m\": "
                          "\"azureml://registries/azureml/models/bert/versions/3\" is not on this "
                          "machine; copy it here and say where: tutti data map "
                          "azureml://registries/azureml/models/bert FOLDER"));
}

TEST(JobFile, FilesWithoutASchemaAreToldByTheirKeys) {
  EXPECT_EQ(SpecOf("jobs: {a: {command: x}}\n").kind, JobKind::kPipeline);
  EXPECT_EQ(SpecOf("trial: {command: 'x ${{search_space.lr}}', environment: host}\n"
                   "sampling_algorithm: random\nobjective: {goal: minimize, primary_metric: loss}\n"
                   "search_space: {lr: {type: choice, values: [1, 2]}}\n"
                   "limits: {max_total_trials: 2}\n")
                .kind,
            JobKind::kSweep);
  const std::pair<const char*, const char*> kKinds[] = {
      {"name: e\nimage: python:3.11\n", "job.yml:2: this is a file of kind environment"},
      {"name: e\nchannels: [defaults]\ndependencies: [pip]\n",
       "job.yml:3: this is a file of kind conda environment"},
      {"name: c\ntype: amlcompute\nsize: x\n", "job.yml:2: this is a file of kind compute"},
      {"name: d\ntype: azure_blob\n", "job.yml:2: this is a file of kind datastore"},
      {"name: d\nendpoint_name: e\n", "job.yml:2: this is a file of kind deployment"},
      {"name: s\ncreate_job: x\n", "job.yml:2: this is a file of kind schedule"},
      {"name: t\nversion: 1\ntype: command\ncommand: x\n",
       "job.yml:2: this is a file of kind component"}};
  for (const auto& [text, error] : kKinds) {
    EXPECT_THAT(Errors(text), ElementsAre(HasSubstr(error)));
  }
  // If a job has a key of another kind of file, the error names the key and not the file.
  EXPECT_THAT(Errors("command: x\nimage: python\n"), ElementsAre(HasSubstr("key \"image\"")));
  EXPECT_THAT(Errors("type: command\nimage: python\n"),
              ElementsAre(HasSubstr("\"command\" is missing"), HasSubstr("key \"image\"")));
}

TEST(JobFile, TypesThatAreNotRunAreRefusedWithTheReasonAlone) {
  EXPECT_THAT(Errors("$schema: x/autoMLJob.schema.json\ntype: automl\ntask: forecasting\n"),
              ElementsAre(HasSubstr("job.yml:2: jobs of type automl are not run: a service")));
  EXPECT_THAT(Errors("$schema: x/sparkJob.schema.json\nentry: {file: a.py}\n"),
              ElementsAre(HasSubstr("job.yml:1: jobs of type spark are not run: it needs")));
  EXPECT_THAT(Errors("type: parallel\nmini_batch_size: 1\n"),
              ElementsAre(HasSubstr("RANK and WORLD_SIZE")));
}

TEST(JobFile, AnAddressWithAPasswordOrATokenIsRefusedAndNotShown) {
  for (const char* mode : {"", ", mode: direct"}) {
    EXPECT_THAT(
        Errors(absl::StrCat("command: x\ninputs:\n  d: {type: uri_file, path: ",
                            "'https://me:hunter22@e.org/a.csv'", mode, "}\n")),
        ElementsAre(AllOf(HasSubstr("job.yml:3: input \"d\": \"https://…@e.org/a.csv\" has a user"),
                          Not(HasSubstr("hunter22")))));
  }
  EXPECT_THAT(Errors("command: x\ncode: git+https://hunter22@e.org/p.git\n"),
              ElementsAre(AllOf(HasSubstr("job.yml:2: code: \"https://…@e.org/p.git\" has a user"),
                                Not(HasSubstr("hunter22")))));
}

TEST(JobFile, CodeMayComeFromGit) {
  EXPECT_EQ(SpecOf("command: x\ncode: git+https://e.org/p.git@v1#subdirectory=src\n").code,
            "git+https://e.org/p.git@v1#subdirectory=src");
  EXPECT_THAT(Errors("command: x\ncode: git+ext::sh -c x\n"), ElementsAre(HasSubstr("job.yml:2")));
  EXPECT_THAT(Errors("command: x\ncode: azureml:code:1\n"), ElementsAre(HasSubstr("job.yml:2")));
}

TEST(JobFile, CodeMayLieInAStore) {
  EXPECT_EQ(SpecOf("command: x\ncode: azureml://datastores/scripts/paths/train\n").code,
            "azureml://datastores/scripts/paths/train");
  EXPECT_THAT(Errors("command: x\ncode: s3://bucket/*.py\n"),
              ElementsAre(HasSubstr("job.yml:2: code: \"s3://bucket/*.py\" has a \"*\"")));
  EXPECT_THAT(
      Errors("command: x\ncode: https://acme.blob.core.windows.net/box/a?sig=hunter22\n"),
      ElementsAre(AllOf(HasSubstr("job.yml:2: code: \"https://acme.blob.core.windows.net/box/a?…"),
                        Not(HasSubstr("hunter22")))));
}

TEST(JobFile, NamesThatBecomeFoldersAndVariablesArePlain) {
  EXPECT_THAT(Errors("command: x\ninputs: {../a: 1}\noutputs: {1b: {}}\n"
                     "environment_variables: {A-B: 1}\nname: .hidden\n"),
              ElementsAre(HasSubstr("job.yml:2: input name \"../a\" must be"),
                          HasSubstr("job.yml:3: output name \"1b\" must be"),
                          HasSubstr("job.yml:4: environment variable \"A-B\""),
                          HasSubstr("job.yml:5: name must be")));
}

TEST(JobFile, AJobMayResumeFromAnEarlierOne) {
  EXPECT_EQ(SpecOf("command: x\nresume: pipe-1.train\n").resume, "pipe-1.train");
  EXPECT_EQ(SpecOf("command: x\nresume: a\n").resume_location.line, 2);
  EXPECT_EQ(SpecOf("type: pipeline\njobs: {a: {command: x, environment: host, resume: b}}\n")
                .steps.at(0)
                .job.resume,
            "b");
  EXPECT_THAT(Errors("command: x\nresume: ../a\n"),
              ElementsAre("job.yml:2: resume must be the name of an earlier job, as `tutti job "
                          "list` shows it"));
  EXPECT_THAT(Errors("type: pipeline\nresume: a\njobs: {a: {command: x, environment: host}}\n"),
              ElementsAre(HasSubstr("job.yml:2: \"resume\": a pipeline begins anew")));
}

TEST(JobFile, AJobMayAskForAPartOfEachOfItsNodes) {
  constexpr char kJob[] =
      "command: x\nresources: {instance_count: 2, properties: {tutti: {PART}}}\n";
  const auto part = [&](const char* text) {
    return SpecOf(absl::StrReplaceAll(kJob, {{"PART", text}})).share;
  };
  EXPECT_EQ(part("cpus: 2, memory: 8GB, gpus: 1"), (NodeShare{2, 8'000'000'000, 1}));
  EXPECT_EQ(part("memory: 512MiB, gpus: 0"), (NodeShare{0, int64_t{1} << 29, 0}));
  EXPECT_EQ(part(""), NodeShare());
  EXPECT_EQ(SpecOf("command: x\nresources: {instance_count: 2}\n").share, std::nullopt);
  EXPECT_EQ(SpecOf(absl::StrReplaceAll(kJob, {{"PART", ""}})).share_location.line, 2);
}

TEST(JobFile, APartOfANodeIsASizeAndWholeNumbers) {
  const auto errors = [](const char* properties) {
    return Errors(absl::StrCat("command: x\nresources: {properties: {", properties, "}}\n"));
  };
  EXPECT_THAT(errors("tutti: {memory: lots}"),
              ElementsAre("job.yml:2: resources.properties.tutti.memory: \"lots\" is no size: "
                          "write 500MB, 8GB or 8GiB"));
  EXPECT_THAT(errors("tutti: {cpus: 0.5}"), ElementsAre(HasSubstr("cpus must be a whole number")));
  EXPECT_THAT(errors("tutti: {cores: 2}"), ElementsAre(HasSubstr("cores")));
  EXPECT_THAT(
      errors("tutti: {cpus: 2}, slurm: {exclusive: true}"),
      ElementsAre("job.yml:2: resources.properties.tutti asks for a share of each node, and "
                  "resources.properties.slurm.exclusive says something else of it: leave "
                  "one of them out"));
  EXPECT_THAT(
      errors("slurm: {memory: 4G, options: --gpus-per-node=2}, tutti: {memory: 4GB, gpus: 1}"),
      ElementsAre(HasSubstr("slurm.memory"), HasSubstr("slurm.gres")));
  EXPECT_THAT(
      Errors("command: x\nresources: {docker_args: --gpus=2, properties: {tutti: {gpus: 1}}}\n"),
      ElementsAre("job.yml:2: --gpus=2 (docker_args) asks for more GPUs than "
                  "resources.properties.tutti.gpus, which is 1: write as many there"));
}

TEST(JobFile, AJobIsGivenSecretsAsVariablesAndAsFiles) {
  const JobSpec spec = SpecOf(
      "command: x\nresources:\n  properties:\n    tutti:\n      secrets:\n"
      "        HF_TOKEN: hugging-face\n        SSH_KEY: {secret: deploy_key, file: true}\n"
      "        OTHER: {secret: 3rd, file: false}\n");
  EXPECT_THAT(spec.secret_variables,
              ElementsAre(Pair("HF_TOKEN", "hugging-face"), Pair("OTHER", "3rd")));
  EXPECT_THAT(spec.secret_files, ElementsAre(Pair("SSH_KEY", "deploy_key")));
  EXPECT_EQ(spec.secrets_location.line, 5);
  EXPECT_EQ(spec.share, std::nullopt);  // it has whole nodes all the same
  EXPECT_EQ(
      SpecOf("command: x\nresources: {properties: {tutti: {cpus: 2, secrets: {A: b}}}}\n").share,
      (NodeShare{2, 0, 0}));
}

TEST(JobFile, ASecretIsNamedAndGoesToOnePlace) {
  const auto errors = [](const char* secrets) {
    return Errors(absl::StrCat("command: x\nenvironment_variables: {SET: 1}\n",
                               "resources: {properties: {tutti: {secrets: ", secrets, "}}}\n"));
  };
  const std::string key = "job.yml:3: resources.properties.tutti.secrets";
  EXPECT_THAT(errors("{SET: a}"),
              ElementsAre(key + ".SET is in environment_variables too: leave one of them out"));
  EXPECT_THAT(errors("{A-B: a}"), ElementsAre(HasSubstr("must be of letters, digits and \"_\"")));
  for (const char* none : {"{A: ../b}", "{A: }", "{A: [b]}", "{A: {file: true}}"}) {
    EXPECT_THAT(errors(none),
                ElementsAre(key + ".A must name a secret, as in A: my-token, or {secret: my-token, "
                                  "file: true}"))
        << none;
  }
  EXPECT_THAT(errors("[a]"), ElementsAre(HasSubstr("must be a mapping of variables to secrets")));
  EXPECT_THAT(errors("{A: {secret: a, mode: 7}}"), ElementsAre(HasSubstr("mode")));
  EXPECT_THAT(errors("{A: {secret: a, file: maybe}}"), ElementsAre(HasSubstr("true, false")));
}

}  // namespace
}  // namespace tutti::spec
