#include "platform/storage/signing/session_request.h"

#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "base/text/utf8.h"

namespace tutti::storage {
namespace {

constexpr size_t kLongestKey = 8 << 10;
constexpr size_t kShownOfAnswer = 300;
// Servers other than AWS ask for one, and look at none.
constexpr char kAnyRole[] = "arn:aws:iam::000000000000:role/tutti";

std::string PolicyFor(const spec::DataPlace& place, bool write) {
  nlohmann::json actions = {"s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation"};
  if (write) {
    for (const char* action : {"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload",
                               "s3:ListMultipartUploadParts"}) {
      actions.push_back(action);
    }
  }
  const std::string bucket = absl::StrCat("arn:aws:s3:::", place.container);
  const nlohmann::json statement = {{"Effect", "Allow"},
                                    {"Action", std::move(actions)},
                                    {"Resource", {bucket, absl::StrCat(bucket, "/*")}}};
  return nlohmann::json(
             {{"Version", "2012-10-17"}, {"Statement", nlohmann::json::array({statement})}})
      .dump();
}

// Returns the text of the first element of that name; "" if there is none.
std::string ElementIn(absl::string_view xml, absl::string_view name) {
  const std::string begin = absl::StrCat("<", name, ">"), end = absl::StrCat("</", name, ">");
  const size_t from = xml.find(begin);
  if (from == absl::string_view::npos) return "";
  xml.remove_prefix(from + begin.size());
  const size_t to = xml.find(end);
  if (to == absl::string_view::npos || to > kLongestKey) return "";
  const absl::string_view text = absl::StripAsciiWhitespace(xml.substr(0, to));
  return absl::StrReplaceAll(
      text, {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}});
}

}  // namespace

absl::StatusOr<SessionRequest> SessionRequestFor(const spec::DataPlace& place, bool write,
                                                 absl::Duration lasts) {
  SessionRequest request;
  request.region = place.region.empty() ? "us-east-1" : place.region;
  const bool is_aws = place.endpoint.empty();
  if (is_aws) {
    request.url = {"https", absl::StrCat("sts.", request.region, ".amazonaws.com"), "/"};
  } else {
    spec::DataPlace server = place;
    server.is_pattern = false;
    TUTTI_ASSIGN_OR_RETURN(request.url, UrlOf(server));
    request.url.path = "/";
  }
  request.form =
      absl::StrCat("Action=", is_aws ? "GetFederationToken" : "AssumeRole", "&Version=2011-06-15",
                   "&DurationSeconds=", absl::ToInt64Seconds(lasts),
                   is_aws ? "&Name=tutti" : "&RoleSessionName=tutti",
                   is_aws ? "" : absl::StrCat("&RoleArn=", base::PercentEncode(kAnyRole)),
                   "&Policy=", base::PercentEncode(PolicyFor(place, write)));
  return request;
}

absl::StatusOr<Credentials> SessionFrom(absl::string_view xml) {
  Credentials session{spec::CredentialKind::kAccessKey};
  session.access_key_id = ElementIn(xml, "AccessKeyId");
  session.secret_access_key = ElementIn(xml, "SecretAccessKey");
  session.session_token = ElementIn(xml, "SessionToken");
  for (const std::string* value :
       {&session.access_key_id, &session.secret_access_key, &session.session_token}) {
    if (!value->empty() && value->find('\0') == std::string::npos) continue;
    const std::string code = ElementIn(xml, "Code"), why = ElementIn(xml, "Message");
    const std::string words =
        base::BoundedUtf8(absl::StrCat(code, why.empty() ? "" : ": ", why), kShownOfAnswer);
    return absl::FailedPreconditionError(
        absl::StrCat("the store gives no keys for a limited time",
                     words.empty() ? "" : absl::StrCat(" (", words, ")")));
  }
  return session;
}

}  // namespace tutti::storage
