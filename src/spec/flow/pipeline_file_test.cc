// Covers: binding.cc, pipeline_reader.cc, step_reader.cc, input_bindings.cc, step_outputs.cc,
// step_scope.cc, spec/json/flow_json.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "spec/flow/binding.h"
#include "spec/flow/pipeline_for_tests.h"
#include "spec/json/job_json.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

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

TEST(PipelineFile, AnOutputOfItInAStoreIsWrittenThereByTheStepThatIsBoundToIt) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
outputs:
  model: {type: uri_file, path: "s3://b/${{name}}/model.pt"}
  kept: {type: uri_folder}
jobs:
  a:
    command: x
    outputs:
      m: {type: uri_file, path: "${{parent.outputs.model}}"}
      k: ${{parent.outputs.kept}}
      own: {type: uri_folder, path: "s3://b/own"}
)");
  const auto& outputs = job.steps[0].job.outputs;
  ASSERT_TRUE(outputs.at("m").place.has_value());
  EXPECT_EQ(outputs.at("m").place->path, "${{name}}/model.pt");
  EXPECT_EQ(outputs.at("m").file, "model.pt");
  EXPECT_FALSE(outputs.at("k").place.has_value());
  EXPECT_EQ(outputs.at("own").place->path, "own");
}

TEST(PipelineFile, AFileThatIsCalledAsItsJobIsReadByThatName) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
jobs:
  a:
    command: x
    outputs: {m: {type: uri_file, path: "s3://b/${{name}}.pt"}}
  b:
    command: x
    inputs: {m: "${{parent.jobs.a.outputs.m}}"}
)");
  const JobSpec bound =
      Bind(job, job.steps[1], [](const std::string&) { return std::string("/jobs/blue"); });
  EXPECT_EQ(bound.inputs.at("m").path, "/jobs/blue/outputs/m/blue.pt");
}

TEST(PipelineFile, TheModeOfABoundInputIsReadAsThatOfAnyOther) {
  const JobSpec job = PipelineOf(R"(
type: pipeline
inputs:
  d: {type: mltable, path: ./t}
jobs:
  a:
    command: x
    inputs: {d: {path: "${{parent.inputs.d}}", mode: Mount}}
  b:
    command: x
    inputs: {d: {path: "${{parent.inputs.d}}", mode: Eval_Mount}}
)");
  EXPECT_EQ(job.steps[0].job.inputs.at("d").mode, "ro_mount");
  EXPECT_EQ(job.steps[1].job.inputs.at("d").mode, "eval_mount");
  EXPECT_EQ(job.steps[1].job.inputs.at("d").type, "mltable");
}

TEST(PipelineFile, WhatTheStepLacksIsSaidWithItsLine) {
  EXPECT_THAT(
      PipelineErrors("type: pipeline\njobs:\n  t:\n    component: ./parts/train.yml\n    inputs:\n"
                     "      data: ./d\n      epohs: 3\n",
                     kTrain),
      ElementsAre(HasSubstr("job.yml:3: input \"epochs\" has no value"),
                  HasSubstr("job.yml:7: component parts/train.yml has no input \"epohs\" "
                            "(did you mean \"epochs\"?)")));
  // A name that resembles none of them is passed over, with a warning.
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
