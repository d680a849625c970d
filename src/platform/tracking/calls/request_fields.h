// Reads what a client of MLflow sends: the fields of a JSON body or, of a GET, of the query, by the
// rules of protobuf's JSON: numbers may be texts, and a number that is none is "NaN", "Infinity" or
// "-Infinity". Fields that nobody asks for are passed over. Errors are InvalidArgument and name the
// field. Internal to platform/tracking.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/message.h"

namespace tutti::tracking {

// Parses a body: one JSON object, "" as {}, whose values lie in each other no deeper than MLflow's
// do. A body of another kind is InvalidArgument.
absl::StatusOr<nlohmann::json> ParseRequest(absl::string_view body);
// Makes an object of a query; a key that is repeated has an array of its values.
nlohmann::json QueryObject(const http::Request& request);

// A field that is required and missing, null or an empty text is an error; one that is optional has
// then its default.
enum class Need { kOptional, kRequired };

// The first error stays; reads after it do nothing, so that a caller asks for the status once, at
// the end. Not thread-safe.
class RequestFields {
 public:
  // `object` outlives this. `path`: its place in the request, "" or "metrics[3].".
  explicit RequestFields(const nlohmann::json& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  // The own run of the job that asks (RunInfo::job_run); empty: a user asks.
  void set_job_run(std::string run) { job_run_ = std::move(run); }
  const std::string& job_run() const { return job_run_; }

  std::string Text(const char* name, Need need);
  // Returns a text that may be written as a whole number: an id, or a value of an enumeration.
  std::string TextOrNumber(const char* name, Need need);
  // Returns the first that is there: of a field that has an older name.
  std::string TextOf(const char* name, const char* older, Need need);
  std::optional<int64_t> Integer(const char* name, Need need);
  // Returns a number within the bounds, `otherwise` if there is none.
  int64_t Integer(const char* name, int64_t otherwise, int64_t least, int64_t most);
  double Number(const char* name);  // required
  std::vector<std::string> Texts(const char* name);
  // Returns the objects of an array, for fields of their own; empty if there is none.
  std::vector<const nlohmann::json*> Objects(const char* name);
  const nlohmann::json* Object(const char* name, Need need);
  std::string PathOf(const char* name) const { return path_ + name; }

  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* name, Need need);
  void FailType(const char* name, const nlohmann::json& value, absl::string_view wanted);

  const nlohmann::json& object_;
  const std::string path_;
  std::string job_run_;
  absl::Status status_;
};

}  // namespace tutti::tracking
