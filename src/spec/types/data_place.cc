#include "spec/types/data_place.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {

base::Wildcards WildcardsOf(const DataPlace& place) {
  return place.has_classes ? base::Wildcards::kClasses : base::Wildcards::kPlain;
}

std::string StoreOf(const DataPlace& place) {
  return absl::StrCat(StoreName(place.kind), " ", place.account, place.account.empty() ? "" : "/",
                      place.container, place.endpoint.empty() ? "" : " at ", place.endpoint);
}

std::string WithOwnName(absl::string_view text, absl::string_view job) {
  return absl::StrReplaceAll(text, {{kOwnName, job}});
}

DataPlace PlaceOfJob(DataPlace place, absl::string_view job) {
  place.path = WithOwnName(place.path, job);
  return place;
}

}  // namespace tutti::spec
