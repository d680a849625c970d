#include "spec/types/data_place.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {

std::string StoreOf(const DataPlace& place) {
  return absl::StrCat(StoreName(place.kind), " ", place.account, place.account.empty() ? "" : "/",
                      place.container, place.endpoint.empty() ? "" : " at ", place.endpoint);
}

DataPlace PlaceOfJob(DataPlace place, absl::string_view job) {
  place.path = absl::StrReplaceAll(place.path, {{kOwnName, job}});
  return place;
}

}  // namespace tutti::spec
