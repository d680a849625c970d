#include "spec/environment/install_failure.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text/utf8.h"
#include "spec/site/requirement.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostCharacters = 600;

// Where uv says which wheels or versions there are; npos: nowhere.
size_t DecidingHint(absl::string_view line) {
  for (const absl::string_view start :
       {"hint: You require", "hint: Wheels are available", "hint: The `requires-python`",
        "hint: The `--python-version`", "hint: Pre-releases are available", "hint: "}) {
    if (const size_t at = line.find(start); at != line.npos) return at;
  }
  return line.npos;
}

bool IsPartOfName(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

bool NamesPackage(absl::string_view text, absl::string_view name) {
  for (size_t at = text.find(name); at != absl::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !IsPartOfName(text[at - 1]);
    const bool ends = end == text.size() || !IsPartOfName(text[end]) ||
                      (text[end] == '.' && (end + 1 == text.size() || text[end + 1] == ' '));
    if (begins && ends && !name.empty()) return true;
  }
  return false;
}

bool BeginsAnError(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  return absl::StartsWith(line, "× ") || absl::StartsWithIgnoreCase(line, "error:");
}

// From the installer's error on: what it prints before are its doings, with packages that have
// nothing to do with it.
absl::string_view FromError(absl::string_view said) {
  for (size_t begin = 0; begin < said.size();) {
    if (BeginsAnError(said.substr(begin))) return said.substr(begin);
    const size_t end = said.find('\n', begin);
    if (end == absl::string_view::npos) break;
    begin = end + 1;
  }
  return said;
}

// "RuntimeError: text"
bool NamesAPythonError(absl::string_view line) {
  const absl::string_view name = line.substr(0, line.find(':'));
  return std::all_of(name.begin(), name.end(), IsPartOfName) && absl::EndsWith(name, "Error");
}

// The first error that a build printed (all lines of an exception); "" without one.
std::string FirstErrorIn(absl::string_view log) {
  constexpr size_t kMostLines = 6;
  std::vector<absl::string_view> error;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (error.empty() && !absl::StrContains(absl::AsciiStrToLower(line), "error: ")) continue;
    if (line.empty() || error.size() == kMostLines) break;
    error.push_back(line);
    if (!NamesAPythonError(error.front())) break;
  }
  return absl::StrJoin(error, " ");
}

// Where uv's advice begins in `error`, at `from` or later, unless it says no more than that a build
// failed; npos: nowhere.
size_t HintIn(absl::string_view error, size_t from) {
  const size_t hint = error.find("hint:", from);
  const bool tells_nothing =
      hint != error.npos && absl::StartsWith(error.substr(hint), "hint: This usually indicates");
  return tells_nothing ? error.npos : hint;
}

// If a package did not build (uv shows its build's output below "[stdout]" or "[stderr]"), returns
// uv's own words and the first error of the build, without the rest of the output. Otherwise
// returns `error` unchanged.
std::string WithoutBuildLog(absl::string_view error) {
  const size_t log = std::min(error.find("[stdout]"), error.find("[stderr]"));
  if (log == absl::string_view::npos) return std::string(error);
  const size_t hint = HintIn(error, log);
  std::string text(
      absl::StripTrailingAsciiWhitespace(error.substr(0, std::min(error.find("├─▶"), log))));
  const std::string first =
      FirstErrorIn(error.substr(log, std::min(error.find("hint:", log), error.size()) - log));
  if (!first.empty()) absl::StrAppend(&text, ": ", first);
  if (hint != absl::string_view::npos) absl::StrAppend(&text, " ", error.substr(hint));
  return text;
}

// Without what uv draws.
std::string Flat(absl::string_view text) {
  const std::string plain = absl::StrReplaceAll(
      text, {{"×", " "}, {"╰─▶", " "}, {"├─▶", " "}, {"│", " "}, {"hint:", " hint:"}});
  return absl::StrJoin(absl::StrSplit(plain, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty()), " ");
}

// Whether Python or setuptools had `module` once.
bool IsOfOlderTools(absl::string_view module) {
  const absl::string_view package = module.substr(0, module.find('.'));
  return package == "distutils" || package == "setuptools" || package == "pkg_resources" ||
         package == "imp" || package == "lib2to3";
}

// Returns what to do about `package` ("flash-attn@2.8.3") whose build imports `module` without
// asking for it.
std::string AdviceOnBuild(absl::string_view package, absl::string_view module) {
  if (package == "file") package = "it";  // uv's word for one in a folder
  const std::string name = absl::StrReplaceAll(package, {{"@", "=="}});
  if (IsOfOlderTools(module)) {
    return absl::StrCat("hint: ", name,
                        " has no build for this Python and needs older tools to be built: take a "
                        "later version, or an older Python (python=3.8 in a conda file)");
  }
  const absl::string_view given = package == "it" ? "PACKAGE" : absl::string_view(name);
  return absl::StrCat("hint: ", name, " is built with ", module,
                      ", but does not ask for it: give a built wheel (https://….whl) in its "
                      "place, or take it out there and begin the job's command with `pip install "
                      "--no-build-isolation ",
                      given, " && …`");
}

// With AdviceOnBuild() in place of uv's, which is for a project with a pyproject.toml.
std::string WithAdviceForJobs(absl::string_view line) {
  static constexpr absl::string_view kBegin = "hint: This error likely indicates that `";
  static constexpr absl::string_view kModule = "` depends on `", kAfter = "`, but doesn't declare";
  static constexpr absl::string_view kEnd = "`--no-build-isolation`.";
  const size_t begin = line.find(kBegin), module = line.find(kModule, begin);
  const size_t after = line.find(kAfter, module), end = line.find(kEnd, after);
  if (begin == line.npos || module == line.npos || after == line.npos || end == line.npos) {
    return std::string(line);
  }
  const size_t package = begin + kBegin.size(), name = module + kModule.size();
  return absl::StrCat(
      line.substr(0, begin),
      AdviceOnBuild(line.substr(package, module - package), line.substr(name, after - name)),
      line.substr(end + kEnd.size()));
}

// "http://h/a.git" of "git+http://h/a.git@v1#egg=a" and of "a @ http://h/a.git"; or "".
absl::string_view UrlIn(absl::string_view requirement) {
  const size_t scheme = requirement.find("://");
  if (scheme == requirement.npos) return "";
  const size_t begin = requirement.find_last_of("+ @", scheme) + 1;  // npos + 1 is 0
  absl::string_view url = requirement.substr(begin);
  url = url.substr(0, url.find_first_of("#; "));
  const size_t version = url.find('@', url.rfind('/'));
  return url.substr(0, version);
}

// "PLACE: REQUIREMENT" of all that `text` names.
std::vector<std::string> NamedIn(absl::string_view text, const Environment& environment) {
  const std::string lower = absl::StrReplaceAll(absl::AsciiStrToLower(text), {{"_", "-"}});
  std::vector<std::string> named;
  for (const Requirement& package : environment.packages) {
    const absl::string_view url = UrlIn(package.text);
    const bool by_url = !url.empty() && absl::StrContains(text, url);
    if (by_url || NamesPackage(lower, PackageName(package.text))) {
      named.push_back(absl::StrCat(package.location, ": ", package.text));
    }
  }
  return named;
}

// "PLACE: REQUIREMENT" of all that have no name but a place, of which uv asks their build the name.
std::vector<std::string> Unnamed(const Environment& environment) {
  std::vector<std::string> unnamed;
  for (const Requirement& package : environment.packages) {
    if (!absl::StrContains(package.text, '/') || absl::StrContains(package.text, " @ ")) continue;
    unnamed.push_back(absl::StrCat(package.location, ": ", package.text));
  }
  return unnamed;
}

// Returns the requirements that `error` blames. If a package did not build, that package alone is
// blamed, although its build's output may name others.
std::vector<std::string> Blamed(absl::string_view error, const Environment& environment) {
  static constexpr absl::string_view kBuild = "Failed to build `";
  if (absl::StartsWith(error, kBuild)) {
    const absl::string_view package = error.substr(0, error.find('`', kBuild.size()));
    const std::vector<std::string> named = NamedIn(package, environment);
    if (!named.empty()) return named;
  }
  if (absl::StartsWith(error, "error: The build backend returned an error")) {
    const std::vector<std::string> unnamed = Unnamed(environment);
    if (!unnamed.empty()) return unnamed;
  }
  return NamedIn(error, environment);
}

// Returns what to do if the place of a package cannot be reached; or "".
absl::string_view AdviceOnPlace(absl::string_view error) {
  static constexpr absl::string_view kWords[] = {"Failed to connect to", "Couldn't connect",
                                                 "Could not resolve host", "tcp connect error",
                                                 "dns error"};
  const bool cannot = std::any_of(std::begin(kWords), std::end(kWords),
                                  [&](absl::string_view w) { return absl::StrContains(error, w); });
  return cannot ? " (the machine that makes the environment cannot reach that place: name a copy "
                  "that it can reach, or a package of the index)"
                : "";
}

// Shortens uv's proof that no versions fit to its beginning and its end: the last step before the
// conclusion names the packages that do not go together.
std::string BoundedProof(absl::string_view proof) {
  constexpr absl::string_view kStep = " And because ";
  constexpr size_t kOfTheBegin = kMostCharacters / 2;
  if (proof.size() <= kMostCharacters) return std::string(proof);
  size_t end = proof.rfind(kStep);
  if (end == proof.npos) return base::BoundedUtf8(proof, kMostCharacters);
  if (const size_t before = proof.rfind(kStep, end - 1); before != proof.npos) end = before;
  return absl::StrCat(base::BoundedUtf8(proof.substr(0, end), kOfTheBegin),
                      base::BoundedUtf8(proof.substr(end), kMostCharacters));
}

// uv's chains of causes and pip's warnings say these of a network; each stands before what is more
// general.
constexpr absl::string_view kNetworkFaults[] = {"dns error",
                                                "tunnel error",
                                                "tcp connect error",
                                                "operation timed out",
                                                "Connection refused",
                                                "Network is unreachable",
                                                "No route to host",
                                                "Name or service not known",
                                                "Temporary failure in name resolution",
                                                "Connection timed out",
                                                "Cannot connect to proxy",
                                                "timed out"};

absl::string_view NetworkFaultIn(absl::string_view text) {
  for (const absl::string_view fault : kNetworkFaults) {
    if (absl::StrContains(text, fault)) return fault;
  }
  return "";
}

// "https://h/simple/six/" of "Failed to fetch: `https://h/simple/six/`".
absl::string_view FetchedAddress(absl::string_view said) {
  static constexpr absl::string_view kFetch = "Failed to fetch: `";
  const size_t at = said.find(kFetch);
  if (at == said.npos) return "";
  said.remove_prefix(at + kFetch.size());
  return said.substr(0, said.find('`'));
}

// uv's last cause, "Connection refused (os error 111)"; "" in pip's words.
absl::string_view LastCause(absl::string_view said) {
  static constexpr absl::string_view kCause = "Caused by: ";
  const size_t at = said.rfind(kCause);
  if (at == said.npos) return "";
  said.remove_prefix(at + kCause.size());
  return absl::StripAsciiWhitespace(said.substr(0, said.find('\n')));
}

bool HasUrl(const std::string& blamed) { return absl::StrContains(blamed, "://"); }

}  // namespace

std::string ExplainFailure(const Environment& environment, const std::string& said) {
  const std::string error = Flat(WithoutBuildLog(FromError(said)));
  const std::vector<std::string> blamed = Blamed(error, environment);
  const std::string what =
      blamed.empty() ? absl::StrCat("environment ", environment.name) : absl::StrJoin(blamed, ", ");
  const bool by_url = std::any_of(blamed.begin(), blamed.end(), HasUrl);
  return absl::StrCat(what, " cannot be had: ", InOneLine(WithAdviceForJobs(error)),
                      by_url ? AdviceOnPlace(error) : "");
}

std::string WhyIndexIsAway(const Environment& environment, absl::string_view said) {
  const bool of_pip = absl::StrContains(said, "Retrying (Retry(");  // warnings before its error
  const absl::string_view error = of_pip ? said : FromError(said);
  const absl::string_view fault = NetworkFaultIn(error);
  // A build that fails may print anything.
  if (fault.empty() || WithoutBuildLog(error) != error) return "";
  for (const Requirement& package : environment.packages) {
    const absl::string_view url = UrlIn(package.text);
    if (!url.empty() && absl::StrContains(error, url)) return "";
  }
  const absl::string_view address = FetchedAddress(error), cause = LastCause(error);
  return absl::StrCat(address, address.empty() ? "" : ": ", fault,
                      cause.empty() || absl::StrContains(fault, cause) ? "" : ": ",
                      absl::StrContains(fault, cause) ? "" : cause);
}

std::string WithoutPasswords(absl::string_view text) {
  static constexpr absl::string_view kScheme = "://";
  std::string safe;
  for (size_t at = text.find(kScheme); at != text.npos; at = text.find(kScheme)) {
    absl::StrAppend(&safe, text.substr(0, at + kScheme.size()));
    text.remove_prefix(at + kScheme.size());
    const size_t user = text.substr(0, text.find_first_of("/?# \t\r\n'\"`<>()")).rfind('@');
    if (user == text.npos) continue;
    safe += "****";
    text.remove_prefix(user);
  }
  return absl::StrCat(safe, text);
}

std::string InOneLine(absl::string_view text) {
  const std::string line = Flat(text);
  const size_t hint = line.size() <= kMostCharacters ? line.npos : DecidingHint(line);
  if (hint == line.npos) return BoundedProof(line);
  absl::string_view rest = absl::string_view(line).substr(hint);
  rest = rest.substr(0, rest.find(" hint:", 1));
  return absl::StrCat(
      BoundedProof(absl::StripTrailingAsciiWhitespace(absl::string_view(line).substr(0, hint))),
      " ", base::BoundedUtf8(rest, kMostCharacters));
}

}  // namespace tutti::spec
