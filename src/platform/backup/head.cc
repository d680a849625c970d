#include "platform/backup/head.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/json/json_fields.h"

namespace tutti::backup {
namespace {

constexpr int kForm = 1;
constexpr int kMostForms = 1 << 20;

}  // namespace

std::string ShownTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string ToJson(const Head& head) {
  return spec::Dump({{"form", kForm},
                     {"version", head.version},
                     {"home", head.home},
                     {"made", ShownTime(head.made)},
                     {"with_results", head.with_results}});
}

absl::StatusOr<Head> HeadFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json document, spec::ParseJsonObject(text, kHeadName));
  spec::JsonFields fields(document, "", spec::Missing::kIsAnError);
  Head head;
  int form = kForm;
  std::string made;
  fields.Read("form", form, 1, kMostForms);
  if (form != kForm) {
    return absl::FailedPreconditionError("was made by a newer tutti: restore it with that one");
  }
  fields.Read("version", head.version);
  fields.Read("home", head.home);
  fields.Read("made", made);
  fields.Read("with_results", head.with_results);
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, made, &head.made, &error)) {
    fields.Fail(absl::StrCat("made: ", error));
  }
  TUTTI_RETURN_IF_ERROR(base::Annotate(fields.Finish(), kHeadName));
  return head;
}

}  // namespace tutti::backup
