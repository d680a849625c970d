// Endpoint says where a service is, which token it wants, and which certificate it shows: the
// content of the files service.json (for clients) and launcher.json (for launchers) in the
// service's home.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

struct Endpoint {
  std::string address;      // "https://10.1.0.1:6280", or "http://…"
  std::string token;        // the bearer token; empty: none is known
  std::string certificate;  // PEM: the one that the service shows (https); empty: a trusted one
};

// Parses `text`; DataLoss if the text is no JSON object with an address.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);
// Reads the file's content. DataLoss names the file.
absl::StatusOr<Endpoint> ReadEndpoint(const std::filesystem::path& file);
// Returns the endpoint as one line of JSON, without the fields that are empty.
std::string ToJson(const Endpoint& endpoint);

// Returns whether other machines cannot reach the service by this address.
bool IsOfThisMachineOnly(absl::string_view address);

}  // namespace tutti::spec
