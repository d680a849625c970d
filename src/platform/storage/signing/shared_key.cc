#include "platform/storage/signing/shared_key.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::storage {

absl::StatusOr<std::string> SharedKeyOf(const RequestToSign& request, absl::string_view account,
                                        absl::string_view account_key) {
  std::string key;
  if (!absl::Base64Unescape(account_key, &key)) {
    return absl::InvalidArgumentError("the account key is not base64, as account keys are");
  }
  const std::string length = request.body_bytes == 0 ? "" : absl::StrCat(request.body_bytes);
  // Encoding, language, length, MD5, type, date, the four conditions and range: of these headers
  // only the length is sent.
  std::string text = absl::StrCat(request.method, "\n\n\n", length, "\n\n\n\n\n\n\n\n\n");
  for (const auto& [name, value] : request.headers) absl::StrAppend(&text, name, ":", value, "\n");
  absl::StrAppend(&text, "/", account, request.path);
  for (const auto& [name, value] : request.query) absl::StrAppend(&text, "\n", name, ":", value);
  const base::Sha256Digest digest = base::HmacSha256(key, text);
  return absl::StrCat("SharedKey ", account, ":",
                      absl::Base64Escape(absl::string_view(
                          reinterpret_cast<const char*>(digest.data()), digest.size())));
}

}  // namespace tutti::storage
