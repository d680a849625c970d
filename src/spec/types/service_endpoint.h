// Where a service is, what opens it, and how it is known: the text of the files service.json (for
// clients) and launcher.json (for launchers) that a service keeps in its home.
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

// DataLoss if the text is no JSON object with an address.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);
// The file's content. DataLoss names the file.
absl::StatusOr<Endpoint> ReadEndpoint(const std::filesystem::path& file);
// One line, without what is empty.
std::string ToJson(const Endpoint& endpoint);

// No other machine gets there, or none by this address.
bool IsOfThisMachineOnly(absl::string_view address);

}  // namespace tutti::spec
