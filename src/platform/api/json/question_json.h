// Writes what the launchers of a job have answered as JSON.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "platform/service/questions/open_question.h"

namespace tutti::api {

std::string StacksJson(absl::string_view job, const service::QuestionAnswer& answer);
std::string SentResultsJson(absl::string_view job, const service::QuestionAnswer& answer);

}  // namespace tutti::api
