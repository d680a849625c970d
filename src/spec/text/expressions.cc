#include "spec/text/expressions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/closest.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kOpen = "${{";
constexpr absl::string_view kClose = "}}";
constexpr absl::string_view kOptionalOpen = "$[[";
constexpr absl::string_view kOptionalClose = "]]";
constexpr size_t kMostExpressionErrors = 20;

// One ${{…}} of a text: `written` includes the braces, `body` does not and is trimmed.
struct Expression {
  size_t offset;
  absl::string_view written;
  absl::string_view body;
  bool closed;
};

// The next expression at or after `from`; false when there is none.
bool Next(absl::string_view text, size_t from, Expression& found) {
  const size_t begin = text.find(kOpen, from);
  if (begin == absl::string_view::npos) return false;
  const size_t end = text.find(kClose, begin + kOpen.size());
  const size_t line_end = std::min(text.find('\n', begin), text.size());
  found.offset = begin;
  found.closed = end != absl::string_view::npos;
  if (found.closed) {
    found.written = text.substr(begin, end + kClose.size() - begin);
    found.body = absl::StripAsciiWhitespace(text.substr(begin + kOpen.size(), end - begin - 3));
  } else {
    found.written = text.substr(begin, std::min<size_t>(line_end - begin, 40));
    found.body = {};
  }
  return true;
}

// A $[[…]] with an expression in it.
struct OptionalPart {
  size_t begin;  // of the brackets
  size_t end;    // behind them
  absl::string_view body;
};

// The next one at or after `from`; false when there is none.
bool NextOptional(absl::string_view text, size_t from, OptionalPart& found) {
  for (size_t begin = text.find(kOptionalOpen, from); begin != absl::string_view::npos;
       begin = text.find(kOptionalOpen, begin + 1)) {
    const size_t inner = begin + kOptionalOpen.size();
    const size_t end = text.find(kOptionalClose, inner);
    if (end == absl::string_view::npos) return false;
    found = {begin, end + kOptionalClose.size(), text.substr(inner, end - inner)};
    if (absl::StrContains(found.body, kOpen)) return true;
  }
  return false;
}

template <typename Value>
std::string UnknownName(absl::string_view kind, absl::string_view name,
                        const std::map<std::string, Value>& known) {
  std::vector<absl::string_view> names;
  for (const auto& [key, value] : known) names.push_back(key);
  return absl::StrCat("the job has no ", kind, " \"", name.substr(0, 80), "\"",
                      base::DidYouMean(name.substr(0, 80), names));
}

// "inputs.x" -> {"inputs", "x"}; an empty name where it is neither an input nor an output.
std::pair<absl::string_view, std::string> Named(absl::string_view body) {
  const absl::string_view root = body.substr(0, body.find('.'));
  if ((root != "inputs" && root != "outputs") || body.size() <= root.size() + 1) return {root, ""};
  return {root, std::string(body.substr(root.size() + 1))};
}

// Calls `found` with what the expression names; returns what is wrong, or "".
template <typename InputMap, typename OutputMap, typename Found>
std::string Resolve(const Expression& expression, const InputMap& inputs, const OutputMap& outputs,
                    const Found& found) {
  if (!expression.closed) return "has no closing }}";
  const auto& [root, name] = Named(expression.body);
  if (root == "search_space") {
    return "belongs to sweep jobs, and names a parameter of their search_space";
  }
  if (root == "parent") {
    return "belongs to pipeline jobs, in a step's inputs or outputs; a command takes "
           "${{inputs.NAME}}";
  }
  if (name.empty()) return "is not understood; write ${{inputs.NAME}} or ${{outputs.NAME}}";
  if (root == "inputs") {
    const auto entry = inputs.find(name);
    return entry == inputs.end() ? UnknownName("input", name, inputs) : found(entry->second);
  }
  const auto entry = outputs.find(name);
  return entry == outputs.end() ? UnknownName("output", name, outputs) : found(entry->second);
}

std::string Message(const Expression& expression, absl::string_view error) {
  return absl::StrCat(expression.written.substr(0, 120), ": ", error);
}

std::string NoValue(absl::string_view name) {
  return absl::StrCat("input \"", name,
                      "\" is optional and has no value: give it a default, or write $[[…]] around "
                      "what depends on it");
}

// Whether an expression of `text` names an input without a value.
bool NamesAbsent(absl::string_view text, const std::set<std::string>& absent) {
  Expression expression;
  for (size_t at = 0; Next(text, at, expression);
       at = expression.offset + expression.written.size()) {
    const auto& [root, name] = Named(expression.body);
    if (root == "inputs" && absent.contains(name)) return true;
  }
  return false;
}

// `text`, which has no $[[…]] left, with its expressions replaced.
absl::Status ExpandPlain(absl::string_view text, const ExpressionValues& values,
                         std::string& expanded) {
  size_t done = 0;
  Expression expression;
  while (Next(text, done, expression)) {
    absl::StrAppend(&expanded, text.substr(done, expression.offset - done));
    std::string error =
        Resolve(expression, values.inputs, values.outputs, [&](const std::string& value) {
          expanded += value;
          return "";
        });
    if (const auto& [root, name] = Named(expression.body);
        root == "inputs" && values.absent.contains(name)) {
      error = NoValue(name);
    }
    if (!error.empty()) return absl::InvalidArgumentError(Message(expression, error));
    done = expression.offset + expression.written.size();
  }
  absl::StrAppend(&expanded, text.substr(done));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ExpandExpressions(absl::string_view text,
                                              const ExpressionValues& values) {
  std::string expanded;
  size_t done = 0;
  OptionalPart part;
  while (NextOptional(text, done, part)) {
    TUTTI_RETURN_IF_ERROR(ExpandPlain(text.substr(done, part.begin - done), values, expanded));
    if (!NamesAbsent(part.body, values.absent)) {
      TUTTI_RETURN_IF_ERROR(ExpandPlain(part.body, values, expanded));
    }
    done = part.end;
  }
  TUTTI_RETURN_IF_ERROR(ExpandPlain(text.substr(done), values, expanded));
  return expanded;
}

std::string ReplaceExpressions(
    absl::string_view text,
    const std::function<std::optional<std::string>(absl::string_view body)>& value) {
  std::string replaced;
  size_t done = 0;
  Expression expression;
  while (Next(text, done, expression)) {
    absl::StrAppend(&replaced, text.substr(done, expression.offset - done));
    const auto known = expression.closed ? value(expression.body) : std::nullopt;
    absl::StrAppend(&replaced, known ? absl::string_view(*known) : expression.written);
    done = expression.offset + expression.written.size();
  }
  absl::StrAppend(&replaced, text.substr(done));
  return replaced;
}

std::shared_ptr<const YamlNode> ReplaceExpressions(
    const std::shared_ptr<const YamlNode>& tree,
    const std::function<std::optional<std::string>(absl::string_view body)>& value) {
  auto copy = std::make_shared<YamlNode>(*tree);
  if (absl::StrContains(tree->scalar, "${{")) {
    copy->scalar = ReplaceExpressions(tree->scalar, value);
    copy->quoted = tree->quoted && copy->scalar == tree->scalar;
  }
  for (auto& item : copy->items) item = ReplaceExpressions(item, value);
  for (YamlNode::Entry& entry : copy->entries) entry.value = ReplaceExpressions(entry.value, value);
  return copy;
}

std::string WholeExpression(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  Expression expression;
  if (!Next(text, 0, expression) || !expression.closed) return "";
  return expression.written.size() == text.size() ? std::string(expression.body) : "";
}

std::vector<ExpressionError> NearExpressions(absl::string_view text,
                                             const std::map<std::string, Input>& inputs,
                                             const std::map<std::string, Output>& outputs) {
  std::vector<ExpressionError> found;
  size_t last = absl::string_view::npos;  // brace that opened
  for (size_t close = 0; close < text.size() && found.size() < kMostExpressionErrors; ++close) {
    if (text[close] == '{') last = close;
    if (text[close] != '}' || last == absl::string_view::npos) continue;
    const size_t open = std::exchange(last, absl::string_view::npos);
    const std::string body(absl::StripAsciiWhitespace(text.substr(open + 1, close - open - 1)));
    const auto& [root, name] = Named(body);
    const bool known = (root == "inputs" && inputs.contains(std::string(name))) ||
                       (root == "outputs" && outputs.contains(std::string(name)));
    const bool two =
        open > 0 && text[open - 1] == '{' && absl::StartsWith(text.substr(close), "}}");
    const size_t begin = two ? open - 1 : open;
    const bool has_dollar = begin > 0 && text[begin - 1] == '$';
    if (!known || two == has_dollar) continue;
    const size_t from = has_dollar ? begin - 1 : begin;
    const std::string written(text.substr(from, close + (two ? 2 : 1) - from));
    found.push_back({from, written,
                     absl::StrCat("\"", written,
                                  "\" is no expression, the shell gets it as it is; did you mean "
                                  "\"${{",
                                  body, "}}\"?")});
  }
  return found;
}

std::vector<ExpressionError> CheckExpressions(absl::string_view text,
                                              const std::map<std::string, Input>& inputs,
                                              const std::map<std::string, Output>& outputs) {
  std::vector<ExpressionError> errors;
  size_t done = 0;
  Expression expression;
  OptionalPart part{0, 0, {}};
  bool more = NextOptional(text, 0, part);
  while (errors.size() < kMostExpressionErrors && Next(text, done, expression)) {
    while (more && part.end <= expression.offset) more = NextOptional(text, part.end, part);
    const bool may_be_absent = more && part.begin < expression.offset;
    std::string error =
        Resolve(expression, inputs, outputs, [](const auto&) { return std::string(); });
    const auto& [root, name] = Named(expression.body);
    if (root == "inputs" && error.empty() && inputs.at(name).absent && !may_be_absent) {
      error = NoValue(name);
    }
    if (!error.empty()) {
      errors.push_back({expression.offset, std::string(expression.written.substr(0, 120)),
                        Message(expression, error)});
    }
    done = expression.offset + expression.written.size();
  }
  return errors;
}

}  // namespace tutti::spec
