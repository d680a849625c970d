#include "spec/environment/docker_stages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr size_t kLongestText = 100'000;  // of a text in which variables have been replaced

// The words behind "<<" and "<<-" that end here-documents: "<<EOF", "<<-'EOF'".
std::vector<std::string> HereDocuments(absl::string_view rest) {
  std::vector<std::string> ends;
  for (size_t at = rest.find("<<"); at != absl::string_view::npos; at = rest.find("<<", at + 2)) {
    absl::string_view word = rest.substr(at + 2);
    absl::ConsumePrefix(&word, "-");
    if (!absl::ConsumePrefix(&word, "\"")) absl::ConsumePrefix(&word, "'");
    size_t end = 0;
    while (end < word.size() && (absl::ascii_isalnum(word[end]) || word[end] == '_')) ++end;
    if (end > 0 && !absl::ascii_isdigit(word[0])) ends.emplace_back(word.substr(0, end));
  }
  return ends;
}

// Cuts a text into instructions.
class InstructionReader {
 public:
  std::vector<DockerInstruction> Read(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number_;
      if (here_documents_.empty()) {
        ReadLine(absl::StripAsciiWhitespace(line));
      } else {
        ReadHereDocument(absl::StripAsciiWhitespace(line));
      }
    }
    here_documents_.clear();
    if (!joined_.empty()) End();
    return std::move(instructions_);
  }

 private:
  void ReadLine(absl::string_view line) {
    if (joined_.empty() && instructions_.empty()) ReadDirective(line);
    if (line.empty() || line[0] == '#') return;  // also within a continued instruction
    if (joined_.empty()) first_ = number_;
    const bool continues = absl::ConsumeSuffix(&line, escape_);
    absl::StrAppend(&joined_, line, " ");
    if (!continues) End();
  }

  // "# escape=`".
  void ReadDirective(absl::string_view line) {
    if (!absl::ConsumePrefix(&line, "#")) return;
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "escape=") && line == "`") escape_ = "`";
  }

  void End() {
    const size_t end = std::min(joined_.find_first_of(" \t"), joined_.size());
    DockerInstruction instruction;
    instruction.word = absl::AsciiStrToUpper(joined_.substr(0, end));
    instruction.rest = std::string(absl::StripAsciiWhitespace(joined_.substr(end)));
    instruction.line = first_;
    joined_.clear();
    const bool may_have =
        instruction.word == "RUN" || instruction.word == "COPY" || instruction.word == "ADD";
    if (may_have) here_documents_ = HereDocuments(instruction.rest);
    std::reverse(here_documents_.begin(), here_documents_.end());
    instructions_.push_back(std::move(instruction));
  }

  // A RUN has commands in it, and a COPY has a file.
  void ReadHereDocument(absl::string_view line) {
    if (line == here_documents_.back()) {
      here_documents_.pop_back();
    } else if (instructions_.back().word == "RUN" && !absl::StartsWith(line, "#")) {
      absl::StrAppend(&instructions_.back().rest, " ; ", line);
    }
  }

  std::vector<DockerInstruction> instructions_;
  std::string joined_;
  std::string escape_ = "\\";
  std::vector<std::string> here_documents_;  // that are open, the next to end last
  int number_ = 0, first_ = 1;
};

// FROM [--platform=P] IMAGE [AS NAME].
DockerStage StageOf(const DockerInstruction& from, const DockerStages& before) {
  DockerStage stage;
  stage.line = from.line;
  ShellWords words =
      absl::StrSplit(WithVariables(from.rest, before.arguments), ' ', absl::SkipEmpty());
  std::erase_if(words, [](const std::string& word) { return absl::StartsWith(word, "--"); });
  if (words.size() == 3 && absl::EqualsIgnoreCase(words[1], "as")) {
    stage.name = absl::AsciiStrToLower(words[2]);
  }
  if (words.empty()) return stage;
  const std::string name = absl::AsciiStrToLower(words[0]);
  for (size_t i = before.stages.size(); i > 0 && !stage.base; --i) {
    if (before.stages[i - 1].name == name) stage.base = i - 1;
  }
  if (!stage.base) stage.image = words[0];
  return stage;
}

// "A=1 B=2" of an ARG before the first FROM.
void ReadArguments(absl::string_view rest, std::map<std::string, std::string>& arguments) {
  for (const ShellWords& words : CommandsOf(rest, "")) {
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) continue;
      arguments[word.substr(0, equals)] = WithVariables(word.substr(equals + 1), arguments);
    }
  }
}

}  // namespace

std::vector<size_t> DockerStages::ChainOf(size_t last) const {
  std::vector<size_t> chain = {last};
  while (stages[chain.back()].base) chain.push_back(*stages[chain.back()].base);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::optional<size_t> DockerStages::Find(absl::string_view from, size_t before) const {
  size_t number = 0;
  if (absl::SimpleAtoi(from, &number)) {
    return number < before ? std::optional<size_t>(number) : std::nullopt;
  }
  const std::string name = absl::AsciiStrToLower(from);
  for (size_t i = before; i > 0; --i) {
    if (stages[i - 1].name == name) return i - 1;
  }
  return std::nullopt;
}

DockerStages ReadDockerStages(absl::string_view text) {
  DockerStages read;
  for (DockerInstruction& instruction : InstructionReader().Read(text)) {
    if (instruction.word == "FROM") {
      read.stages.push_back(StageOf(instruction, read));
    } else if (!read.stages.empty()) {
      read.stages.back().instructions.push_back(std::move(instruction));
    } else if (instruction.word == "ARG") {
      ReadArguments(instruction.rest, read.arguments);
    }
  }
  return read;
}

std::string WithVariables(absl::string_view text,
                          const std::map<std::string, std::string>& variables) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 >= text.size() || result.size() > kLongestText) {
      result += text[i];
      continue;
    }
    const bool braces = text[i + 1] == '{';
    const size_t begin = i + (braces ? 2 : 1);
    size_t end = begin;
    while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_')) ++end;
    const auto found = variables.find(std::string(text.substr(begin, end - begin)));
    absl::string_view standard;
    bool has_standard = false;
    if (braces && absl::StartsWith(text.substr(end), ":-")) {
      const size_t close = std::min(text.find('}', end), text.size());
      standard = text.substr(end + 2, close - end - 2);
      has_standard = true;
      end = close;
    }
    const bool closed = !braces || (end < text.size() && text[end] == '}');
    if (!closed || (found == variables.end() && !has_standard)) {
      result += text[i];
      continue;
    }
    absl::StrAppend(&result, found == variables.end() ? standard : found->second);
    i = braces ? end : end - 1;
  }
  return result;
}

std::vector<ShellWords> CommandsOf(absl::string_view line, absl::string_view separators) {
  std::vector<ShellWords> commands(1);
  std::string word;
  bool in_word = false;
  char quote = 0;
  const auto end_word = [&] {
    if (in_word) commands.back().push_back(word);
    word.clear();
    in_word = false;
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (absl::StrContains(separators, c)) {
      end_word();
      if (!commands.back().empty()) commands.emplace_back();
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      end_word();
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  if (commands.back().empty()) commands.pop_back();
  return commands;
}

ShellWords WordsOf(absl::string_view rest) {
  if (absl::StartsWith(rest, "[")) {
    const auto list = nlohmann::json::parse(rest, nullptr, /*allow_exceptions=*/false);
    const bool is_texts =
        list.is_array() &&
        std::all_of(list.begin(), list.end(), [](const auto& word) { return word.is_string(); });
    if (is_texts) return list.get<ShellWords>();
  }
  const std::vector<ShellWords> commands = CommandsOf(rest, "");
  return commands.empty() ? ShellWords() : commands[0];
}

}  // namespace tutti::spec
