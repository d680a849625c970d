#include "platform/storage/credential_mask.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/data/percent.h"

namespace tutti::storage {

base::TextMask MaskOf(const Credentials& credentials) {
  std::vector<std::string> secrets = {credentials.account_key, credentials.sas,
                                      credentials.client_secret, credentials.secret_access_key,
                                      credentials.session_token};
  for (absl::string_view field : absl::StrSplit(absl::StripPrefix(credentials.sas, "?"), '&')) {
    if (!absl::ConsumePrefix(&field, "sig=")) continue;
    secrets.emplace_back(field);
    secrets.push_back(spec::PercentDecoded(field));
  }
  std::vector<std::string> texts;
  for (const std::string& secret : secrets) {
    for (std::string& text : base::TextsToHide(secret)) texts.push_back(std::move(text));
  }
  return base::TextMask(texts);
}

}  // namespace tutti::storage
