// Describes a server of models to its clients: the metadata of the Open Inference Protocol, and the
// OpenAPI document of Azure ML's /score. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/scoring/serve/model_store.h"

namespace tutti::scoring {

nlohmann::ordered_json ServerMetadata();
// `versions`: all that are served of its name.
nlohmann::ordered_json ModelMetadata(const ServedModel& model,
                                     const std::vector<std::string>& versions);
// Swagger 2.0, or OpenAPI 3.0 where `version` is "3".
nlohmann::ordered_json ScoreDocument(const ServedModel& model, const std::string& version);

}  // namespace tutti::scoring
