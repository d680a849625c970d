#include "spec/text/unbound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/flow/pipeline_for_tests.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Bindable kNames{.inputs = {"top", "epochs"},
                      .outputs = {"model"},
                      .steps = {{"prepare", {"data"}}, {"train", {"weights"}}}};

TEST(Unbound, FindsWhatIsMeantForABinding) {
  EXPECT_EQ(BindingIn("${{inputs.top}}"), "inputs.top");
  EXPECT_EQ(BindingIn("a ${{ jobs.x.outputs.y }} b"), "jobs.x.outputs.y");
  EXPECT_EQ(BindingIn("{{parent.inputs.top}}"), "parent.inputs.top");
  EXPECT_EQ(BindingIn("${parent.inputs.top}"), "parent.inputs.top");
  EXPECT_EQ(BindingIn("${{parent.inputs.top"), "parent.inputs.top");
  for (const char* plain : {"", "top", "inputs.top", "${HOME}", "{a: 1}", "{{name}}", "$", "${{",
                            "{{ inputs.a or b }}", "a {{inputs.b}} c"}) {
    EXPECT_EQ(BindingIn(plain), "") << plain;
  }
}

TEST(Unbound, TellsTheNearestBindingOfAnInput) {
  const auto meant = [](absl::string_view body) { return MeantInput(body, kNames); };
  EXPECT_EQ(meant("inputs.top"), " (did you mean \"${{parent.inputs.top}}\"?)");
  EXPECT_EQ(meant("parents.inputs.top"), meant("inputs.top"));
  EXPECT_EQ(meant("parent.input.top"), meant("inputs.top"));
  EXPECT_EQ(meant("top"), meant("inputs.top"));
  EXPECT_EQ(meant("inputs.epoch"), " (did you mean \"${{parent.inputs.epochs}}\"?)");
  const std::string weights = " (did you mean \"${{parent.jobs.train.outputs.weights}}\"?)";
  for (const char* body :
       {"jobs.train.outputs.weights", "parent.job.tain.outputs.weight", "train.outputs.weights",
        "steps.train.outputs.weights", "parent.jobs.train.output.weights"}) {
    EXPECT_EQ(meant(body), weights) << body;
  }
  EXPECT_EQ(meant("jobs.train.outputs.other"),
            " (did you mean \"${{parent.jobs.train.outputs.other}}\"?)")
      << "the step's component may have it";
  EXPECT_EQ(meant("jobs.nosuchstep.outputs.x"),
            "; write ${{parent.inputs.NAME}} or ${{parent.jobs.STEP.outputs.NAME}}: the pipeline "
            "has the inputs top, epochs and the steps prepare, train");
}

TEST(Unbound, TellsTheNearestBindingOfAnOutput) {
  EXPECT_EQ(MeantOutput("outputs.model", kNames), " (did you mean \"${{parent.outputs.model}}\"?)");
  EXPECT_EQ(MeantOutput("parents.outputs.modl", kNames), MeantOutput("outputs.model", kNames));
  EXPECT_EQ(MeantOutput("outputs.x", {}),
            "; write ${{parent.outputs.NAME}}: the pipeline has no outputs");
}

TEST(Unbound, WhatAStepIsGivenAndIsBoundToNothingIsRefusedWithItsPlace) {
  EXPECT_THAT(
      PipelineErrors(R"(type: pipeline
inputs: {top: 3}
outputs: {model: }
jobs:
  make: {command: x, outputs: {d: }}
  use:
    command: x ${{inputs.a}} ${{inputs.b}} ${{inputs.c}} ${{inputs.d}}
    inputs:
      a: ${{jobs.nosuchstep.outputs.x}}
      b: ${{inputs.top}}
      c: "${{parents.inputs.top}}"
      d:
        type: uri_folder
        path: "${{jobs.make.outputs.d}}"
    outputs:
      m: ${{outputs.model}}
      n:
        path: ${{parents.outputs.model}}
)"),
      ElementsAre(HasSubstr("job.yml:9: step \"use\" gives input \"a\" "
                            "${{jobs.nosuchstep.outputs.x}}, which is no binding; write "
                            "${{parent.inputs.NAME}} or ${{parent.jobs.STEP.outputs.NAME}}: the "
                            "pipeline has the inputs top and the steps make"),
                  HasSubstr("job.yml:10: step \"use\" gives input \"b\" ${{inputs.top}}, which is "
                            "no binding (did you mean \"${{parent.inputs.top}}\"?)"),
                  HasSubstr("job.yml:11: step \"use\" gives input \"c\" ${{parents.inputs.top}}, "
                            "which is no binding (did you mean \"${{parent.inputs.top}}\"?)"),
                  HasSubstr("job.yml:14: step \"use\" gives input \"d\" ${{jobs.make.outputs.d}}, "
                            "which is no binding (did you mean "
                            "\"${{parent.jobs.make.outputs.d}}\"?)"),
                  HasSubstr("job.yml:16: step \"use\" gives output \"m\" ${{outputs.model}}, which "
                            "is no binding (did you mean \"${{parent.outputs.model}}\"?)"),
                  HasSubstr("job.yml:18: step \"use\" gives output \"n\" "
                            "${{parents.outputs.model}}, which is no binding")));
}

TEST(Unbound, ComponentsSweepsAndPipelinesAreGivenNoMore) {
  EXPECT_THAT(PipelineErrors(R"(type: pipeline
inputs: {top: 3}
jobs:
  a: {component: ./parts/train.yml, inputs: {data: "${{inputs.top}}", epochs: 1}}
  b: {type: pipeline, component: ./inner/inner.yml, inputs: {data: {path: .}, where: "{{parent.inputs.top}}"}}
  c:
    type: sweep
    trial: ./parts/train.yml
    inputs: {data: "${{jobs.a.outputs.model}}"}
    search_space: {epochs: {type: choice, values: [1]}}
    objective: {goal: minimize, primary_metric: loss}
)",
                             [] {
                               Files files = kTrain;
                               files.insert(kNested.begin(), kNested.end());
                               return files;
                             }()),
              ElementsAre(HasSubstr("job.yml:4: step \"a\" gives input \"data\" ${{inputs.top}}"),
                          HasSubstr("job.yml:5: step \"b\" gives input \"where\" "
                                    "{{parent.inputs.top}}, which is no binding (did you mean"),
                          HasSubstr("job.yml:9: step \"c\" gives input \"data\" "
                                    "${{jobs.a.outputs.model}}, which is no binding (did you "
                                    "mean \"${{parent.jobs.a.outputs.model}}\"?)")));
}

TEST(Unbound, AJobsOwnInputsTakeNothingFromEachOther) {
  EXPECT_THAT(PipelineErrors("command: x\ninputs:\n  a: 3\n  b: ${{inputs.a}}\n"
                             "  c: {path: '${{outputs.o}}'}\n  d: ${{search_space.lr}}\n"),
              ElementsAre(HasSubstr("job.yml:4: input \"b\" is ${{inputs.a}}, but an input takes "
                                    "no value from another"),
                          HasSubstr("job.yml:5: input \"c\" is ${{outputs.o}}, but"),
                          HasSubstr("job.yml:6: input \"d\" is ${{search_space.lr}}; a sweep's")));
}

TEST(Unbound, CommandsAndAddressesOfOutputsKeepTheirExpressions) {
  const JobSpec job = PipelineOf(R"(type: pipeline
jobs:
  a:
    command: x ${{inputs.n}} > ${{outputs.o}}/y
    inputs: {n: 3}
    outputs:
      o: {type: uri_folder, path: "azureml://datastores/d/paths/${{name}}/${{output_name}}"}
)");
  EXPECT_EQ(job.steps.at(0).job.command, "x ${{inputs.n}} > ${{outputs.o}}/y");
}

}  // namespace
}  // namespace tutti::spec
