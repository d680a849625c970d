// Takes what a job leaves as a model: its files, and what it was made of. The lineage stays with
// the model when the job is deleted.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/models/model_contents.h"
#include "platform/service/models/registered_model.h"
#include "platform/service/models/registered_models.h"
#include "platform/service/results/job_files.h"
#include "platform/store/store.h"

namespace tutti::service {

// Copies into `contents` what the job has at `path`, which is below outputs/: a file, or all files
// of a folder. NotFound says which there are; ResourceExhausted if there is no room for all.
absl::StatusOr<ModelContent> AdoptResults(const JobFiles& files, const ModelContents& contents,
                                          absl::string_view job, absl::string_view path);

// Registers what the job has at `path`, with its lineage; `creation` has no content.
absl::StatusOr<RegisteredVersion> RegisterResults(const JobFiles& files, RegisteredModels& models,
                                                  ModelCreation creation, const store::Job& job,
                                                  absl::string_view path);

// Returns the job's lineage as a JSON object: the job, the hash of its code, its environment, its
// data with their versions, its plain inputs.
std::string LineageOf(const store::Job& job, absl::string_view path);

}  // namespace tutti::service
