#include "spec/command/batch_options.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/closest.h"

namespace tutti::spec {
namespace {

constexpr BatchValue kAlone = BatchValue::kNone;
constexpr BatchValue kMaybe = BatchValue::kOptional;
constexpr BatchValue kValue = BatchValue::kNeeded;
constexpr BatchUse kTaken = BatchUse::kRead;
constexpr BatchUse kAmount = BatchUse::kShape;
constexpr BatchUse kPassed = BatchUse::kHandedOn;
constexpr BatchUse kWithoutEffect = BatchUse::kNoEffect;
constexpr BatchUse kNotTaken = BatchUse::kRefused;

constexpr absl::string_view kKeptWithTheJob =
    "its output is kept with the job: `tutti job stream` shows it";
constexpr absl::string_view kTuttiSubmits = "tutti submits the script and waits for it";

constexpr BatchOption kOptions[] = {
    {"account", 'A', kValue, kTaken, ""},
    {"array", 'a', kValue, kNotTaken, "write a sweep over a grid, whose trials are its tasks"},
    {"begin", 'b', kValue, kPassed, ""},
    {"chdir", 'D', kValue, kTaken, ""},
    {"clusters", 'M', kValue, kTaken, ""},
    {"comment", 0, kValue, kWithoutEffect, "the service finds its jobs by their comments"},
    {"constraint", 'C', kValue, kTaken, ""},
    {"contiguous", 0, kAlone, kPassed, ""},
    {"core-spec", 'S', kValue, kPassed, ""},
    {"cores-per-socket", 0, kValue, kAmount, ""},
    {"cpus-per-gpu", 0, kValue, kAmount, ""},
    {"cpus-per-task", 'c', kValue, kAmount, ""},
    {"deadline", 0, kValue, kPassed, ""},
    {"dependency", 'd', kValue, kNotTaken, "write a pipeline, whose steps wait for each other"},
    {"distribution", 'm', kValue, kAmount, ""},
    {"error", 'e', kValue, kWithoutEffect, kKeptWithTheJob},
    {"exclude", 'x', kValue, kPassed, ""},
    {"exclusive", 0, kMaybe, kTaken, ""},
    {"export", 0, kValue, kWithoutEffect, "the script has the environment that tutti's jobs have"},
    {"extra-node-info", 'B', kValue, kAmount, ""},
    {"gpu-bind", 0, kValue, kAmount, ""},
    {"gpu-freq", 0, kValue, kPassed, ""},
    {"gpus", 'G', kValue, kAmount, ""},
    {"gpus-per-node", 0, kValue, kAmount, ""},
    {"gpus-per-socket", 0, kValue, kAmount, ""},
    {"gpus-per-task", 0, kValue, kAmount, ""},
    {"gres", 0, kValue, kTaken, ""},
    {"gres-flags", 0, kValue, kPassed, ""},
    {"hint", 0, kValue, kAmount, ""},
    {"hold", 'H', kAlone, kNotTaken, "submit it when it may begin"},
    {"input", 'i', kValue, kWithoutEffect, "jobs read nothing from standard input"},
    {"job-name", 'J', kValue, kTaken, ""},
    {"licenses", 'L', kValue, kPassed, ""},
    {"mail-type", 0, kValue, kPassed, ""},
    {"mail-user", 0, kValue, kPassed, ""},
    {"mem", 0, kValue, kAmount, ""},
    {"mem-bind", 0, kValue, kAmount, ""},
    {"mem-per-cpu", 0, kValue, kAmount, ""},
    {"mem-per-gpu", 0, kValue, kAmount, ""},
    {"mincpus", 0, kValue, kAmount, ""},
    {"network", 0, kValue, kPassed, ""},
    {"nice", 0, kMaybe, kPassed, ""},
    {"no-kill", 'k', kMaybe, kNotTaken, "tutti ends a job of which a node was lost"},
    {"no-requeue", 0, kAlone, kTaken, ""},
    {"nodelist", 'w', kValue, kPassed, ""},
    {"nodes", 'N', kValue, kAmount, ""},
    {"ntasks", 'n', kValue, kAmount, ""},
    {"ntasks-per-core", 0, kValue, kAmount, ""},
    {"ntasks-per-gpu", 0, kValue, kAmount, ""},
    {"ntasks-per-node", 0, kValue, kAmount, ""},
    {"ntasks-per-socket", 0, kValue, kAmount, ""},
    {"open-mode", 0, kValue, kWithoutEffect, kKeptWithTheJob},
    {"output", 'o', kValue, kWithoutEffect, kKeptWithTheJob},
    {"overcommit", 'O', kAlone, kAmount, ""},
    {"oversubscribe", 's', kAlone, kPassed, ""},
    {"parsable", 0, kAlone, kWithoutEffect, kTuttiSubmits},
    {"partition", 'p', kValue, kTaken, ""},
    {"priority", 0, kValue, kPassed, ""},
    {"profile", 0, kValue, kPassed, ""},
    {"propagate", 0, kMaybe, kPassed, ""},
    {"qos", 'q', kValue, kTaken, ""},
    {"quiet", 'Q', kAlone, kWithoutEffect, kTuttiSubmits},
    {"requeue", 0, kAlone, kTaken, ""},
    {"reservation", 0, kValue, kTaken, ""},
    {"signal", 0, kValue, kTaken, ""},
    {"sockets-per-node", 0, kValue, kAmount, ""},
    {"spread-job", 0, kAlone, kPassed, ""},
    {"switches", 0, kValue, kPassed, ""},
    {"test-only", 0, kAlone, kNotTaken, "it would run nothing"},
    {"threads-per-core", 0, kValue, kAmount, ""},
    {"time", 't', kValue, kTaken, ""},
    {"time-min", 0, kValue, kPassed, ""},
    {"tmp", 0, kValue, kAmount, ""},
    {"verbose", 'v', kAlone, kWithoutEffect, kTuttiSubmits},
    {"wait", 'W', kAlone, kWithoutEffect, kTuttiSubmits},
    {"wait-all-nodes", 0, kValue, kPassed, ""},
    {"wckey", 0, kValue, kPassed, ""},
    {"wrap", 0, kValue, kNotTaken, "the script is what runs"},
};

constexpr size_t kMostQuoted = 80;

std::string QuotedOption(absl::string_view word) {
  return absl::StrCat("\"", word.substr(0, kMostQuoted), "\"");
}

const BatchOption* ByLetter(char letter) {
  const auto found =
      std::find_if(std::begin(kOptions), std::end(kOptions),
                   [&](const BatchOption& option) { return option.letter == letter; });
  return found == std::end(kOptions) || letter == 0 ? nullptr : found;
}

// sbatch takes what only one option begins with.
const BatchOption* ByName(absl::string_view name) {
  const BatchOption* only = nullptr;
  for (const BatchOption& option : kOptions) {
    if (option.name == name) return &option;
    if (name.empty() || !absl::StartsWith(option.name, name)) continue;
    if (only != nullptr) return nullptr;
    only = &option;
  }
  return only;
}

// As a shell would split it: quotes hold words together, and '#' before a word ends the line. False
// if a quote is not closed.
bool SplitWords(absl::string_view line, std::vector<std::string>& words) {
  bool inside = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        words.back() += c;
      }
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      inside = false;
    } else if (c == '#' && !inside) {
      return true;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      if (c == '"' || c == '\'') {
        quote = c;
      } else {
        words.back() += c;
      }
    }
  }
  return quote == 0;
}

// Reads the words of one line.
class LineReader {
 public:
  LineReader(std::vector<std::string> words, int line, std::vector<GivenOption>& given,
             Diagnostics& diagnostics)
      : words_(std::move(words)), line_(line), given_(given), diagnostics_(diagnostics) {}

  void Read() {
    while (next_ < words_.size()) {
      const std::string word = words_[next_++];
      if (absl::StartsWith(word, "--")) {
        ReadLong(absl::string_view(word).substr(2));
      } else if (word.size() > 1 && word[0] == '-') {
        ReadShort(word);
      } else {
        diagnostics_.Error(line_, absl::StrCat(QuotedOption(word), " is no option of sbatch"));
      }
    }
  }

 private:
  void ReadLong(absl::string_view word) {
    const size_t equals = word.find('=');
    const absl::string_view name = word.substr(0, equals);
    const BatchOption* option = ByName(name);
    if (option == nullptr) {
      std::vector<absl::string_view> names;
      for (const BatchOption& known : kOptions) names.push_back(known.name);
      diagnostics_.Error(
          line_, absl::StrCat("tutti knows no option ", QuotedOption(absl::StrCat("--", name)),
                              " of sbatch", base::DidYouMean(name.substr(0, kMostQuoted), names)));
      return;
    }
    if (equals != absl::string_view::npos) {
      Take(*option, std::string(word.substr(equals + 1)));
    } else {
      TakeNext(*option);
    }
  }

  void ReadShort(const std::string& word) {
    const BatchOption* option = ByLetter(word[1]);
    if (option == nullptr) {
      diagnostics_.Error(line_,
                         absl::StrCat("tutti knows no option ", QuotedOption(word), " of sbatch"));
    } else if (word.size() > 2) {
      Take(*option, word.substr(word[2] == '=' ? 3 : 2));
    } else {
      TakeNext(*option);
    }
  }

  // Its value is the next word, if it cannot do without one.
  void TakeNext(const BatchOption& option) {
    if (option.value != kValue) return Take(option, "");
    if (next_ == words_.size()) {
      diagnostics_.Error(line_, absl::StrCat("--", option.name, " has no value"));
      return;
    }
    Take(option, words_[next_++]);
  }

  void Take(const BatchOption& option, std::string value) {
    const bool plain = std::none_of(value.begin(), value.end(), [](unsigned char c) {
      return absl::ascii_iscntrl(c) || c >= 0x80;
    });
    if (!plain || value.size() > 4096) {
      diagnostics_.Error(line_, absl::StrCat("the value of --", option.name, " is no plain text"));
    } else if (option.use == kNotTaken) {
      diagnostics_.Error(line_, absl::StrCat("--", option.name, ": ", option.note));
    } else if (option.use == kWithoutEffect) {
      diagnostics_.Warning(line_, absl::StrCat("--", option.name, " has no effect: ", option.note));
    } else if (option.value == kValue && value.empty()) {
      diagnostics_.Error(line_, absl::StrCat("--", option.name, " has no value"));
    } else if (option.value == kAlone && !value.empty()) {
      diagnostics_.Error(line_, absl::StrCat("--", option.name, " takes no value"));
    } else {
      given_.push_back({&option, std::move(value), line_});
    }
  }

  const std::vector<std::string> words_;
  size_t next_ = 0;
  const int line_;
  std::vector<GivenOption>& given_;
  Diagnostics& diagnostics_;
};

bool AllDigits(absl::string_view text) {
  return !text.empty() && text.size() < 9 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

std::vector<GivenOption> ReadBatchOptions(absl::string_view script, Diagnostics& diagnostics) {
  std::vector<GivenOption> given;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(script, '\n')) {
    ++number;
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "#SBATCH")) {
      if (!rest.empty() && !absl::ascii_isspace(static_cast<unsigned char>(rest[0]))) continue;
      std::vector<std::string> words;
      if (!SplitWords(rest, words)) {
        diagnostics.Error(number, "a quote is not closed");
        continue;
      }
      if (!words.empty() && (words[0] == "hetjob" || words[0] == "packjob")) {
        diagnostics.Error(number, "jobs of several parts (hetjob) are not run by this version");
        continue;
      }
      LineReader(std::move(words), number, given, diagnostics).Read();
    } else if (line = absl::StripAsciiWhitespace(line); !line.empty() && line[0] != '#') {
      break;
    }
  }
  return given;
}

bool ParseSlurmTime(absl::string_view text, absl::Duration& time) {
  if (absl::EqualsIgnoreCase(text, "unlimited") || absl::EqualsIgnoreCase(text, "infinite")) {
    time = absl::InfiniteDuration();
    return true;
  }
  int days = 0;
  const size_t dash = text.find('-');
  const bool has_days = dash != absl::string_view::npos;
  if (has_days) {
    if (!AllDigits(text.substr(0, dash)) || !absl::SimpleAtoi(text.substr(0, dash), &days)) {
      return false;
    }
    text.remove_prefix(dash + 1);
  }
  std::array<int, 3> parts = {};
  size_t count = 0;
  for (const absl::string_view part : absl::StrSplit(text, ':')) {
    if (count == parts.size() || !AllDigits(part) || !absl::SimpleAtoi(part, &parts[count++])) {
      return false;
    }
  }
  // "minutes", "minutes:seconds" and "hours:minutes:seconds"; after days the first is hours.
  const size_t first = has_days || count == 3 ? 0 : 1;
  std::array<int, 4> fields = {};
  for (size_t i = 0; i < count; ++i) fields[first + i] = parts[i];
  time = absl::Hours(24) * days + absl::Hours(fields[0]) + absl::Minutes(fields[1]) +
         absl::Seconds(fields[2]);
  if (time == absl::ZeroDuration()) time = absl::InfiniteDuration();
  return true;
}

}  // namespace tutti::spec
