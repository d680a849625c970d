// ReadDockerfile of package_files.h.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/package_files.h"

namespace tutti::spec {
namespace {

using Words = std::vector<std::string>;

// The words of a shell command line; quotes are taken off. A list of commands is cut at each of
// `separators`: "&&", "||", ";" and "|".
std::vector<Words> CommandsOf(absl::string_view line, absl::string_view separators = ";&|") {
  std::vector<Words> commands(1);
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

// Not the shell's own words, nor those that only tidy up.
bool LooksLikeProgram(absl::string_view word) {
  static constexpr std::array<absl::string_view, 16> kHarmless = {
      "rm",   "echo", "mkdir", "cd",   "set",  "true", "export", "if",
      "then", "else", "fi",    "case", "esac", "for",  "do",     "done"};
  return !word.empty() && std::find(kHarmless.begin(), kHarmless.end(), word) == kHarmless.end() &&
         absl::ascii_isalpha(static_cast<unsigned char>(word[0])) &&
         word.find_first_of("=()[]{}$*") == absl::string_view::npos;
}

std::string BaseName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

template <typename Names>
bool IsOneOf(absl::string_view word, const Names& names) {
  return std::find(std::begin(names), std::end(names), word) != std::end(names);
}

// The program by which a command installs packages of the system, or "".
std::string SystemInstaller(const Words& command) {
  static constexpr absl::string_view kPrograms[] = {"apt", "apt-get",  "aptitude", "apk", "dnf",
                                                    "yum", "microdnf", "zypper",   "dpkg"};
  static constexpr absl::string_view kInstalls[] = {"install",      "add", "in",       "build-dep",
                                                    "groupinstall", "-i",  "--install"};
  if (command[0] == "echo") return "";
  const auto program =  // behind A=1, sudo or then
      std::find_if(command.begin(), command.end(),
                   [](const std::string& word) { return IsOneOf(BaseName(word), kPrograms); });
  const bool installs = std::any_of(
      program, command.end(), [](const std::string& word) { return IsOneOf(word, kInstalls); });
  return installs ? BaseName(*program) : "";
}

class DockerfileReader {
 public:
  DockerfileReader(const NamedFile& file, const ReadContext& context, Environment& environment,
                   Diagnostics& diagnostics)
      : file_(file), context_(context), environment_(environment), diagnostics_(diagnostics) {}

  Dockerfile Read(absl::string_view text) {
    int number = 0, first = 1;
    std::string joined;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line);
      if (line.empty() || line[0] == '#') continue;  // also within a continued instruction
      if (joined.empty()) first = number;
      const bool continues = absl::ConsumeSuffix(&line, "\\");
      absl::StrAppend(&joined, line, " ");
      if (continues) continue;
      ReadInstruction(joined, first);
      joined.clear();
    }
    if (!joined.empty()) ReadInstruction(joined, first);
    SetVariables();
    WarnOfTheRest();
    return std::move(found_);
  }

 private:
  void ReadInstruction(absl::string_view line, int number) {
    const size_t end = line.find(' ');
    const std::string word = absl::AsciiStrToUpper(line.substr(0, end));
    const absl::string_view written = line.substr(std::min(end, line.size()));
    const std::string rest = WithVariables(written);
    if (word == "FROM") {
      const Words words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
      for (const std::string& name : words) {
        if (absl::StartsWith(name, "--")) continue;
        found_.image = name;
        break;
      }
      set_.clear();  // those of an earlier stage are not the image's
    } else if (word == "ARG" || word == "ENV") {
      ReadVariables(written, word == "ENV" ? number : 0);
    } else if (word == "COPY" || word == "ADD") {
      ReadCopy(rest, number);
    } else if (word == "RUN") {
      ReadRun(rest, number);
    }  // the others do not change what is installed
  }

  // ARG A=1, ENV A=1 B=2, ENV A 1. `number`: the line of an ENV; 0: of an ARG.
  void ReadVariables(absl::string_view written, int number) {
    std::vector<Words> commands = CommandsOf(written, "");
    if (commands.empty()) return;
    Words& words = commands[0];
    for (std::string& word : words) word = WithVariables(word);  // of earlier instructions
    if (words.size() >= 2 && !absl::StrContains(words[0], '=')) {
      Define(words[0], absl::StrJoin(words.begin() + 1, words.end(), " "), number);
      return;
    }
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) {
        Define(word.substr(0, equals), word.substr(equals + 1), number);
      }
    }
  }

  void Define(const std::string& name, const std::string& value, int number) {
    variables_[name] = value;
    if (number > 0) set_[name] = {value, number};
  }

  void SetVariables() {
    for (const auto& [name, set] : set_) {
      const std::string what = absl::StrCat("ENV ", name.substr(0, 80));
      if (absl::StrContains(set.value, '$')) {
        diagnostics_.Warning(set.line,
                             absl::StrCat(what, " is not set: what \"", set.value.substr(0, 80),
                                          "\" stands for is known in its image only; if "
                                          "the job needs it, write it in "
                                          "environment_variables"));
        continue;
      }
      SetVariable(what, name, set.value, set.line, environment_, diagnostics_);
    }
  }

  // What the job will not find. A warning, for most jobs need none of it.
  void WarnOfTheRest() {
    for (const auto& [path, number] : put_) {
      diagnostics_.Warning(number, absl::StrCat("COPY ", path.substr(0, 80),
                                                " is not done: what the job needs of it belongs in "
                                                "its code"));
    }
  }

  // $A and ${A} of those that are known; the shell's own are left.
  std::string WithVariables(absl::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '$' || i + 1 >= text.size() || result.size() > 100'000) {
        result += text[i];
        continue;
      }
      const bool braces = text[i + 1] == '{';
      const size_t begin = i + (braces ? 2 : 1);
      size_t end = begin;
      while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_')) ++end;
      const auto found = variables_.find(std::string(text.substr(begin, end - begin)));
      const bool closed = !braces || (end < text.size() && text[end] == '}');
      if (found == variables_.end() || !closed) {
        result += text[i];
        continue;
      }
      result += found->second;
      i = braces ? end : end - 1;
    }
    return result;
  }

  // Which file of the build context lies under a name in the image.
  void ReadCopy(absl::string_view rest, int number) {
    const std::vector<Words> commands = CommandsOf(rest);
    if (commands.empty()) return;
    for (size_t i = 0; i + 1 < commands[0].size(); ++i) {
      const std::string& from = commands[0][i];
      if (absl::StartsWith(from, "--")) continue;
      put_[from] = number;
      copied_[BaseName(from)] = from;
      if (commands[0].size() == 2) copied_[BaseName(commands[0].back())] = from;
    }
  }

  void ReadRun(absl::string_view rest, int number) {
    Words others;
    for (const Words& command : CommandsOf(rest)) {
      const std::string installer = SystemInstaller(command);
      if (!installer.empty() && found_.system_install.empty()) {
        found_.system_install = absl::StrCat(file_.shown, ":", number, ": RUN ", installer);
      }
      if (ReadCommand(command, number) || !LooksLikeProgram(command[0])) continue;
      others.push_back(command[0]);
    }
    if (others.empty()) return;
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    diagnostics_.Warning(
        number, absl::StrCat("RUN ", absl::StrJoin(others, ", ").substr(0, 100),
                             " is not done: only Python packages are installed here; what else the "
                             "job needs must be on the machine"));
  }

  // False for a command that this reader does not know.
  bool ReadCommand(const Words& command, int number) {
    size_t at = 0;
    while (at < command.size() && absl::StrContains(command[at], '=')) ++at;  // A=1 pip install
    if (at < command.size() && absl::StartsWith(BaseName(command[at]), "python") &&
        at + 1 < command.size() && command[at + 1] == "-m") {
      at += 2;
    }
    if (at < command.size() && BaseName(command[at]) == "uv") ++at;
    if (at + 1 >= command.size()) return false;
    const std::string program = BaseName(command[at]);
    const Words rest(command.begin() + static_cast<std::ptrdiff_t>(at) + 1, command.end());
    if (absl::StartsWith(program, "pip") && rest[0] == "install") {
      ReadPipInstall(rest, number);
      return true;
    }
    if (program == "conda" || program == "mamba") return ReadConda(rest, number);
    return false;
  }

  void ReadPipInstall(const Words& words, int number) {
    static constexpr std::array<absl::string_view, 5> kWithValue = {
        "-i", "--index-url", "--extra-index-url", "-f", "--find-links"};
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& word = words[i];
      const bool has_next = i + 1 < words.size();
      if ((word == "-r" || word == "--requirement") && has_next) {
        ReadRequirementsOf(words[++i], number);
      } else if (std::find(kWithValue.begin(), kWithValue.end(), word) != kWithValue.end() &&
                 has_next) {
        Pip(absl::StrCat(word, " ", words[++i]), number);
      } else if (!absl::StartsWith(word, "-") || absl::StrContains(word, "index-url=") ||
                 word == "--no-index" || word == "--pre") {
        Pip(word, number);
      }  // the rest says how to install, not what
    }
  }

  void Pip(absl::string_view line, int number) {
    ReadPipLine(line, number, file_, context_, environment_, diagnostics_);
  }

  void ReadRequirementsOf(const std::string& written, int number) {
    const auto copied = copied_.find(BaseName(written));
    const std::string path = copied == copied_.end() ? BaseName(written) : copied->second;
    Uses(path);
    const NamedFile file = FileBeside(path, context_);
    const auto text = context_.Read(file.path);
    if (!text.ok()) {
      diagnostics_.Error(
          number, absl::StrCat("-r ", written.substr(0, 200), ": ", text.status().message()));
      return;
    }
    Diagnostics inner(file.shown);
    ReadRequirements(*text, file, context_, environment_, inner);
    diagnostics_.Add(number, inner);
  }

  // That file was copied for what it says of packages; so was a whole folder, it may be.
  void Uses(const std::string& path) {
    put_.erase(path);
    for (const char* all : {".", "./", "*"}) put_.erase(all);
  }

  // conda install / create PACKAGES; conda env create / update -f FILE.
  bool ReadConda(const Words& words, int number) {
    static constexpr std::array<absl::string_view, 6> kWithValue = {
        "-n", "--name", "-p", "--prefix", "-c", "--channel"};
    if (words[0] != "install" && words[0] != "create" && words[0] != "env") return false;
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (std::find(kWithValue.begin(), kWithValue.end(), word) != kWithValue.end()) {
        ++i;
      } else if ((word == "-f" || word == "--file") && i + 1 < words.size()) {
        ReadCondaOf(words[++i], number);
      } else if (words[0] != "env" && !absl::StartsWith(word, "-")) {
        ReadCondaPackage(word, number, file_, context_, environment_, diagnostics_);
      }
    }
    return true;
  }

  void ReadCondaOf(const std::string& written, int number) {
    const auto copied = copied_.find(BaseName(written));
    const std::string path = copied == copied_.end() ? BaseName(written) : copied->second;
    Uses(path);
    const NamedFile file = FileBeside(path, context_);
    const auto text = context_.Read(file.path);
    const auto root = text.ok() ? ParseYaml(*text, file.shown) : text.status();
    if (!root.ok()) {
      diagnostics_.Error(number, root.status().message());
      return;
    }
    Diagnostics inner(file.shown);
    ReadCondaMapping(**root, file, context_, environment_, inner);
    diagnostics_.Add(number, inner);
  }

  const NamedFile& file_;
  const ReadContext& context_;
  Environment& environment_;
  Diagnostics& diagnostics_;
  Dockerfile found_;
  std::map<std::string, std::string> variables_;
  struct Set {
    std::string value;
    int line;
  };
  std::map<std::string, Set> set_;             // by ENV, in the last stage
  std::map<std::string, int> put_;             // by COPY, and not used so far: the lines
  std::map<std::string, std::string> copied_;  // name in the image -> path in the build context
};

}  // namespace

Dockerfile ReadDockerfile(absl::string_view text, const NamedFile& file, const ReadContext& context,
                          Environment& environment, Diagnostics& diagnostics) {
  return DockerfileReader(file, context, environment, diagnostics).Read(text);
}

}  // namespace tutti::spec
