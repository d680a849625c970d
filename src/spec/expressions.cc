#include "spec/expressions.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/closest.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kOpen = "${{";
constexpr absl::string_view kClose = "}}";
constexpr size_t kMostErrors = 20;

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

template <typename Value>
std::string UnknownName(absl::string_view kind, absl::string_view name,
                        const std::map<std::string, Value>& known) {
  std::vector<absl::string_view> names;
  for (const auto& [key, value] : known) names.push_back(key);
  return absl::StrCat("the job has no ", kind, " \"", name.substr(0, 80), "\"",
                      base::DidYouMean(name.substr(0, 80), names));
}

// Calls `found` with what the expression names; returns what is wrong, or "".
template <typename InputMap, typename OutputMap, typename Found>
std::string Resolve(const Expression& expression, const InputMap& inputs, const OutputMap& outputs,
                    const Found& found) {
  if (!expression.closed) return "has no closing }}";
  absl::string_view rest = expression.body;
  const absl::string_view root = rest.substr(0, rest.find('.'));
  if (root == "search_space") return "belongs to sweep jobs; this is a command job";
  if (root == "parent") return "belongs to pipeline jobs; this is a command job";
  const bool is_input = root == "inputs";
  if ((!is_input && root != "outputs") || rest.size() <= root.size() + 1) {
    return "is not understood; write ${{inputs.NAME}} or ${{outputs.NAME}}";
  }
  const std::string name(rest.substr(root.size() + 1));
  if (is_input) {
    const auto entry = inputs.find(name);
    return entry == inputs.end() ? UnknownName("input", name, inputs) : found(entry->second);
  }
  const auto entry = outputs.find(name);
  return entry == outputs.end() ? UnknownName("output", name, outputs) : found(entry->second);
}

std::string Message(const Expression& expression, absl::string_view error) {
  return absl::StrCat(expression.written.substr(0, 120), ": ", error);
}

}  // namespace

absl::StatusOr<std::string> ExpandExpressions(absl::string_view text,
                                              const ExpressionValues& values) {
  std::string expanded;
  size_t done = 0;
  Expression expression;
  while (Next(text, done, expression)) {
    absl::StrAppend(&expanded, text.substr(done, expression.offset - done));
    const std::string error =
        Resolve(expression, values.inputs, values.outputs, [&](const std::string& value) {
          expanded += value;
          return "";
        });
    if (!error.empty()) return absl::InvalidArgumentError(Message(expression, error));
    done = expression.offset + expression.written.size();
  }
  absl::StrAppend(&expanded, text.substr(done));
  return expanded;
}

std::vector<ExpressionError> CheckExpressions(absl::string_view text,
                                              const std::map<std::string, Input>& inputs,
                                              const std::map<std::string, Output>& outputs) {
  std::vector<ExpressionError> errors;
  size_t done = 0;
  Expression expression;
  while (errors.size() < kMostErrors && Next(text, done, expression)) {
    const std::string error =
        Resolve(expression, inputs, outputs, [](const auto&) { return std::string(); });
    if (!error.empty()) {
      errors.push_back({expression.offset, std::string(expression.written.substr(0, 120)),
                        Message(expression, error)});
    }
    done = expression.offset + expression.written.size();
  }
  return errors;
}

}  // namespace tutti::spec
