// Writes what a survey of a data set found, as a table for people and as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/data/pack/survey.h"

namespace tutti {

// Returns "imagenet, split train: TFRecord" and a table below it, ending in a new line.
std::string TableOf(absl::string_view title, const data::Dataset& dataset,
                    const data::Survey& survey);

nlohmann::json JsonOf(absl::string_view split, data::DatasetFormat format,
                      const data::Dataset& dataset, const data::Survey& survey);

}  // namespace tutti
