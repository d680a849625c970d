#include "platform/storage/signing/azure_sas.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/text/percent_encode.h"

namespace tutti::storage {
namespace {

constexpr char kVersion[] = "2021-08-06";

// Returns the permissions in the order that the store requires.
std::string Rights(const spec::DataPlace& place, const SasTerms& terms) {
  if (place.kind == spec::StoreKind::kAzureFile) {
    if (!terms.write) return terms.one_object ? "r" : "rl";
    return terms.one_object ? "cw" : "rcwdl";
  }
  if (terms.one_object) return terms.write ? "cw" : "r";
  if (!terms.write) return "rl";
  return place.kind == spec::StoreKind::kAzureDataLake ? "racwdlm" : "racwdl";
}

}  // namespace

absl::StatusOr<std::string> AzureSas(const spec::DataPlace& place, absl::string_view account_key,
                                     const SasTerms& terms) {
  const bool is_share = place.kind == spec::StoreKind::kAzureFile;
  if (!is_share && place.kind != spec::StoreKind::kAzureBlob &&
      place.kind != spec::StoreKind::kAzureDataLake) {
    return absl::InvalidArgumentError("it is no container of Azure's blobs, and no share");
  }
  std::string key;
  if (!absl::Base64Unescape(account_key, &key)) {
    return absl::InvalidArgumentError("the account key is not base64, as account keys are");
  }
  const std::string rights = Rights(place, terms);
  const std::string end =
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", terms.expires, absl::UTCTimeZone());
  const std::string protocol = absl::StartsWith(place.endpoint, "http://") ? "" : "https";
  const std::string one = is_share ? "f" : "b", all = is_share ? "s" : "c";
  const std::string& resource = terms.one_object ? one : all;
  std::string signed_name =
      absl::StrCat(is_share ? "/file/" : "/blob/", place.account, "/", place.container);
  if (terms.one_object) absl::StrAppend(&signed_name, "/", place.path);
  // Begin, policy, address, snapshot and encryption scope are none, and no headers of the answer
  // are set. Of a file neither what kind of resource it is nor the last two are signed.
  std::string text = absl::StrJoin({rights, std::string(), end, signed_name, std::string(),
                                    std::string(), protocol, std::string(kVersion)},
                                   "\n");
  if (!is_share) absl::StrAppend(&text, "\n", resource, "\n\n");
  const base::Sha256Digest digest = base::HmacSha256(key, absl::StrCat(text, "\n\n\n\n\n"));
  const std::string signature = absl::Base64Escape(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
  std::vector<std::pair<std::string, std::string>> fields = {
      {"sv", kVersion}, {"sr", resource}, {"sp", rights}, {"se", end}};
  if (!protocol.empty()) fields.emplace_back("spr", protocol);
  fields.emplace_back("sig", signature);
  return absl::StrJoin(fields, "&", [](std::string* out, const auto& field) {
    absl::StrAppend(out, field.first, "=", base::PercentEncode(field.second));
  });
}

}  // namespace tutti::storage
