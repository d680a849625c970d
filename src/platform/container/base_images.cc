#include "platform/container/base_images.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::container {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kLongestName = 1024;  // beyond which no replacement goes

bool IsOfName(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Reader {
 public:
  void ReadInstruction(absl::string_view text, int line) {
    const Words words = absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    const std::string name = words.empty() ? "" : absl::AsciiStrToUpper(words[0]);
    if (name == "FROM") {
      ReadFrom(words, line);
    } else if (name == "ARG" && stages_ == 0) {  // those of a stage do not hold for FROM
      ReadArguments(words);
    } else if (name == "COPY") {
      ReadCopy(words, line);
    }
  }

  std::vector<BaseImage> images;

 private:
  void ReadFrom(const Words& words, int line) {
    const auto image = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
      return !absl::StartsWith(word, "--");
    });
    if (image == words.end()) return;
    Add(WithArguments(*image), line);
    names_.insert(absl::StrCat(stages_++));
    if (words.end() - image >= 3 && absl::EqualsIgnoreCase(image[1], "as")) {
      names_.insert(absl::AsciiStrToLower(image[2]));
    }
  }

  void ReadArguments(const Words& words) {
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) continue;
      absl::string_view value = absl::string_view(words[i]).substr(equals + 1);
      for (const char* quote : {"\"", "'"}) {
        if (absl::ConsumePrefix(&value, quote)) absl::ConsumeSuffix(&value, quote);
      }
      arguments_[words[i].substr(0, equals)] = WithArguments(value);
    }
  }

  void ReadCopy(const Words& words, int line) {
    for (size_t i = 1; i < words.size() && absl::StartsWith(words[i], "--"); ++i) {
      absl::string_view from = words[i];
      if (absl::ConsumePrefix(&from, "--from=")) Add(std::string(from), line);
    }
  }

  void Add(const std::string& reference, int line) {
    const bool is_own = reference == "scratch" || names_.contains(absl::AsciiStrToLower(reference));
    const bool is_known = std::any_of(images.begin(), images.end(), [&](const BaseImage& image) {
      return image.reference == reference;
    });
    if (reference.empty() || is_own || is_known || absl::StrContains(reference, '$')) return;
    images.push_back({reference, line});
  }

  // $A, ${A} and ${A:-default}; what is not known keeps its "$".
  std::string WithArguments(absl::string_view text) const {
    std::string result;
    while (!text.empty() && result.size() < kLongestName) {
      if (text[0] != '$') {
        result += text[0];
        text.remove_prefix(1);
        continue;
      }
      text.remove_prefix(1);
      const bool braces = absl::ConsumePrefix(&text, "{");
      const size_t end = std::find_if_not(text.begin(), text.end(), IsOfName) - text.begin();
      const auto found = arguments_.find(text.substr(0, end));
      text.remove_prefix(end);
      absl::string_view instead;
      if (braces) {
        const size_t close = std::min(text.find('}'), text.size());
        if (instead = text.substr(0, close); !absl::ConsumePrefix(&instead, ":-")) instead = "";
        text.remove_prefix(std::min(close + 1, text.size()));
      }
      const bool is_known = found != arguments_.end() || !instead.empty();
      absl::StrAppend(&result, !is_known                   ? "$"
                               : found == arguments_.end() ? instead
                                                           : found->second);
    }
    return result;
  }

  int stages_ = 0;
  std::set<std::string> names_;  // of the stages, in lower case, and their numbers
  std::map<std::string, std::string, std::less<>> arguments_;
};

}  // namespace

std::vector<BaseImage> BaseImagesOf(absl::string_view dockerfile) {
  Reader reader;
  std::string joined;
  int number = 0, first = 1;
  for (absl::string_view line : absl::StrSplit(dockerfile, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;  // also within a continued instruction
    if (joined.empty()) first = number;
    const bool continues = absl::ConsumeSuffix(&line, "\\");
    absl::StrAppend(&joined, line, " ");
    if (continues) continue;
    reader.ReadInstruction(joined, first);
    joined.clear();
  }
  if (!joined.empty()) reader.ReadInstruction(joined, first);
  return std::move(reader.images);
}

}  // namespace tutti::container
