// Covers: component_file.cc, given_inputs.cc, step_reader.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "spec/flow/pipeline_for_tests.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ComponentStep, AComponentsInputsGetTheStepsValuesOrTheirDefaults) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
inputs: {epochs: 3}
jobs:
  train:
    type: command
    component: ./parts/train.yml
    compute: azureml:cpu-cluster
    inputs:
      data: {type: uri_file, path: ./d.csv, mode: download}
      epochs: ${{parent.inputs.epochs}}
    environment_variables: {A: 1}
    resources: {instance_count: 2}
)",
                                 kTrain);
  const JobSpec& train = job.steps.at(0).job;
  EXPECT_EQ(train.code, "/base/parts/src");
  EXPECT_EQ(train.file_name, "parts/train.yml");
  EXPECT_EQ(train.inputs.at("data").path, "/base/d.csv");
  EXPECT_EQ(train.inputs.at("data").type, "uri_file");
  EXPECT_EQ(train.inputs.at("epochs").literal, "3");
  EXPECT_EQ(train.inputs.at("rate").literal, "0.5");
  EXPECT_TRUE(train.inputs.at("note").absent);
  EXPECT_EQ(train.outputs.at("model").type, "mlflow_model");
  EXPECT_EQ(train.instance_count, 2);
  EXPECT_EQ(train.environment_variables.at("A"), "1");
}

TEST(ComponentStep, APipelineInPlaceHasInputsOfItsOwn) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
inputs: {rate: 1, only_outer: 5}
jobs:
  inner:
    type: pipeline
    inputs: {rate: 2}
    component:
      type: pipeline
      inputs: {rate: {type: number}, steps: {type: integer, default: 7}}
      jobs:
        one:
          command: x ${{inputs.rate}} ${{inputs.steps}}
          environment: host
          inputs: {rate: "${{parent.inputs.rate}}", steps: "${{parent.inputs.steps}}"}
)");
  const JobSpec& one = job.steps.at(0).job.steps.at(0).job;
  EXPECT_EQ(one.inputs.at("rate").literal, "2") << "not that of the pipeline around it";
  EXPECT_EQ(one.inputs.at("steps").literal, "7");
  EXPECT_THAT(PipelineErrors(R"(
type: pipeline
inputs: {only_outer: 5}
jobs:
  inner:
    component:
      type: pipeline
      jobs:
        one: {command: "x ${{inputs.a}}", environment: host,
              inputs: {a: "${{parent.inputs.only_outer}}"}}
)"),
              Contains(HasSubstr("${{parent.inputs.only_outer}}, which the pipeline does not")));
}

TEST(ComponentStep, AComponentIsReadOnceWhetherItsStepSaysATypeOrNot) {
  std::string text = "type: pipeline\njobs:\n";
  const int steps = 300;  // of 512 files that may be read
  for (int i = 0; i < steps; ++i) absl::StrAppend(&text, "  s", i, ": {component: ./c.yml}\n");
  const JobSpec job = PipelineOf(text, {{"/base/c.yml", "command: x\nenvironment: host\n"}});
  EXPECT_EQ(job.steps.size(), static_cast<size_t>(steps));
}

TEST(ComponentStep, ComponentsAreFoundByPathAndByName) {
  const Files files = {{"/registry/train.yml", "command: x\n"}, {"/base/c.yaml", "command: y\n"}};
  for (const char* reference :
       {"azureml:my_train@latest", "azureml:my_train:1",
        "azureml://registries/r/components/my_train/versions/2", "file:./c.yaml", "c.yaml"}) {
    const JobSpec job = PipelineOf(
        absl::StrCat("type: pipeline\njobs: {a: {component: '", reference, "'}}"), files);
    EXPECT_EQ(job.steps.at(0).job.command.size(), 1u) << reference;
  }
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {a: {component: 'azureml:my_trai:1'}}"),
              ElementsAre(HasSubstr("job.yml:2: component \"azureml:my_trai:1\" is not known here "
                                    "(did you mean \"my_train\"?); make it known by its file: "
                                    "tutti component create --file FILE, or say in site.yml")));
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a: {component: 'azureml:other:1'}\n"
                             "  b: {type: command, command: x, environment: host,\n"
                             "      inputs: {i: '${{parent.jobs.a.outputs.model}}'}}"),
              ElementsAre(HasSubstr("job.yml:3: component \"azureml:other:1\" is not known here")))
      << "what follows from it is not said";
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {a: {component: ./no.yml}}"),
              ElementsAre(HasSubstr("job.yml:2: component: /base/no.yml does not exist")));
}

TEST(ComponentStep, WhatAStepGivesToAComponentIsSaidWithTheStepsFileAndLine) {
  const Files files = {
      {"/base/c.yml", "command: x ${{inputs.d}}\ninputs:\n  d: {type: uri_folder}\n"},
      {"/base/inner/p.yml",
       "jobs:\n  in:\n    component: ../c.yml\n    inputs:\n"
       "      d: {type: uri_folder, path: ./far}\n    resources:\n      instance_count: 7\n"},
      {"/base/sweep.yml",
       "command: x ${{inputs.d}} ${{inputs.a}}\ninputs: {d: {type: uri_folder}, a: {type: "
       "number}}"}};
  const JobSpec job = PipelineOf(R"(type: pipeline
inputs:
  own: {type: uri_folder, path: ./own}
jobs:
  a:
    component: ./c.yml
    inputs: {d: {type: uri_folder, path: ./near}}
    resources:
      instance_count: 9
  b: {component: ./c.yml, inputs: {d: "${{parent.inputs.own}}"}}
  c: {component: ./inner/p.yml}
  d:
    type: sweep
    trial: ./sweep.yml
    search_space: {a: {type: uniform, min_value: 0, max_value: 1}}
    sampling_algorithm: random
    objective: {goal: maximize, primary_metric: m}
    limits: {max_total_trials: 2}
    inputs: {d: {type: uri_folder, path: ./swept}}
)",
                                 files);
  std::vector<std::string> warnings;
  EXPECT_THAT(absl::StrSplit(std::string(CheckPaths(job, warnings).message()), '\n'),
              ElementsAre("job.yml:7: input \"d\": /base/near does not exist",
                          "job.yml:3: input \"d\": /base/own does not exist",
                          "inner/p.yml:5: input \"d\": /base/inner/far does not exist",
                          "job.yml:19: input \"d\": /base/swept does not exist"));
  EXPECT_EQ(job.steps[0].job.instance_count_location.file, "job.yml");
  EXPECT_EQ(job.steps[0].job.instance_count_location.line, 9);
  EXPECT_EQ(job.steps[2].job.steps[0].job.instance_count_location.file, "inner/p.yml");
  EXPECT_EQ(job.steps[2].job.steps[0].job.instance_count_location.line, 7);
}

TEST(ComponentStep, AValueThatTheComponentDoesNotAllowIsSaidWithBothLines) {
  const Files files = {{"/base/parts/tune.yml", R"(type: command
inputs:
  epochs: {type: integer}
  rate: {type: number, default: 2, max: 1}
environment: host
command: tune ${{inputs.epochs}} ${{inputs.rate}}
)"}};
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  tune:\n    component: ./parts/tune.yml\n"
                             "    inputs:\n      epochs: many\n",
                             files),
              ElementsAre("job.yml:6: input \"epochs\" is \"many\", which is no whole number: see "
                          "parts/tune.yml:3",
                          "parts/tune.yml:4: input \"rate\" is \"2\", which is more than 1"));
}

TEST(ComponentStep, AValueThatTheComponentsEnumLacksIsWarnedOfWithBothLines) {
  const auto result = ReadPipeline(
      "type: pipeline\njobs:\n  tune:\n    component: ./tune.yml\n    inputs: {crop: 224}\n",
      {{"/base/tune.yml",
        "command: x ${{inputs.crop}}\nenvironment: host\ninputs:\n"
        "  crop: {type: string, default: False, enum: ['True', 'False']}\n"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings,
              ElementsAre("job.yml:5: input \"crop\" is \"224\", which is none of True, False: "
                          "see tune.yml:4"));
}

TEST(ComponentStep, WhatAComponentSaysWronglyOfItsInputsIsSaidOnceWithItsFileAndLine) {
  const Files files = {{"/base/parts/c.yml", R"(type: command
inputs:
  mode: {type: uri_folder, mode: eval_mount}
  kind: {type: folder}
  least: {type: number, min: low}
  flag:
    type: boolean
    default: maybe
  word: {type: string, colour: red, default: x}
  list: [1, 2]
environment: host
command: x ${{inputs.word}} ${{inputs.flag}} ${{inputs.least}}
)"}};
  const std::string step =
      "    component: ./parts/c.yml\n"
      "    inputs: {mode: {path: .}, kind: {path: .}, least: 3, flag: true, word: y, list: 1}\n";
  EXPECT_THAT(
      PipelineErrors("type: pipeline\njobs:\n  a:\n" + step + "  b:\n" + step +
                         "  c: {component: ./parts/c.yml, inputs: {mode: {path: .}, "
                         "kind: {path: .}, least: 3}}\n",
                     files),
      ElementsAre(
          HasSubstr("parts/c.yml:3: input \"mode\": mode eval_mount is of type mltable alone"),
          HasSubstr("parts/c.yml:4: type must be one of"),
          HasSubstr("parts/c.yml:5: min must be a number"),
          HasSubstr("parts/c.yml:8: input \"flag\" is \"maybe\""),
          HasSubstr("parts/c.yml:9: unknown key \"colour\""),
          HasSubstr("parts/c.yml:10: input \"list\" must be a value or a mapping")));
}

TEST(ComponentStep, AValueThatAComponentNeedsIsMissedInTheStep) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    component: ./parts/train.yml\n"
                             "    inputs: {data: }\n",
                             kTrain),
              ElementsAre("job.yml:3: input \"epochs\" has no value, which component "
                          "parts/train.yml needs: see parts/train.yml:5",
                          "job.yml:5: input \"data\" has no path, which component "
                          "parts/train.yml needs: see parts/train.yml:4"));
}

TEST(ComponentStep, AStepWithoutAnEnvironmentSaysWhereItRuns) {
  const auto result = ReadPipeline(
      "type: pipeline\njobs:\n  a: {command: x}\n  b: {command: x, environment: host}\n"
      "  c: {component: ./c.yml}\n  d: {component: ./c.yml, environment: host}\n"
      "  e: {component: ./parts/train.yml, inputs: {data: {path: .}, epochs: 1}}\n",
      [] {
        Files files = kTrain;
        files["/base/c.yml"] = "command: x\n";
        return files;
      }());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings,
              ElementsAre("job.yml:3: a step without environment runs with what its node has "
                          "installed; if that is meant, write environment: host (also at line "
                          "5)"));
}

TEST(ComponentStep, AWarningThatSeveralStepsShareIsGivenOnceWithAllItsLines) {
  const auto result = ReadPipeline(R"(type: pipeline
jobs:
  a: {component: ./c.yml}
  b: {component: ./c.yml}
  c:
    command: x
    environment: host
    identity: {type: managed}
  d: {command: x, environment: host, identity: {type: managed}}
)",
                                   {{"/base/c.yml",
                                     "command: x\nenvironment: host\n"
                                     "resources: {locations: [a]}\n"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings,
              ElementsAre(HasSubstr("c.yml:3: \"locations\" has no effect"),
                          AllOf(HasSubstr("job.yml:8: \"identity\" has no effect"),
                                HasSubstr(" (also at line 9)"))));
}

TEST(ComponentStep, AValueOfThePipelinesInputsIsSaidWithWhereItStands) {
  const Files files = {{"/base/c.yml",
                        "inputs: {n: {type: integer, max: 10}}\n"
                        "environment: host\ncommand: x ${{inputs.n}}\n"}};
  EXPECT_THAT(PipelineErrors("type: pipeline\ninputs:\n  n: 44\njobs:\n  a:\n    component: "
                             "./c.yml\n    inputs: {n: \"${{parent.inputs.n}}\"}\n",
                             files),
              ElementsAre("job.yml:7: input \"n\" is \"44\", which is more than 10: see c.yml:1; "
                          "the value is given at job.yml:3"));
}

TEST(ComponentStep, FilesThatFilesNameAreShownFromWhereTheJobFileIs) {
  const Files files = {
      {"/base/comps/inner.yml", "jobs: {q: {component: ./t/train.yml}}\n"},
      {"/base/comps/t/train.yml",
       "command: x\nenvironment: {conda_file: env/conda.yaml}\nunknwn: 3\n"},
      {"/base/comps/t/env/conda.yaml", "dependencies: [{pip: [-r ../more.txt]}]\n"},
      {"/base/comps/t/more.txt", "numpy\n-e .\n"}};
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  s: {component: ./comps/inner.yml}\n", files),
              ElementsAre(HasSubstr("comps/t/train.yml:3: unknown key \"unknwn\""),
                          HasSubstr("comps/t/more.txt:2: an editable install")));
}

TEST(ComponentStep, AStepWithAComponentHasNoCommandOrCodeOfItsOwn) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./parts/train.yml\n"
                             "    inputs: {data: ./d, epochs: 1}\n    code: ./other\n"
                             "    command: python x.py\n    objective: x\n",
                             kTrain),
              ElementsAre("job.yml:6: step \"t\" has a component, whose code it runs: leave "
                          "\"code\" out here, or write it in the component",
                          "job.yml:7: step \"t\" has a component, whose command it runs: leave "
                          "\"command\" out here, or write it in the component",
                          "job.yml:8: \"objective\" does not go with the keys beside it"));
}

TEST(ComponentStep, WhatIsWrongInAComponentIsSaidUnderItsName) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {t: {component: ./c.yml}}",
                             {{"/base/c.yml", "command: x ${{inputs.y}}\ncomand: z\n"}}),
              ElementsAre("c.yml:1: ${{inputs.y}}: the job has no input \"y\"",
                          "c.yml:2: unknown key \"comand\" (did you mean \"command\"?)"));
}

TEST(ComponentStep, AFileThatIsNoComponentIsToldApart) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./e.yml\n",
                             {{"/base/e.yml", "name: e\nimage: python\n"}}),
              ElementsAre(HasSubstr("job.yml:4: component: e.yml is a file of kind environment, "
                                    "where one of kind component is expected: name it in a job "
                                    "file as environment: file:./e.yml")));
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./j.yml\n",
                             {{"/base/j.yml", "command: x\ncompute: local\n"}}),
              ElementsAre(HasSubstr("job.yml:4: component: j.yml is a file of kind job, where one "
                                    "of kind component is expected")));
}

TEST(ComponentStep, AComponentThatIsNoMappingHasThatOneFault) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./c.yml\n",
                             {{"/base/c.yml", "- a\n"}}),
              ElementsAre("job.yml:4: component: c.yml must be a mapping, but is a list"));
}

TEST(ComponentStep, AComponentWithJobsIsAPipelineWithoutItsType) {
  const JobSpec job = PipelineOf("jobs: {p: {component: ./p.yml}}\n",
                                 {{"/base/p.yml", "jobs: {a: {command: x, environment: host}}\n"}});
  ASSERT_EQ(job.steps.size(), 1u);
  EXPECT_EQ(job.steps[0].job.kind, JobKind::kPipeline);
}

TEST(ComponentStep, AJobMayBeAPipelineComponent) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
display_name: line fit
experiment_name: e
compute: azureml:cpu-cluster
component: ./inner/inner.yml
inputs:
  data: {type: uri_folder, path: ./data}
  where: local
outputs:
  model: {mode: upload}
settings: {force_rerun: true}
)",
                                 kNested);
  EXPECT_EQ(job.kind, JobKind::kPipeline);
  EXPECT_EQ(job.display_name, "line fit");
  EXPECT_EQ(job.file_name, "job.yml");
  EXPECT_EQ(job.inputs.at("data").path, "/base/data");
  EXPECT_EQ(job.outputs.at("model").mode, "upload");
  ASSERT_EQ(job.steps.size(), 1u);
  const JobSpec& step = job.steps[0].job;
  EXPECT_EQ(step.experiment_name, "e");
  EXPECT_EQ(step.code, "/base/inner");
  EXPECT_EQ(step.file_name, "inner/inner.yml");
  EXPECT_FALSE(step.reusable);
  EXPECT_EQ(step.inputs.at("d").path, "/base/data");
  EXPECT_THAT(job.steps[0].outputs_to, ElementsAre(Pair("m", "model")));
}

TEST(ComponentStep, WhatAJobThatIsAComponentLacksIsSaidWithItsLine) {
  EXPECT_THAT(
      PipelineErrors("type: pipeline\ncomponent: ./inner/inner.yml\njobs: {a: {command: x}}\n"
                     "inputs: {data: {type: uri_folder, path: .}, where: local}\n"
                     "outputs: {modl: }\nsettings: {on_init: nobody}\n",
                     kNested),
      ElementsAre(HasSubstr("job.yml:3: a pipeline has either jobs or a component"),
                  HasSubstr("job.yml:5: the job has no output \"modl\" (did you mean "
                            "\"model\"?)"),
                  HasSubstr("job.yml:6: settings name the step \"nobody\"")));
  EXPECT_THAT(PipelineErrors("type: pipeline\ncomponent: ./parts/train.yml\n", kTrain),
              ElementsAre(HasSubstr("job.yml:2: component parts/train.yml has no jobs, so it is "
                                    "no pipeline; name it in a step")));
  EXPECT_THAT(PipelineErrors("type: pipeline\ncomponent: azureml:nobody:1\n"),
              ElementsAre(HasSubstr("job.yml:2: component \"azureml:nobody:1\" is not known")));
}

TEST(ComponentStep, InputsThatAreTextAreAnErrorForAComponentToo) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    component: ./parts/train.yml\n"
                             "    inputs: all\n",
                             kTrain),
              Contains(HasSubstr("job.yml:5: inputs must be a mapping, but is text")));
}

TEST(ComponentStep, AStepsComponentMayBeWrittenOut) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
jobs:
  main:
    type: command
    component:
      code: src
      environment: host
      inputs: {n: {type: integer, default: 2}}
      command: hello ${{inputs.n}}
)");
  ASSERT_EQ(job.steps.size(), 1u);
  EXPECT_EQ(job.steps[0].job.code, "/base/src");
  EXPECT_EQ(job.steps[0].job.inputs.at("n").literal, "2");
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    component:\n      comand: x\n"),
              testing::Contains(HasSubstr("job.yml:5:")));
}

TEST(ComponentStep, WhatIsWrongInAComponentThatIsWrittenOutNamesItsStep) {
  EXPECT_THAT(
      PipelineErrors(R"(type: pipeline
jobs:
  main:
    component:
      inputs: {rate: {type: number}}
      command: hello ${{inputs.rate}}
    inputs: {rat: 1, rate: fast}
  nest:
    component:
      inputs: {place: {type: string}}
      jobs: {a: {command: x}}
    inputs: {plac: here}
)"),
      ElementsAre(HasSubstr("job.yml:7: the component of step \"main\" has no input \"rat\" "
                            "(did you mean \"rate\"?)"),
                  AllOf(HasSubstr("job.yml:7: input \"rate\""), HasSubstr("job.yml:5")),
                  HasSubstr("job.yml:8: input \"place\" has no value"),
                  HasSubstr("job.yml:12: the component of step \"nest\" has no input "
                            "\"plac\" (did you mean \"place\"?)")));
  EXPECT_THAT(PipelineErrors("type: pipeline\ncomponent: {command: x}\n"),
              ElementsAre(HasSubstr("job.yml:2: the component of the job has no jobs")));
}

TEST(ComponentStep, HowMuchAComponentTakesMayBeAnInputOfIt) {
  const Files files = {{"/base/c.yml", R"(
inputs:
  nodes: {type: integer}
  processes: {type: integer, default: 3}
  data: {type: uri_folder}
command: x
environment: host
resources: {instance_count: "${{inputs.nodes}}"}
distribution: {type: pytorch, process_count_per_instance: "${{inputs.processes}}"}
limits: {timeout: "${{inputs.processes}}"}
)"}};
  const auto step = [](absl::string_view inputs) {
    return absl::StrCat("type: pipeline\ninputs: {d: {type: uri_folder, path: /d}, n: 2}\njobs:\n",
                        "  a:\n    component: ./c.yml\n    inputs: {", inputs,
                        ", data: '${{parent.inputs.d}}'}\n");
  };
  const JobSpec given = PipelineOf(step("nodes: '${{parent.inputs.n}}', processes: 4"), files);
  EXPECT_EQ(given.steps.at(0).job.instance_count, 2);
  EXPECT_EQ(given.steps.at(0).job.distribution.process_count_per_instance, 4);
  const JobSpec by_default = PipelineOf(step("nodes: 1"), files);
  EXPECT_EQ(by_default.steps.at(0).job.distribution.process_count_per_instance, 3);
  EXPECT_EQ(by_default.steps.at(0).job.timeout, absl::Seconds(3));
  EXPECT_THAT(PipelineErrors(step("nodes: 0"), files),
              ElementsAre(HasSubstr("c.yml:8: instance_count must be a whole number")));
  const Files with_data = {{"/base/c.yml", absl::StrReplaceAll(files.at("/base/c.yml"),
                                                               {{"inputs.nodes", "inputs.data"}})}};
  EXPECT_THAT(PipelineErrors(step("nodes: 1"), with_data),
              ElementsAre(HasSubstr("but is \"${{inputs.data}}\"")));
}

}  // namespace
}  // namespace tutti::spec
