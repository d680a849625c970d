#include "runtime/comm/group/group_file.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace tutti::comm {

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) {
  const size_t colon = text.rfind(':');
  Endpoint place;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &place.port) || place.port < 1 ||
      place.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no address:port of a member of the group"));
  }
  absl::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  place.host = std::string(host);
  return place;
}

std::string GroupFileOf(const Table& table) {
  std::string text;
  for (const Hello& member : table.ranks) {
    absl::StrAppend(&text, Endpoint{member.address, member.rejoin_port}.ToString(), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<Endpoint>> ReadGroupFile(absl::string_view text) {
  std::vector<Endpoint> places;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    TUTTI_ASSIGN_OR_RETURN(places.emplace_back(), ParseEndpoint(line));
  }
  return places;
}

}  // namespace tutti::comm
