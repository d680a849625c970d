#include "spec/environment/process_path.h"

#include "absl/strings/str_cat.h"

namespace tutti::spec {

std::string ProcessPath(const std::map<std::string, std::string>& variables,
                        const std::map<std::string, std::string>& own,
                        absl::string_view program_folder, absl::string_view python) {
  const auto given = variables.find("PATH");
  const auto inherited = own.find("PATH");
  const std::string rest = given != variables.end() ? given->second
                           : inherited != own.end() ? inherited->second
                                                    : "/usr/local/bin:/usr/bin:/bin";
  const std::string path = python.empty() ? rest : absl::StrCat(python, "/bin:", rest);
  return program_folder.empty() ? path : absl::StrCat(program_folder, ":", path);
}

}  // namespace tutti::spec
