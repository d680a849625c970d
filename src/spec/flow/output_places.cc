#include "spec/flow/output_places.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "spec/command/output_place.h"

namespace tutti::spec {
namespace {

void GiveToSteps(JobSpec& pipeline) {
  for (Step& step : pipeline.steps) {
    for (const auto& [name, outer] : step.outputs_to) {
      const auto of_pipeline = pipeline.outputs.find(outer);
      const auto of_step = step.job.outputs.find(name);
      if (of_pipeline == pipeline.outputs.end() || of_step == step.job.outputs.end()) continue;
      if (!of_pipeline->second.place) continue;
      of_step->second.place = of_pipeline->second.place;
      of_step->second.location = of_pipeline->second.location;
      NameFileByPlace(of_step->second);
    }
  }
}

void CheckTrials(const JobSpec& sweep, Diagnostics& diagnostics) {
  for (const auto& [name, output] : sweep.outputs) {
    if (!output.place || absl::StrContains(output.place->path, kOwnName)) continue;
    diagnostics.Error(
        output.location,
        absl::StrCat("output \"", name, "\": all trials of the sweep would write to ",
                     "the same place: put ", kOwnName, ", the trial's name, into ", "its path"));
  }
}

}  // namespace

void SpreadOutputPlaces(JobSpec& job, Diagnostics& diagnostics) {
  if (job.kind == JobKind::kPipeline) GiveToSteps(job);
  if (job.kind == JobKind::kSweep) CheckTrials(job, diagnostics);
  for (Step& step : job.steps) SpreadOutputPlaces(step.job, diagnostics);
}

}  // namespace tutti::spec
