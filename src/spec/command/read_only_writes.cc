#include "spec/command/read_only_writes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "spec/text/expressions.h"

namespace tutti::spec {
namespace {

// What the job's processes see at a path.
struct Place {
  std::string path;
  std::string what;  // "input \"data\""
  bool is_read_only = true;
};

bool IsBelow(absl::string_view path, absl::string_view folder) {
  return absl::ConsumePrefix(&path, folder) && (path.empty() || path[0] == '/');
}

// Returns where an input lies; of one from a store, whose path each node has for itself, a name
// that no other path begins with.
std::string PathOf(const std::string& name, const Input& input) {
  if (absl::StartsWith(input.path, "/")) return input.path;
  return absl::StrCat("/${{inputs.", name, "}}");
}

void AddInputs(const JobSpec& job, std::vector<Place>& places) {
  const auto wish = job.environment_variables.find("TUTTI_READ_ONLY_INPUTS");
  const bool is_off = job.environment.image.empty() && wish != job.environment_variables.end() &&
                      wish->second == "0";
  for (const auto& [name, input] : job.inputs) {
    const bool has_path = absl::StartsWith(input.path, "/") || input.place;
    if (!has_path || input.path == "/") continue;
    const bool is_read_only = input.mode == "ro_mount" && input.pattern.empty() && !is_off;
    places.push_back({PathOf(name, input), absl::StrCat("input \"", name, "\""), is_read_only});
  }
}

// Reads "--volume=SOURCE:TARGET:ro".
std::optional<Place> PlaceOfVolume(absl::string_view value) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  if (parts.size() < 2) return std::nullopt;
  const std::vector<absl::string_view> options = absl::StrSplit(parts.back(), ',');
  const bool is_read_only =
      parts.size() > 2 && std::find(options.begin(), options.end(), "ro") != options.end();
  return Place{std::string(parts[1]), absl::StrCat("the volume ", parts[1]), is_read_only};
}

// Reads "--mount=type=bind,source=SOURCE,target=TARGET,readonly".
std::optional<Place> PlaceOfMount(absl::string_view value) {
  Place place{.is_read_only = false};
  for (const absl::string_view field : absl::StrSplit(value, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    const auto& [key, text] = parts;
    if (key == "target" || key == "destination" || key == "dst") place.path = std::string(text);
    place.is_read_only |= (key == "ro" || key == "readonly") && text != "false";
  }
  if (place.path.empty()) return std::nullopt;
  place.what = absl::StrCat("the volume ", place.path);
  return place;
}

std::vector<Place> PlacesOf(const JobSpec& job) {
  std::vector<Place> places;
  AddInputs(job, places);
  for (absl::string_view option : job.container_options) {
    std::optional<Place> place;
    if (absl::ConsumePrefix(&option, "--volume=")) place = PlaceOfVolume(option);
    if (absl::ConsumePrefix(&option, "--mount=")) place = PlaceOfMount(option);
    if (place && absl::StartsWith(place->path, "/")) places.push_back(*std::move(place));
  }
  return places;
}

template <size_t n>
bool HasAny(const std::vector<std::string>& words, const std::array<absl::string_view, n>& of) {
  return std::find_first_of(words.begin(), words.end(), of.begin(), of.end()) != words.end();
}

// Returns whether what an option or a variable of that name says is where the program writes to.
bool NamesAWrite(absl::string_view name) {
  static constexpr std::array<absl::string_view, 23> kWritten = {
      "out",     "output", "outputs", "outdir",  "outfile",   "save",      "saved",      "savedir",
      "log",     "logs",   "logdir",  "logfile", "logging",   "export",    "exported",   "dump",
      "results", "result", "dest",    "write",   "artifacts", "snapshots", "tensorboard"};
  static constexpr std::array<absl::string_view, 10> kRead = {
      "in",   "input",   "inputs", "load",    "from",
      "init", "initial", "resume", "restore", "pretrained"};
  static constexpr std::array<absl::string_view, 6> kKept = {"checkpoint", "checkpoints", "ckpt",
                                                             "model",      "run",         "work"};
  static constexpr std::array<absl::string_view, 3> kFolder = {"dir", "directory", "folder"};
  const std::vector<std::string> words =
      absl::StrSplit(absl::AsciiStrToLower(name), absl::ByAnyChar("-_."), absl::SkipEmpty());
  if (HasAny(words, kRead)) return false;
  // A checkpoint's path is as often where one is read; its folder is where they are written.
  return HasAny(words, kWritten) || words == std::vector<std::string>{"o"} ||
         (HasAny(words, kKept) && HasAny(words, kFolder));
}

class Search {
 public:
  explicit Search(const JobSpec& job) : job_(job), places_(PlacesOf(job)) {}

  std::vector<ReadOnlyWrite> Run() {
    if (std::none_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.is_read_only; })) {
      return {};
    }
    LookAtOptions();
    LookAtPrograms();
    for (const auto& [name, value] : job_.environment_variables) {
      if (!NamesAWrite(name)) continue;
      const auto at = job_.variable_locations.find(name);
      const bool is_known = at != job_.variable_locations.end();
      LookAt(Expanded(value), absl::StrCat("environment variable ", name),
             is_known ? at->second : SourceLocation());
    }
    return std::move(found_);
  }

 private:
  // Returns the text with the inputs' paths and values in it.
  std::string Expanded(absl::string_view text) const {
    return ReplaceExpressions(text, [&](absl::string_view body) -> std::optional<std::string> {
      body = absl::StripAsciiWhitespace(body);
      if (!absl::ConsumePrefix(&body, "inputs.")) return std::nullopt;
      const auto input = job_.inputs.find(std::string(body));
      if (input == job_.inputs.end()) return std::nullopt;
      if (!input->second.literal.empty()) return input->second.literal;
      return PathOf(input->first, input->second);
    });
  }

  // What cp and the like are given last, and all that mkdir and touch are given, is written to.
  void LookAtPrograms() {
    static constexpr std::array<absl::string_view, 5> kToLast = {"cp", "mv", "rsync", "install",
                                                                 "ln"};
    static constexpr std::array<absl::string_view, 3> kToAll = {"mkdir", "touch", "truncate"};
    const std::string command = Expanded(job_.command);
    for (const absl::string_view part : absl::StrSplit(command, absl::ByAnyChar("\n;|&()"))) {
      const std::vector<std::string> words =
          absl::StrSplit(part, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      if (words.size() < 2) continue;
      const auto is_it = [&](absl::string_view name) { return name == words[0]; };
      if (std::any_of(kToLast.begin(), kToLast.end(), is_it)) LookAt(words.back(), words[0], {});
      if (std::none_of(kToAll.begin(), kToAll.end(), is_it)) continue;
      for (size_t i = 1; i < words.size(); ++i) LookAt(words[i], words[0], {});
    }
  }

  void LookAtOptions() {
    std::string by;  // the option, redirection or program whose word comes next
    bool is_of_tee = false;
    const std::string command = Expanded(job_.command);
    for (absl::string_view word :
         absl::StrSplit(command, absl::ByAnyChar(" \t\n;|()"), absl::SkipEmpty())) {
      const size_t equals = word.find('=');
      const size_t arrow = word.find('>');
      if (arrow != absl::string_view::npos && arrow <= 1) {  // "2>>/data/log"
        by = "a redirection";
        word.remove_prefix(std::min(word.find_first_not_of('>', arrow), word.size()));
        if (word.empty()) continue;
      } else if (equals != absl::string_view::npos && NamesAWrite(word.substr(0, equals))) {
        by = std::string(word.substr(0, equals));
        word.remove_prefix(equals + 1);
      } else if (absl::StartsWith(word, "-")) {
        by = equals == absl::string_view::npos && NamesAWrite(word) ? std::string(word) : "";
        continue;
      }
      if (by.empty() && is_of_tee) by = "tee";
      if (!by.empty()) LookAt(word, by, {});
      is_of_tee = word == "tee";
      by.clear();
    }
  }

  // Looks at a text which says where something is written to.
  void LookAt(absl::string_view text, absl::string_view by, const SourceLocation& location) {
    const size_t begin = text.find_first_not_of("'\"");
    if (begin == absl::string_view::npos) return;
    text = text.substr(begin, text.find_last_not_of("'\"") + 1 - begin);
    if (!absl::StartsWith(text, "/")) return;
    const std::string path = std::filesystem::path(std::string(text)).lexically_normal().string();
    const Place* in = nullptr;  // the innermost
    for (const Place& place : places_) {
      const bool holds = IsBelow(path, absl::StripSuffix(place.path, "/"));
      if (holds && (in == nullptr || place.path.size() >= in->path.size())) in = &place;
    }
    if (in == nullptr || !in->is_read_only) return;
    absl::string_view shown = path;
    if (absl::StartsWith(shown, "/${{")) shown.remove_prefix(1);
    found_.push_back(
        {location, absl::StrCat(by, ": ", shown.substr(0, 200), " lies in ", in->what,
                                ", which is mounted read-only: what the job writes there fails; "
                                "write to ${{outputs.NAME}} or ./outputs")});
  }

  const JobSpec& job_;
  const std::vector<Place> places_;
  std::vector<ReadOnlyWrite> found_;
};

}  // namespace

std::vector<ReadOnlyWrite> WritesToReadOnly(const JobSpec& job) { return Search(job).Run(); }

}  // namespace tutti::spec
