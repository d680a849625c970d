#include "platform/tracking/search/filter_tokens.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::tracking {
namespace {

// The first dot ends the word before it, as what follows may be quoted; the parser joins the rest.
bool IsOfWord(char c) {
  return absl::ascii_isalnum(c) || absl::string_view("_-+/:").find(c) != std::string::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

// How many bytes the sign has that `rest` begins with; 0: none.
size_t SignLength(absl::string_view rest) {
  for (const absl::string_view sign : {"!=", "<=", ">=", "=", "<", ">", "(", ")", ",", "."}) {
    if (rest.substr(0, sign.size()) == sign) return sign.size();
  }
  return 0;
}

absl::StatusOr<Token> QuotedAt(absl::string_view filter, size_t place) {
  const char quote = filter[place];
  const size_t end = filter.find(quote, place + 1);
  if (end == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("Invalid filter: the quote ",
                                                   filter.substr(place, 1), " at character ",
                                                   place + 1, " has no end."));
  }
  return Token{quote == '`' ? Token::Kind::kName : Token::Kind::kQuoted,
               std::string(filter.substr(place + 1, end - place - 1)), place};
}

Token WordAt(absl::string_view filter, size_t place) {
  size_t end = place;
  // A number has its dot in it: what begins with a digit or a sign is one.
  const bool is_number = !absl::ascii_isalpha(filter[place]) && filter[place] != '_';
  while (end < filter.size() && (IsOfWord(filter[end]) || (is_number && filter[end] == '.'))) ++end;
  return {Token::Kind::kWord, std::string(filter.substr(place, end - place)), place};
}

bool BeginsNumber(absl::string_view rest) {
  return rest.size() > 1 && rest[0] == '.' && absl::ascii_isdigit(rest[1]);
}

}  // namespace

absl::StatusOr<std::vector<Token>> TokensOf(absl::string_view filter) {
  std::vector<Token> tokens;
  size_t place = 0;
  while (true) {
    while (place < filter.size() && absl::ascii_isspace(filter[place])) ++place;
    if (place == filter.size()) break;
    const char c = filter[place];
    const bool is_after_word = !tokens.empty() && tokens.back().kind != Token::Kind::kSign;
    if (c == '\'' || c == '"' || c == '`') {
      TUTTI_ASSIGN_OR_RETURN(Token quoted, QuotedAt(filter, place));
      place += quoted.text.size() + 2;
      tokens.push_back(std::move(quoted));
    } else if (IsOfWord(c) || (!is_after_word && BeginsNumber(filter.substr(place)))) {
      tokens.push_back(WordAt(filter, place));
      place += tokens.back().text.size();
    } else if (const size_t length = SignLength(filter.substr(place)); length > 0) {
      tokens.push_back({Token::Kind::kSign, std::string(filter.substr(place, length)), place});
      place += length;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("Invalid filter: character ", place + 1, " is none of its language."));
    }
  }
  tokens.push_back({Token::Kind::kEnd, "", filter.size()});
  return tokens;
}

}  // namespace tutti::tracking
