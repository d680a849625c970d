// Expands and checks the ${{inputs.x}} and ${{outputs.x}} of a command or an environment variable.
// Expanded on the node, which alone knows its paths; checked at submission. Pure functions, safe on
// hostile text.
//
// $[[--lr ${{inputs.lr}}]] is left out whole if an input in it has no value (inputs may be
// optional), and otherwise stands without its brackets. Brackets without an expression in them are
// the shell's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

struct ExpressionValues {
  std::map<std::string, std::string> inputs;   // name -> path or literal
  std::map<std::string, std::string> outputs;  // name -> path
  std::set<std::string> absent;                // optional inputs without a value
};

// Returns `text` with every expression replaced by its value, in one pass: what a value contains is
// not expanded again. InvalidArgument names the expression that is unknown (with the nearest name
// that exists), malformed, or of another kind of job (search_space, parent).
absl::StatusOr<std::string> ExpandExpressions(absl::string_view text,
                                              const ExpressionValues& values);

// Returns `text` with every expression for which `value` has one replaced by it; the others stay.
// `value` is asked with what stands between the braces: "parent.inputs.x".
std::string ReplaceExpressions(
    absl::string_view text,
    const std::function<std::optional<std::string>(absl::string_view body)>& value);

// Returns the same for every text of a tree; one that has changed is no longer taken for quoted.
std::shared_ptr<const YamlNode> ReplaceExpressions(
    const std::shared_ptr<const YamlNode>& tree,
    const std::function<std::optional<std::string>(absl::string_view body)>& value);

// Returns what stands between the braces of a text that is one expression and nothing else;
// otherwise "".
std::string WholeExpression(absl::string_view text);

// Says what is wrong with one expression of a text, and where it begins in it, in bytes.
struct ExpressionError {
  size_t offset = 0;
  std::string expression;  // as written
  std::string message;
};

// Returns what looks as if it were meant for an expression that names an input or output of the
// job: ${inputs.x}, {{inputs.x}}.
std::vector<ExpressionError> NearExpressions(absl::string_view text,
                                             const std::map<std::string, Input>& inputs,
                                             const std::map<std::string, Output>& outputs);

// Returns every expression of `text` that names no input or output of the job, or an input without
// a value where nothing says what then to do.
std::vector<ExpressionError> CheckExpressions(absl::string_view text,
                                              const std::map<std::string, Input>& inputs,
                                              const std::map<std::string, Output>& outputs);

}  // namespace tutti::spec
