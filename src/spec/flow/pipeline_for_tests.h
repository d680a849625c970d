// Reads pipelines whose files lie in memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spec/file/job_file.h"

namespace tutti::spec {

using Files = std::map<std::string, std::string>;

inline absl::StatusOr<ReadResult> ReadPipeline(absl::string_view text, const Files& files = {}) {
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

inline JobSpec PipelineOf(absl::string_view text, const Files& files = {}) {
  const auto result = ReadPipeline(text, files);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->spec : JobSpec();
}

inline std::vector<std::string> PipelineErrors(absl::string_view text, const Files& files = {}) {
  const auto result = ReadPipeline(text, files);
  EXPECT_FALSE(result.ok());
  return absl::StrSplit(std::string(result.status().message()), '\n');
}

inline const Files kTrain = {{"/base/parts/train.yml", R"(
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

inline const Files kNested = {{"/base/inner/inner.yml", R"(
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

}  // namespace tutti::spec
