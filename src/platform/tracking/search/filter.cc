#include "platform/tracking/search/filter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace tutti::tracking {
namespace {

// Token is a word, a quoted text, a quoted name or a sign of a filter.
struct Token {
  // A kWord may begin with digits; kQuoted is '…' or "…", kName is `…`; after kEnd nothing follows.
  enum class Kind { kWord, kQuoted, kName, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // without its quotes
  size_t place = 0;  // in the filter, in bytes
};

// Returns whether a character belongs to a word. The first dot ends the word before it, as what
// follows may be quoted; the parser joins the rest.
bool IsOfWord(char c) {
  return absl::ascii_isalnum(c) || absl::string_view("_-+/:").find(c) != std::string::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Returns how many bytes the sign has that `rest` begins with; 0 if it begins with none.
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

// Takes a filter apart; the last token is kEnd. InvalidArgument for a quote that does not end and
// for a sign that the language does not have.
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

struct EntityName {
  absl::string_view name;
  Entity entity;
};
constexpr EntityName kEntities[] = {{"metric", Entity::kMetric},
                                    {"metrics", Entity::kMetric},
                                    {"parameter", Entity::kParam},
                                    {"parameters", Entity::kParam},
                                    {"param", Entity::kParam},
                                    {"params", Entity::kParam},
                                    {"tag", Entity::kTag},
                                    {"tags", Entity::kTag},
                                    {"attribute", Entity::kAttribute},
                                    {"attributes", Entity::kAttribute},
                                    {"attr", Entity::kAttribute},
                                    {"run", Entity::kAttribute},
                                    {"experiment", Entity::kAttribute},
                                    {"dataset", Entity::kDataset},
                                    {"datasets", Entity::kDataset}};

struct AttributeName {
  Subject subject;
  absl::string_view name, canonical;
};
constexpr AttributeName kAttributes[] = {
    {Subject::kRuns, "run_id", "run_id"},
    {Subject::kRuns, "run_uuid", "run_id"},
    {Subject::kRuns, "run_name", "run_name"},
    {Subject::kRuns, "run name", "run_name"},
    {Subject::kRuns, "Run name", "run_name"},
    {Subject::kRuns, "Run Name", "run_name"},
    {Subject::kRuns, "status", "status"},
    {Subject::kRuns, "user_id", "user_id"},
    {Subject::kRuns, "artifact_uri", "artifact_uri"},
    {Subject::kRuns, "start_time", "start_time"},
    {Subject::kRuns, "created", "start_time"},
    {Subject::kRuns, "Created", "start_time"},
    {Subject::kRuns, "end_time", "end_time"},
    {Subject::kExperiments, "name", "name"},
    {Subject::kExperiments, "experiment_id", "experiment_id"},
    {Subject::kExperiments, "creation_time", "creation_time"},
    {Subject::kExperiments, "last_update_time", "last_update_time"},
    {Subject::kModels, "name", "name"},
    {Subject::kModels, "model_id", "model_id"},
    {Subject::kModels, "model_type", "model_type"},
    {Subject::kModels, "status", "status"},
    {Subject::kModels, "source_run_id", "source_run_id"},
    {Subject::kModels, "experiment_id", "experiment_id"},
    {Subject::kModels, "artifact_location", "artifact_location"},
    {Subject::kModels, "creation_timestamp", "creation_timestamp"},
    {Subject::kModels, "creation_time", "creation_timestamp"},
    {Subject::kModels, "last_updated_timestamp", "last_updated_timestamp"}};

absl::StatusOr<std::string> AttributeOf(absl::string_view name, Subject subject) {
  std::vector<absl::string_view> known;
  for (const AttributeName& attribute : kAttributes) {
    if (attribute.subject != subject) continue;
    if (attribute.name == name) return std::string(attribute.canonical);
    if (attribute.name == attribute.canonical) known.push_back(attribute.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("Invalid attribute key '", name,
                                                 "' specified. Valid keys are '",
                                                 absl::StrJoin(known, "', '"), "'"));
}

absl::Status CheckEntity(Entity entity, absl::string_view key, Subject subject) {
  const bool is_of_experiments = entity == Entity::kTag || entity == Entity::kAttribute;
  if (subject == Subject::kExperiments && !is_of_experiments) {
    return absl::InvalidArgumentError(
        "Invalid entity type: experiments are searched by attributes and tags.");
  }
  if (subject == Subject::kModels && entity == Entity::kDataset) {
    return absl::InvalidArgumentError("Invalid entity type: models are not searched by data sets.");
  }
  if (entity == Entity::kDataset && key != "name" && key != "digest" && key != "context") {
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid dataset key '", key, "' specified. Valid keys are 'name', 'digest', 'context'"));
  }
  return absl::OkStatus();
}

// Reads one filter, token by token.
class FilterParser {
 public:
  FilterParser(std::vector<Token> tokens, Subject subject)
      : tokens_(std::move(tokens)), subject_(subject) {}

  absl::StatusOr<std::vector<Comparison>> Parse() {
    std::vector<Comparison> comparisons;
    if (AtEnd()) return comparisons;
    do {
      if (comparisons.size() == kMostComparisons) {
        return absl::InvalidArgumentError(
            absl::StrCat("Invalid filter: it has more than ", kMostComparisons, " comparisons."));
      }
      TUTTI_ASSIGN_OR_RETURN(Comparison comparison, ParseComparison());
      comparisons.push_back(std::move(comparison));
    } while (TakeWord("and"));
    if (!AtEnd()) return Unexpected("AND, or the end");
    return comparisons;
  }

  absl::StatusOr<Ordering> ParseOrder() {
    Ordering ordering;
    TUTTI_RETURN_IF_ERROR(ParseIdentifier(ordering.entity, ordering.key));
    ordering.ascending = !TakeWord("desc");
    if (ordering.ascending) TakeWord("asc");
    if (!AtEnd()) return Unexpected("ASC, DESC or the end");
    if (ordering.entity == Entity::kDataset) {
      return absl::InvalidArgumentError("Invalid order_by: data sets have no order.");
    }
    return ordering;
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  Token Take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool AtEnd() const { return Now().kind == Token::Kind::kEnd; }
  bool IsSign(absl::string_view sign) const {
    return Now().kind == Token::Kind::kSign && Now().text == sign;
  }
  bool IsWord(absl::string_view word) const {
    return Now().kind == Token::Kind::kWord && absl::EqualsIgnoreCase(Now().text, word);
  }
  bool TakeWord(absl::string_view word) {
    if (!IsWord(word)) return false;
    Take();
    return true;
  }
  bool TakeSign(absl::string_view sign) {
    if (!IsSign(sign)) return false;
    Take();
    return true;
  }
  absl::Status Unexpected(absl::string_view wanted) const {
    const std::string found = AtEnd() ? "it ends" : absl::StrCat("there is '", Now().text, "'");
    return absl::InvalidArgumentError(absl::StrCat("Invalid filter: at character ", Now().place + 1,
                                                   " ", found, ", where ", wanted,
                                                   " would have to be."));
  }

  // "metrics.loss", "params.`batch size`", "tags.mlflow.source.type", "start_time".
  absl::Status ParseIdentifier(Entity& entity, std::string& key) {
    if (Now().kind != Token::Kind::kWord && Now().kind != Token::Kind::kName) {
      return Unexpected("a key, as metrics.loss");
    }
    const Token first = Take();
    entity = Entity::kAttribute;
    key = first.text;
    if (TakeSign(".")) {
      const auto* const known =
          std::find_if(std::begin(kEntities), std::end(kEntities),
                       [&](const EntityName& name) { return name.name == first.text; });
      if (known == std::end(kEntities)) {
        return absl::InvalidArgumentError(
            absl::StrCat("Invalid entity type '", first.text,
                         "'. Valid values are 'metric', 'parameter', 'tag', 'attribute', "
                         "'dataset'"));
      }
      entity = known->entity;
      TUTTI_RETURN_IF_ERROR(ParseKey(key));
    }
    TUTTI_RETURN_IF_ERROR(CheckEntity(entity, key, subject_));
    if (entity == Entity::kAttribute) {
      TUTTI_ASSIGN_OR_RETURN(key, AttributeOf(key, subject_));
    }
    return absl::OkStatus();
  }

  absl::Status ParseKey(std::string& key) {
    if (Now().kind == Token::Kind::kSign || AtEnd()) return Unexpected("a key");
    const bool is_word = Now().kind == Token::Kind::kWord;
    key = Take().text;
    while (is_word && TakeSign(".")) {
      if (Now().kind != Token::Kind::kWord) return Unexpected("the rest of a key");
      absl::StrAppend(&key, ".", Take().text);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Comparison> ParseComparison() {
    Comparison comparison;
    TUTTI_RETURN_IF_ERROR(ParseIdentifier(comparison.entity, comparison.key));
    TUTTI_ASSIGN_OR_RETURN(comparison.op, ParseOperator());
    TUTTI_RETURN_IF_ERROR(CheckOperator(comparison));
    if (comparison.op == Operator::kIsNull || comparison.op == Operator::kIsNotNull) {
      return comparison;
    }
    if (IsOfNumbers(comparison)) {
      TUTTI_ASSIGN_OR_RETURN(comparison.number, ParseNumber());
    } else if (comparison.op == Operator::kIn || comparison.op == Operator::kNotIn) {
      TUTTI_RETURN_IF_ERROR(ParseList(comparison.texts));
    } else {
      TUTTI_ASSIGN_OR_RETURN(std::string text, ParseText());
      const bool is_pattern = comparison.op == Operator::kLike || comparison.op == Operator::kILike;
      if (is_pattern && text.size() > kMostPatternBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("Invalid filter: a pattern has more than ", kMostPatternBytes, " bytes."));
      }
      comparison.texts.push_back(std::move(text));
    }
    return comparison;
  }

  static bool IsOfNumbers(const Comparison& comparison) {
    return comparison.entity == Entity::kMetric ||
           (comparison.entity == Entity::kAttribute && IsNumber(comparison.key));
  }

  absl::StatusOr<Operator> ParseOperator() {
    static constexpr std::pair<absl::string_view, Operator> kSigns[] = {
        {"=", Operator::kEqual},   {"!=", Operator::kNotEqual},
        {"<", Operator::kLess},    {"<=", Operator::kLessOrEqual},
        {">", Operator::kGreater}, {">=", Operator::kGreaterOrEqual}};
    for (const auto& [sign, op] : kSigns) {
      if (TakeSign(sign)) return op;
    }
    if (TakeWord("like")) return Operator::kLike;
    if (TakeWord("ilike")) return Operator::kILike;
    if (TakeWord("in")) return Operator::kIn;
    if (TakeWord("not") && TakeWord("in")) return Operator::kNotIn;
    if (TakeWord("is")) {
      const bool is_not = TakeWord("not");
      if (TakeWord("null")) return is_not ? Operator::kIsNotNull : Operator::kIsNull;
    }
    return Unexpected("a comparison, as = or LIKE");
  }

  static absl::Status CheckOperator(const Comparison& comparison) {
    const bool is_order =
        comparison.op >= Operator::kLess && comparison.op <= Operator::kGreaterOrEqual;
    const bool is_equality =
        comparison.op == Operator::kEqual || comparison.op == Operator::kNotEqual;
    const bool is_null =
        comparison.op == Operator::kIsNull || comparison.op == Operator::kIsNotNull;
    const bool is_list = comparison.op == Operator::kIn || comparison.op == Operator::kNotIn;
    bool fits = false;
    if (IsOfNumbers(comparison)) {
      fits = is_order || is_equality;
    } else if (comparison.entity == Entity::kParam || comparison.entity == Entity::kTag) {
      fits = !is_order && !is_list;
    } else {
      fits = !is_order && !is_null;
    }
    const bool is_id = comparison.key == "run_id" || comparison.key == "model_id" ||
                       comparison.key == "source_run_id" || comparison.key == "name";
    if (fits && is_list && comparison.entity == Entity::kAttribute && !is_id) {
      return absl::InvalidArgumentError(
          "Only the 'run_id' attribute supports comparison with a list of quoted string values.");
    }
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid comparator for '", comparison.key,
        "': numbers are compared by =, !=, <, <=, > and >=, texts by =, !=, LIKE and ILIKE, params "
        "and tags also by IS NULL and IS NOT NULL, run_id and data sets also by IN and NOT IN"));
  }

  absl::StatusOr<double> ParseNumber() {
    double number = 0;
    if (Now().kind != Token::Kind::kWord || !absl::SimpleAtod(Now().text, &number)) {
      return Unexpected("a number without quotes");
    }
    Take();
    return number;
  }

  absl::StatusOr<std::string> ParseText() {
    if (Now().kind != Token::Kind::kQuoted) return Unexpected("a text in quotes");
    return Take().text;
  }

  absl::Status ParseList(std::vector<std::string>& texts) {
    if (!TakeSign("(")) return Unexpected("a list, as ('a', 'b'),");
    do {
      if (texts.size() == kMostOfList) {
        return absl::InvalidArgumentError(
            absl::StrCat("Invalid filter: a list has more than ", kMostOfList, " texts."));
      }
      TUTTI_ASSIGN_OR_RETURN(std::string text, ParseText());
      texts.push_back(std::move(text));
    } while (TakeSign(","));
    return TakeSign(")") ? absl::OkStatus() : Unexpected("a comma or the list's end");
  }

  const std::vector<Token> tokens_;
  const Subject subject_;
  size_t at_ = 0;
};

absl::Status CheckLength(absl::string_view text) {
  if (text.size() <= kMostFilterBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Invalid filter: it has more than ", kMostFilterBytes, " bytes."));
}

}  // namespace

bool IsNumber(absl::string_view attribute) {
  return attribute == "start_time" || attribute == "end_time" || attribute == "creation_time" ||
         attribute == "last_update_time" || attribute == "creation_timestamp" ||
         attribute == "last_updated_timestamp";
}

absl::StatusOr<std::vector<Comparison>> ParseFilter(absl::string_view filter, Subject subject) {
  TUTTI_RETURN_IF_ERROR(CheckLength(filter));
  TUTTI_ASSIGN_OR_RETURN(std::vector<Token> tokens, TokensOf(filter));
  return FilterParser(std::move(tokens), subject).Parse();
}

absl::StatusOr<Ordering> ParseOrdering(absl::string_view text, Subject subject) {
  TUTTI_RETURN_IF_ERROR(CheckLength(text));
  TUTTI_ASSIGN_OR_RETURN(std::vector<Token> tokens, TokensOf(text));
  return FilterParser(std::move(tokens), subject).ParseOrder();
}

}  // namespace tutti::tracking
