// Covers: spec/text/preview_mark.cc, spec/text/yaml_text.cc.
#include "spec/file/preview_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/flow/pipeline_for_tests.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kCommand[] =
    R"($schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
code:
  local_path: src
command: |
  python train.py --data {inputs.data} --word ${WORD} {a}
  ls {{inputs.labels}}
environment:
  docker:
    image: docker.io/python
  conda_file: file:conda.yml
compute:
  target: azureml:gpu-cluster
  instance_count: 2
inputs:
  data:
    data: {path: "https://x.org/data.csv"}
    mode: mount
  labels:
    data: azureml:labels:1
    mode: download
distribution:
  type: pytorch
  process_count: 8
)";

constexpr char kSweep[] = R"(type: sweep_job
algorithm: random
search_space:
  lr: {spec: uniform, min_value: 0.1, max_value: 0.9}
objective: {primary_metric: loss, goal: minimize}
trial:
  type: command_job
  command: python train.py --lr {search_space.lr} --data {inputs.d}
  code: {local_path: ./src}
  compute: {target: azureml:cpu-cluster}
  inputs:
    d: {data: {path: ./d}, mode: mount}
early_termination: {spec: bandit, slack_factor: 0.1}
max_total_trials: 20
timeout_minutes: 2
)";

constexpr char kPipeline[] = R"(type: pipeline_job
inputs: {top: 3}
compute: {target: azureml:cpu-cluster}
outputs: {model: {data: {path: azureml://datastores/x}, mode: mount}}
jobs:
  make:
    type: command_job
    command: echo {inputs.top} > {outputs.o}/x
    inputs: {top: "{{inputs.top}}"}
    outputs: {o: {mode: mount}}
  use:
    type: component_job
    component: file:./parts/train.yml
    inputs: {data: "${{jobs.make.outputs.o}}", epochs: "${{inputs.top}}"}
    outputs: {model: "${{outputs.model}}"}
)";

std::string Upgraded(absl::string_view text) {
  const auto upgraded = UpgradeJob(text, "job.yml");
  EXPECT_TRUE(upgraded.ok()) << upgraded.status();
  if (!upgraded.ok()) return "";
  EXPECT_THAT(upgraded->notes, IsEmpty());
  return upgraded->text;
}

TEST(PreviewJob, IsOneErrorThatNamesTheWayOut) {
  EXPECT_THAT(
      PipelineErrors(kCommand),
      ElementsAre("job.yml:2: this is Azure ML's preview schema of 2021 (code: {local_path: "
                  "…}): `tutti job upgrade job.yml` shows the job in today's schema, and "
                  "writes it with --save"));
  EXPECT_THAT(PipelineErrors(kSweep), ElementsAre(HasSubstr("job.yml:1: this is Azure ML's preview "
                                                            "schema of 2021 (type: sweep_job)")));
  EXPECT_THAT(PipelineErrors(kPipeline), ElementsAre(HasSubstr("(compute: {target: …})")));
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    command: x\n"
                             "    code: {local_path: x}\n"),
              ElementsAre(HasSubstr("job.yml:5: this is Azure ML's preview schema")));
}

TEST(PreviewJob, ACommandBecomesTodays) {
  const std::string text = Upgraded(kCommand);
  EXPECT_THAT(text, HasSubstr("code: src\n"));
  EXPECT_THAT(text, HasSubstr("compute: azureml:gpu-cluster\n"));
  EXPECT_THAT(text, HasSubstr("  python train.py --data ${{inputs.data}} --word ${WORD} {a}\n"));
  EXPECT_THAT(text, HasSubstr("  ls ${{inputs.labels}}\n"));
  EXPECT_THAT(text, HasSubstr("process_count_per_instance: 4\n"));
  EXPECT_THAT(text, HasSubstr("instance_count: 2\n"));
  EXPECT_THAT(text, HasSubstr("conda_file: conda.yml\n  image: docker.io/python\n"));
  EXPECT_THAT(text, HasSubstr("    type: uri_file\n    path: https://x.org/data.csv\n"
                              "    mode: ro_mount\n"));
  EXPECT_THAT(text, HasSubstr("    type: uri_folder\n    path: azureml:labels:1\n"
                              "    mode: download\n"));
  EXPECT_FALSE(UpgradeJob(text, "job.yml").ok()) << "it is of today's schema";
}

TEST(PreviewJob, ASweepBecomesTodays) {
  const JobSpec job = PipelineOf(Upgraded(kSweep));
  EXPECT_EQ(job.kind, JobKind::kSweep);
  EXPECT_EQ(job.command, "python train.py --lr ${{inputs.lr}} --data ${{inputs.d}}");
  EXPECT_EQ(job.sweep->max_trials, 20);
  EXPECT_EQ(job.timeout, absl::Minutes(2));
  EXPECT_EQ(job.inputs.at("d").path, "/base/d");
  EXPECT_EQ(job.code, "/base/src");
}

TEST(PreviewJob, APipelineBecomesTodays) {
  const JobSpec job = PipelineOf(Upgraded(kPipeline), kTrain);
  EXPECT_EQ(job.kind, JobKind::kPipeline);
  ASSERT_EQ(job.steps.size(), 2u);
  EXPECT_EQ(job.steps[0].job.command, "echo ${{inputs.top}} > ${{outputs.o}}/x");
  EXPECT_EQ(job.steps[0].job.inputs.at("top").literal, "3");
  EXPECT_THAT(job.steps[1].inputs_from, ElementsAre(Pair("data", "jobs.make.outputs.o")));
  EXPECT_THAT(job.steps[1].outputs_to, ElementsAre(Pair("model", "model")));
}

TEST(PreviewJob, APipelineOfTodaysTypeWithTheOldFormsIsConverted) {
  constexpr char kOld[] =
      "type: pipeline\ninputs:\n  d:\n    dataset: {local_path: ./d}\noutputs: {m: {}}\njobs:\n"
      "  use:\n    type: component\n    component: file:./parts/train.yml\n"
      "    inputs: {data: \"$${{inputs.d}}\"}\n    outputs: {model: \"$${{outputs.m}}\"}\n";
  EXPECT_THAT(PipelineErrors(kOld), ElementsAre(HasSubstr("(inputs: {…: {dataset: …}})")));
  const std::string text = Upgraded(kOld);
  EXPECT_THAT(text, HasSubstr("path: ./d\n"));
  EXPECT_THAT(text, HasSubstr("data: ${{parent.inputs.d}}\n"));
  EXPECT_THAT(text, HasSubstr("model: ${{parent.outputs.m}}\n"));
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    command: x\n"
                             "    outputs: {m: \"$${{outputs.m}}\"}\n"),
              ElementsAre(HasSubstr("job.yml:5: this is Azure ML's preview schema")));
}

TEST(PreviewJob, StepsAreBoundToEachOtherAndToWhatThePipelineGives) {
  constexpr char kOld[] =
      "type: pipeline\noutputs: {q: \"$${{jobs.b.outputs.model}}\"}\njobs:\n"
      "  a:\n    command: echo > $${{outputs.m}}/x\n    outputs: {m: {}}\n"
      "  b:\n    command: x\n    inputs: {d: \"$${{jobs.a.outputs.m}}\"}\n";
  const std::string text = Upgraded(kOld);
  EXPECT_THAT(text, HasSubstr("command: echo > ${{outputs.m}}/x\n"));
  EXPECT_THAT(text, HasSubstr("d: ${{parent.jobs.a.outputs.m}}\n"));
  EXPECT_THAT(text, HasSubstr("model: ${{parent.outputs.q}}\n"));
  EXPECT_THAT(text, Not(HasSubstr("$$")));
  EXPECT_TRUE(ReadPipeline(text).ok());
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    command: x > $${{outputs.m}}/x\n"
                             "    outputs: {m: {}}\n"),
              ElementsAre(HasSubstr("(command: … $${{…}})")));
}

TEST(PreviewJob, WhatIsOfAnUnknownTypeIsConvertedByItsKeys) {
  const std::string text = Upgraded(
      "type: swep_job\nsearch_space: {lr: {spec: uniform}}\n"
      "trial: {command: x, code: {local_path: ./src}}\n");
  EXPECT_THAT(text, HasSubstr("type: swep\n"));
  EXPECT_THAT(text, HasSubstr("  lr:\n    type: uniform\n"));
  EXPECT_THAT(text, HasSubstr("  code: ./src\n"));
}

TEST(PreviewJob, SettingsStayBesideWhatTheDefaultsSay) {
  const std::string text = Upgraded(
      "type: pipeline_job\nsettings: {continue_on_step_failure: true}\n"
      "defaults: {component_job: {compute: {target: azureml:cpu}}}\n"
      "jobs: {a: {command: x}}\n");
  EXPECT_THAT(text, HasSubstr("settings:\n  continue_on_step_failure: true\n"
                              "  default_compute: azureml:cpu\n"));
}

TEST(PreviewJob, ALongTextOfBracesIsLeftAsItIs) {
  const std::string braces = std::string(100'000, '{') + "}";
  const std::string text = Upgraded("code: {local_path: .}\ncommand: 'x " + braces + " {'\n");
  EXPECT_THAT(text, HasSubstr("x " + braces + " {"));
}

TEST(PreviewJob, WhatCannotBeConvertedIsSaid) {
  const auto upgraded = UpgradeJob(
      "command: x\ncode:\n  git: https://x.org/y\ncompute: {target: local, instance_count: 2}\n"
      "distribution: {type: mpi, process_count: 3}\n",
      "job.yml");
  ASSERT_TRUE(upgraded.ok());
  EXPECT_THAT(upgraded->notes,
              ElementsAre(HasSubstr("job.yml:2: code: only {local_path: …} can be converted"),
                          HasSubstr("job.yml:5: distribution: process_count 3 is not as many")));
  EXPECT_EQ(UpgradeJob("command: x\n", "job.yml").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(UpgradeJob("script: x.py\nenvironment: {docker: {image: x}}\n", "r.runconfig")
                      .status()
                      .message()),
      HasSubstr("r.runconfig:1: this is a file of kind run configuration (SDK v1)"));
}

}  // namespace
}  // namespace tutti::spec
