// Writes and reads the parts of a JobSpec's JSON that pipelines and sweeps have. Inside the room
// spec only.
#pragma once

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "spec/json/json_fields.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns the whole of a job, with its steps.
nlohmann::json JsonOf(const JobSpec& spec);
// Reads a job of a flow; `path` is the document's place: "" or "steps[2].job".
absl::Status ReadJobSpec(const nlohmann::json& document, const std::string& path, JobSpec& spec);

nlohmann::json JsonOf(const std::vector<Step>& steps);
nlohmann::json JsonOf(const Sweep& sweep);
void ReadSteps(JsonFields& fields, std::vector<Step>& steps);
// Reads the field "sweep"; it may be missing.
void ReadSweepField(const nlohmann::json& document, JsonFields& fields,
                    std::optional<Sweep>& sweep);

}  // namespace tutti::spec
