// Writes the stacks of a job's ranks as JSON.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "platform/service/questions/stack_question.h"

namespace tutti::api {

std::string StacksJson(absl::string_view job, const service::StackAnswer& answer);

}  // namespace tutti::api
