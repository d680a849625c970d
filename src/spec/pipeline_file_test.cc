#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spec/binding.h"
#include "spec/job_file.h"
#include "spec/job_json.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Files = std::map<std::string, std::string>;

absl::StatusOr<ReadResult> Read(absl::string_view text, const Files& files = {}) {
  Site site = BuiltInSite();
  site.computes["cpu-cluster"] = "local";
  site.components["my_train"] = "/registry/train.yml";
  return ReadJobFile(text, "job.yml", "/base", site,
                     [&](const std::filesystem::path& file) -> absl::StatusOr<std::string> {
                       const auto found = files.find(file.lexically_normal().string());
                       if (found != files.end()) return found->second;
                       return absl::NotFoundError(absl::StrCat(file.string(), " does not exist"));
                     });
}

JobSpec PipelineOf(absl::string_view text, const Files& files = {}) {
  const auto result = Read(text, files);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->spec : JobSpec();
}

std::vector<std::string> PipelineErrors(absl::string_view text, const Files& files = {}) {
  const auto result = Read(text, files);
  EXPECT_FALSE(result.ok());
  return absl::StrSplit(std::string(result.status().message()), '\n');
}

const Files kTrain = {{"/base/parts/train.yml", R"(
type: command
inputs:
  data: {type: uri_folder}
  epochs: {type: integer}
  rate: {type: number, default: 0.5}
  note: {type: string, optional: true}
outputs:
  model: {type: mlflow_model}
code: ./src
environment: host
command: train ${{inputs.data}} ${{inputs.epochs}} ${{inputs.rate}} $[[${{inputs.note}}]]
  ${{outputs.model}}
)"}};

TEST(PipelineFile, StepsTakeInputsOfThePipelineAndOutputsOfEachOther) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
experiment_name: e
inputs:
  word: hello
  data: {type: uri_folder, path: ./data}
settings: {default_compute: azureml:cpu-cluster}
jobs:
  a:
    command: echo ${{inputs.w}} ${{inputs.d}} > ${{outputs.o}}/x
    inputs:
      w: ${{parent.inputs.word}}
      d: ${{parent.inputs.data}}
      both: say ${{parent.inputs.word}}
    outputs:
      o:
  b:
    command: cat ${{inputs.x}}/x
    inputs:
      x: ${{parent.jobs.a.outputs.o}}
)");
  ASSERT_EQ(job.steps.size(), 2u);
  EXPECT_EQ(job.kind, JobKind::kPipeline);
  const JobSpec& a = job.steps[0].job;
  EXPECT_EQ(a.inputs.at("w").literal, "hello");
  EXPECT_EQ(a.inputs.at("both").literal, "say hello");
  EXPECT_EQ(a.inputs.at("d").path, "/base/data");
  EXPECT_EQ(a.experiment_name, "e");
  EXPECT_EQ(a.compute, "local");
  EXPECT_THAT(job.steps[0].inputs_from, IsEmpty());
  EXPECT_THAT(job.steps[1].inputs_from, ElementsAre(Pair("x", "jobs.a.outputs.o")));
  EXPECT_THAT(NeedsOf(job, job.steps[1]), ElementsAre("a"));
  const JobSpec bound = Bind(job, job.steps[1], [](const std::string& s) { return "/jobs/" + s; });
  EXPECT_EQ(bound.inputs.at("x").path, "/jobs/a/outputs/o");
}

TEST(PipelineFile, AComponentsInputsGetTheStepsValuesOrTheirDefaults) {
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

TEST(PipelineFile, ComponentsAreFoundByPathAndByName) {
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

TEST(PipelineFile, WhatTheStepLacksIsSaidWithItsLine) {
  EXPECT_THAT(
      PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./parts/train.yml\n    inputs:\n"
                     "      data: ./d\n      epohs: 3\n",
                     kTrain),
      ElementsAre(HasSubstr("job.yml:3: input \"epochs\" has no value"),
                  HasSubstr("job.yml:7: component parts/train.yml has no input \"epohs\" "
                            "(did you mean \"epochs\"?)")));
  // What resembles none of them is passed over, with a warning.
  EXPECT_THAT(
      PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./parts/train.yml\n    inputs:\n"
                     "      data: ./d\n      test_split_ratio: 3\n",
                     kTrain),
      ElementsAre(HasSubstr("job.yml:3: input \"epochs\" has no value")));
  EXPECT_THAT(
      PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./parts/train.yml\n    inputs:\n"
                     "      data: ./d\n      epochs: many\n",
                     kTrain),
      ElementsAre(HasSubstr("job.yml:7: input \"epochs\" is \"many\", which is no whole")));
}

TEST(PipelineFile, WhatAStepGivesToAComponentIsSaidWithTheStepsFileAndLine) {
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
  EXPECT_THAT(absl::StrSplit(std::string(CheckPaths(job).message()), '\n'),
              ElementsAre("job.yml:7: input \"d\": /base/near does not exist",
                          "job.yml:10: input \"d\": /base/own does not exist",
                          "inner/p.yml:5: input \"d\": /base/inner/far does not exist",
                          "job.yml:19: input \"d\": /base/swept does not exist"));
  EXPECT_EQ(job.steps[0].job.instance_count_place.file, "job.yml");
  EXPECT_EQ(job.steps[0].job.instance_count_place.line, 9);
  EXPECT_EQ(job.steps[2].job.steps[0].job.instance_count_place.file, "inner/p.yml");
  EXPECT_EQ(job.steps[2].job.steps[0].job.instance_count_place.line, 7);
}

TEST(PipelineFile, AValueThatTheComponentDoesNotAllowIsSaidWithBothLines) {
  const Files files = {{"/base/parts/tune.yml", R"(type: command
inputs:
  epochs: {type: integer}
  optimizer:
    type: string
    enum: [adam, sgd]
  rate: {type: number, default: 2, max: 1}
environment: host
command: tune ${{inputs.epochs}} ${{inputs.optimizer}} ${{inputs.rate}}
)"}};
  EXPECT_THAT(
      PipelineErrors("type: pipeline\njobs:\n  tune:\n    component: ./parts/tune.yml\n"
                     "    inputs:\n      epochs: many\n      optimizer: lion\n",
                     files),
      ElementsAre("job.yml:3: input \"rate\" is \"2\", which is more than 1: see "
                  "parts/tune.yml:7",
                  "job.yml:6: input \"epochs\" is \"many\", which is no whole number: see "
                  "parts/tune.yml:3",
                  "job.yml:7: input \"optimizer\" is \"lion\", which is none of adam, sgd: see "
                  "parts/tune.yml:4"));
}

TEST(PipelineFile, AStepWithAComponentHasNoCommandOrCodeOfItsOwn) {
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

TEST(PipelineFile, WhatIsWrongInAComponentIsSaidUnderItsName) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {t: {component: ./c.yml}}",
                             {{"/base/c.yml", "command: x ${{inputs.y}}\ncomand: z\n"}}),
              ElementsAre("c.yml:1: ${{inputs.y}}: the job has no input \"y\"",
                          "c.yml:2: unknown key \"comand\" (did you mean \"command\"?)"));
}

TEST(PipelineFile, AFileThatIsNoComponentIsToldApart) {
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

TEST(PipelineFile, AComponentWithJobsIsAPipelineWithoutItsType) {
  const JobSpec job = PipelineOf("jobs: {p: {component: ./p.yml}}\n",
                                 {{"/base/p.yml", "jobs: {a: {command: x, environment: host}}\n"}});
  ASSERT_EQ(job.steps.size(), 1u);
  EXPECT_EQ(job.steps[0].job.kind, JobKind::kPipeline);
}

TEST(PipelineFile, BindingsThatLeadNowhereAreNamed) {
  EXPECT_THAT(
      PipelineErrors(R"(type: pipeline
inputs: {word: hello}
jobs:
  first:
    command: x
    outputs: {model: }
  second:
    command: y
    inputs:
      a: ${{parent.jobs.frst.outputs.model}}
      b: ${{parent.jobs.first.outputs.modl}}
      c: ${{parent.inputs.wrod}}
      d: ${{parent.jobs.first}}
    outputs:
      o: ${{parent.outputs.nothing}}
)"),
      ElementsAre(
          HasSubstr("job.yml:10: step \"second\" takes input \"a\" from the step \"frst\", "
                    "which the pipeline does not have (did you mean \"first\"?)"),
          HasSubstr("job.yml:11: step \"second\" takes input \"b\" from output \"modl\", "
                    "which the step \"first\" does not have (did you mean \"model\"?)"),
          HasSubstr("job.yml:12: step \"second\" names ${{parent.inputs.wrod}}"),
          HasSubstr("job.yml:13: step \"second\": ${{parent.jobs.first}} is not understood"),
          HasSubstr("job.yml:15: step \"second\" names ${{parent.outputs.nothing}}")));
}

TEST(PipelineFile, StepsThatWaitForEachOtherAreRefused) {
  EXPECT_THAT(PipelineErrors(R"(type: pipeline
jobs:
  a: {command: x, inputs: {i: "${{parent.jobs.b.outputs.o}}"}, outputs: {o: }}
  b: {command: x, inputs: {i: "${{parent.jobs.a.outputs.o}}"}, outputs: {o: }}
  c: {command: x}
)"),
              ElementsAre("job.yml:3: these steps wait for each other: a, b"));
}

TEST(PipelineFile, WhatIsNotRunIsRefusedWithItsName) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {a: {type: parallel, task: x}}"),
              ElementsAre(HasSubstr("step \"a\" is of type parallel, which is not run: a driver")));
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {a: {type: comand, command: x}}"),
              ElementsAre(HasSubstr("did you mean \"command\"?")));
  EXPECT_THAT(PipelineErrors("type: pipeline\nname: x\n"),
              ElementsAre(HasSubstr("a pipeline needs jobs")));
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {a b: {command: x}}"),
              ElementsAre(HasSubstr("must have a name of letters")));
}

TEST(PipelineFile, AnOutputOfThePipelineIsOfTheKindOfTheStepsThatWritesIt) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
outputs:
  model: {mode: upload}
  text: {type: uri_file, path: 'azureml://datastores/d/paths/${{name}}/hello.txt'}
jobs:
  train:
    component: ./parts/train.yml
    inputs: {data: ./d, epochs: 1}
    outputs: {model: "${{parent.outputs.model}}"}
  write:
    command: echo x > ${{outputs.o}}
    outputs: {o: "${{parent.outputs.text}}"}
)",
                                 kTrain);
  EXPECT_THAT(job.steps[0].outputs_to, ElementsAre(Pair("model", "model")));
  EXPECT_EQ(job.outputs.at("model").type, "mlflow_model");
  EXPECT_EQ(job.steps[1].job.outputs.at("o").file, "hello.txt");
}

const Files kNested = {{"/base/inner/inner.yml", R"(
type: pipeline
inputs:
  data: {type: uri_folder, optional: true}
  rate: {type: number, default: 0.1}
  where: {type: string}
outputs: {model: {type: uri_folder}}
jobs:
  one:
    command: x ${{inputs.d}} ${{inputs.r}}
    code: .
    inputs: {d: "${{parent.inputs.data}}", r: "${{parent.inputs.rate}}"}
    outputs: {m: "${{parent.outputs.model}}"}
    compute: ${{parent.inputs.where}}
)"}};

TEST(PipelineFile, APipelineIsAStepOfAnother) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
inputs: {cluster: cpu-cluster}
jobs:
  make: {command: x, outputs: {o: }}
  inner:
    type: pipeline
    component: ./inner/inner.yml
    inputs:
      data: ${{parent.jobs.make.outputs.o}}
      rate: 0.7
      where: ${{parent.inputs.cluster}}
  use:
    command: y ${{inputs.m}}
    inputs: {m: "${{parent.jobs.inner.outputs.model}}"}
)",
                                 kNested);
  const Step& inner = job.steps.at(1);
  EXPECT_EQ(inner.job.kind, JobKind::kPipeline);
  EXPECT_THAT(inner.inputs_from, ElementsAre(Pair("data", "jobs.make.outputs.o")));
  const Step& one = inner.job.steps.at(0);
  EXPECT_EQ(one.job.inputs.at("r").literal, "0.7");
  EXPECT_EQ(one.job.code, "/base/inner");
  EXPECT_THAT(one.inputs_from, ElementsAre(Pair("d", "inputs.data")));
  const auto folder = [](const std::string& step) { return "/jobs/" + step; };
  const JobSpec bound = Bind(Bind(job, inner, folder), one, folder);
  EXPECT_EQ(bound.inputs.at("d").path, "/jobs/make/outputs/o");
  EXPECT_EQ(Bind(job, job.steps[2], folder).inputs.at("m").path, "/jobs/inner/outputs/model");
}

TEST(PipelineFile, AJobMayBeAPipelineComponent) {
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

TEST(PipelineFile, WhatAJobThatIsAComponentLacksIsSaidWithItsLine) {
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

TEST(PipelineFile, AnOutputThatIsTextIsAnErrorWhereverItStands) {
  const auto errors = [](absl::string_view outputs) {
    Files files = kTrain;
    files.insert(kNested.begin(), kNested.end());
    std::vector<std::string> all;
    for (const absl::string_view job :
         {"type: pipeline\ncomponent: ./inner/inner.yml\n"
          "inputs: {data: {type: uri_folder, path: .}, where: local}\n",
          "type: pipeline\njobs:\n  a:\n    component: ./parts/train.yml\n"
          "    inputs: {data: {path: .}, epochs: 1}\n    ",
          "type: pipeline\njobs:\n  a:\n    command: x\n    ",
          "type: sweep\ntrial: ./parts/train.yml\ninputs: {data: {path: .}}\n"
          "search_space: {epochs: {type: randint, upper: 5}}\n"
          "objective: {goal: minimize, primary_metric: loss}\n",
          "type: sweep\ntrial: {command: x}\nsearch_space: {e: {type: randint, upper: 5}}\n"
          "objective: {goal: minimize, primary_metric: loss}\n"}) {
      for (std::string& error : PipelineErrors(absl::StrCat(job, "outputs: ", outputs), files)) {
        all.push_back(std::move(error));
      }
    }
    return all;
  };
  EXPECT_THAT(errors("{model: some text}"),
              ElementsAre(HasSubstr("job.yml:4: output \"model\" is text: write its type"),
                          HasSubstr("job.yml:6: output \"model\" is text: write its type"),
                          HasSubstr("job.yml:5: output \"model\" is text: write its type"),
                          HasSubstr("job.yml:6: output \"model\" is text: write its type"),
                          HasSubstr("job.yml:5: output \"model\" is text: write its type")));
  EXPECT_THAT(errors("some text"),
              ElementsAre(HasSubstr("job.yml:4: outputs must be a mapping, but is text"),
                          HasSubstr("job.yml:6: outputs must be a mapping, but is text"),
                          HasSubstr("job.yml:5: outputs must be a mapping, but is text"),
                          HasSubstr("job.yml:6: outputs must be a mapping, but is text"),
                          HasSubstr("job.yml:5: outputs must be a mapping, but is text")));
  EXPECT_THAT(errors("{model: [a]}"), SizeIs(5));
  EXPECT_THAT(errors("{model: '${{parent.outputs.m}}'}"),
              ElementsAre(HasSubstr("job.yml:4: output \"model\" names ${{parent.outputs.m}}, but "
                                    "there is no pipeline around the job"),
                          HasSubstr("job.yml:6: step \"a\" names ${{parent.outputs.m}}"),
                          HasSubstr("job.yml:5: step \"a\" names ${{parent.outputs.m}}"),
                          HasSubstr("job.yml:6: output \"model\" names ${{parent.outputs.m}}"),
                          HasSubstr("job.yml:5: output \"model\" names ${{parent.outputs.m}}")));
}

TEST(PipelineFile, OutputsOfASweepOverAComponentAreTheComponents) {
  const std::string sweep =
      "type: sweep\ntrial: ./parts/train.yml\ninputs: {data: {path: .}}\n"
      "search_space: {epochs: {type: randint, upper: 5}}\n"
      "objective: {goal: minimize, primary_metric: loss}\n";
  EXPECT_EQ(PipelineOf(sweep + "outputs: {model: {mode: upload}}", kTrain).outputs.at("model").mode,
            "upload");
  EXPECT_THAT(PipelineErrors(sweep + "outputs: {modl: }", kTrain),
              ElementsAre(HasSubstr("job.yml:6: the sweep has no output \"modl\" (did you mean")));
}

TEST(PipelineFile, InputsThatAreTextAreAnErrorForAComponentToo) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs:\n  a:\n    component: ./parts/train.yml\n"
                             "    inputs: all\n",
                             kTrain),
              Contains(HasSubstr("job.yml:5: inputs must be a mapping, but is text")));
}

TEST(PipelineFile, AnInputIsBoundWhereThereIsAPipelineAndAsAWhole) {
  EXPECT_THAT(PipelineErrors("command: x\ninputs:\n  a: ${{parent.inputs.y}}\n"
                             "  b: {path: '${{parent.jobs.s.outputs.o}}'}\n"),
              ElementsAre(HasSubstr("job.yml:3: input \"a\" is ${{parent.inputs.y}}, but there is "
                                    "no pipeline around the job"),
                          HasSubstr("job.yml:4: input \"b\" is ${{parent.jobs.s.outputs.o}}")));
  EXPECT_THAT(PipelineErrors(R"(type: pipeline
inputs: {d: {path: .}, word: hello}
jobs:
  s:
    command: x
    inputs:
      a: ${{parent.inputs.word}} ${{parent.inputs.wrod}}
      b: {path: "${{parent.inputs.d}}/part"}
)"),
              ElementsAre(HasSubstr("job.yml:7: input \"a\": within a text ${{parent.inputs.wrod}} "
                                    "must be a plain value"),
                          HasSubstr("job.yml:8: input \"b\": within a text ${{parent.inputs.d}}")));
}

TEST(PipelineFile, AStepsComponentMayBeWrittenOut) {
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

TEST(PipelineFile, WhatIsWrongInAComponentThatIsWrittenOutNamesItsStep) {
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

TEST(PipelineFile, APipelineThatContainsItselfIsRefused) {
  EXPECT_THAT(PipelineErrors("type: pipeline\njobs: {a: {type: pipeline, component: ./c.yml}}",
                             {{"/base/c.yml",
                               "type: pipeline\njobs: {a: {type: pipeline, component: "
                               "./c.yml}, b: {type: pipeline, component: ./c.yml}}"}})
                  .front(),
              HasSubstr("nested deeper than 8"));
}

TEST(PipelineFile, TheDefaultArtifactsAreTheJobsFolder) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
jobs:
  a: {command: echo x > outputs/x, outputs: {artifacts: }}
  b:
    command: cat ${{inputs.i}}/outputs/x
    inputs: {i: "${{parent.jobs.a.outputs.artifacts}}"}
)");
  EXPECT_EQ(Bind(job, job.steps[1], [](const std::string&) { return "/j"; }).inputs.at("i").path,
            "/j");
}

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

TEST(PipelineFile, SurvivesItsJson) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
settings: {continue_on_step_failure: true, force_rerun: true, on_init: make, on_finalize: inner}
jobs:
  make: {command: x, outputs: {o: }}
  inner:
    type: pipeline
    component: ./inner/inner.yml
    inputs: {data: "${{parent.jobs.make.outputs.o}}", where: local}
  sweep:
    type: sweep
    trial: {command: "x ${{search_space.a}}"}
    search_space: {a: {type: qlognormal, mu: -1, sigma: 2, q: 0.5}}
    sampling_algorithm: {type: random, rule: sobol, seed: -3, logbase: 2}
    objective: {goal: minimize, primary_metric: loss}
    early_termination: {type: truncation_selection, truncation_percentage: 20}
)",
                                 kNested);
  const std::string json = ToJson(job);
  const auto back = JobSpecFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), json);
  EXPECT_EQ(back->steps.at(2).job.sweep->seed, -3);
  EXPECT_FALSE(back->steps.at(0).job.reusable);
}

}  // namespace
}  // namespace tutti::spec
