#include "platform/service/results/file_signature.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/text/percent_encode.h"

namespace tutti::service {

// The first word keeps it apart from the tokens of launchers, which the same key makes. A job's
// name has no newline, so that no two files give the same text.
std::string FileSignature(absl::string_view key, const SignedFile& file) {
  if (key.empty()) return "";
  const std::string text = absl::StrCat("file of\n", file.job, "\n", file.submission, "\n",
                                        file.expires, "\n", file.path);
  return base::Hex(base::HmacSha256(key, text));
}

bool IsSigned(absl::string_view key, const SignedFile& file, absl::string_view signature) {
  const std::string right = FileSignature(key, file);
  return !right.empty() && base::EqualInConstantTime(right, signature);
}

std::string SignedFileTarget(absl::string_view key, const SignedFile& file) {
  return absl::StrCat("/v1/signed-files/", base::PercentEncode(file.job), "/",
                      base::PercentEncode(file.path, /*keep_slash=*/true),
                      "?expires=", file.expires, "&submission=", file.submission,
                      "&signature=", FileSignature(key, file));
}

}  // namespace tutti::service
