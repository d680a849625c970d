#include "platform/api/routing/query.h"

#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::api {

absl::StatusOr<int64_t> NumberFrom(absl::string_view text, absl::string_view name, int64_t least,
                                   int64_t most) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= least && number <= most) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, " must be a whole number from ", least,
                                                 " to ", most, ", but is \"", text.substr(0, 80),
                                                 "\""));
}

absl::StatusOr<int64_t> QueryNumber(const http::Request& request, const char* name,
                                    int64_t otherwise, int64_t least, int64_t most) {
  if (!request.query.contains(name)) return otherwise;
  return NumberFrom(request.Query(name), name, least, most);
}

absl::StatusOr<double> QueryFinite(const http::Request& request, const char* name,
                                   double otherwise) {
  if (!request.query.contains(name)) return otherwise;
  const absl::string_view text = request.Query(name);
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be a number, but is \"", text.substr(0, 80), "\""));
}

absl::StatusOr<bool> QueryFlag(const http::Request& request, const char* name, bool otherwise) {
  if (!request.query.contains(name)) return otherwise;
  const absl::string_view value = request.Query(name);
  if (value == "true" || value == "false") return value == "true";
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be true or false, but is \"", value.substr(0, 80), "\""));
}

}  // namespace tutti::api
