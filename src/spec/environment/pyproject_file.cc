// ReadPyproject of package_files.h.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/environment/package_files.h"

namespace tutti::spec {
namespace {

// Reads `dependencies` and `requires-python` of the table [project]: what a list of plain strings
// takes of TOML, and no more of it.
class PyprojectReader {
 public:
  PyprojectReader(const NamedFile& file, const ReadContext& context, Environment& environment,
                  Diagnostics& diagnostics)
      : file_(file), context_(context), environment_(environment), diagnostics_(diagnostics) {}

  void Read(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number_;
      line = absl::StripAsciiWhitespace(line);
      if (in_list_) {
        ReadItems(line);
      } else if (absl::StartsWith(line, "[")) {
        in_project_ = absl::StartsWith(line, "[project]");
        has_project_ |= in_project_;
      } else if (in_project_) {
        ReadKey(line);
      }
    }
    if (!has_project_) diagnostics_.Error(1, "has no table [project]");
    if (in_list_) diagnostics_.Error(number_, "dependencies has no closing ]");
  }

 private:
  void ReadKey(absl::string_view line) {
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) return;
    const absl::string_view key = absl::StripAsciiWhitespace(line.substr(0, equals));
    absl::string_view value = absl::StripAsciiWhitespace(line.substr(equals + 1));
    if (key == "requires-python") {
      std::string text;
      if (TakeString(value, text)) {
        environment_.python = text;
        environment_.python_place = absl::StrCat(file_.shown, ":", number_);
      }
    } else if (key == "dependencies" && absl::ConsumePrefix(&value, "[")) {
      in_list_ = true;
      ReadItems(value);
    }
  }

  // Strings with commas between, up to "]", a comment or the line's end.
  void ReadItems(absl::string_view rest) {
    std::string text;
    while (in_list_) {
      rest = absl::StripLeadingAsciiWhitespace(rest);
      if (rest.empty() || rest[0] == '#') return;
      if (absl::ConsumePrefix(&rest, ",")) continue;
      if (absl::ConsumePrefix(&rest, "]")) {
        in_list_ = false;
      } else if (TakeString(rest, text)) {
        ReadPipLine(text, number_, file_, context_, environment_, diagnostics_);
      } else {
        diagnostics_.Error(number_, "dependencies must be a list of strings");
        in_list_ = false;
      }
    }
  }

  // A basic or literal string at the beginning of `rest`, which then begins behind it.
  static bool TakeString(absl::string_view& rest, std::string& text) {
    if (rest.empty() || (rest[0] != '"' && rest[0] != '\'')) return false;
    const char quote = rest[0];
    text.clear();
    for (size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == quote) {
        rest.remove_prefix(i + 1);
        return true;
      }
      if (quote == '"' && rest[i] == '\\' && i + 1 < rest.size()) ++i;
      text += rest[i];
    }
    return false;
  }

  const NamedFile& file_;
  const ReadContext& context_;
  Environment& environment_;
  Diagnostics& diagnostics_;
  int number_ = 0;
  bool in_project_ = false, has_project_ = false, in_list_ = false;
};

}  // namespace

void ReadPyproject(absl::string_view text, const NamedFile& file, const ReadContext& context,
                   Environment& environment, Diagnostics& diagnostics) {
  PyprojectReader(file, context, environment, diagnostics).Read(text);
}

}  // namespace tutti::spec
