// Covers: sweep_reader.cc, search_reader.cc, search_space_reader.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/flow/pipeline_for_tests.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(SweepFile, ReadsSearchSpaceObjectiveAndLimits) {
  const JobSpec job = PipelineOf(R"(
type: sweep
trial:
  command: train --a ${{inputs.a}} --b ${{search_space.b}} --c ${{search_space.c}}
  environment_variables: {B: "${{search_space.b}}"}
inputs: {a: 0.5}
sampling_algorithm: bayesian
search_space:
  b: {type: choice, values: [hello, 3, true]}
  c: {type: uniform, min_value: 0.1, max_value: 1}
objective: {goal: Maximize, primary_metric: acc}
early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 2, delay_evaluation: 5}
limits: {max_total_trials: 4, max_concurrent_trials: 2, timeout: 3600, trial_timeout: 60}
)");
  EXPECT_EQ(job.kind, JobKind::kSweep);
  EXPECT_EQ(job.command, "train --a ${{inputs.a}} --b ${{inputs.b}} --c ${{inputs.c}}");
  EXPECT_EQ(job.environment_variables.at("B"), "${{inputs.b}}");
  EXPECT_TRUE(job.inputs.contains("b"));
  const Sweep& sweep = *job.sweep;
  EXPECT_EQ(sweep.sampling, Sampling::kBayesian);
  EXPECT_THAT(sweep.parameters[0].values, ElementsAre("hello", "3", "True"));
  EXPECT_EQ(sweep.parameters[1].high, 1);
  EXPECT_TRUE(sweep.maximize);
  EXPECT_EQ(sweep.max_trials, 4);
  EXPECT_EQ(job.timeout, absl::Seconds(3600));
  EXPECT_EQ(sweep.trial_timeout, absl::Seconds(60));
  EXPECT_EQ(sweep.early_termination.delay_evaluation, 5);
}

TEST(SweepFile, WarnsOfTrialsThatSpanNodes) {
  const auto warnings = [](const std::string& trial, const std::string& more, const Files& files) {
    const auto read = ReadPipeline(
        absl::StrCat("type: sweep\ntrial: ", trial,
                     "\nobjective: {goal: minimize, primary_metric: m}\nsearch_space: {rate: "
                     "{type: choice, values: [1]}}\nlimits: {max_total_trials: 1}\n",
                     more),
        files);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? read->warnings : std::vector<std::string>();
  };
  const std::string inline_trial = "{command: x, resources: {instance_count: 4}}";
  EXPECT_THAT(warnings(inline_trial, "", {}),
              ElementsAre("job.yml:2: each trial takes 4 nodes: trials of one node use them "
                          "better, as they need no network; take instance_count: 1 unless the "
                          "model does not fit"));
  EXPECT_THAT(warnings("{command: x}", "resources:\n  instance_count: 2\n", {}),
              ElementsAre(HasSubstr("job.yml:7: each trial takes 2 nodes")));
  EXPECT_THAT(warnings(inline_trial, "resources: {instance_count: 1}\n", {}), IsEmpty());
  const Files component = {{"/base/t.yml",
                            "type: command\ncommand: x\ninputs: {rate: {type: number}}\n"
                            "resources:\n  instance_count: 3\n"}};
  EXPECT_THAT(warnings("./t.yml", "", component),
              ElementsAre(HasSubstr("t.yml:5: each trial takes 3 nodes")));
}

TEST(SweepFile, TrialsThatWouldWriteToOnePlaceOfAStoreAreRefused) {
  const auto sweep = [](const std::string& path) {
    return "type: sweep\ntrial: {command: x}\noutputs:\n  m: {path: '" + path +
           "'}\nobjective: {goal: minimize, primary_metric: m}\nsearch_space: {a: {type: "
           "choice, values: [1]}}\nlimits: {max_total_trials: 1}\nsampling_algorithm: grid\n";
  };
  EXPECT_EQ(PipelineOf(sweep("s3://b/${{name}}/m")).outputs.at("m").place->path, "${{name}}/m");
  EXPECT_THAT(PipelineErrors(sweep("s3://b/m")),
              ElementsAre(HasSubstr("output \"m\": all trials of the sweep would write to the same "
                                    "place: put ${{name}}, the trial's name, into its path")));
}

TEST(SweepFile, ATrialMayBeAComponentWhoseInputsAreSwept) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
jobs:
  make: {command: x, outputs: {o: }}
  sweep:
    type: sweep
    trial: ./parts/train.yml
    inputs: {data: "${{parent.jobs.make.outputs.o}}"}
    outputs: {model: }
    search_space:
      epochs: {type: randint, upper: 5}
      rate: {type: loguniform, min_value: -5, max_value: 0}
    objective: {goal: minimize, primary_metric: loss}
)",
                                 kTrain);
  const JobSpec& sweep = job.steps.at(1).job;
  EXPECT_EQ(sweep.kind, JobKind::kSweep);
  EXPECT_THAT(job.steps[1].inputs_from, ElementsAre(Pair("data", "jobs.make.outputs.o")));
  EXPECT_EQ(sweep.inputs.at("epochs").type, "integer");
  EXPECT_TRUE(sweep.outputs.contains("model"));
  EXPECT_THAT(PipelineErrors(R"(type: sweep
trial: ./parts/train.yml
inputs: {data: ./d, epochs: 1}
search_space: {rat: {type: uniform, min_value: 0, max_value: 1}}
objective: {goal: minimize, primary_metric: loss}
)",
                             kTrain),
              ElementsAre(HasSubstr("has no input of that name (did you mean \"rate\"?)")));
}

TEST(SweepFile, WhatIsWrongWithTheSearchSpaceIsSaidAtItsOwnLines) {
  EXPECT_THAT(
      PipelineErrors(R"(type: pipeline
jobs:
  tune:
    type: sweep
    trial: ./parts/train.yml
    inputs: {data: {path: .}, epochs: 1}
    search_space:
      rat: {type: uniform, min_value: 0, max_value: 1}
      rate:
        type: uniform
        min_value: 3
        max_value: 1
      note:
        type: choice
        values: 7
    objective: {goal: minimize, primary_metric: loss}
)",
                     kTrain),
      ElementsAre(HasSubstr("job.yml:8: search_space \"rat\": component parts/train.yml has "
                            "no input of that name (did you mean \"rate\"?)"),
                  HasSubstr("job.yml:11: search_space \"rate\" has a min_value above"),
                  HasSubstr("job.yml:15: search_space \"note\" needs values")));
}

TEST(SweepFile, ATrialWithInputsOrOutputsIsAComponentInPlace) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
jobs:
  tune:
    type: sweep
    trial:
      type: command
      code: ./src
      command: x ${{inputs.c}} ${{inputs.k}} ${{inputs.n}} > ${{outputs.m}}/y
      environment: host
      inputs: {c: {type: number}, k: {type: string}, n: {type: integer, default: 7}}
      outputs: {m: {type: mltable}}
    search_space: {c: {type: uniform, min_value: 0, max_value: 1}}
    objective: {goal: minimize, primary_metric: loss}
    inputs: {k: rbf}
    outputs: {m: }
  use: {command: "y ${{inputs.m}}", inputs: {m: "${{parent.jobs.tune.outputs.m}}"}}
)");
  const JobSpec& sweep = job.steps.at(0).job;
  EXPECT_EQ(sweep.kind, JobKind::kSweep);
  EXPECT_EQ(sweep.code, "/base/src");
  EXPECT_EQ(sweep.inputs.at("c").type, "number");
  EXPECT_EQ(sweep.inputs.at("k").literal, "rbf");
  EXPECT_EQ(sweep.inputs.at("n").literal, "7");
  EXPECT_EQ(sweep.outputs.at("m").type, "mltable");
  EXPECT_THAT(
      PipelineErrors("type: sweep\ntrial:\n  command: x\n  inputs: {rate: {type: number}}\n"
                     "search_space: {rat: {type: uniform, min_value: 0, max_value: 1}}\n"
                     "objective: {goal: minimize, primary_metric: loss}\ninputs: {rate: 1}\n"),
      ElementsAre(HasSubstr("has no input of that name (did you mean \"rate\"?)")));
}

TEST(SweepFile, WhatTheSearchSpaceDoesNotHaveIsSaidSo) {
  EXPECT_THAT(PipelineErrors("type: sweep\ntrial:\n  command: x ${{search_space.rat}}\n"
                             "  environment_variables: {A: '${{search_space.mm}}'}\n"
                             "search_space: {rate: {type: uniform, min_value: 0, max_value: 1}}\n"
                             "objective: {goal: minimize, primary_metric: loss}\n"),
              ElementsAre(HasSubstr("job.yml:3: ${{search_space.rat}}: search_space has no "
                                    "parameter \"rat\" (did you mean \"rate\"?)"),
                          HasSubstr("environment variable \"A\": ${{search_space.mm}}: "
                                    "search_space has no parameter \"mm\"")));
}

TEST(SweepFile, ATrialThatIsAComponentIsNamedAlone) {
  EXPECT_THAT(PipelineErrors("type: sweep\ntrial: {component: ./parts/train.yml}\n"
                             "search_space: {rate: {type: uniform, min_value: 0, max_value: 1}}\n"
                             "objective: {goal: minimize, primary_metric: loss}\n",
                             kTrain),
              ElementsAre(HasSubstr("job.yml:2: a trial that is a component is named alone: trial: "
                                    "./parts/train.yml")));
}

TEST(SweepFile, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_THAT(PipelineErrors(R"(type: sweep
trial: {command: x}
sampling_algorithm: grid
search_space:
  a: {type: uniform, min_value: 2, max_value: 1}
  b: {type: choice}
  c: {type: gauss}
objective: {goal: least}
early_termination: {type: bandit}
limits: {max_trials: 3}
)"),
              ElementsAre(HasSubstr("job.yml:5: search_space \"a\" has a min_value above"),
                          HasSubstr("job.yml:5: search_space \"a\" is no choice"),
                          HasSubstr("job.yml:6: search_space \"b\" needs values"),
                          HasSubstr("job.yml:7: type must be one of choice"),
                          HasSubstr("job.yml:8: goal must be one of minimize, maximize"),
                          HasSubstr("job.yml:8: objective has no primary_metric"),
                          HasSubstr("job.yml:9: bandit needs slack_factor or slack_amount"),
                          HasSubstr("job.yml:10: unknown key \"max_trials\"")));
  EXPECT_THAT(PipelineErrors("type: sweep\n"),
              UnorderedElementsAre(HasSubstr("needs a search_space"),
                                   HasSubstr("needs an objective"), HasSubstr("needs a trial")));
}

}  // namespace
}  // namespace tutti::spec
