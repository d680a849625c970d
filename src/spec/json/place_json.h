// Writes and reads places of data in jobs, launch plans and the list of datastores. Inside the room
// spec only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "spec/types/data_place.h"

namespace tutti::spec {

nlohmann::json JsonOf(const DataPlace& place);
// Reads what JsonOf wrote; what is missing keeps its default. InvalidArgument names the field that
// is unknown or wrong. `path` is the place's own in the document: "inputs.images.place".
absl::Status ReadPlace(const nlohmann::json& document, std::string path, DataPlace& place);

}  // namespace tutti::spec
