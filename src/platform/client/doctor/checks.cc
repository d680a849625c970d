#include "platform/client/doctor/checks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/doctor/report_checks.h"

namespace tutti::client {
namespace {

absl::string_view Word(Check::Outcome outcome) {
  switch (outcome) {
    case Check::Outcome::kOk:
      return "ok";
    case Check::Outcome::kWarning:
      return "warning";
    case Check::Outcome::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

Check CheckService(const DoctorSubject& subject) {
  Check check{"service"};
  ServiceClient service(subject.connect());
  const auto health = service.Health();
  if (!health.ok()) {
    return {check.name, Check::Outcome::kFailed, std::string(health.status().message()),
            absl::StrCat("tutti serve --home ", subject.home.string())};
  }
  const std::string version = ParseVersion(*health);
  check.detail = absl::StrCat("answers, version ", version);
  if (version != subject.version) {
    check.outcome = Check::Outcome::kWarning;
    absl::StrAppend(&check.detail, "; this program is ", subject.version);
    check.remedy = "restart the service with this program";
  }
  return check;
}

Check CheckToken(const DoctorSubject& subject) {
  ServiceClient service(subject.connect());
  const auto text = service.Nodes();
  const auto view = text.ok() ? Parse<NodesView>(*text) : text.status();
  if (!view.ok()) {
    return {"nodes", Check::Outcome::kFailed, std::string(view.status().message()),
            absl::StrCat("see that TUTTI_TOKEN or ", (subject.home / "service.json").string(),
                         " is the running service's")};
  }
  Check check{"nodes", Check::Outcome::kOk, absl::StrCat(view->nodes.size(), " nodes")};
  if (!view->warnings.empty()) {
    check.outcome = Check::Outcome::kWarning;
    absl::StrAppend(&check.detail, "; ", absl::StrJoin(view->warnings, "; "));
    check.remedy = "see whether sinfo answers on the service's machine";
  }
  if (view->nodes.empty()) {
    check.outcome = Check::Outcome::kFailed;
    check.remedy = "tutti serve --nodes 2";
  }
  return check;
}

Check CheckProblems(const DoctorSubject& subject) {
  ServiceClient service(subject.connect());
  const auto text = service.Problems();
  const auto problems = text.ok() ? Parse<spec::ProblemsView>(*text) : text.status();
  // A service of an earlier version does not know the call.
  if (absl::IsNotFound(problems.status())) return {"state", Check::Outcome::kOk, "not told"};
  if (!problems.ok()) {
    return {"state", Check::Outcome::kFailed, std::string(problems.status().message()), ""};
  }
  if (problems->problems.empty())
    return {"state", Check::Outcome::kOk, "the service finds nothing broken"};
  return {"state", Check::Outcome::kFailed, absl::StrJoin(problems->problems, "; "),
          "repair what is named; all else is served meanwhile"};
}

std::vector<Check> AllChecks(const DoctorSubject& subject) {
  std::vector<Check> checks = {CheckService(subject)};
  // A service that does not answer need not be reported twice.
  if (NoneFailed(checks)) checks.push_back(CheckToken(subject));
  if (NoneFailed(checks)) checks.push_back(CheckProblems(subject));
  for (Check& check : std::vector<Check>{
           CheckHome(subject), CheckDisk(subject), CheckEncryption(subject), CheckMemory(subject),
           CheckOpenFiles(subject), CheckCores(), CheckProgram(subject, "tutti-train"),
           CheckProgram(subject, "tutti-score"), CheckLoopback(), CheckNamespaces(),
           CheckMasterPort(), CheckUv(subject), CheckPodman(subject), CheckFileServers(subject),
           CheckRdma(subject)}) {
    checks.push_back(std::move(check));
  }
  for (Check& check : CheckMachine(subject)) checks.push_back(std::move(check));
  return checks;
}

bool NoneFailed(const std::vector<Check>& checks) {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Check& check) { return check.outcome == Check::Outcome::kFailed; });
}

std::string ChecksAsJson(const std::vector<Check>& checks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    list.push_back({{"name", check.name},
                    {"outcome", std::string(Word(check.outcome))},
                    {"detail", check.detail},
                    {"remedy", check.remedy}});
  }
  return nlohmann::ordered_json{{"checks", list}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tutti::client
