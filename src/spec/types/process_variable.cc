#include "spec/types/process_variable.h"

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {

constexpr size_t kLongestVariable = 128 << 10;  // MAX_ARG_STRLEN of Linux

}  // namespace

std::string WhyTooLong(absl::string_view name, absl::string_view value) {
  // The name, "=" and a zero byte count with it.
  if (name.size() + value.size() + 2 <= kLongestVariable) return "";
  return absl::StrCat("has ", value.size(), " bytes; a process can be given no more than ",
                      kLongestVariable >> 10, " KiB in one: put it into a file of the code");
}

}  // namespace tutti::spec
