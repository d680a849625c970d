// ReadDockerfile of package_files.h.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "spec/environment/docker_stages.h"
#include "spec/environment/package_files.h"

namespace tutti::spec {
namespace {

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
std::string SystemInstaller(const ShellWords& command) {
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

// Whether a folder of an image is where Python packages lie, or their wheels.
bool HoldsPackages(absl::string_view folder) {
  static constexpr absl::string_view kParts[] = {
      "site-packages", "dist-packages", "venv", ".local", "conda", "wheel", "/install"};
  const bool is_all = folder == "/usr/local" || folder == "/usr/local/" ||
                      absl::StartsWith(folder, "/usr/local/lib/python") ||
                      absl::StartsWith(folder, "/usr/local/bin");
  return is_all || std::any_of(std::begin(kParts), std::end(kParts), [&](absl::string_view part) {
           return absl::StrContains(folder, part);
         });
}

// Follows the stages of which the last one is made, and, of those that it copies from, what they
// install.
class DockerfileReader {
 public:
  DockerfileReader(const NamedFile& file, const ReadContext& context, Environment& environment,
                   Diagnostics& diagnostics)
      : file_(file), context_(context), environment_(environment), diagnostics_(diagnostics) {}

  Dockerfile Read(absl::string_view text) {
    stages_ = ReadDockerStages(text);
    if (stages_.stages.empty()) return {};
    const std::vector<size_t> chain = stages_.ChainOf(stages_.stages.size() - 1);
    found_.image = stages_.stages[chain.front()].image;
    found_.line = stages_.stages[chain.front()].line;
    for (const size_t index : chain) ReadStage(index);
    SetVariables();
    WarnOfTheRest();
    return std::move(found_);
  }

 private:
  // ENV of the stages below is there, their ARG is not.
  void ReadStage(size_t index) {
    index_ = index;
    variables_.clear();
    for (const auto& [name, set] : set_) variables_[name] = set.value;
    for (const DockerInstruction& instruction : stages_.stages[index].instructions) {
      ReadInstruction(instruction);
    }
  }

  void ReadInstruction(const DockerInstruction& instruction) {
    const std::string& word = instruction.word;
    const int line = instruction.line;
    if (word == "ARG" || word == "ENV") {
      ReadVariables(instruction.rest, word == "ENV" ? line : 0);
    } else if (word == "COPY" || word == "ADD") {
      ReadCopy(WithVariables(instruction.rest, variables_), word, line);
    } else if (word == "RUN") {
      ReadRun(WithVariables(instruction.rest, variables_), line);
    }  // the others do not change what is installed
  }

  // The packages of a stage from which the image takes them. Its programs and variables stay there.
  void TakePackagesOf(size_t stage) {
    if (!taken_.insert(stage).second) return;
    const size_t index = std::exchange(index_, stage);
    const bool only_packages = std::exchange(only_packages_, true);
    const auto variables = variables_;
    const auto set = std::exchange(set_, {});
    for (const size_t below : stages_.ChainOf(stage)) {
      if (below == stage || taken_.insert(below).second) ReadStage(below);
    }
    set_ = set;
    variables_ = variables;
    only_packages_ = only_packages;
    index_ = index;
  }

  // ARG A=1, ENV A=1 B=2, ENV A 1. `number`: the line of an ENV; 0: of an ARG.
  void ReadVariables(absl::string_view written, int number) {
    ShellWords words = WordsOf(written);
    for (std::string& word : words) word = WithVariables(word, variables_);  // of earlier ones
    if (number > 0 && words.size() >= 2 && !absl::StrContains(words[0], '=')) {
      Define(words[0], absl::StrJoin(words.begin() + 1, words.end(), " "), number);
      return;
    }
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) {
        Define(word.substr(0, equals), word.substr(equals + 1), number);
      } else if (const auto of_file = stages_.arguments.find(word);
                 number == 0 && of_file != stages_.arguments.end()) {
        Define(word, of_file->second, number);
      }
    }
  }

  void Define(const std::string& name, const std::string& value, int number) {
    if (number == 0 && set_.contains(name)) return;  // ENV counts more
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

  // Warns of what the job will not find. It is no error, for most jobs need none of it.
  void WarnOfTheRest() {
    for (const auto& [path, number] : put_) {
      diagnostics_.Warning(number, absl::StrCat("COPY ", path.substr(0, 80),
                                                " is not done: what the job needs of it belongs in "
                                                "its code"));
    }
  }

  // Notes what only a build can do; `what`: "RUN apt-get".
  void NeedsBuild(absl::string_view what, int number) {
    if (found_.needs_build.empty()) {
      found_.needs_build = absl::StrCat(file_.shown, ":", number, ": ", what);
    }
  }

  // Which file of the build context lies under a name in the image.
  void ReadCopy(absl::string_view rest, const std::string& word, int number) {
    ShellWords words = WordsOf(rest);
    std::string stage;
    std::erase_if(words, [&](absl::string_view option) {
      if (!absl::ConsumePrefix(&option, "--")) return false;
      if (absl::ConsumePrefix(&option, "from=")) stage = std::string(option);
      return true;
    });
    if (words.size() < 2) return;
    const std::string to = words.back();
    words.pop_back();
    if (!stage.empty()) return ReadCopyFrom(stage, words, to, number);
    for (const std::string& from : words) {
      if (absl::StartsWith(from, "<<")) continue;
      environment_.copied.push_back({from, context_.base.string(), word, {file_.shown, number}});
      if (!only_packages_) put_[from] = number;
      copied_[BaseName(from)] = from;
      if (words.size() == 1) copied_[BaseName(to)] = from;
    }
  }

  // COPY --from=STAGE: packages that the stage has installed are had here as any; anything else
  // only its build can make.
  void ReadCopyFrom(const std::string& from, const ShellWords& paths, const std::string& to,
                    int number) {
    const auto stage = stages_.Find(from, index_);
    const bool is_packages = stage && std::all_of(paths.begin(), paths.end(), HoldsPackages);
    if (is_packages) {
      for (const std::string& path : paths) from_stages_.push_back(path);
      from_stages_.push_back(to);
      return TakePackagesOf(*stage);
    }
    if (!stage && absl::StrContains(from, "astral-sh/uv")) return;  // packages are had by uv here
    const std::string what = absl::StrCat("COPY --from=", from.substr(0, 80));
    NeedsBuild(what, number);
    for (const std::string& path : paths) copied_from_.insert(BaseName(path));
    if (only_packages_) return;
    diagnostics_.Warning(number, absl::StrCat(what, " ", paths[0].substr(0, 80),
                                              " is not done: what the job needs of it must be on "
                                              "the machine"));
  }

  // Whether a path lies in what was copied from a stage whose packages are had.
  bool IsOfStage(absl::string_view path) const {
    return std::any_of(from_stages_.begin(), from_stages_.end(), [&](absl::string_view folder) {
      absl::ConsumeSuffix(&folder, "/");
      return folder.size() > 1 && absl::StartsWith(path, folder);
    });
  }

  void ReadRun(absl::string_view rest, int number) {
    ShellWords others;
    std::vector<ShellWords> commands = CommandsOf(rest);
    if (absl::StartsWith(rest, "[")) commands = {WordsOf(rest)};
    for (ShellWords& command : commands) {
      const auto is_option = [](const std::string& word) { return absl::StartsWith(word, "--"); };
      const auto first = std::find_if_not(command.begin(), command.end(), is_option);
      command.erase(command.begin(), first);  // RUN --mount=type=cache,…
      if (command.empty()) continue;
      const std::string installer = SystemInstaller(command);
      if (!installer.empty() && !only_packages_) NeedsBuild("RUN " + installer, number);
      if (ReadCommand(command, number) || !LooksLikeProgram(command[0])) continue;
      others.push_back(command[0]);
    }
    if (others.empty() || only_packages_) return;
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    diagnostics_.Warning(
        number, absl::StrCat("RUN ", absl::StrJoin(others, ", ").substr(0, 100),
                             " is not done: only Python packages are installed here; what else the "
                             "job needs must be on the machine"));
  }

  // False for a command that this reader does not know.
  bool ReadCommand(const ShellWords& command, int number) {
    size_t at = 0;
    while (at < command.size() && absl::StrContains(command[at], '=')) ++at;  // A=1 pip install
    if (at < command.size() && absl::StartsWith(BaseName(command[at]), "python") &&
        at + 1 < command.size() && command[at + 1] == "-m") {
      at += 2;
    }
    if (at < command.size() && BaseName(command[at]) == "uv") ++at;
    if (at + 1 >= command.size()) return false;
    const std::string program = BaseName(command[at]);
    const ShellWords rest(command.begin() + static_cast<std::ptrdiff_t>(at) + 1, command.end());
    const bool is_install = rest[0] == "install" || (only_packages_ && rest[0] == "wheel");
    if (absl::StartsWith(program, "pip") && is_install) {
      ReadPipInstall(rest, number);
      return true;
    }
    if (program == "conda" || program == "mamba") return ReadConda(rest, number);
    return false;
  }

  void ReadPipInstall(const ShellWords& words, int number) {
    static constexpr std::array<absl::string_view, 5> kWithValue = {
        "-i", "--index-url", "--extra-index-url", "-f", "--find-links"};
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& word = words[i];
      const bool has_next = i + 1 < words.size();
      if ((word == "-r" || word == "--requirement") && has_next) {
        ReadRequirementsOf(words[++i], number);
      } else if (std::find(kWithValue.begin(), kWithValue.end(), word) != kWithValue.end() &&
                 has_next) {
        if (++i; !IsOfStage(words[i])) Pip(absl::StrCat(word, " ", words[i]), number);
      } else if (IsPlace(word) && has_next) {
        ++i;
      } else if (IsOfStage(word.substr(word.find('=') + 1)) ||
                 (word == "--no-index" && !from_stages_.empty())) {
        // wheels that a stage has made of packages that are had
      } else if (!absl::StartsWith(word, "-") || absl::StrContains(word, "index-url=") ||
                 word == "--no-index" || word == "--pre") {
        Pip(word, number);
      }  // the rest says how to install, not what
    }
  }

  // An option that says where packages are put, and not which.
  static bool IsPlace(absl::string_view word) {
    static constexpr absl::string_view kPlaces[] = {"-t",     "--target", "--prefix",
                                                    "--root", "-w",       "--wheel-dir"};
    return IsOneOf(word, kPlaces);
  }

  void Pip(absl::string_view line, int number) {
    ReadPipLine(line, number, file_, context_, environment_, diagnostics_);
  }

  void ReadRequirementsOf(const std::string& written, int number) {
    const auto file = FileOf(written);
    if (!file) return;
    const auto text = context_.Read(file->path);
    if (!text.ok()) {
      diagnostics_.Error(
          number, absl::StrCat("-r ", written.substr(0, 200), ": ", text.status().message()));
      return;
    }
    Diagnostics inner(file->shown);
    ReadRequirements(*text, *file, context_, environment_, inner);
    diagnostics_.Add(number, inner);
  }

  // The file of the build context that lies under this name in the image; nothing if only a stage's
  // build would make it. It was copied for what it says of packages; so was a whole folder, it may
  // be.
  std::optional<NamedFile> FileOf(const std::string& written) {
    const std::string name = BaseName(written);
    const auto copied = copied_.find(name);
    if (copied == copied_.end() && copied_from_.contains(name)) return std::nullopt;
    const std::string path = copied == copied_.end() ? name : copied->second;
    put_.erase(path);
    for (const char* all : {".", "./", "*"}) put_.erase(all);
    return FileBeside(path, context_);
  }

  // conda install / create PACKAGES; conda env create / update -f FILE.
  bool ReadConda(const ShellWords& words, int number) {
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
    const auto file = FileOf(written);
    if (!file) return;
    const auto text = context_.Read(file->path);
    const auto root = text.ok() ? ParseYaml(*text, file->shown) : text.status();
    if (!root.ok()) {
      diagnostics_.Error(number, root.status().message());
      return;
    }
    Diagnostics inner(file->shown);
    ReadCondaMapping(**root, *file, context_, environment_, inner);
    diagnostics_.Add(number, inner);
  }

  const NamedFile& file_;
  const ReadContext& context_;
  Environment& environment_;
  Diagnostics& diagnostics_;
  Dockerfile found_;
  DockerStages stages_;
  size_t index_ = 0;                      // of the stage that is read
  bool only_packages_ = false;            // it is one that the image takes packages from
  std::set<size_t> taken_;                // those
  std::vector<std::string> from_stages_;  // folders that hold those packages
  std::set<std::string> copied_from_;     // files that only a stage's build would make
  std::map<std::string, std::string> variables_;
  struct Set {
    std::string value;
    int line;
  };
  std::map<std::string, Set> set_;             // by ENV
  std::map<std::string, int> put_;             // by COPY, and not used so far: the lines
  std::map<std::string, std::string> copied_;  // name in the image -> path in the build context
};

}  // namespace

Dockerfile ReadDockerfile(absl::string_view text, const NamedFile& file, const ReadContext& context,
                          Environment& environment, Diagnostics& diagnostics) {
  return DockerfileReader(file, context, environment, diagnostics).Read(text);
}

}  // namespace tutti::spec
