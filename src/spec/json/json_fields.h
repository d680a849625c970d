// Reads the fields of one JSON object: each by name and type, and nothing else in it. Errors name
// the field with its path ("nodes[1].address must be a string"). Inside the room spec only.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::spec {

enum class Missing { kIsAnError, kKeepsDefault };

// The first error stays; reads after it do nothing, so that a caller asks for the status once, at
// the end. Not thread-safe.
class JsonFields {
 public:
  // `object` outlives this. `path` is its place in the document: "" or "nodes[1]".
  JsonFields(const nlohmann::json& object, std::string path, Missing missing);

  void Read(const char* name, std::string& value);
  void Read(const char* name, int& value, int least, int most);
  void Read(const char* name, int64_t& value, int64_t least);
  // Reads a number from 0 to 1e12: a finite number of seconds, bytes or the like.
  void Read(const char* name, double& value);
  void Read(const char* name, bool& value);
  void Read(const char* name, std::vector<std::string>& value);
  void Read(const char* name, std::map<std::string, std::string>& value);
  void Read(const char* name, std::map<std::string, Input>& value);
  void Read(const char* name, std::map<std::string, Output>& value);
  void Read(const char* name, Environment& value);
  void Read(const char* name, Distribution& value);
  void Read(const char* name, Priority& value);
  // Reads numbers from 0 on.
  void Read(const char* name, std::vector<int>& value);
  // Reads an object by its fields.
  void ReadObject(const char* name, absl::FunctionRef<void(JsonFields&)> read);
  // Reads a field that most documents, or documents of earlier versions, do not have.
  template <class Value>
  void ReadIfThere(const char* name, Value& value) {
    if (object_.contains(name)) Read(name, value);
  }
  // Returns the value of a field for the caller to read; nullptr if it is missing. Must be an
  // array.
  const nlohmann::json* Array(const char* name);
  // The same of any type that most documents do not have, without an error where it is missing.
  const nlohmann::json* FindIfThere(const char* name) {
    return object_.contains(name) ? Find(name) : nullptr;
  }

  // Notes that the caller has read this field itself.
  void Ignore(const char* name) { read_.insert(name); }
  void Fail(const std::string& message);
  // Takes over an error of a part.
  void Update(const absl::Status& status);
  std::string PathOf(absl::string_view name) const;
  // Returns the first error, or that there is a field which nobody read.
  absl::Status Finish();

 private:
  const nlohmann::json* Find(const char* name);

  const nlohmann::json& object_;
  const std::string path_;
  const Missing missing_;
  std::set<std::string> read_;
  absl::Status status_;
};

// Parses `text`; InvalidArgument with the place if `text` is not one JSON object.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text, absl::string_view what);

nlohmann::json JsonOf(const std::map<std::string, Input>& inputs);
nlohmann::json JsonOf(const std::map<std::string, Output>& outputs);
nlohmann::json JsonOf(const Environment& environment);
nlohmann::json JsonOf(const Distribution& distribution);
nlohmann::json JsonOf(Priority priority);
// Adds the job's share of a node (LaunchPlan::cores and gpus) to a plan; adds nothing if the job
// has whole nodes.
void AddPart(const std::vector<int>& cores, const std::vector<std::string>& gpus,
             nlohmann::json& document);
// Writes it as text. Bytes that are no UTF-8 are replaced: JSON has no other text.
std::string Dump(const nlohmann::json& document);

}  // namespace tutti::spec
