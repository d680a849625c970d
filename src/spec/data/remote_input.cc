#include "spec/data/remote_input.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "spec/data/data_map.h"

namespace tutti::spec {

bool IsRemote(const Input& input) {
  return absl::StartsWith(input.path, "http://") || absl::StartsWith(input.path, "https://");
}

std::string RemoteInputFault(const Input& input, const absl::Status& status) {
  return absl::StrCat(ShownAddress(input.path), " cannot be had: ", status.message(),
                      "; copy it here and say where: tutti data map ", PrefixToMap(input.path),
                      " FOLDER");
}

}  // namespace tutti::spec
