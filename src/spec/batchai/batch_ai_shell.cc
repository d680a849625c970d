#include "spec/batchai/batch_ai_shell.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tutti::spec {
namespace {

// As one word, in single quotes.
std::string InSingleQuotes(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// As one word in which variables of Batch AI expand, and nothing else does.
std::string InDoubleQuotes(absl::string_view value) {
  std::string quoted = "\"";
  for (size_t i = 0; i < value.size(); ++i) {
    const absl::string_view rest = value.substr(i);
    const bool expands = absl::StartsWith(rest, "$AZ_BATCH") ||
                         absl::StartsWith(rest, "${AZ_BATCH") || absl::StartsWith(rest, "${{");
    if (value[i] == '\\' || value[i] == '"' || value[i] == '`' || (value[i] == '$' && !expands)) {
      quoted += '\\';
    }
    quoted += value[i];
  }
  return quoted + "\"";
}

bool HasVariableOfBatchAi(absl::string_view text) {
  return absl::StrContains(text, "$AZ_BATCH") || absl::StrContains(text, "${AZ_BATCH");
}

}  // namespace

bool NeedsAShell(absl::string_view value) {
  return HasVariableOfBatchAi(value) || absl::StrContains(value, '\n');
}

std::string Exported(absl::string_view name, absl::string_view value) {
  return absl::StrCat("export ", name, "=",
                      HasVariableOfBatchAi(value) ? InDoubleQuotes(value) : InSingleQuotes(value),
                      "\n");
}

std::string Prepared(absl::string_view preparation, absl::string_view command, bool in_image) {
  return absl::StrCat(in_image ? "# Batch AI's jobPreparation: in each process's container.\n"
                               : "# Batch AI's jobPreparation: once on each node.\n",
                      "prepare() {\n\"${BASH:-sh}\" -c ", InSingleQuotes(preparation),
                      "\n}\n"
                      "if [ \"${LOCAL_RANK:-0}\" = 0 ]; then\n"
                      "  prepare || exit\n"
                      "  : >\"$AZ_BATCHAI_JOB_TEMP/.prepared\"\n"
                      "else\n"
                      "  until [ -e \"$AZ_BATCHAI_JOB_TEMP/.prepared\" ]; do sleep 0.2; done\n",
                      in_image ? "  prepare || exit\n" : "", "fi\n", command);
}

}  // namespace tutti::spec
