#include "spec/data/signed_address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "spec/data/data_map.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kNamed = "?tutti-signature=";
constexpr size_t kHashDigits = 24;
constexpr absl::string_view kBehindAddress = " \t\r\n\"'`<>{}[],";  // what ends one in YAML

// Whether the text ends with the key "path" and its colon, and maybe a quote of the value.
bool EndsWithPathKey(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "\"")) absl::ConsumeSuffix(&text, "'");
  text = absl::StripTrailingAsciiWhitespace(text);
  if (!absl::ConsumeSuffix(&text, ":")) return false;
  text = absl::StripTrailingAsciiWhitespace(text);
  if (!absl::ConsumeSuffix(&text, "\"")) absl::ConsumeSuffix(&text, "'");
  if (!absl::ConsumeSuffix(&text, "path")) return false;
  return text.empty() || absl::StrContains(" \t\n\"',{", text.back());
}

// "https://host:8443", in small letters, with a user if it has one: equal ones are one server.
std::string ServerOf(absl::string_view address) {
  const size_t scheme_end = address.find("://") + 3, end = EndOfServer(address);
  const size_t host = std::min(address.find_first_not_of('/', scheme_end), end);
  return absl::AsciiStrToLower(
      absl::StrCat(address.substr(0, scheme_end), address.substr(host, end - host)));
}

std::string HashOf(absl::string_view text) {
  return base::Hex(base::Sha256Of(text)).substr(0, kHashDigits);
}

std::string HashOf(absl::string_view server, absl::string_view query) {
  return HashOf(absl::StrCat(server, "\n", query));
}

bool IsWebAddress(absl::string_view text) {
  return absl::StartsWithIgnoreCase(text, "https://") ||
         absl::StartsWithIgnoreCase(text, "http://");
}

}  // namespace

std::string SecretOfAddress(absl::string_view address) {
  const size_t at = address.find(kNamed);
  if (at == absl::string_view::npos || !absl::StrContains(address, "://")) return "";
  const absl::string_view hash = address.substr(at + kNamed.size());
  const bool is_one =
      hash.size() == kHashDigits && std::all_of(hash.begin(), hash.end(), [](unsigned char digit) {
        return absl::ascii_isdigit(digit) || (digit >= 'a' && digit <= 'f');
      });
  return is_one ? SecretOfSignature(hash) : "";
}

std::string WithoutSignature(absl::string_view address, Signatures& signatures) {
  if (!IsSigned(address) || !SecretOfAddress(address).empty()) return std::string(address);
  const std::string bare = WithoutQuery(address);
  const std::string query(address.substr(bare.size() + 1));
  const std::string hash = HashOf(ServerOf(address), query);
  signatures[SecretOfSignature(hash)] = query;
  return absl::StrCat(bare, kNamed, hash);
}

std::string FileWithoutSignatures(absl::string_view text, Signatures& signatures) {
  std::string kept;
  size_t done = 0;
  for (size_t at = text.find("://"); at != absl::string_view::npos; at = text.find("://", at + 3)) {
    size_t begin = at;
    while (begin > done && absl::ascii_isalpha(text[begin - 1])) --begin;
    const size_t end = std::min(text.find_first_of(kBehindAddress, at), text.size());
    const absl::string_view address = text.substr(begin, end - begin);
    if (!IsWebAddress(address) || !EndsWithPathKey(text.substr(0, begin))) continue;
    if (absl::StrContains(address, '\\')) continue;  // YAML's "\u0026": it is another address
    absl::StrAppend(&kept, text.substr(done, begin - done), WithoutSignature(address, signatures));
    done = end;
  }
  absl::StrAppend(&kept, text.substr(done));
  return kept;
}

absl::StatusOr<std::string> WithSignature(absl::string_view address, const Signatures& signatures) {
  const std::string secret = SecretOfAddress(address);
  if (secret.empty()) return std::string(address);
  const auto found = signatures.find(secret);
  if (found == signatures.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no secret \"", secret, "\": ", kHowToSignAnew));
  }
  const std::string& query = found->second;
  const std::string server = ServerOf(address);
  if (secret == SecretOfSignature(HashOf(server, query))) {
    return absl::StrCat(WithoutQuery(address), "?", query);
  }
  const bool is_of_no_server = secret == SecretOfSignature(HashOf(query));
  return absl::FailedPreconditionError(
      absl::StrCat("secret \"", secret, "\" ",
                   is_of_no_server ? "was kept by an earlier tutti, which did not note its server"
                                   : absl::StrCat("is no signature of ", server),
                   ", and is not sent there: ", kHowToSignAnew));
}

}  // namespace tutti::spec
