#include "platform/service/attempt/launcher_token.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::service {

std::string LauncherToken(absl::string_view key, absl::string_view allocation) {
  if (key.empty()) return "";
  return base::Hex(base::HmacSha256(key, absl::StrCat("launcher of ", allocation)));
}

}  // namespace tutti::service
